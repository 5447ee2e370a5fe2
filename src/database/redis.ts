/**
 * The one way to Redis: commands behind a deadline and a breaker. A frozen server leaves a command pending for ever and its
 * client none the wiser, so a missed deadline ends the wait, and after a few the client is thrown away; a new one is tried
 * once a second. What was given up on may still be carried out: every script is keyed by request id and safe to repeat.
 */
import { createClient, createCluster } from 'redis'
import { RedisUnavailableError } from '../core/limits/redis-away.ts'
import type { Script } from '../core/limits/script.ts'
import { createPatience } from './patience.ts'

export type Redis = {
  /**
   * One command on the node that holds `key`. Throws `RedisAway`, or what Redis itself refused it with. Waits `deadlineMs`
   * at most, 250 unless told, of the time that this process is not busy with other work.
   */
  send(key: string, command: readonly string[], deadlineMs?: number): Promise<unknown>
  /** One script, by its digest; loaded where Redis does not know it yet. All `keys` are in one slot. */
  evaluate(script: Script, keys: readonly string[], values: readonly string[], deadlineMs?: number): Promise<unknown>
  isReady(): boolean
  /** Connections that failed since the last one that served: evidence that Redis is away, not that this process is busy. */
  failedConnections(): number
  /** Hears of Redis answering again, and of its being given up. */
  onChange(listener: (isReady: boolean) => void): void
  close(): void
}

export type RedisOptions = {
  /** Loaded with every new connection, so that the first requests after it do not all carry their source. */
  readonly scripts?: readonly Script[]
  /** `redis://` or `rediss://` addresses: one server, or some nodes of a cluster. */
  readonly urls: readonly string[]
  /** What a command is given unless it says otherwise: 250 ms. */
  readonly commandDeadlineMs?: number
  /** Hears of every opening and closing of the breaker. */
  readonly onEvent?: (event: 'redis_away' | 'redis_back', detail: string) => void
}

type Client = {
  connect(): Promise<unknown>
  send(key: string, command: readonly string[]): Promise<unknown>
  destroy(): void
}

const defaultCommandDeadlineMs = 250
const connectDeadlineMs = 250
/** The client's own deadline is wall-clock time, which a busy process misses: ours comes first. */
const clientConnectDeadlineMs = 10_000
const failuresUntilOpen = 3
const probeEveryMs = 1000
const soonProbeMs = 100
/** Connections that are tried soon after one another. */
const soonProbes = 5
/** A connection that merely broke is most likely to be had again at once. */
const firstProbeMs = 20

/** Starts dialling and returns at once; commands throw `RedisAway` until Redis has answered. */
export function openRedis(options: RedisOptions): Redis {
  const { urls, scripts = [], commandDeadlineMs = defaultCommandDeadlineMs, onEvent = () => {} } = options
  const listeners: ((isReady: boolean) => void)[] = []
  const { within } = createPatience()
  let current: Client | null = null
  let failures = 0
  let failedAt = Number.NEGATIVE_INFINITY
  let failedConnections = 0
  let closed = false
  /** Told once for as long as it lasts. */
  let isAwayTold = false
  let timer: ReturnType<typeof setTimeout> | null = null

  const probeIn = (milliseconds: number) => {
    if (!closed) timer = setTimeout(() => void probe(), milliseconds)
  }

  const probe = async () => {
    const client = dial(urls, cause => {
      if (current === client) giveUp(cause)
    })
    try {
      await within(client.connect(), connectDeadlineMs)
      await within(client.send('probe', ['PING']), commandDeadlineMs)
      await within(
        Promise.all(scripts.map(one => client.send('probe', ['SCRIPT', 'LOAD', one.source]))),
        connectDeadlineMs,
      )
      if (closed) return client.destroy()
      failures = 0
      failedConnections = 0
      current = client
      isAwayTold = false
      onEvent('redis_back', '')
      for (const listener of listeners) listener(true)
    } catch (cause) {
      client.destroy()
      if (!closed) tellAway(reasonOf(cause))
      probeIn(++failedConnections < soonProbes ? soonProbeMs : probeEveryMs)
    }
  }

  const tellAway = (reason: string) => {
    if (!isAwayTold) onEvent('redis_away', reason)
    isAwayTold = true
  }

  const giveUp = (reason: string) => {
    if (current === null) return
    // Pending commands reject at once; waiting for them would be waiting for the frozen server.
    current.destroy()
    current = null
    tellAway(reason)
    for (const listener of listeners) listener(false)
    probeIn(failures < failuresUntilOpen ? firstProbeMs : probeEveryMs)
  }

  const send = async (key: string, command: readonly string[], deadlineMs = commandDeadlineMs): Promise<unknown> => {
    const client = current
    if (client === null) throw new RedisUnavailableError('not connected')
    const sentAt = performance.now()
    try {
      const reply = await within(client.send(key, command), deadlineMs)
      failures = 0
      return reply
    } catch (cause) {
      if (isRefusal(cause)) throw cause
      const reason = reasonOf(cause)
      // A hundred that were sent together and are late together are late once.
      if (client === current && sentAt >= failedAt) {
        failedAt = performance.now()
        if (++failures >= failuresUntilOpen) giveUp(reason)
      }
      throw new RedisUnavailableError(reason)
    }
  }

  void probe()
  return {
    send,
    async evaluate({ source, digest }, keys, values, deadlineMs) {
      const rest = [String(keys.length), ...keys, ...values]
      try {
        return await send(keys[0] ?? '', ['EVALSHA', digest, ...rest], deadlineMs)
      } catch (cause) {
        if (!(cause instanceof Error) || !cause.message.startsWith('NOSCRIPT')) throw cause
        return send(keys[0] ?? '', ['EVAL', source, ...rest], deadlineMs)
      }
    },
    isReady: () => current !== null,
    failedConnections: () => failedConnections,
    onChange: listener => void listeners.push(listener),
    close() {
      closed = true
      if (timer !== null) clearTimeout(timer)
      current?.destroy()
      current = null
    },
  }
}

/** A client that never reconnects by itself: when to try again is decided above, in one place. */
function dial(urls: readonly string[], onBroken: (reason: string) => void): Client {
  const options = {
    RESP: 2,
    disableOfflineQueue: true,
    // Asked for when a connection is made, and an error on every server that is not a hosted one.
    maintNotifications: 'disabled',
    socket: { reconnectStrategy: false, connectTimeout: clientConnectDeadlineMs, noDelay: true },
  } as const
  const [first = ''] = urls
  if (urls.length === 1) {
    // Its own deadline is a signal and a listener for every command; ours gives the whole client up.
    const client = createClient({ ...options, url: first, commandOptions: { timeout: 0 } })
    // Without a listener a broken connection would end the process.
    client.on('error', (cause: unknown) => onBroken(reasonOf(cause)))
    return {
      connect: () => client.connect(),
      send: (_, command) => client.sendCommand(command),
      destroy: () => quietly(() => client.destroy()),
    }
  }
  const { username, password, protocol } = new URL(first)
  const cluster = createCluster({
    rootNodes: urls.map(url => ({ url })),
    defaults: {
      ...options,
      socket: {
        ...options.socket,
        reconnectStrategy: retries => Math.min(500, 50 * 2 ** retries),
        tls: protocol === 'rediss:',
      },
      ...(username === '' ? {} : { username: decodeURIComponent(username) }),
      ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    },
  })
  // One node of many: its commands fail by themselves, the others' go on.
  cluster.on('error', () => {})
  return {
    connect: () => cluster.connect(),
    send: (key, command) => cluster.sendCommand(key, false, [...command]),
    destroy: () => quietly(() => cluster.destroy()),
  }
}

/** In words; of several addresses that failed alike, by the code. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'connection lost'
  return cause.message || ('code' in cause && typeof cause.code === 'string' ? cause.code : 'no connection')
}

/** What Redis answered with; not the kind that says it cannot serve at all. */
function isRefusal(cause: unknown): boolean {
  if (!(cause instanceof Error) || !/^[A-Z]+ /.test(cause.message)) return false
  return !/^(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|MISCONF|OOM|BUSY|TRYAGAIN|NOREPLICAS) /.test(cause.message)
}

function quietly(action: () => void): void {
  try {
    action()
  } catch {
    // It was closed already.
  }
}
