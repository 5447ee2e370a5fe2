/**
 * The meter of gateway instances that share limits. Redis decides; if it is unavailable, Postgres decides by the same
 * rules (`limit-authority.ts` describes the states). No request is lost in between: calls are keyed by request ID and
 * safe to repeat, a reply under an ended epoch is ignored, and a record that Redis cannot store goes to the journal
 * before `settle` resolves.
 */

import { allPartitions, partitionOf } from '../../core/limits/partitions.ts'
import { type Limits, zeroLimits } from '../../core/limits/plans.ts'
import { RedisUnavailableError } from '../../core/limits/redis-away.ts'
import { type DailyUsage, nothing, spentOf } from '../../core/limits/spent.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { type CheckpointBatch, createProgressNotes, type NotesStore } from '../local/checkpoint-batch.ts'
import type {
  Admission,
  AdmissionRequest,
  InterimUsage,
  Meter,
  QuotaStatus,
  Reservation,
  Settlement,
} from '../meter.ts'
import type { LimitDatabase, LimitRedis } from '../ports.ts'
import { createPostgresStore, type PostgresStore, type Registered } from '../postgres/store.ts'
import { createStandings, untouched } from '../quota-status-cache.ts'
import { createRedisStore, type RedisStore } from '../redis/store.ts'
import { createKeptRecords, type UnshippedRecords } from '../redis/unshipped-records.ts'
import { cachedStatusOf, decisionOf, type Numbers, StaleEpoch } from '../reply.ts'
import { createSettledSeats } from '../settled-reservations.ts'
import { type RecordJournal, untilDurable, writeDurably } from './durable-record.ts'
import type { Epoch } from './epoch.ts'
import { type AuthorityOptions, LimitAuthority } from './limit-authority.ts'
import { recordOf, spentBy } from './settled-record.ts'

export type FailoverOptions = {
  readonly redis: LimitRedis
  readonly database: LimitDatabase
  readonly clock: { now(): number; monotonic(): number }
  readonly journal: RecordJournal & {
    append(record: UsageRecord): void
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
}

type Lease = {
  seat: Reservation
  readonly limits: Limits
  readonly admittedAt: number
  progress: (() => InterimUsage) | null
} & {
  /** True if it has a checkpoint that no store has. */
  isDue: boolean
}

/** Including detection, settlement and shipping, a dead instance's requests are in the ledger within 15 s. */
export const defaultLeaseMs = 8_000
/** How long an admission waits for a deciding store: the duration of a change, plus its detection. */
const waitMs = 3_000
/** The same while Postgres is unavailable too. */
const bothAwayMs = 1_000
/** How long the end of a request waits for the release of its reservation. Its record is already durable. */
const releaseWaitMs = 1_000
/** After this time a late store has either executed a command or never will. */
const abandonedAfterMs = 1_500
const unreserved = { outputCap: 0, reservedTokens: 0, reservedMicrocents: 0 }
const upkeepMs = 250
const renewals = 4
const sweepEveryMs = 1_000
const minuteMs = 60_000
const maximumRecent = 200_000

export class FailoverMeter implements Meter {
  readonly kept: UnshippedRecords = createKeptRecords()
  private readonly open = new Map<string, Lease>()
  private readonly settled = createSettledSeats()
  private readonly standings
  private readonly notes: CheckpointBatch
  private readonly redisStore: RedisStore
  private readonly postgresStore: PostgresStore
  private readonly authority: LimitAuthority
  private readonly timers: readonly ReturnType<typeof setInterval>[]
  /** Admissions of the last minute, oldest first. */
  private recent: { readonly requestId: string; readonly accountId: string; readonly at: number }[] = []
  private renewedAt = 0
  /** Reservations of settled requests that are not released yet. */
  private readonly releases = new Set<Promise<unknown>>()

  constructor(private readonly options: FailoverOptions) {
    const { redis, database, clock, gatewayId, time, leaseMs = defaultLeaseMs } = options
    this.standings = createStandings(clock)
    this.notes = createProgressNotes(options.checkpoints)
    this.postgresStore = createPostgresStore({ database, gatewayId, leaseMs, time })
    this.redisStore = createRedisStore({
      redis,
      gatewayId,
      leaseMs,
      time,
      load: (accountId, day) => this.postgresStore.load(accountId, day),
      inLedger: requestIds => this.postgresStore.inLedger(requestIds),
      living: () => [gatewayId, ...this.authority.living],
    })
    this.authority = new LimitAuthority({
      postgres: this.postgresStore,
      redis,
      store: this.redisStore,
      monotonic: clock.monotonic,
      registered: () => this.registered(),
      onLeave: () => this.keepHere(),
      onVerified: partitions => {
        for (const [partition, { oldestEntry }] of partitions.entries()) this.kept.releaseBefore(partition, oldestEntry)
      },
      ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
      ...(options.returnAfterMs === undefined ? {} : { returnAfterMs: options.returnAfterMs }),
    })
    redis.onChange(isReady => {
      this.authority.hurry()
      // A dead Redis may never return them. If a record is shipped twice, the ledger keeps one.
      if (!isReady) this.keepHere()
    })
    this.timers = options.isManual
      ? []
      : [setInterval(() => this.upkeep(), upkeepMs), setInterval(() => void this.sweep(), sweepEveryMs)]
    for (const timer of this.timers) timer.unref()
  }

  /** Name of this instance for others. */
  get id(): string {
    return this.options.gatewayId
  }

  /** Resolves when a store decides, or after `waitMs`. */
  async ready(waitMs: number): Promise<void> {
    await this.authority.ready(waitMs)
  }

  /** Resolves when a store decides (at most after 10 s) and all reservations of settled requests are released. */
  async whenSettled(): Promise<void> {
    await this.authority.ready(10_000)
    await Promise.all(this.releases)
  }

  /** Resolves after the given number of further steps of the limit authority. */
  async steps(count: number): Promise<void> {
    for (let step = 0; step < count; step++) await this.authority.changed(10_000)
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
    const before = this.open.get(requestId) ?? this.settled.get(requestId)
    if (before !== undefined) return { admitted: true, seat: before.seat, standing: this.status(accountId, limits) }
    return this.decided({
      ask: epoch => this.storeOf(epoch).admit(epoch, request),
      take: reply => this.noted(request, reply),
      giveUp: () => this.abandon(request),
    })
  }

  loadStatus(accountId: string, limits: Limits): Promise<QuotaStatus> {
    return this.decided({
      ask: epoch => this.storeOf(epoch).status(epoch, accountId),
      take: reply => {
        this.standings.note(accountId, cachedStatusOf(reply, this.options.clock.now()))
        return this.status(accountId, limits)
      },
      giveUp: () => {},
    })
  }

  async raise(seat: Reservation, reservedTokens: number, reservedMicrocents: number): Promise<Reservation | null> {
    const held = this.open.get(seat.requestId)
    const epoch = this.authority.current
    if (held === undefined || epoch === null) return null
    const wanted = { tokens: reservedTokens, microcents: reservedMicrocents }
    const reply = await this.reply(epoch, () => this.storeOf(epoch).raise(epoch, seat, held.limits, wanted))
    if (reply === null || this.authority.current !== epoch) return null
    const [, tokens, microcents, dayTokens, dayMicrocents] = reply
    held.seat = { ...held.seat, reservedTokens: tokens, reservedMicrocents: microcents }
    const noted = this.standings.last(seat.accountId)
    if (noted !== null) this.standings.note(seat.accountId, { ...noted, tokens: dayTokens, microcents: dayMicrocents })
    return held.seat
  }

  async settle(settlement: Settlement): Promise<QuotaStatus> {
    const { requestId, accountId } = settlement.seat
    const held = this.open.get(requestId)
    const before = this.settled.get(requestId)
    if (held === undefined && before !== undefined) {
      await untilDurable(this.options.journal, requestId)
      return this.status(accountId, before.limits)
    }
    const seat = held?.seat ?? settlement.seat
    const limits = held?.limits ?? zeroLimits
    const spent = spentBy(settlement, seat)
    const record = recordOf(settlement.record, seat, spent)
    const hasCheckpoint = held === undefined || held.progress !== null
    // First, so that no later renewal includes it and a second call settles nothing.
    this.open.delete(requestId)
    this.settled.set(requestId, { seat, limits })
    const epoch = this.authority.current
    const isInRedis = epoch?.holder === 'redis' && (await this.settleInRedis(epoch, seat, spent, record, hasCheckpoint))
    if (!isInRedis) {
      await writeDurably(this.options.journal, record)
      const released = this.track(
        this.release(seat, spent, hasCheckpoint).then(isReleased => {
          if (isReleased) this.noteReleased(seat, spent)
        }),
      )
      if (epoch?.holder === 'postgres') await Promise.race([released, Bun.sleep(releaseWaitMs)])
    }
    this.notes.forget(requestId)
    // A map may keep deleted values for a while (`core/limits/active-set.ts`). This releases the request that the value
    // references.
    if (held !== undefined) held.progress = null
    return this.status(accountId, limits)
  }

  /**
   * Corrects Redis' counters for requests that were settled to a checkpoint and whose end is in the ledger. Resolves at
   * once. A correction that no store accepts within one lease is lost until the next epoch.
   */
  async correct(settledTwice: readonly (DailyUsage & { readonly requestId: string; readonly accountId: string })[]) {
    const day = formatDay(this.options.clock.now())
    for (const { requestId, accountId, tokens, microcents } of settledTwice)
      void this.track(this.release({ requestId, accountId, day, ...unreserved }, { tokens, microcents }, true))
  }

  checkpoint(seat: Reservation, progress: () => InterimUsage): void {
    const lease = this.open.get(seat.requestId)
    if (lease === undefined) return
    lease.progress = progress
    lease.isDue = true
  }

  standing(accountId: string, limits: Limits): QuotaStatus | null {
    return this.standings.now(accountId, limits)
  }

  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer)
    await this.authority.close()
    this.notes.close()
  }

  private status(accountId: string, limits: Limits): QuotaStatus {
    return this.standings.now(accountId, limits) ?? untouched(limits)
  }

  private storeOf(epoch: Epoch): Pick<RedisStore, 'admit' | 'raise' | 'status'> {
    return epoch.holder === 'redis' ? this.redisStore : this.postgresStore
  }

  /**
   * Calls the store that decides until a reply holds under its epoch, for `waitMs` at most. `take` runs before the epoch can end;
   * `giveUp` runs if a call was made and none replied in time. Throws `service_unavailable`.
   */
  private async decided<T>(call: {
    readonly ask: (epoch: Epoch) => Promise<Numbers>
    readonly take: (reply: Numbers) => T
    readonly giveUp: () => void
  }): Promise<T> {
    const { monotonic } = this.options.clock
    const since = monotonic()
    const leftMs = () => since + (this.authority.isPostgresThere ? waitMs : bothAwayMs) - monotonic()
    let isAsked = false
    for (;;) {
      const epoch = this.authority.current ?? (await this.authority.ready(leftMs()))
      if (epoch === null) {
        if (isAsked) call.giveUp()
        throw undecided('neither store decides')
      }
      isAsked = true
      const reply = await this.reply(epoch, () => call.ask(epoch))
      // A reply after the end of its epoch is unknown to the new deciding store.
      if (reply !== null && this.authority.current === epoch) return call.take(reply)
      if (leftMs() <= 0) {
        call.giveUp()
        throw undecided('the store that decides is late')
      }
      if (this.authority.current === epoch) await this.authority.changed(Math.min(leftMs(), 50))
    }
  }

  /** Returns the reply of the deciding store; null = it was too late, or its epoch has ended. */
  private async reply<T>(epoch: Epoch, ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask()
    } catch (cause) {
      if (cause instanceof StaleEpoch) this.authority.stale(epoch)
      else if (cause instanceof RedisUnavailableError || epoch.holder === 'postgres') this.authority.hurry()
      else throw cause
      return null
    }
  }

  private noted(request: AdmissionRequest, reply: Numbers): Admission {
    const { requestId, accountId, limits } = request
    const now = this.options.clock.now()
    const { code, retryAfterMs, seat, noted } = decisionOf(request, reply, now)
    this.standings.note(accountId, noted)
    const standing = this.status(accountId, limits)
    if (code !== null) return { admitted: false, code, retryAfterMs, standing }
    if (!this.open.has(requestId)) {
      this.open.set(requestId, { seat, limits, admittedAt: now, progress: null, isDue: false })
      this.recent.push({ requestId, accountId, at: now })
    }
    return { admitted: true, seat, standing }
  }

  /**
   * Releases a late admission that may still be executed, or belongs to an ended epoch, since no instance renews it.
   */
  private abandon({ requestId, accountId }: AdmissionRequest): void {
    const seat = { requestId, accountId, day: formatDay(this.options.clock.now()), ...unreserved }
    void this.track(Bun.sleep(abandonedAfterMs).then(() => this.release(seat, nothing, false)))
  }

  private track(release: Promise<unknown>): Promise<unknown> {
    const tracked = release.finally(() => this.releases.delete(tracked))
    this.releases.add(tracked)
    return tracked
  }

  /** Returns false if Redis did not confirm. It may have settled nevertheless. */
  private async settleInRedis(
    epoch: Epoch,
    seat: Reservation,
    spent: DailyUsage,
    record: UsageRecord,
    hasCheckpoint: boolean,
  ) {
    const { accountId } = seat
    const text = JSON.stringify(record)
    const settled = await this.reply(epoch, () =>
      this.redisStore.settle(epoch, seat, spent, text, hasCheckpoint),
    ).catch(() => null)
    // Without a reservation the request was settled elsewhere, perhaps to a checkpoint. The ledger keeps the truer
    // record.
    if (settled === null || !settled.isKnown) return false
    if (settled.entryId !== '') this.kept.add(partitionOf(accountId), settled.entryId, record)
    const noted = this.standings.last(accountId)
    const { day, seats, at } = settled
    const now = this.options.clock.now()
    // The hash may still hold the previous day; the next admission updates it.
    const used = day === formatDay(at) ? settled : nothing
    this.standings.note(accountId, {
      at: now,
      day: formatDay(at),
      requests: noted?.requests ?? 0,
      resetMs: noted === null ? 0 : Math.max(0, noted.resetMs - (now - noted.at)),
      tokens: used.tokens,
      microcents: used.microcents,
      seats,
      dayEndsInMs: 86_400_000 - (at % 86_400_000),
    })
    return true
  }

  /** Releases a reservation whose record is durable, under whichever epoch is open, until its lease has expired. */
  private async release(seat: Reservation, spent: DailyUsage, hasCheckpoint: boolean): Promise<boolean> {
    const { monotonic } = this.options.clock
    const { leaseMs = defaultLeaseMs } = this.options
    const until = monotonic() + leaseMs
    while (monotonic() < until) {
      const epoch = await this.authority.ready(until - monotonic())
      if (epoch === null) return false
      const done = await this.reply(epoch, async () => {
        if (epoch.holder === 'redis') await this.redisStore.settle(epoch, seat, spent, '', hasCheckpoint)
        else await this.postgresStore.settle(epoch, seat.requestId, spent)
        return true
      }).catch(() => null)
      if (done !== null && this.authority.current === epoch) return true
      await this.authority.changed(upkeepMs)
    }
    return false
  }

  private noteReleased(seat: Reservation, spent: DailyUsage): void {
    const noted = this.standings.last(seat.accountId)
    if (noted === null) return
    const isToday = noted.day === seat.day
    this.standings.note(seat.accountId, {
      ...noted,
      seats: Math.max(0, noted.seats - 1),
      tokens: isToday ? noted.tokens - seat.reservedTokens + spent.tokens : noted.tokens,
      microcents: isToday ? noted.microcents - seat.reservedMicrocents + spent.microcents : noted.microcents,
    })
  }

  /** Copies the records that are only in Redis' stream into the journal. */
  private keepHere(): void {
    for (const partition of allPartitions)
      for (const record of this.kept.takeOut(partition)) {
        try {
          this.options.journal.append(record)
        } catch {
          // The record stays in the journal's memory and is shipped from there.
        }
      }
  }

  /**
   * Returns the usage of this instance that is not in the ledger: open requests, unshipped records, and the last
   * minute's admissions.
   */
  private registered(): Registered[] {
    const now = this.options.clock.now()
    const rows = new Map<string, Registered>()
    this.forgetOld(now)
    for (const { requestId, accountId, at } of this.recent)
      rows.set(requestId, {
        requestId,
        accountId,
        day: formatDay(at),
        ...nothing,
        outputCap: 0,
        isOpen: false,
        ageMs: now - at,
      })
    for (const record of this.options.journal.waiting()) {
      const { request_id: requestId, account_id: accountId, at_ms } = record
      const ageMs = rows.get(requestId)?.ageMs ?? now - at_ms
      rows.set(requestId, {
        requestId,
        accountId,
        day: formatDay(at_ms),
        ...spentOf(record),
        outputCap: 0,
        isOpen: false,
        ageMs,
      })
    }
    for (const { seat, admittedAt } of this.open.values())
      rows.set(seat.requestId, {
        requestId: seat.requestId,
        accountId: seat.accountId,
        day: seat.day,
        tokens: seat.reservedTokens,
        microcents: seat.reservedMicrocents,
        outputCap: seat.outputCap,
        isOpen: true,
        ageMs: now - admittedAt,
      })
    return [...rows.values()]
  }

  private forgetOld(now: number): void {
    const first = this.recent.findIndex(({ at }) => at > now - minuteMs)
    this.recent = first === -1 ? [] : this.recent.slice(Math.max(first, this.recent.length - maximumRecent))
  }

  private upkeep(): void {
    const { clock, leaseMs = defaultLeaseMs } = this.options
    const isTime = clock.monotonic() - this.renewedAt >= leaseMs / renewals - upkeepMs / 2
    if (isTime) {
      this.renewedAt = clock.monotonic()
      this.forgetOld(clock.now())
    }
    void this.renew(isTime)
  }

  /** Renews leases and writes checkpoints to Redis, or to disk while Redis does not decide. Never throws. */
  async renew(all: boolean): Promise<void> {
    const epoch = this.authority.current
    if (epoch?.holder === 'redis') return this.renewInRedis(epoch, all)
    for (const lease of this.open.values()) {
      if (!lease.isDue || lease.progress === null) continue
      lease.isDue = false
      this.notes.keep(lease.seat, lease.progress)
    }
    if (all && epoch !== null) await this.postgresStore.renew([...this.open.keys()]).catch(() => {})
  }

  /** All accounts in one tick, so that the client sends them as one pipeline. */
  private async renewInRedis(epoch: Epoch, all: boolean): Promise<void> {
    const due = new Map<string, Lease[]>()
    for (const lease of this.open.values()) {
      if (!all && !lease.isDue) continue
      const ofAccount = due.get(lease.seat.accountId)
      if (ofAccount === undefined) due.set(lease.seat.accountId, [lease])
      else ofAccount.push(lease)
    }
    await Promise.all([...due].map(([accountId, leases]) => this.renewAccount(epoch, accountId, leases)))
  }

  private async renewAccount(epoch: Epoch, accountId: string, leases: readonly Lease[]): Promise<void> {
    const written = leases.filter(lease => lease.isDue && lease.progress !== null)
    const pairs = leases.flatMap(({ seat, isDue, progress }) => [
      seat.requestId,
      isDue && progress !== null ? checkpointText(seat, progress()) : '',
    ])
    for (const lease of written) lease.isDue = false
    try {
      await this.redisStore.renew(epoch, accountId, pairs)
      for (const { seat } of written) this.notes.forget(seat.requestId)
    } catch {
      for (const lease of written) lease.isDue = true
    }
  }

  /** Settles requests in Redis that dead instances left open. Never throws. */
  async sweep(): Promise<void> {
    const epoch = this.authority.current
    if (epoch?.holder !== 'redis') return
    await Promise.all(allPartitions.map(partition => this.redisStore.sweep(epoch, partition).catch(() => {})))
  }
}

function checkpointText(seat: Reservation, used: InterimUsage): string {
  const spent = spentBy(used, seat)
  return `${Math.round(spent.tokens)}:${Math.round(spent.microcents)}:${JSON.stringify(recordOf(used.record, seat, spent))}`
}

function undecided(detail: string): GatewayError {
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: 1000,
    detail: `limits: ${detail}`,
  })
}
