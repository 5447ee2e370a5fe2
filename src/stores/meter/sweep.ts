import { dueScript, sweepScript } from '../scripts/meter.ts'
import { keysOf } from './partitions.ts'
import type { UnderEpochOptions } from './under-epoch.ts'

export type SweepOptions = UnderEpochOptions & { readonly gatewayId: string }

/**
 * Settles what was left open on accounts of a partition whose leases have run out, of any gateway where Redis decides; else
 * of those that are not among the `living`, null = not known which are. Throws `RedisAway`.
 */
export type Sweep = (partition: number, living: readonly string[] | null) => Promise<void>

/** Nobody waits for it, and it must not make Redis look slow. */
const deadlineMs = 1_000

export function createSweep({ redis, gatewayId, epochOf, time }: SweepOptions): Sweep {
  return async (partition, living) => {
    const keys = keysOf(partition)
    const now = String(time?.() ?? '')
    const due = await redis.evaluate(dueScript, [keys.checkpointed], [now], deadlineMs)
    const alive = living === null ? [] : [gatewayId, ...living]
    const swept = (Array.isArray(due) ? due.map(String) : []).map(accountId =>
      redis.evaluate(
        sweepScript,
        [keys.account(accountId), keys.epoch, keys.stream, keys.checkpointed],
        [epochOf(partition) ?? '', now, accountId, ...alive],
        deadlineMs,
      ),
    )
    await Promise.all(swept)
  }
}
