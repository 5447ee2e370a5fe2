/** Opens the meter of accounts, in this process or in Redis, and the path of usage records to the ledger. */
import type { Config } from '../config/config.ts'
import { createLocalRateLimiters, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import { createLimitKeys } from '../core/limits/redis.ts'
import type { DailyUsage } from '../core/usage/usage-record.ts'
import { type Channel, openChannel } from '../database/channel.ts'
import type { Database } from '../database/database.ts'
import { openRedis, type Redis, type RedisEvent } from '../database/redis.ts'
import { limitScripts, sharedLimits } from '../database/shared-limits.ts'
import type { Journal } from '../ledger/journal.ts'
import { createLimitLedger, createScopeSeed, createUsageSeed } from '../ledger/ledger.ts'
import { createShipper, type Shipper } from '../ledger/shipper.ts'
import { openOwnRecords } from '../ledger/take-over.ts'
import { createMemoryMeter } from '../limits/memory.ts'
import type { Meter } from '../limits/meter.ts'
import { checkScript, meterScripts } from '../limits/redis-upkeep-scripts.ts'
import { SharedMeter } from '../limits/shared.ts'
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
  readonly onLearned: (accountIds: readonly string[]) => void
}

/** Opens usage for this process. `undo` receives the functions that close it. */
export function openUsage(config: Config, parts: Parts, undo: AsyncDisposableStack): Usage {
  return config.redisUrls.length > 0 ? openShared(config, parts, undo) : openOwn(config, parts, undo)
}

function openOwn(config: Config, parts: Parts, undo: AsyncDisposableStack): Usage {
  const { database, clock } = parts
  const { journal, checkpoints } = openRecords(config, parts, undo)
  const spent = createUsageSeed(database, journal)
  const seedScopes = createScopeSeed(database, journal)
  const meter = createMemoryMeter({ clock, journal, checkpoints, seed: spent, seedScopes })
  undo.defer(() => meter.close())
  const shipper = createShipper({ ...parts, journal })
  undo.defer(() => shipper.close())
  return {
    meter,
    limits: createLocalRateLimiters(clock),
    redis: null,
    sharedRatio: () => null,
    spent,
    records: { ...shipper, fill: journal.fill },
    channel: () => null,
    ready: () => Promise.resolve(),
    drain: deadlineMs => shipper.drain(deadlineMs),
  }
}

function openRecords(config: Config, { log }: Pick<Parts, 'log'>, undo: AsyncDisposableStack) {
  const records = openOwnRecords(config, log)
  undo.defer(() => records.journal.close())
  undo.defer(() => records.checkpoints.close())
  return records
}

function describeRedisEvent(event: RedisEvent, detail: string): string {
  if (event === 'redis_unavailable')
    return `REDIS_URL: ${detail}; instances admit requests from their allowances until it serves`
  if (event === 'redis_evicts')
    return `REDIS_URL: maxmemory-policy is ${detail}, so that Redis drops counters and limits can be exceeded; set it to noeviction`
  return detail
}

/** Opens limits in Redis. */
function openShared(config: Config, parts: Parts, undo: AsyncDisposableStack): Usage {
  const { database, clock, log } = parts
  const { journal, checkpoints, unreported } = openRecords(config, parts, undo)
  const keys = createLimitKeys(config.redisUrls)
  const redis = openRedis({
    urls: config.redisUrls,
    deadlineMs: config.serviceDeadlines.redisMs,
    scripts: [...meterScripts, ...limitScripts],
    checks: keys.partitions.map(partition => ({ script: checkScript, keys: [keys.check(partition)] })),
    onEvent: (event, detail) =>
      log[event === 'redis_connected' ? 'info' : 'warn'](event, { detail: describeRedisEvent(event, detail) }),
  })
  undo.defer(() => redis.close())
  const meter = new SharedMeter({
    redis,
    keys,
    ledger: createLimitLedger(database),
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
