/**
 * Calls to the store that decides limits. A reply counts only under the epoch of its call: after a change, the new store
 * does not know the admissions of the former one.
 */
import { RedisUnavailableError } from '../../core/limits/redis.ts'
import type { ServiceDeadlines } from '../../core/request/deadlines.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Epoch } from '../epoch.ts'
import type { Reservation } from '../meter.ts'
import type { PostgresStore } from '../postgres/store.ts'
import type { RedisStore } from '../redis/store.ts'
import { type Numbers, StaleEpoch } from '../reply.ts'
import type { LimitAuthority } from './limit-authority.ts'

type Decisions = 'admit' | 'check' | 'raise' | 'settle' | 'status'

type DecidingDeps = {
  readonly authority: LimitAuthority
  readonly postgres: Pick<PostgresStore, Decisions>
  readonly redis: Pick<RedisStore, Decisions>
  readonly monotonic: () => number
  readonly leaseMs: number
  readonly deadlines: Pick<ServiceDeadlines, 'limitsMs' | 'limitsWithoutStoresMs'>
}

const retryMs = 250

export class DecidingStore {
  constructor(private readonly deps: DecidingDeps) {}

  of(epoch: Epoch): Pick<RedisStore, 'admit' | 'check' | 'raise' | 'status'> {
    return epoch.holder === 'redis' ? this.deps.redis : this.deps.postgres
  }

  /**
   * Calls the store that decides until a reply holds under its epoch, for `limitsMs` at most. `take` runs before the epoch
   * can end; `giveUp` runs if a call was made and none replied in time. Throws `service_unavailable`.
   */
  async decided<T>(call: {
    readonly send: (epoch: Epoch) => Promise<Numbers>
    readonly take: (reply: Numbers) => T
    readonly giveUp: () => void
  }): Promise<T> {
    const { authority, monotonic, deadlines } = this.deps
    const since = monotonic()
    const waitMs = () => (authority.isPostgresThere ? deadlines.limitsMs : deadlines.limitsWithoutStoresMs)
    const leftMs = () => since + waitMs() - monotonic()
    let isAsked = false
    for (;;) {
      const epoch = authority.current ?? (await authority.ready(leftMs()))
      if (epoch === null) {
        if (isAsked) call.giveUp()
        throw undecided('neither store decides')
      }
      isAsked = true
      const reply = await this.reply(epoch, () => call.send(epoch))
      // A reply after the end of its epoch is unknown to the new deciding store.
      if (reply !== null && authority.current === epoch && (authority.isFresh() || (await authority.holds(epoch))))
        return call.take(reply)
      if (leftMs() <= 0) {
        call.giveUp()
        throw undecided('the store that decides is late')
      }
      if (authority.current === epoch) await authority.changed(Math.min(leftMs(), 50))
    }
  }

  /** Returns the reply of the deciding store; null = it was too late, or its epoch has ended. */
  async reply<T>(epoch: Epoch, send: () => Promise<T>): Promise<T | null> {
    const { authority } = this.deps
    try {
      return await send()
    } catch (cause) {
      if (cause instanceof StaleEpoch) authority.stale(epoch)
      else if (cause instanceof RedisUnavailableError || epoch.holder === 'postgres') authority.hurry()
      else throw cause
      return null
    }
  }

  /** Releases a reservation whose record is durable, under whichever epoch is open, until its lease has expired. */
  async release(reservation: Reservation, spent: DailyUsage, hasCheckpoint: boolean): Promise<boolean> {
    const { authority, postgres, redis, monotonic, leaseMs } = this.deps
    const until = monotonic() + leaseMs
    while (monotonic() < until) {
      const epoch = await authority.ready(until - monotonic())
      if (epoch === null) return false
      const done = await this.reply(epoch, async () => {
        if (epoch.holder === 'redis') await redis.settle(epoch, reservation, { spent, hasCheckpoint, hasScopes: true })
        else await postgres.settle(epoch, reservation.requestId, spent)
        return true
      }).catch(() => null)
      if (done !== null && authority.current === epoch) return true
      await authority.changed(retryMs)
    }
    return false
  }
}

function undecided(detail: string): GatewayError {
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: 1000,
    detail: `limits: ${detail}`,
  })
}
