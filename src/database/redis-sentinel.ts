/**
 * Redis behind Sentinels: the primary is asked for before every connection, and the connection is refused if the server is
 * not a primary yet. The library's own Sentinel client repeats commands on a new primary before the limit
 * authority has checked it, so only the lookup is used.
 */
import { parseSentinelUrl } from '../core/text/sentinel-urls.ts'

const lookupMs = 1_000

/**
 * Returns the URL of the primary that the first answering Sentinel names, with the user and password of the first
 * URL. Throws if none answers, or none knows the name.
 */
export async function primaryUrl(urls: readonly string[]): Promise<string> {
  const { createClient } = await import('redis')
  const all = urls.map(parseSentinelUrl)
  const [first] = all
  const lookups = all.map(async ({ name, sentinel }) => {
    const client = createClient({
      url: sentinel,
      RESP: 2,
      maintNotifications: 'disabled',
      socket: { reconnectStrategy: false, noDelay: true },
    })
    client.on('error', () => {})
    // A frozen Sentinel never answers.
    const timer = setTimeout(() => quietly(() => client.destroy()), lookupMs)
    try {
      await client.connect()
      const reply = await client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name])
      if (!Array.isArray(reply)) throw new Error(`the Sentinels do not know ${name}`)
      const [host, port] = reply.map(String)
      return `${first?.scheme}://${first?.credentials}${host?.includes(':') ? `[${host}]` : host}:${port}`
    } finally {
      clearTimeout(timer)
      quietly(() => client.destroy())
    }
  })
  return Promise.any(lookups).catch((cause: unknown) => {
    const [reason] = cause instanceof AggregateError ? cause.errors : [cause]
    throw reason instanceof Error ? reason : new Error('no Sentinel answers')
  })
}

function quietly(action: () => void): void {
  try {
    action()
  } catch {
    // It was already closed.
  }
}
