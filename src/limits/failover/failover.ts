/**
 * The meter of gateway instances that share limits. Redis decides; if it is unavailable, Postgres decides by the same
 * rules (`limit-authority.ts` describes the states). No request is lost in between: calls are keyed by request ID and
 * safe to repeat, and a reply under an ended epoch is ignored. The usage record is in this instance's journal before
 * either store counts it, so no record depends on Redis.
 */

import { type Limits, zeroLimits } from '../../core/limits/plans.ts'
import { noScopes } from '../../core/limits/scopes.ts'
import type { Clock } from '../../core/ports.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { type DailyUsage, getSpent, nothing, type UsageRecord } from '../../core/usage/usage-record.ts'
import { type CheckpointBatch, createProgressLog, type NotesStore } from '../checkpoint-batch.ts'
import type { Epoch } from '../epoch.ts'
import type {
  Admission,
  AdmissionRequest,
  InterimUsage,
  LimitReached,
  Meter,
  QuotaStatus,
  Reservation,
  Settlement,
} from '../meter.ts'
import type { LimitDatabase, LimitRedis } from '../ports.ts'
import { createPostgresStore } from '../postgres/store.ts'
import { afterRelease, afterSettlement, createStatusCache, untouched } from '../quota-status-cache.ts'
import { createRedisStore, type RedisSettlement, type RedisStore } from '../redis/store.ts'
import { getCachedStatus, getDecision, type Numbers } from '../reply.ts'
import { getRecord, journalGone, type RecordJournal, spentBy, untilDurable, writeDurably } from '../settled-record.ts'
import { DecidingStore } from './deciding-store.ts'
import { LeaseUpkeep } from './lease-upkeep.ts'
import { type AuthorityOptions, LimitAuthority } from './limit-authority.ts'
import { OpenRequests } from './open-requests.ts'

export type FailoverOptions = {
  readonly redis: LimitRedis
  readonly database: LimitDatabase
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly journal: RecordJournal & {
    /** Returns records that may be missing in the ledger. */
    waiting(): readonly UsageRecord[]
  }
  readonly checkpoints?: NotesStore
  /** Unique among the instances on one database, and never reused. */
  readonly gatewayId: string
  /** Milliseconds until a reservation expires without renewal. */
  readonly leaseMs?: number
  readonly onEvent?: AuthorityOptions['onEvent']
  readonly returnAfterMs?: number
  /** For tests: the time that both stores use. */
  readonly time?: () => number
  /** For tests: leases are only renewed and expired by calls of `renew` and `sweep`. */
  readonly isManual?: boolean
  readonly deadlines: ConstructorParameters<typeof DecidingStore>[0]['deadlines']
}

/** A dead instance holds its reservations for at most this long. */
export const defaultLeaseMs = 8_000
/** How long the end of a request waits for the release of its reservation. Its record is already durable. */
const releaseWaitMs = 1_000
/** After this time a late store has either executed a command or never will. */
const abandonedAfterMs = 1_500
const unreserved = { outputCap: 0, reservedTokens: 0, reservedMicrocents: 0 }

export class FailoverMeter implements Meter {
  private readonly requests: OpenRequests
  private readonly statusCache
  private readonly notes: CheckpointBatch
  private readonly redisStore: RedisStore
  private readonly store: DecidingStore
  private readonly upkeep: LeaseUpkeep
  private readonly authority: LimitAuthority
  constructor(private readonly options: FailoverOptions) {
    const { redis, database, clock, journal, gatewayId, time, leaseMs = defaultLeaseMs } = options
    const { monotonic } = clock
    this.statusCache = createStatusCache(clock)
    this.notes = createProgressLog(options.checkpoints)
    this.requests = new OpenRequests(clock.now, () => journal.waiting())
    const postgres = createPostgresStore({ database, gatewayId, leaseMs, time })
    this.redisStore = createRedisStore({
      redis,
      gatewayId,
      leaseMs,
      time,
      load: (accountId, day) => postgres.load(accountId, day),
      loadScopes: (accountId, names, day) => postgres.loadScopes(accountId, names, day),
      inLedger: requestIds => postgres.inLedger(requestIds),
      living: () => [gatewayId, ...this.authority.living],
    })
    this.authority = new LimitAuthority({
      postgres,
      redis,
      store: this.redisStore,
      monotonic,
      registered: () => this.requests.registered(),
      ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
      ...(options.returnAfterMs === undefined ? {} : { returnAfterMs: options.returnAfterMs }),
    })
    const shared = { postgres, redis: this.redisStore, monotonic, leaseMs }
    this.store = new DecidingStore({ ...shared, authority: this.authority, deadlines: options.deadlines })
    const { requests, notes } = this
    this.upkeep = new LeaseUpkeep({ ...shared, requests, notes, epoch: () => this.authority.current })
    redis.onChange(isReady => {
      if (isReady) return this.authority.hurry()
      this.authority.disconnected()
    })
    if (!options.isManual) this.upkeep.start()
  }

  /** Resolves when a store decides, or after `waitMs`. */
  async ready(waitMs: number): Promise<void> {
    await this.authority.ready(waitMs)
  }

  /** Returns the store that decides now; null = changing or unknown. */
  decidedBy(): Epoch['holder'] | null {
    return this.authority.current?.holder ?? null
  }

  /** Returns true if Redis decides now. */
  isShared(): boolean {
    return this.decidedBy() === 'redis'
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const { requestId, accountId, limits } = request
    const before = this.requests.lease(requestId) ?? this.requests.settledReservation(requestId)
    if (before !== undefined)
      return { admitted: true, reservation: before.reservation, quotaStatus: this.status(accountId, limits) }
    if (!this.options.journal.isWritable()) throw journalGone()
    return this.store.decided({
      send: epoch => this.store.of(epoch).admit(epoch, request),
      take: reply => this.noted(request, reply),
      giveUp: () => this.abandon(request),
    })
  }

  check(request: AdmissionRequest): Promise<LimitReached | null> {
    return this.store.decided({
      send: epoch => this.store.of(epoch).check(epoch, request),
      take: reply => {
        const { code, scope, retryAfterMs, noted } = getDecision(request, reply, this.options.clock.now())
        this.statusCache.note(request.accountId, noted)
        return code === null ? null : { code, scope, retryAfterMs }
      },
      giveUp: () => {},
    })
  }

  loadStatus(accountId: string, limits: Limits): Promise<QuotaStatus> {
    return this.store.decided({
      send: epoch => this.store.of(epoch).status(epoch, accountId),
      take: reply => {
        this.statusCache.note(accountId, getCachedStatus(reply, this.options.clock.now()))
        return this.status(accountId, limits)
      },
      giveUp: () => {},
    })
  }

  async raise(
    reservation: Reservation,
    reservedTokens: number,
    reservedMicrocents: number,
  ): Promise<Reservation | null> {
    const held = this.requests.lease(reservation.requestId)
    const epoch = this.authority.current
    if (held === undefined || epoch === null) return null
    const wanted = { tokens: reservedTokens, microcents: reservedMicrocents }
    const reply = await this.store.reply(epoch, () => this.store.of(epoch).raise(epoch, reservation, held, wanted))
    if (reply === null || this.authority.current !== epoch) return null
    const [, tokens, microcents, dayTokens, dayMicrocents] = reply
    held.reservation = { ...held.reservation, reservedTokens: tokens, reservedMicrocents: microcents }
    const noted = this.statusCache.last(reservation.accountId)
    if (noted !== null)
      this.statusCache.note(reservation.accountId, { ...noted, tokens: dayTokens, microcents: dayMicrocents })
    return held.reservation
  }

  async settle(settlement: Settlement): Promise<QuotaStatus> {
    const { requestId, accountId } = settlement.reservation
    const held = this.requests.lease(requestId)
    const before = this.requests.settledReservation(requestId)
    if (held === undefined && before !== undefined) {
      await untilDurable(this.options.journal, requestId)
      return this.status(accountId, before.limits)
    }
    const reservation = held?.reservation ?? settlement.reservation
    const limits = held?.limits ?? zeroLimits
    const spent = spentBy(settlement, reservation)
    const record = getRecord(settlement.record, reservation, spent)
    const hasCheckpoint = held === undefined || held.progress !== null
    const hasScopes = held === undefined || held.scopes.length > 0
    // First, so that no later renewal includes it and a second call settles nothing.
    this.requests.close(reservation, limits)
    await writeDurably(this.options.journal, record)
    const epoch = this.authority.current
    const isInRedis =
      epoch?.holder === 'redis' && (await this.settleInRedis(epoch, reservation, { spent, hasCheckpoint, hasScopes }))
    if (!isInRedis) {
      const released = this.store.release(reservation, spent, hasCheckpoint).then(isReleased => {
        if (isReleased) this.noteReleased(reservation, spent)
      })
      if (epoch?.holder === 'postgres') await Promise.race([released, Bun.sleep(releaseWaitMs)])
    }
    this.notes.forget(requestId)
    // A map may keep deleted values for a while (`core/chat/request-abort.ts`). This releases the request that the value
    // references.
    if (held !== undefined) held.progress = null
    return this.status(accountId, limits)
  }

  /**
   * Counts requests that an earlier process left in its journal and may not have settled. Counts none of them twice. A
   * request that no store accepts within one lease is not counted until the next epoch.
   */
  takeOver(records: readonly UsageRecord[]): void {
    const day = formatDay(this.options.clock.now())
    for (const record of records)
      void this.store.release(
        { requestId: record.request_id, accountId: record.account_id, day, ...unreserved },
        getSpent(record),
        true,
      )
  }

  checkpoint(reservation: Reservation, progress: () => InterimUsage): void {
    const lease = this.requests.lease(reservation.requestId)
    if (lease === undefined) return
    lease.progress = progress
    lease.isDue = true
  }

  quotaStatus(accountId: string, limits: Limits): QuotaStatus | null {
    return this.statusCache.now(accountId, limits)
  }

  /** Renews leases and writes checkpoints: `all`, or only those with a new checkpoint. Never throws. */
  renew(all: boolean): Promise<void> {
    return this.upkeep.renew(all)
  }

  /** Settles requests in Redis that dead instances left open. Never throws. */
  sweep(): Promise<void> {
    return this.upkeep.sweep()
  }

  async close(): Promise<void> {
    this.upkeep.stop()
    await this.authority.close()
    this.notes.close()
  }

  private status(accountId: string, limits: Limits): QuotaStatus {
    return this.statusCache.now(accountId, limits) ?? untouched(limits)
  }

  private noted(request: AdmissionRequest, reply: Numbers): Admission {
    const { accountId, limits } = request
    const now = this.options.clock.now()
    const { code, scope, retryAfterMs, reservation, noted } = getDecision(request, reply, now)
    this.statusCache.note(accountId, noted)
    const quotaStatus = this.status(accountId, limits)
    if (code !== null) return { admitted: false, code, scope, retryAfterMs, quotaStatus }
    this.requests.add(reservation, limits, request.scopes ?? noScopes)
    this.upkeep.opened()
    return { admitted: true, reservation, quotaStatus }
  }

  /**
   * Releases a late admission that may still be executed, or belongs to an ended epoch, since no instance renews it.
   */
  private abandon({ requestId, accountId }: AdmissionRequest): void {
    const reservation = { requestId, accountId, day: formatDay(this.options.clock.now()), ...unreserved }
    void Bun.sleep(abandonedAfterMs).then(() => this.store.release(reservation, nothing, false))
  }

  /** Returns false if Redis did not confirm. It may have settled nevertheless. */
  private async settleInRedis(epoch: Epoch, reservation: Reservation, end: RedisSettlement) {
    const { accountId } = reservation
    const settled = await this.store
      .reply(epoch, () => this.redisStore.settle(epoch, reservation, end))
      .catch(() => null)
    if (settled === null || !settled.isKnown) return false
    this.statusCache.note(
      accountId,
      afterSettlement(this.statusCache.last(accountId), settled, this.options.clock.now()),
    )
    return true
  }

  private noteReleased(reservation: Reservation, spent: DailyUsage): void {
    const noted = this.statusCache.last(reservation.accountId)
    if (noted !== null) this.statusCache.note(reservation.accountId, afterRelease(noted, reservation, spent))
  }
}
