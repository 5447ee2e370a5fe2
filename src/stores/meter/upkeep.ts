import type { RedisMeter } from '../meter-redis.ts'
import type { Redis } from '../redis.ts'
import { allPartitions } from './partitions.ts'

export type UpkeepOptions = {
  readonly shared: Pick<RedisMeter, 'renew' | 'sweep'>
  readonly redis: Pick<Redis, 'isReady'>
  /** Milliseconds that never run backwards. */
  readonly monotonic: () => number
  readonly leaseMs: number
  /** The other gateways that may be alive; null = not known. */
  readonly living: () => readonly string[] | null
}

/** How often checkpoints leave, which are noted each second. */
const tickMs = 250
/** How often leases are renewed within each. */
const renewals = 4
/** How often what dead gateways have left in Redis is looked for. */
const sweepEveryMs = 1000

/** Renews this gateway's leases in Redis, and settles what dead ones have left there. The timers do not keep the process alive. */
export function startUpkeep({ shared, redis, monotonic, leaseMs, living }: UpkeepOptions): { close(): void } {
  let renewedAt = monotonic()
  const renewal = setInterval(() => {
    const isTime = monotonic() - renewedAt >= leaseMs / renewals - tickMs / 2
    if (isTime) renewedAt = monotonic()
    void shared.renew(isTime)
  }, tickMs)
  renewal.unref()

  const sweeping = setInterval(() => {
    if (!redis.isReady()) return
    const alive = living()
    for (const partition of allPartitions) void shared.sweep(partition, alive).catch(() => {})
  }, sweepEveryMs)
  sweeping.unref()

  return {
    close() {
      clearInterval(renewal)
      clearInterval(sweeping)
    },
  }
}
