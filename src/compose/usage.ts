/**
 * Opens the meter of accounts and the path of usage records to the ledger: in this process, in Redis, or in the process
 * that owns the limits.
 */
import type { Config } from '../config/config.ts'
import { createLocalRateLimiters, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { DailyUsage, UsageRecord } from '../core/usage/usage-record.ts'
import { type Channel, openChannel } from '../database/channel.ts'
import type { Database } from '../database/database.ts'
import { socketPathIn } from '../database/embedded.ts'
import { openRedis, type Redis, type RedisEvent } from '../database/redis.ts'
import { limitScripts, sharedLimits } from '../database/shared-limits.ts'
import type { Journal } from '../ledger/journal.ts'
import { createScopeSeed, createUsageSeed } from '../ledger/ledger.ts'
import { createShipper, type Shipper } from '../ledger/shipper.ts'
import { openOwnJournal, openOwnRecords } from '../ledger/take-over.ts'
import { FailoverMeter } from '../limits/failover/failover.ts'
import { createLocalMeter } from '../limits/local/meter.ts'
import type { Meter } from '../limits/meter.ts'
import { createOwnerClient, type OwnerClient } from '../limits/owner/client.ts'
import { connectLocally } from '../limits/owner/local-socket.ts'
import type { OwnerMessage, WorkerMessage } from '../limits/owner/messages.ts'
import { meterChecks, meterScripts } from '../limits/redis/upkeep-scripts.ts'
import type { RecordJournal } from '../limits/settled-record.ts'
import type { Process } from './process.ts'

export type Usage = {
  readonly meter: Meter
  /** Limits for clients without an account. */
  readonly limits: RateLimiterFactory
  readonly redis: Redis | null
  readonly sharedRatio: () => number | null
  /** Daily usage of an account on a UTC day (days since the epoch): shipped and unshipped records. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  /** Unshipped usage records, as the gauges report them. */
  readonly records: Pick<Shipper, 'backlog' | 'aside' | 'lagMs'> & Pick<Journal, 'fill'>
  /**
   * Connects to the other gateway instances; `onHint` is called when one of them reports a change. Null = there are no
   * others.
   */
  channel(onHint: () => void): Channel | null
  /** Resolves when limits can be decided, at the latest after `waitMs`. */
  ready(waitMs: number): Promise<void>
  /** Ships the unshipped records. Returns false if some remain. */
  drain(deadlineMs: number): Promise<boolean>
}

type Parts = Pick<Process, 'clock' | 'log'> & {
  readonly database: Database
  readonly learn: (records: readonly UsageRecord[]) => Promise<void>
}

/** Socket of the process that owns the limits of a data folder. */
export const ownerSocketPath = (dataDirectory: string) => socketPathIn(dataDirectory, 'limits.sock')

/** Opens usage for this process. `undo` receives the functions that close it. */
export async function openUsage(config: Config, parts: Parts, undo: AsyncDisposableStack): Promise<Usage> {
  if (config.redisUrls.length > 0) return openShared(config, parts, undo)
  // Without Redis, the supervisor of several workers owns their limits.
  return config.worker === null ? openOwn(config, parts, undo) : joinOwner(config, parts, undo)
}

function openOwn(config: Config, parts: Parts, undo: AsyncDisposableStack): Usage {
  const { journal, meter, shipper } = openLocalUsage(config, parts, undo)
  return {
    meter,
    limits: createLocalRateLimiters(parts.clock),
    redis: null,
    sharedRatio: () => null,
    spent: createUsageSeed(parts.database, journal),
    records: { ...shipper, fill: journal.fill },
    channel: () => null,
    ready: () => Promise.resolve(),
    drain: deadlineMs => shipper.drain(deadlineMs),
  }
}

/** Opens limits and usage in this process. Open requests of an earlier process are settled first. */
export function openLocalUsage(config: Config, parts: Parts, undo: AsyncDisposableStack) {
  const { database, clock } = parts
  const { journal, checkpoints } = openRecords(config, parts, undo)
  const meter = createLocalMeter({
    clock,
    journal,
    checkpoints,
    seed: createUsageSeed(database, journal),
    seedScopes: createScopeSeed(database, journal),
  })
  undo.defer(() => meter.close())
  const shipper = createShipper({ ...parts, journal })
  undo.defer(() => shipper.close())
  return { journal, meter, shipper }
}

function openRecords(config: Config, { log }: Pick<Parts, 'log'>, undo: AsyncDisposableStack) {
  const records = openOwnRecords(config, log)
  undo.defer(() => records.journal.close())
  undo.defer(() => records.checkpoints.close())
  return records
}

function describeRedisEvent(event: RedisEvent, detail: string): string {
  if (event === 'redis_unavailable') return `REDIS_URL: ${detail}; Postgres decides limits until it serves`
  if (event === 'redis_evicts')
    return `REDIS_URL: maxmemory-policy is ${detail}, so that Redis drops counters and limits can be exceeded; set it to noeviction`
  return detail
}

/** Opens limits in Redis while Redis is available, and otherwise in Postgres. */
function openShared(config: Config, parts: Parts, undo: AsyncDisposableStack): Usage {
  const { database, clock, log } = parts
  const { journal, checkpoints, unreported } = openRecords(config, parts, undo)
  const redis = openRedis({
    urls: config.redisUrls,
    deadlineMs: config.serviceDeadlines.redisMs,
    scripts: [...meterScripts, ...limitScripts],
    checks: meterChecks,
    onEvent: (event, detail) =>
      log[event === 'redis_connected' ? 'info' : 'warn'](event, { detail: describeRedisEvent(event, detail) }),
  })
  undo.defer(() => redis.close())
  const meter = new FailoverMeter({
    redis,
    database,
    clock,
    journal,
    checkpoints,
    gatewayId: Bun.randomUUIDv7(),
    deadlines: config.serviceDeadlines,
    onEvent: (event, detail) => log.warn(event, { detail }),
  })
  undo.defer(() => meter.close())
  meter.takeOver(unreported)
  const shipper = createShipper({ ...parts, journal })
  undo.defer(() => shipper.close())
  return {
    meter,
    limits: sharedLimits({ redis, clock }),
    redis,
    sharedRatio: () => (meter.isShared() ? 1 : 0),
    spent: createUsageSeed(database, journal),
    records: { ...shipper, fill: journal.fill },
    channel: onHint => openChannel({ urls: config.redisUrls, redis, onHint }),
    ready: waitMs => meter.ready(waitMs),
    drain: deadlineMs => shipper.drain(deadlineMs),
  }
}

/** Joins the process that owns the limits. */
async function joinOwner(config: Config, { clock, log }: Parts, undo: AsyncDisposableStack): Promise<Usage> {
  let journal: Journal | null = null
  const ownJournal = (): RecordJournal => (journal ??= openOwnJournal(config.ownDirectory, log))
  undo.defer(() => journal?.close())
  let onChanged = () => {}
  let isClosing = false
  const joined = Promise.withResolvers<OwnerClient>()
  const peer = await connectLocally<OwnerMessage, WorkerMessage>(ownerSocketPath(config.dataDirectory), owner => {
    const client = createOwnerClient({
      worker: config.worker ?? 0,
      deadlineMs: config.serviceDeadlines.limitOwnerMs,
      clock,
      send: owner.send,
      journal: ownJournal,
      onChanged: () => onChanged(),
    })
    joined.resolve(client)
    return {
      receive: client.receive,
      closed() {
        if (!isClosing) log.warn('limit_owner_gone')
        client.lost()
      },
    }
  })
  undo.defer(() => {
    isClosing = true
    peer.close()
  })
  const client = await joined.promise
  undo.defer(() => client.meter.close())
  return {
    meter: client.meter,
    limits: client.limits,
    redis: null,
    sharedRatio: () => null,
    spent: client.spent,
    // All workers share one owner of the limits. Only the first worker reports it, so that a sum over workers is
    // correct.
    records: {
      backlog: () => (config.worker === 1 ? client.backlog().records : 0),
      aside: () => (config.worker === 1 ? client.backlog().aside : 0),
      lagMs: () => (config.worker === 1 ? client.backlog().lagMs : 0),
      // The owner of the limits rejects requests while its journal is full.
      fill: () => 0,
    },
    channel(onHint) {
      onChanged = onHint
      return { publish: client.changed, close() {} }
    },
    ready: () => Promise.resolve(),
    drain: deadlineMs => client.drained(deadlineMs),
  }
}
