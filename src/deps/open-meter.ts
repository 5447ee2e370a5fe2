import { join } from 'node:path'
import type { Config } from '../config.ts'
import { dayOf } from '../core/days.ts'
import { FailoverMeter } from '../limits/failover.ts'
import { createLocalMeter } from '../limits/local/meter.ts'
import type { Meter } from '../limits/meter.ts'
import { meterScripts } from '../limits/redis/upkeep-scripts.ts'
import type { Log } from '../observe/log.ts'
import { openCheckpoints } from '../stores/checkpoints.ts'
import type { Database } from '../stores/database.ts'
import type { Journal } from '../stores/journal.ts'
import { seedFrom } from '../stores/ledger.ts'
import { openRedis, type Redis } from '../stores/redis.ts'
import { limitScripts } from '../stores/scripts/limits.ts'
import type { ShipperOptions } from '../stores/shipper.ts'
import { createUsageStream, type UsageStream } from '../stores/usage-stream.ts'
import type { Clock } from './clock.ts'

type Opened = {
  readonly meter: Meter
  readonly stream: UsageStream | null
  readonly redis: Redis | null
  readonly sharedRatio: () => number | null
  /** What the shipper needs of it where there is Redis. */
  readonly shipping: Pick<ShipperOptions, 'stream' | 'correct'>
}

/** Limits in this process, or in Redis while it answers. What an earlier process left open is settled first. */
export function openMeter(
  config: Config,
  { database, journal, clock, log }: { database: Database; journal: Journal; clock: Clock; log: Log },
  undo: (() => unknown)[],
): Opened {
  const checkpoints = openCheckpoints(join(config.ownDirectory, 'journal'))
  undo.push(() => checkpoints.close())
  checkpoints.settleLeft(record => {
    const waiting = journal.unshipped(record.account_id, dayOf(record.at_ms))
    if (waiting.some(other => other.request_id === record.request_id)) return
    try {
      journal.append(record)
    } catch (cause) {
      // On a full disk it waits in the journal's memory, and is shipped from there.
      log.error('checkpoint_not_settled', { detail: cause instanceof Error ? cause.message : 'unknown' })
    }
  })
  if (config.redisUrls.length === 0) {
    const meter = createLocalMeter({ clock, journal, checkpoints, seed: seedFrom(database, journal) })
    undo.push(() => meter.close())
    return { meter, stream: null, redis: null, sharedRatio: () => null, shipping: {} }
  }
  const redis = openRedis({
    urls: config.redisUrls,
    scripts: [...meterScripts, ...limitScripts],
    onEvent: (event, detail) =>
      log.warn(event, {
        detail: event === 'redis_away' ? `REDIS_URL: ${detail}; Postgres decides limits until it answers` : detail,
      }),
  })
  undo.push(async () => {
    // Acknowledgements are sent without waiting; left unsent, a sibling would ship their records again, and wait for that.
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
    onEvent: (event, detail) => log.warn(event, { detail }),
  })
  undo.push(() => meter.close())
  const onDamage = (detail: string) => log.error('usage_stream_damaged', { detail })
  const stream = createUsageStream({ redis, gatewayId, monotonic: clock.monotonic, kept: meter.kept, onDamage })
  return {
    meter,
    stream,
    redis,
    sharedRatio: () => (meter.isShared() ? 1 : 0),
    shipping: { stream, correct: settledTwice => meter.correct(settledTwice) },
  }
}
