/** A meter over a real Redis, on a clock that Redis uses too, beside a ledger in memory or in a real database. */

import { createLimitKeys } from '../../src/core/limits/redis.ts'
import { nothing, type UsageRecord } from '../../src/core/usage/usage-record.ts'
import { openRedis } from '../../src/database/redis.ts'
import { reportGraceMs } from '../../src/limits/constants.ts'
import type { LimitLedger } from '../../src/limits/redis.ts'
import { checkScript, meterScripts } from '../../src/limits/redis-upkeep-scripts.ts'
import { SharedMeter, type SharedMeterOptions } from '../../src/limits/shared.ts'
import { movableClock } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { patient } from '../harness/patience.ts'
import type { PrivateRedis } from '../harness/redis.ts'

/** A URL without a Redis. */
export const nowhere = 'redis://127.0.0.1:1'

/** A ledger without usage. */
export const emptyLedger: LimitLedger = {
  load: async () => ({ ...nothing, present: new Map(), scopes: [] }),
  loadScopes: async () => [],
}

/** A journal in memory with these records. */
export const memoryJournal = (records: UsageRecord[] = []): SharedMeterOptions['journal'] => ({
  appendTogether: async record => void records.push(record),
  isWritable: () => true,
  untilDurable: () => Promise.resolve(),
  waiting: () => records,
})

/** Opens a Redis client as a gateway does. */
export function openLimitRedis(urls: readonly string[], deadlineMs = patient.redisMs) {
  const keys = createLimitKeys(urls)
  const checks = keys.partitions.map(partition => ({ script: checkScript, keys: [keys.check(partition)] }))
  return { keys, redis: openRedis({ urls, scripts: meterScripts, checks, deadlineMs }) }
}

/** Returns a deciding meter over a Redis without limit data. */
export async function sharedRig(server: PrivateRedis, more: Partial<SharedMeterOptions> = {}) {
  await server.command('FLUSHALL')
  const clock = movableClock()
  const meters = new Map<SharedMeter, () => void>()
  const written: UsageRecord[] = []

  /** Opens another instance on the same Redis. */
  const open = async (own: Partial<SharedMeterOptions> = {}, redisMs = patient.redisMs) => {
    const { keys, redis } = openLimitRedis([server.url], redisMs)
    const meter = new SharedMeter({
      redis,
      keys,
      ledger: emptyLedger,
      clock: { now: clock.now, monotonic: () => performance.now() },
      time: clock.now,
      isManual: true,
      returnAfterMs: 0,
      deadlines: patient,
      journal: memoryJournal(written),
      gatewayId: Bun.randomUUIDv7(),
      ...more,
      ...own,
    })
    meters.set(meter, () => redis.close())
    await eventually(() => meter.isShared(), 10_000)
    clock.move(reportGraceMs)
    return meter
  }

  const close = async () => {
    for (const [meter, closeRedis] of meters) {
      await meter.close()
      closeRedis()
    }
  }

  return {
    meter: await open(),
    open,
    clock,
    written,
    records: async () => written,
    /** Ends an instance like `kill -9`: Redis hears nothing more from it. */
    async kill(meter: SharedMeter) {
      meters.get(meter)?.()
      meters.delete(meter)
      await meter.close()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
