import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Clock, Log } from '../core/ports.ts'
import { formatDay } from '../core/text/utc-days.ts'
import type { Database } from '../database/database.ts'
import { openRedis, type Redis } from '../database/redis.ts'
import { limitScripts } from '../database/shared-limits.ts'
import { type Checkpoints, openCheckpoints } from '../ledger/checkpoints.ts'
import type { Journal } from '../ledger/journal.ts'
import { createScopeSeed, createUsageSeed } from '../ledger/ledger.ts'
import type { ShipperOptions } from '../ledger/shipper.ts'
import { createUsageStream, type UsageStream } from '../ledger/usage-stream.ts'
import { FailoverMeter } from '../limits/failover/failover.ts'
import { createLocalMeter, type LocalMeter } from '../limits/local/meter.ts'
import type { Meter } from '../limits/meter.ts'
import { meterChecks, meterScripts } from '../limits/redis/upkeep-scripts.ts'

type Opened = {
  readonly meter: Meter
  readonly stream: UsageStream | null
  readonly redis: Redis | null
  readonly sharedRatio: () => number | null
  /** Connection to Redis for the shipper, if Redis is configured. */
  readonly shipping: Pick<ShipperOptions, 'stream' | 'correct'>
  /** Resolves when a store decides limits, at the latest after `waitMs`. */
  readonly ready: (waitMs: number) => Promise<void>
}

type Parts = { readonly database: Database; readonly journal: Journal; readonly clock: Clock; readonly log: Log }

/** Opens limits in this process. Open requests of an earlier process are settled first. */
export function openLocalMeter(config: Config, parts: Parts, undo: (() => unknown)[]): LocalMeter {
  const { database, journal, clock } = parts
  const meter = createLocalMeter({
    clock,
    journal,
    checkpoints: openSettledCheckpoints(config, parts, undo),
    seed: createUsageSeed(database, journal),
    seedScopes: createScopeSeed(database, journal),
  })
  undo.push(() => meter.close())
  return meter
}

function openSettledCheckpoints(config: Config, { journal, log }: Parts, undo: (() => unknown)[]): Checkpoints {
  const checkpoints = openCheckpoints(join(config.ownDirectory, 'journal'))
  undo.push(() => checkpoints.close())
  checkpoints.settleLeft(record => {
    const waiting = journal.unshipped(record.account_id, formatDay(record.at_ms))
    if (waiting.some(other => other.request_id === record.request_id)) return
    try {
      journal.append(record)
    } catch (cause) {
      // On a full disk, records wait in the journal's memory and are shipped from there.
      log.error('checkpoint_settlement_failed', { detail: cause instanceof Error ? cause.message : 'unknown' })
    }
  })
  return checkpoints
}

/**
 * Opens limits in this process, or in Redis while Redis is available. Open requests of an earlier process are settled
 * first.
 */
export function openMeter(config: Config, parts: Parts, undo: (() => unknown)[]): Opened {
  if (config.redisUrls.length === 0) {
    const meter = openLocalMeter(config, parts, undo)
    return { meter, stream: null, redis: null, sharedRatio: () => null, shipping: {}, ready: async () => {} }
  }
  const { database, journal, clock, log } = parts
  const checkpoints = openSettledCheckpoints(config, parts, undo)
  const redis = openRedis({
    urls: config.redisUrls,
    deadlineMs: config.serviceDeadlines.redisMs,
    scripts: [...meterScripts, ...limitScripts],
    checks: meterChecks,
    onEvent: (event, detail) =>
      log[event === 'redis_connected' ? 'info' : 'warn'](event, {
        detail:
          event === 'redis_unavailable' ? `REDIS_URL: ${detail}; Postgres decides limits until it answers` : detail,
      }),
  })
  undo.push(async () => {
    // Acknowledgements are flushed without waiting. Otherwise another instance would ship the same records again.
    await redis.send('last', ['PING']).catch(() => {})
    redis.close()
  })
  const gatewayId = Bun.randomUUIDv7()
  const meter = new FailoverMeter({
    redis,
    database,
    clock,
    journal,
    checkpoints,
    gatewayId,
    deadlines: config.serviceDeadlines,
    onEvent: (event, detail) => log.warn(event, { detail }),
  })
  undo.push(() => meter.close())
  const onDamage = (detail: string) => log.error('usage_stream_corrupted', { detail })
  const stream = createUsageStream({ redis, gatewayId, monotonic: clock.monotonic, kept: meter.kept, onDamage })
  return {
    meter,
    stream,
    redis,
    sharedRatio: () => (meter.isShared() ? 1 : 0),
    shipping: { stream, correct: settledTwice => meter.correct(settledTwice) },
    ready: waitMs => meter.ready(waitMs),
  }
}
