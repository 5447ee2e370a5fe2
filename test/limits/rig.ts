/** A failover meter over real stores, on a clock that both of them use. */

import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Database } from '../../src/database/database.ts'
import { openRedis } from '../../src/database/redis.ts'
import { FailoverMeter, type FailoverOptions } from '../../src/limits/failover/failover.ts'
import { meterChecks, meterScripts } from '../../src/limits/redis/upkeep-scripts.ts'
import { movableClock } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { patient } from '../harness/patience.ts'
import type { PrivateRedis } from '../harness/redis.ts'

/** A URL without a Redis. */
export const nowhere = 'redis://127.0.0.1:1'

export type RigOptions = {
  readonly database: Database
  /** Null = no Redis, and Postgres decides. */
  readonly redis: PrivateRedis | null
  readonly more?: Partial<FailoverOptions>
  /** Deadline of a Redis command, for tests of a Redis that does not answer. */
  readonly redisMs?: number
}

/** Returns a deciding meter over stores without limit data. */
export async function failoverRig({ database, redis, more = {}, redisMs = patient.redisMs }: RigOptions) {
  await redis?.command('FLUSHALL')
  await database.run(({ sql }) => sql`delete from limit_reservations`)
  await database.run(({ sql }) => sql`delete from limit_gateways`)
  const holder = redis === null ? 'postgres' : 'redis'
  await database.run(({ sql }) => sql`select limit_switch(epoch, ${holder}, 0) from limit_authority`)
  const clock = movableClock()
  const gateways: { close(): Promise<void> }[] = []
  const written: UsageRecord[] = []
  const ids = new Map<FailoverMeter, string>()

  /** Opens another instance on the same stores. */
  const open = async (own: Partial<FailoverOptions> = {}) => {
    const opened = openRedis({
      urls: [redis?.url ?? nowhere],
      scripts: meterScripts,
      checks: meterChecks,
      deadlineMs: redisMs,
    })
    const gatewayId = Bun.randomUUIDv7()
    const meter = new FailoverMeter({
      redis: opened,
      database,
      clock: { now: clock.now, monotonic: () => performance.now() },
      time: clock.now,
      isManual: true,
      deadlines: patient,
      journal: {
        appendTogether: async record => void written.push(record),
        isWritable: () => true,
        untilDurable: () => Promise.resolve(),
        waiting: () => written,
      },
      gatewayId,
      ...more,
      ...own,
    })
    const close = async () => {
      await meter.close()
      opened.close()
    }
    gateways.push({ close })
    ids.set(meter, gatewayId)
    await eventually(() => meter.decidedBy() === (redis === null ? 'postgres' : 'redis'), 10_000)
    return meter
  }

  return {
    meter: await open(),
    open,
    /** Name of an instance for the others. */
    getId: (meter: FailoverMeter) => ids.get(meter) ?? '',
    clock,
    written,
    /** Returns the durable records of all instances. */
    records: async () => written,
    async close() {
      for (const gateway of gateways) await gateway.close()
    },
  }
}
