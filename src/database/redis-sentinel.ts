/**
 * Redis behind Sentinels: the primary is asked for before every connection, and the connection is refused if the server is
 * not a primary yet. The library's own Sentinel client repeats commands on a new primary before the limit
 * authority has checked it, so only the lookup is used.
 */
import { parseSentinelUrls } from '../core/text/sentinel-urls.ts'

const lookupMs = 1_000

/**
 * Returns the URL of the primary that the first answering Sentinel names, with the credentials of the servers. Throws if none
 * answers, none knows the name, or all reject the credentials.
 */
export async function primaryUrl(urls: readonly string[]): Promise<string> {
  const { createClient } = await import('redis')
  const { urls: sentinels, name, primaryPrefix } = parseSentinelUrls(urls)
  const lookups = sentinels.map(async url => {
    const client = createClient({
      url,
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
      return `${primaryPrefix}${host?.includes(':') ? `[${host}]` : host}:${port}`
    } finally {
      clearTimeout(timer)
      quietly(() => client.destroy())
    }
  })
  return Promise.any(lookups).catch((cause: unknown) => {
    const reasons: unknown[] = cause instanceof AggregateError ? cause.errors : [cause]
    // Reported before Sentinels that do not answer, since it needs another configuration.
    const rejection = reasons.find(isLoginRejection)
    if (rejection !== undefined)
      throw new Error(`a Sentinel rejects the login; check sentinel_password in REDIS_URL (${rejection.message})`)
    throw reasons[0] instanceof Error ? reasons[0] : new Error('no Sentinel answers')
  })
}

function isLoginRejection(cause: unknown): cause is Error {
  return cause instanceof Error && /^(NOAUTH|WRONGPASS|NOPERM|ERR AUTH) /.test(cause.message)
}

/** Closes what may be closed already. */
export function quietly(action: () => void): void {
  try {
    action()
  } catch {
    // It was already closed.
  }
}
