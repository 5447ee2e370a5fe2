/**
 * Notifies other gateway instances through Redis that keys or accounts have changed, so that they read changes at once.
 * Only a hint is sent, and none is required: an instance without hints polls twice per second.
 */
import { isSentinelUrl } from '../core/text/sentinel-urls.ts'
import type { Redis } from './redis.ts'
import { primaryUrl, quietly } from './redis-sentinel.ts'

export type Channel = {
  /** Notifies the others. Never throws and waits for nothing. */
  publish(): void
  close(): void
}

type ChannelOptions = {
  /** One server, nodes of a cluster, or Sentinels. Any node of a cluster works, since each forwards messages. */
  readonly urls: readonly string[]
  readonly redis: Pick<Redis, 'send'>
  /** Called when something has changed, or may have changed while the connection was lost. */
  readonly onHint: () => void
}

const name = 'gateway:changes'
const connectDeadlineMs = 500
const retryMs = 500

/** Starts listening on a separate connection. Its timer does not keep the process alive. */
export function openChannel({ urls, redis, onHint }: ChannelOptions): Channel {
  let current: { destroy(): void } | null = null
  let isClosed = false
  let tries = 0

  const address = async () => {
    const [first = ''] = urls
    return isSentinelUrl(first) ? primaryUrl(urls) : withCredentials(urls[tries++ % urls.length] ?? '', first)
  }
  const retry = () => {
    if (!isClosed) setTimeout(() => void listen(), retryMs).unref()
  }

  const listen = async () => {
    const { createClient } = await import('redis')
    if (isClosed) return
    const url = await address().catch(() => null)
    if (url === null) return retry()
    const client = createClient({
      url,
      RESP: 2,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      socket: { reconnectStrategy: false, connectTimeout: connectDeadlineMs, noDelay: true },
    })
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      quietly(() => client.destroy())
      retry()
    }
    // Without a listener a broken connection would end the process.
    client.on('error', over)
    client.on('end', over)
    current = { destroy: () => quietly(() => client.destroy()) }
    try {
      await client.connect()
      await client.subscribe(name, onHint)
      onHint()
    } catch {
      over()
    }
    if (isClosed) over()
  }

  void listen()
  return {
    publish: () => void redis.send(name, ['PUBLISH', name, '']).catch(() => {}),
    close() {
      isClosed = true
      current?.destroy()
    },
  }
}

/** The nodes of a cluster share the credentials of the first. */
function withCredentials(url: string, first: string): string {
  const [node, { username, password }] = [new URL(url), new URL(first)]
  if (node.username === '' && node.password === '') Object.assign(node, { username, password })
  return node.href
}
