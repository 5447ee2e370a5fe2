/**
 * Renews the leases of open requests, writes their checkpoints, and settles the open requests of dead instances. A lease
 * that is not renewed expires, so that a killed instance holds no reservation for long.
 */
import { intervalTimer, whenNeeded } from '../../core/jobs/repeating.ts'
import { allPartitions } from '../../core/limits/redis.ts'
import type { CheckpointBatch } from '../checkpoint-batch.ts'
import type { Epoch } from '../epoch.ts'
import type { InterimUsage, Reservation } from '../meter.ts'
import type { PostgresStore } from '../postgres/store.ts'
import type { RedisStore } from '../redis/store.ts'
import { spentBy } from '../settled-record.ts'
import type { Lease, OpenRequests } from './open-requests.ts'

type UpkeepDeps = {
  readonly requests: OpenRequests
  readonly notes: CheckpointBatch
  readonly postgres: Pick<PostgresStore, 'renew'>
  readonly redis: Pick<RedisStore, 'renew' | 'sweep'>
  /** The epoch under which decisions are made; null = changing or unknown. */
  readonly epoch: () => Epoch | null
  readonly monotonic: () => number
  readonly leaseMs: number
}

const upkeepMs = 250
const renewals = 4
const sweepEveryMs = 1_000

export class LeaseUpkeep {
  private readonly ticking = whenNeeded(upkeepMs, () => this.tick())
  private stopSweeping: (() => void) | null = null
  private renewedAt = 0

  constructor(private readonly deps: UpkeepDeps) {}

  start(): void {
    this.stopSweeping = intervalTimer(sweepEveryMs, () => void this.sweep())
  }

  stop(): void {
    this.stopSweeping?.()
    void this.ticking.close()
  }

  /** Reports an open request: its lease is renewed from now on. */
  opened(): void {
    if (this.stopSweeping !== null) this.ticking.need()
  }

  /** Renews leases and writes checkpoints: to disk, and their usage to Redis while it decides. Never throws. */
  async renew(all: boolean): Promise<void> {
    const { requests, notes, postgres } = this.deps
    const epoch = this.deps.epoch()
    const due = new Set<Lease>()
    for (const lease of requests.leases()) {
      if (!lease.isDue || lease.progress === null) continue
      lease.isDue = false
      due.add(lease)
      notes.keep(lease.reservation, lease.progress)
    }
    // The renewals are batches already.
    if (due.size > 0) notes.flush()
    if (epoch?.holder === 'redis') return this.renewInRedis(epoch, all ? requests.leases() : due, due)
    if (all && epoch !== null) await postgres.renew(requests.requestIds()).catch(() => {})
  }

  /** Settles requests in Redis that dead instances left open. Never throws. */
  async sweep(): Promise<void> {
    const epoch = this.deps.epoch()
    this.deps.requests.forgetOld()
    if (epoch?.holder !== 'redis') return
    await Promise.all(allPartitions.map(partition => this.deps.redis.sweep(epoch, partition).catch(() => {})))
  }

  private tick(): void {
    const { monotonic, leaseMs, requests } = this.deps
    const isTime = monotonic() - this.renewedAt >= leaseMs / renewals - upkeepMs / 2
    if (isTime) this.renewedAt = monotonic()
    void this.renew(isTime)
    if (requests.requestIds().length > 0) this.ticking.need()
  }

  /** All accounts in one tick, so that the client sends them as one pipeline. */
  private async renewInRedis(epoch: Epoch, renewed: Iterable<Lease>, due: ReadonlySet<Lease>): Promise<void> {
    const byAccount = Map.groupBy(renewed, lease => lease.reservation.accountId)
    await Promise.all(
      [...byAccount].map(async ([accountId, leases]) => {
        const pairs = leases.flatMap(lease => {
          const { reservation, progress } = lease
          return [reservation.requestId, progress !== null && due.has(lease) ? usageText(reservation, progress()) : '']
        })
        await this.deps.redis.renew(epoch, accountId, pairs).catch(() => {
          for (const lease of leases) if (due.has(lease)) lease.isDue = true
        })
      }),
    )
  }
}

function usageText(reservation: Reservation, used: InterimUsage): string {
  const { tokens, microcents } = spentBy(used, reservation)
  return `${Math.round(tokens)}:${Math.round(microcents)}`
}
