/** A failover meter over real stores, on a clock that both of them use. */

import { keysOf, partitions } from '../../src/core/limits/partitions.ts'
import type { UsageRecord } from '../../src/core/usage.ts'
import { FailoverMeter, type FailoverOptions } from '../../src/limits/failover.ts'
import type { LimitRedis } from '../../src/limits/ports.ts'
import { admitScript } from '../../src/limits/redis/request-scripts.ts'
import { meterScripts } from '../../src/limits/redis/upkeep-scripts.ts'
import type { Database } from '../../src/stores/database.ts'
import { openRedis } from '../../src/stores/redis.ts'
import type { PrivateRedis } from '../harness/redis.ts'
import { eventually } from '../stores/database.contract.ts'
import { movableClock } from '../stores/support.ts'

/** An address where no Redis is. */
export const nowhere = 'redis://127.0.0.1:1'

export type RigOptions = {
  readonly database: Database
  /** Null = there is no Redis, and Postgres decides. */
  readonly redis: PrivateRedis | null
  readonly more?: Partial<FailoverOptions>
  readonly commandDeadlineMs?: number
}

/** Returns a meter that decides, over stores that hold nothing of limits. */
export async function failoverRig({ database, redis, more = {}, commandDeadlineMs }: RigOptions) {
  await redis?.command('FLUSHALL')
  await database.run(({ sql }) => sql`delete from limit_reservations`)
  await database.run(({ sql }) => sql`delete from limit_gateways`)
  const written: UsageRecord[] = []
  const clock = movableClock()
  const opened = openRedis({
    urls: [redis?.url ?? nowhere],
    scripts: meterScripts,
    ...(commandDeadlineMs === undefined ? {} : { commandDeadlineMs }),
  })
  let asked = 0
  const counting: LimitRedis = {
    ...opened,
    evaluate(script, keys, values, deadlineMs) {
      if (script === admitScript) asked++
      return opened.evaluate(script, keys, values, deadlineMs)
    },
  }
  const meter = new FailoverMeter({
    redis: counting,
    database,
    clock: { now: clock.now, monotonic: () => performance.now() },
    time: clock.now,
    journal: {
      append: record => void written.push(record),
      appendTogether: async record => void written.push(record),
      isWritable: () => true,
      untilDurable: () => Promise.resolve(),
      waiting: () => written,
    },
    gatewayId: Bun.randomUUIDv7(),
    ...more,
  })
  await eventually(() => (redis === null ? meter.decidedBy() === 'postgres' : meter.isShared()), 10_000)
  return {
    meter,
    clock,
    written,
    asked: () => asked,
    async records() {
      if (redis === null) return written
      const streams = Array.from({ length: partitions }, (_, one) =>
        redis.command('XRANGE', keysOf(one).stream, '-', '+'),
      )
      const entries = ((await Promise.all(streams)) as [string, [string, string]][][]).flat()
      return [...entries.map(([, [, record]]) => JSON.parse(record) as UsageRecord), ...written]
    },
    async close() {
      await meter.close()
      opened.close()
    },
  }
}
