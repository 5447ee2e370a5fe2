/**
 * The only access to Redis: commands behind a deadline and a circuit breaker. A frozen server leaves a command pending
 * forever without an error, so a missed deadline ends the wait, and after some of them the client is discarded; a new
 * one is tried once per second. A timed-out command may still be executed: every script is keyed by request ID and safe
 * to repeat.
 */

import { RedisUnavailableError, type Script } from '../core/limits/redis.ts'
import { usualDeadlines } from '../core/request/deadlines.ts'
import { isSentinelUrl } from '../core/text/sentinel-urls.ts'
import { createPatience } from './patience.ts'
import { primaryUrl, quietly } from './redis-sentinel.ts'

export type Redis = {
  /**
   * Sends one command to the node that holds `key`. Throws `RedisUnavailableError`, or Redis' own error. Waits at most
   * `deadlineMs` (default 250) of the time in which this process is not busy.
   */
  send(key: string, command: readonly string[], deadlineMs?: number): Promise<unknown>
  /** Runs one script by its digest, loading it if needed. All `keys` are in one slot. */
  evaluate(script: Script, keys: readonly string[], values: readonly string[], deadlineMs?: number): Promise<unknown>
  /** Resolves like `promise`. Throws `RedisUnavailableError` after `deadlineMs` of the time in which this process is not busy. */
  within<T>(promise: Promise<T>, deadlineMs: number): Promise<T>
  isReady(): boolean
  /**
   * Returns how many connections failed since the last successful one: evidence that Redis is unavailable and this
   * process is not just busy.
   */
  failedConnections(): number
  /** Calls `listener` when Redis becomes available or unavailable, and with false when a cluster loses a node. */
  onChange(listener: (isReady: boolean) => void): void
  close(): void
}

/** The first connection, the begin of an outage, its end, and a connection to a server that evicts keys. */
export type RedisEvent = 'redis_connected' | 'redis_unavailable' | 'redis_recovered' | 'redis_evicts'

type RedisOptions = {
  /** Loaded with every new connection, so that the first requests do not all send the source. */
  readonly scripts?: readonly Script[]
  /**
   * What Redis must do to count as available: run with every new connection, and when a reply says that Redis cannot
   * serve. Without it, a Redis that is full or read-only would be available to each connection and useless to all.
   */
  readonly checks?: readonly RedisCheck[]
  /** `redis://` or `rediss://` URLs: one server, or some nodes of a cluster; or those of Sentinels (`redis-sentinel.ts`). */
  readonly urls: readonly string[]
  /** Deadline of a connection, and of a command that states none; stated ones change by the same factor. Default: 250 ms. */
  readonly deadlineMs?: number
  /** Called whenever the circuit opens or closes. */
  readonly onEvent?: (event: RedisEvent, detail: string) => void
}

/** One script and its keys, all in one slot. It replies `INFO memory` of its server. */
type RedisCheck = { readonly script: Script; readonly keys: readonly string[] }

type Client = {
  connect(): Promise<unknown>
  send(key: string, command: readonly string[]): Promise<unknown>
  destroy(): void
}

/** The client's own deadline is wall-clock time, which a busy process misses; ours ends first. */
const clientConnectDeadlineMs = 10_000
const failuresUntilOpen = 3
const probeEveryMs = 1000
const soonProbeMs = 100
/** Number of connection attempts in quick succession. */
const soonProbes = 5
/** A connection that just broke can usually be opened again at once. */
const firstProbeMs = 20

/** Starts connecting and returns at once. Commands throw `RedisUnavailableError` until Redis has answered. */
export function openRedis(options: RedisOptions): Redis {
  const {
    urls,
    scripts = [],
    checks = [],
    deadlineMs: usualDeadlineMs = usualDeadlines.redisMs,
    onEvent = () => {},
  } = options
  const listeners: ((isReady: boolean) => void)[] = []
  const factor = usualDeadlineMs / usualDeadlines.redisMs
  const { within } = createPatience()
  let current: Client | null = null
  let failures = 0
  let failedAt = Number.NEGATIVE_INFINITY
  let failedConnections = 0
  let closed = false
  /** Reported once per outage. */
  let isAwayTold = false
  let wasConnected = false
  let checking: Promise<boolean> | null = null
  let timer: ReturnType<typeof setTimeout> | null = null

  const probeIn = (milliseconds: number) => {
    if (!closed) timer = setTimeout(() => void probe(), milliseconds)
  }

  const probe = async () => {
    let client: Client
    let servers: readonly string[]
    try {
      servers = await within(addresses(urls), usualDeadlineMs)
      client = await dial(
        servers,
        cause => {
          if (current === client) giveUp(cause)
        },
        () => {
          if (current === client) for (const listener of listeners) listener(false)
        },
      )
    } catch (cause) {
      return failed(cause)
    }
    try {
      await within(client.connect(), usualDeadlineMs)
      if (isSentinelUrl(urls[0] ?? '')) await refuseReplica(within(client.send('probe', ['ROLE']), usualDeadlineMs))
      // A node of a cluster may be dead: the checks decide, and each node loads a script when it is first needed.
      const first = servers.length > 1 ? [] : [['PING'], ...scripts.map(({ source }) => ['SCRIPT', 'LOAD', source])]
      await within(Promise.all(first.map(command => client.send('probe', command))), usualDeadlineMs)
      const [eviction] = (await check(client)).flatMap(info => getEviction(String(info)) ?? [])
      if (closed) return client.destroy()
      failures = 0
      failedConnections = 0
      current = client
      isAwayTold = false
      onEvent(wasConnected ? 'redis_recovered' : 'redis_connected', '')
      wasConnected = true
      if (eviction !== undefined) onEvent('redis_evicts', eviction)
      for (const listener of listeners) listener(true)
    } catch (cause) {
      client.destroy()
      failed(cause)
    }
  }

  /** Returns the replies of the checks. Rejects unless Redis does what they ask of it; one node of a cluster is enough. */
  const check = async (client: Client): Promise<readonly unknown[]> => {
    const replies = await Promise.allSettled(
      // By its source: each node of a cluster has scripts of its own.
      checks.map(({ script, keys }) =>
        within(client.send(keys[0] ?? '', ['EVAL', script.source, String(keys.length), ...keys]), usualDeadlineMs),
      ),
    )
    const failed = replies.find(reply => reply.status === 'rejected')
    if (failed !== undefined && replies.every(reply => reply.status === 'rejected')) throw failed.reason
    return replies.flatMap(reply => (reply.status === 'fulfilled' ? [reply.value] : []))
  }

  /** Returns whether Redis still passes the checks, once for all that ask at the same time. Discards the client if not. */
  const stillServes = (client: Client): Promise<boolean> => {
    checking ??= check(client)
      .then(
        () => true,
        cause => {
          if (client === current) {
            failedConnections++
            giveUp(getReason(cause))
          }
          return false
        },
      )
      .finally(() => {
        checking = null
      })
    return checking
  }

  const failed = (cause: unknown) => {
    if (!closed) tellAway(getReason(cause))
    probeIn(++failedConnections < soonProbes ? soonProbeMs : probeEveryMs)
  }

  const tellAway = (reason: string) => {
    if (!isAwayTold) onEvent('redis_unavailable', reason)
    isAwayTold = true
  }

  const giveUp = (reason: string) => {
    if (current === null) return
    // Pending commands reject at once; a graceful end would wait for the frozen server.
    const client = current
    current = null
    client.destroy()
    tellAway(reason)
    for (const listener of listeners) listener(false)
    probeIn(failures < failuresUntilOpen ? firstProbeMs : probeEveryMs)
  }

  const send = async (
    key: string,
    command: readonly string[],
    deadlineMs = usualDeadlines.redisMs,
  ): Promise<unknown> => {
    const client = current
    if (client === null) throw new RedisUnavailableError('not connected')
    const sentAt = performance.now()
    try {
      const reply = await within(client.send(key, command), deadlineMs * factor)
      failures = 0
      return reply
    } catch (cause) {
      const reason = getReason(cause)
      const isReply = cause instanceof Error && /^[A-Z]{2,} /.test(cause.message)
      if (isReply && ofCommand.test(reason)) throw cause
      // `ERR` is an error of the command, or of its scripts' permissions.
      if (isReply && (await stillServes(client)) && reason.startsWith('ERR ')) throw cause
      // Many commands that were sent together and are late count as one failure.
      if (!isReply && client === current && sentAt >= failedAt) {
        failedAt = performance.now()
        if (++failures >= failuresUntilOpen) giveUp(reason)
      }
      throw new RedisUnavailableError(reason)
    }
  }

  void probe()
  return {
    send,
    within,
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
      const client = current
      current = null
      client?.destroy()
    },
  }
}

/**
 * Creates a client that never reconnects on its own: reconnection is decided only above. Its library is loaded with the
 * first client, because it takes a quarter of a start that needs no Redis.
 */
async function dial(
  urls: readonly string[],
  onBroken: (reason: string) => void,
  onNodeLost: () => void,
): Promise<Client> {
  const { createClient, createCluster } = await import('redis')
  const options = {
    RESP: 2,
    disableOfflineQueue: true,
    // Requested on each connection by default, and an error on every server that is not hosted by Redis.
    maintNotifications: 'disabled',
    socket: { reconnectStrategy: false, connectTimeout: clientConnectDeadlineMs, noDelay: true },
  } as const
  const [first = ''] = urls
  if (urls.length === 1) {
    // The client's own command timeout creates a signal and a listener per command; our deadline discards the whole
    // client instead.
    const client = createClient({ ...options, url: first, commandOptions: { timeout: 0 } })
    // Without a listener a broken connection would end the process.
    client.on('error', (cause: unknown) => onBroken(getReason(cause)))
    return {
      connect: () => client.connect(),
      send: (_, command) => client.sendCommand(command),
      destroy: () => quietly(() => client.destroy()),
    }
  }
  const { username, password, protocol } = new URL(first)
  const cluster = createCluster({
    rootNodes: urls.map(url => ({ url })),
    // Otherwise it waits for each node, also for a dead one.
    minimizeConnections: true,
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
  // One of several nodes: its commands fail, those of other nodes continue.
  cluster.on('error', () => {})
  cluster.on('node-error', onNodeLost)
  cluster.on('node-disconnect', onNodeLost)
  return {
    connect: () => cluster.connect(),
    send: (key, command) => cluster.sendCommand(key, false, [...command]),
    destroy: () => quietly(() => cluster.destroy()),
  }
}

/** Returns the policy by which a server evicts keys, from its `INFO memory`; null = it evicts none. */
export function getEviction(info: string): string | null {
  const getField = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null
  const policy = getField('maxmemory_policy') ?? 'policy unknown'
  return [null, '0'].includes(getField('maxmemory')) || policy === 'noeviction' ? null : policy
}

/** Returns the servers to connect to: the primary if these are Sentinels. */
async function addresses(urls: readonly string[]): Promise<readonly string[]> {
  return isSentinelUrl(urls[0] ?? '') ? [await primaryUrl(urls)] : urls
}

async function refuseReplica(role: Promise<unknown>): Promise<void> {
  const reply = await role
  if (!Array.isArray(reply) || String(reply[0]) !== 'master')
    throw new Error('the Sentinels name a server that is no primary')
}

/** Returns an error text; for several addresses that failed alike, the code. */
function getReason(cause: unknown): string {
  if (!(cause instanceof Error)) return 'connection lost'
  return cause.message || ('code' in cause && typeof cause.code === 'string' ? cause.code : 'no connection')
}

/**
 * Codes of error replies about the command itself. Any other, also one that this program does not know, can mean that
 * Redis does not serve: out of memory, read-only, loading, without permission.
 */
const ofCommand = /^(?:WRONGTYPE|NOSCRIPT|NOGROUP|BUSYGROUP|BUSYKEY|CROSSSLOT|EXECABORT|NOTBUSY) /
