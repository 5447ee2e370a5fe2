/**
 * The meter of gateway instances on one Redis. Redis decides; while it is away, for whatever reason, each instance decides
 * from its allowances (`allowance.ts`). The usage record is in the instance's own journal before `settle` resolves, so no
 * record depends on Redis. Calls are keyed by request ID and safe to repeat.
 */

import { intervalTimer } from '../core/jobs/repeating.ts'
import { type Limits, zeroLimits } from '../core/limits/plans.ts'
import { type LimitKeys, RedisUnavailableError } from '../core/limits/redis.ts'
import { getCounterName, getScopeNames, monthDays } from '../core/limits/scopes.ts'
import type { Clock } from '../core/ports.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { dayMs, formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, nothing, type UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import {
  decideFromAllowance,
  endFromAllowance,
  getAllowances,
  isIdle,
  newOwnAccount,
  noteAdmitted,
  type OwnAccount,
  type OwnHeld,
  reserveFromAllowance,
  takeGrants,
  toAllowanceRows,
} from './allowance.ts'
import { type CheckpointBatch, createProgressLog, type NotesStore } from './checkpoint-batch.ts'
import { abandonedMs, leaseMs, minuteMs, renewMs, reportGraceMs } from './constants.ts'
import { releaseReservation } from './counters.ts'
import { accountsAtOnce, type Ended, EndedRequests, itemsAtOnce } from './ended-requests.ts'
import type {
  Admission,
  AdmissionRequest,
  InterimUsage,
  LimitReached,
  Meter,
  QuotaStatus,
  Reservation,
  Settlement,
} from './meter.ts'
import { Presence } from './presence.ts'
import { afterRelease, afterSettlement, createStatusCache, untouched } from './quota-status-cache.ts'
import {
  AccountPending,
  type AccountReport,
  createRedisStore,
  isOfRedis,
  type LimitLedger,
  type LimitRedis,
  type RedisDecision,
  type RedisStore,
  StaleGeneration,
  toDetail,
  whole,
} from './redis.ts'
import { getRecord, journalGone, type RecordJournal, spentBy, untilDurable, writeDurably } from './settled-record.ts'
import { createSettledReservations } from './settled-reservations.ts'

export type SharedMeterOptions = {
  readonly redis: LimitRedis
  readonly keys: LimitKeys
  readonly ledger: LimitLedger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly journal: RecordJournal & {
    /** Returns records that may be missing in the ledger. */
    waiting(): readonly UsageRecord[]
  }
  readonly checkpoints?: NotesStore
  /** Unique among the instances on one Redis, and never reused. */
  readonly gatewayId: string
  readonly deadlines: Pick<ServiceDeadlines, 'limitsMs'>
  readonly onEvent?: (event: string, detail: string) => void
  /** For tests: other times than those of `constants.ts`. */
  readonly leaseMs?: number
  readonly reportGraceMs?: number
  readonly returnAfterMs?: number
  /** For tests: the time that Redis uses. */
  readonly time?: () => number
  /** For tests: leases and allowances are only renewed by calls of `renew`. */
  readonly isManual?: boolean
}

type Pending = {
  readonly reservation: Reservation
  readonly spent: DailyUsage
  /** Of a request that was admitted from allowances; else empty. */
  readonly detail: string
  readonly counted?: () => void
}

const maximumRecent = 200_000

export class SharedMeter implements Meter {
  private readonly accounts = new Map<string, OwnAccount>()
  private readonly settled = createSettledReservations()
  /** Requests that ended in the last minute, oldest first. */
  private recent: Ended[] = []
  /** Settlements that Redis has not confirmed, by request ID. */
  private readonly pending = new Map<string, Pending>()
  private readonly statusCache
  private readonly notes: CheckpointBatch
  private readonly store: RedisStore
  private readonly presence: Presence
  private instances = 1
  private waiting: { readonly at: number; readonly records: readonly UsageRecord[] } | null = null
  private renewing: Promise<void> | null = null
  private readonly givingBack = new Map<string, Promise<void>>()
  /** Reports are sent one after the other: a grant is relative to what the report stated. */
  private reporting: Promise<unknown> = Promise.resolve()
  private readonly stopRenewing: () => void

  constructor(private readonly options: SharedMeterOptions) {
    const { redis, keys, clock, returnAfterMs, onEvent } = options
    this.statusCache = createStatusCache(clock)
    this.notes = createProgressLog(options.checkpoints)
    this.store = createRedisStore({
      redis,
      keys,
      ledger: options.ledger,
      generation: partition => this.presence.generation(partition),
      leaseMs: options.leaseMs ?? leaseMs,
      reportGraceMs: options.reportGraceMs,
      time: options.time,
      now: clock.now,
    })
    this.presence = new Presence({
      redis,
      partitions: keys.partitions,
      begin: this.store.begin,
      report: (partition, isFirst) => this.reportAll(partition, isFirst),
      settle: async () => {
        this.waiting = null
        await this.settlePending()
        await this.reportCounted(false)
      },
      monotonic: clock.monotonic,
      reportGraceMs: options.reportGraceMs ?? reportGraceMs,
      returnAfterMs,
      onEvent,
    })
    this.stopRenewing = options.isManual ? () => {} : intervalTimer(renewMs, () => void this.renew())
  }

  /** Resolves when limits can be decided, or after `waitMs`. */
  ready(waitMs: number): Promise<void> {
    return this.presence.ready(waitMs)
  }

  /** Returns true if Redis decides now. */
  isShared(): boolean {
    return this.presence.isHere()
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const { requestId, accountId, limits } = request
    const before = this.accounts.get(accountId)?.counters.reservations.get(requestId) ?? this.settled.get(requestId)
    if (before !== undefined)
      return { admitted: true, reservation: before.reservation, quotaStatus: this.status(accountId, limits) }
    if (!this.options.journal.isWritable()) throw journalGone()
    const decided = await this.decided(request, 'admit')
    if (decided === null) return this.admitFromAllowance(request)
    const { outcome, scope, retryAfterMs, reservation } = decided
    const quotaStatus = this.status(accountId, limits)
    if (outcome === 'held') throw undecided('other instances hold the remaining amounts')
    if (outcome !== 'admitted') return { admitted: false, code: outcome, scope, retryAfterMs, quotaStatus }
    noteAdmitted(this.own(accountId), request, reservation, this.options.clock.now())
    return { admitted: true, reservation, quotaStatus }
  }

  async check(request: AdmissionRequest): Promise<LimitReached | null> {
    const decided = await this.decided(request, 'check')
    if (decided === null) {
      if (this.fromAllowance(request) === null) throw undecided('Redis is away')
      return null
    }
    const { outcome, scope, retryAfterMs } = decided
    return outcome === 'admitted' || outcome === 'held' ? null : { code: outcome, scope, retryAfterMs }
  }

  async loadStatus(accountId: string, limits: Limits): Promise<QuotaStatus> {
    const { clock } = this.options
    const decided = await this.decided({ ...unlimited, requestId: `status ${clock.now()}`, accountId }, 'check')
    if (decided === null) throw undecided('Redis is away')
    return this.status(accountId, limits)
  }

  async raise(
    reservation: Reservation,
    reservedTokens: number,
    reservedMicrocents: number,
  ): Promise<Reservation | null> {
    const { accountId, requestId } = reservation
    const held = this.accounts.get(accountId)?.counters.reservations.get(requestId)
    if (held === undefined || !this.presence.isHere()) return null
    const raised = await this.store
      .raise(held, { tokens: reservedTokens, microcents: reservedMicrocents })
      .catch((cause: unknown) => this.missed(cause))
    if (raised === null) return null
    const { tokens, microcents, dayTokens, dayMicrocents } = raised
    held.reservation = { ...held.reservation, reservedTokens: tokens, reservedMicrocents: microcents }
    const noted = this.statusCache.last(accountId)
    if (noted !== null) this.statusCache.note(accountId, { ...noted, tokens: dayTokens, microcents: dayMicrocents })
    return held.reservation
  }

  async settle(settlement: Settlement): Promise<QuotaStatus> {
    const { requestId, accountId } = settlement.reservation
    const own = this.accounts.get(accountId)
    const held: OwnHeld | undefined = own?.counters.reservations.get(requestId)
    const before = this.settled.get(requestId)
    if (held === undefined && before !== undefined) {
      await untilDurable(this.options.journal, requestId)
      return this.status(accountId, before.limits)
    }
    const reservation = held?.reservation ?? settlement.reservation
    const spent = spentBy(settlement, reservation)
    // A report sees the request either open or in the journal: nothing is awaited between.
    const pending = { ...this.end(own, held, spent), reservation, spent }
    this.settled.set(requestId, { reservation, limits: held?.limits ?? zeroLimits })
    const record = getRecord(withOrigin(settlement.record, held), reservation, spent)
    // Not in `recent`.
    if (held === undefined) this.waiting = null
    const durable = writeDurably(this.options.journal, record)
    await Promise.all([durable, this.settleInRedis(pending)])
    if (held !== undefined) this.notes.end(held)
    return this.status(accountId, held?.limits ?? zeroLimits)
  }

  /** Settles requests that an earlier process left in its journal and may not have settled. Counts none of them twice. */
  takeOver(records: readonly UsageRecord[]): void {
    for (const record of records) {
      const { request_id: requestId, account_id: accountId, at_ms } = record
      const reservation = { ...unreserved, requestId, accountId, day: formatDay(at_ms) }
      const detail = record.from_allowance === true ? getRecordDetail(record) : ''
      this.pending.set(requestId, { reservation, spent: getSpent(record), detail })
    }
  }

  checkpoint(reservation: Reservation, progress: () => InterimUsage): void {
    const held = this.accounts.get(reservation.accountId)?.counters.reservations.get(reservation.requestId)
    if (held === undefined) return
    this.notes.note(held, () => {
      const used = progress()
      return { ...used, record: withOrigin(used.record, held) }
    })
  }

  quotaStatus(accountId: string, limits: Limits): QuotaStatus | null {
    return this.statusCache.now(accountId, limits)
  }

  /** Renews leases and allowances. `isEnding`: gives the allowances back. Never throws. */
  renew(isEnding = false): Promise<void> {
    this.renewing ??= this.renewAll(isEnding)
      .catch((cause: unknown) => void this.missed(cause))
      .finally(() => {
        this.renewing = null
      })
    return this.renewing
  }

  async close(): Promise<void> {
    this.stopRenewing()
    await this.renewing
    // Allowances that are given back at once are not held by a dead instance.
    for (let times = 0; times < 2; times++) await this.renew(true)
    await this.presence.close()
    this.notes.close()
  }

  private own(accountId: string): OwnAccount {
    const known = this.accounts.get(accountId)
    if (known !== undefined) return known
    const own = newOwnAccount(this.options.clock.now())
    this.accounts.set(accountId, own)
    return own
  }

  private status(accountId: string, limits: Limits): QuotaStatus {
    return this.statusCache.now(accountId, limits) ?? untouched(limits)
  }

  /** Returns the decision of Redis, for which a request waits at most `limitsMs`; null = it is away. */
  private async decided(request: AdmissionRequest, call: 'admit' | 'check'): Promise<RedisDecision | null> {
    const { clock, deadlines } = this.options
    const until = clock.monotonic() + deadlines.limitsMs
    let isHeld = false
    for (;;) {
      const leftMs = until - clock.monotonic()
      if (!(await this.presence.here(leftMs))) return null
      try {
        const decided = await this.store[call](request)
        if (decided.outcome === 'held' && !isHeld) {
          isHeld = true
          await this.giveBack(request)
          continue
        }
        this.statusCache.note(request.accountId, decided.noted)
        return decided
      } catch (cause) {
        if (cause instanceof AccountPending) {
          if (this.fromAllowance(request) !== null) return null
          if (cause.waitMs > leftMs) throw undecided('instances report what they hold')
          await Bun.sleep(cause.waitMs)
        } else {
          // The admission may have been executed: the settlement with nothing releases it.
          if (call === 'admit' && !(cause instanceof GatewayError)) this.abandon(request)
          this.missed(cause)
          if (!isOfRedis(cause)) throw undecided('a call for this account failed')
          if (leftMs <= 0) return null
        }
      }
    }
  }

  /** Handles a failed call. An error that is not of Redis is one of this call: other ones go on. */
  private missed(cause: unknown): null {
    if (cause instanceof StaleGeneration) this.presence.stale(cause.partition)
    else if (cause instanceof RedisUnavailableError) this.presence.failed(cause)
    else if (cause instanceof GatewayError) throw cause
    else this.options.onEvent?.('limits_failed', cause instanceof Error ? cause.message : 'unknown')
    return null
  }

  private abandon({ requestId, accountId }: AdmissionRequest): void {
    const reservation = { ...unreserved, requestId, accountId, day: formatDay(this.options.clock.now()) }
    this.pending.set(requestId, { reservation, spent: nothing, detail: '' })
  }

  private fromAllowance(request: AdmissionRequest) {
    const { clock } = this.options
    const own = this.accounts.get(request.accountId)
    if (own === undefined) return null
    return decideFromAllowance(own, request, {
      now: clock.now(),
      monotonic: clock.monotonic(),
      instances: this.instances,
    })
  }

  private admitFromAllowance(request: AdmissionRequest): Admission {
    const { accountId, limits } = request
    const grant = this.fromAllowance(request)
    if (grant === null) throw undecided('Redis is away, and the allowance does not cover the request')
    this.pending.delete(request.requestId)
    const reservation = reserveFromAllowance(this.own(accountId), request, grant, this.options.clock.now())
    return { admitted: true, reservation, quotaStatus: this.status(accountId, limits) }
  }

  /** Moves a request to the ended ones. */
  private end(own: OwnAccount | undefined, held: OwnHeld | undefined, spent: DailyUsage) {
    if (own === undefined || held === undefined) return { detail: '' }
    const { requestId, accountId } = held.reservation
    own.counters.reservations.delete(requestId)
    releaseReservation(own.counters, held, spent)
    this.recent.push({ requestId, accountId, at: this.options.clock.now(), detail: getDetail(held, spent) })
    if (held.isFromAllowance !== true) return { detail: '' }
    return { detail: getDetail(held, spent), ...endFromAllowance(own, held, spent) }
  }

  /** Counts a settlement in Redis, now or when it is back. Never throws. */
  private async settleInRedis(pending: Pending): Promise<void> {
    const { reservation, spent, detail } = pending
    const { accountId, requestId } = reservation
    this.pending.set(requestId, pending)
    const noted = this.statusCache.last(accountId)
    if (!(await this.presence.here(this.options.deadlines.limitsMs))) {
      if (noted !== null) this.statusCache.note(accountId, afterRelease(noted, reservation, spent))
      return
    }
    try {
      const settled = await this.store.settle(reservation, spent, detail)
      this.confirm(pending)
      if (settled !== null)
        this.statusCache.note(
          accountId,
          afterSettlement(this.statusCache.last(accountId), settled, this.options.clock.now()),
        )
    } catch (cause) {
      this.missed(cause)
      // A repetition would fail too.
      if (!isOfRedis(cause)) this.confirm(pending)
    }
  }

  private confirm(pending: Pending): void {
    const { requestId } = pending.reservation
    if (this.pending.get(requestId) !== pending) return
    this.pending.delete(requestId)
    pending.counted?.()
  }

  private async settlePending(): Promise<void> {
    const all = [...this.pending.values()]
    for (let at = 0; at < all.length; at += itemsAtOnce) {
      const settled = all.slice(at, at + itemsAtOnce).map(async pending => {
        const { reservation, spent, detail } = pending
        await this.store.settle(reservation, spent, detail).catch((cause: unknown) => {
          if (isOfRedis(cause)) throw cause
          this.missed(cause)
        })
        this.confirm(pending)
      })
      for (const result of await Promise.allSettled(settled)) if (result.status === 'rejected') throw result.reason
    }
  }

  /** Gives the allowances of an account back, because they are in the way of a request. */
  private giveBack(request: AdmissionRequest): Promise<void> {
    const { accountId } = request
    const running = this.givingBack.get(accountId)
    if (running !== undefined) return running
    const given = this.giveBackNow(request).finally(() => this.givingBack.delete(accountId))
    this.givingBack.set(accountId, given)
    return given
  }

  private async giveBackNow(request: AdmissionRequest): Promise<void> {
    const { accountId } = request
    const own = this.own(accountId)
    // Also without allowances of its own: its report ends those of dead instances, which no other one may do.
    getAllowances(own, request)
    // The first report learns that Redis wants them back, the second one returns them.
    for (let times = 0; times < 2; times++)
      await this.report(this.options.keys.partition(accountId), [[accountId, own]], true)
  }

  private async renewAll(isEnding: boolean): Promise<void> {
    const { clock } = this.options
    const now = clock.now()
    for (const [accountId, own] of this.accounts) {
      this.releaseAbandoned(own, now)
      if (isIdle(own, now)) this.accounts.delete(accountId)
    }
    const first = this.recent.findIndex(({ at }) => at > now - minuteMs)
    this.recent = first === -1 ? [] : this.recent.slice(Math.max(first, this.recent.length - maximumRecent))
    if (!this.presence.isHere()) return
    await this.settlePending()
    await this.reportCounted(isEnding)
  }

  /** Ends requests that were never settled (a defect elsewhere). If one is settled later, its usage still counts. */
  private releaseAbandoned(own: OwnAccount, now: number): void {
    for (const held of own.counters.reservations.values()) {
      if (held.admittedAt > now - abandonedMs) return
      const { reservation } = held
      const ended = this.end(own, held, nothing)
      this.pending.set(reservation.requestId, {
        ...ended,
        reservation,
        spent: nothing,
        detail: getDetail(held, nothing),
      })
    }
  }

  private async reportCounted(isEnding: boolean): Promise<void> {
    for (const partition of this.options.keys.partitions) {
      const own = [...this.accounts].filter(([accountId]) => this.options.keys.partition(accountId) === partition)
      for (let at = 0; at === 0 || at < own.length; at += accountsAtOnce)
        await this.report(partition, own.slice(at, at + accountsAtOnce), isEnding)
    }
  }

  private report(...report: Parameters<SharedMeter['sendReport']>): Promise<boolean> {
    return this.afterReports(() => this.sendReport(...report))
  }

  private afterReports(send: () => Promise<boolean>): Promise<boolean> {
    const sent = this.reporting.then(send)
    this.reporting = sent.catch(() => {})
    return sent
  }

  /** Sends one report. Returns false if it is too late for its generation. */
  private async sendReport(
    partition: number,
    accounts: readonly (readonly [string, OwnAccount])[],
    isEnding: boolean,
    ended: ReadonlyMap<string, AccountReport['ended']> = new Map(),
    isMore = false,
  ): Promise<boolean> {
    const { clock, gatewayId } = this.options
    const sentAt = clock.monotonic()
    const reports = accounts.map(([accountId, own]) => ({
      accountId,
      own,
      open: [...own.counters.reservations.values()] as readonly OwnHeld[],
      rows: toAllowanceRows(own, isEnding),
    }))
    for (const { open } of reports) for (const held of open) held.isReported = true
    let reply: Awaited<ReturnType<RedisStore['report']>>
    try {
      reply = await this.store.report(
        partition,
        gatewayId,
        reports.map(({ accountId, open, rows }) => ({
          accountId,
          open: open.map(toOpen),
          ended: ended.get(accountId) ?? [],
          allowances: rows,
        })),
        isMore,
      )
    } catch (cause) {
      const [first, second] = accounts
      if (first === undefined || isOfRedis(cause)) throw cause
      if (second === undefined) this.missed(cause)
      // One of them fails: the others go on.
      else
        for (const account of accounts)
          if (!(await this.sendReport(partition, [account], isEnding, ended, isMore))) return false
      return true
    }
    if (reply === null) return false
    this.instances = reply.instances
    for (const [index, { own, rows }] of reports.entries()) {
      own.countedAt = sentAt
      takeGrants(own, rows, reply.grants[index] ?? [])
    }
    return true
  }

  /** Reports all that this instance has of a partition whose counters are new. */
  private async reportAll(partition: number, isFirst: boolean): Promise<boolean> {
    return isFirst || this.afterReports(() => this.sendAll(partition))
  }

  private async sendAll(partition: number): Promise<boolean> {
    const isInPartition = (accountId: string) => this.options.keys.partition(accountId) === partition
    const ended = new EndedRequests(isInPartition)
    ended.addRecent(this.recent)
    for (const record of this.getWaiting())
      if (isInPartition(record.account_id) && !ended.known.has(record.request_id))
        ended.add(record.account_id, record.request_id, getRecordDetail(record))
    // What ended is in this report or in the ledger.
    for (const pending of this.pending.values()) if (isInPartition(pending.reservation.accountId)) this.confirm(pending)
    const own = new Map([...this.accounts].filter(([accountId]) => isInPartition(accountId)))
    for (const accountId of ended.accounts.keys()) if (!own.has(accountId)) own.set(accountId, this.own(accountId))
    const left = [...own]
    do {
      // Requests may have ended during the last call.
      ended.addRecent(this.recent)
      const part = ended.take(left)
      if (!(await this.sendReport(partition, part.accounts, false, part.ended, left.length > 0))) return false
    } while (left.length > 0)
    return true
  }

  /** Returns records that the ledger may not have and new counters need. Repeated reports read the journal once. */
  private getWaiting(): readonly UsageRecord[] {
    const { clock, journal } = this.options
    // What ended since is in `recent`.
    if (this.waiting !== null && clock.monotonic() - this.waiting.at < minuteMs / 2) return this.waiting.records
    const [firstDay] = monthDays(formatDay(clock.now()))
    // A day more, since the clocks may differ.
    const records = journal.waiting().filter(({ at_ms }) => at_ms >= (firstDay - 1) * dayMs)
    this.waiting = { at: clock.monotonic(), records }
    return records
  }
}

const unreserved = { outputCap: 0, reservedTokens: 0, reservedMicrocents: 0 }

/** A request that every account has room for. */
const unlimited = {
  limits: {
    requestsPerMinute: Number.MAX_SAFE_INTEGER,
    concurrentRequests: Number.MAX_SAFE_INTEGER,
    dailyTokens: Number.MAX_SAFE_INTEGER,
    dailyCostMicrocents: Number.MAX_SAFE_INTEGER,
  },
  inputTokens: 0,
  outputTokens: 1,
  choices: 1,
  fairShare: false,
  inputPrice: 0,
  outputPrice: 0,
  extraMicrocents: 0,
} as const

function getDetail({ reservation, admittedAt, scopes }: OwnHeld, usage: DailyUsage): string {
  return toDetail(reservation, usage, admittedAt, scopes.map(getCounterName))
}

/** Notes in a record that Redis has not admitted its request: a successor of this process counts it there. */
function withOrigin(record: UsageRecord, held: OwnHeld | undefined): UsageRecord {
  return held?.isFromAllowance === true ? { ...record, from_allowance: true } : record
}

function getRecordDetail(record: UsageRecord): string {
  const { at_ms } = record
  return toDetail({ day: formatDay(at_ms), outputCap: 0 }, getSpent(record), at_ms, getScopeNames(record))
}

function toOpen(held: OwnHeld): AccountReport['open'][number] {
  const { reservation, progress } = held
  const used = progress === null ? null : spentBy(progress(), reservation)
  return {
    requestId: reservation.requestId,
    checkpoint: used === null ? '' : `${whole(used.tokens)}:${whole(used.microcents)}`,
    detail: getDetail(held, { tokens: reservation.reservedTokens, microcents: reservation.reservedMicrocents }),
  }
}

function undecided(detail: string): GatewayError {
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: 1000,
    detail: `limits: ${detail}`,
  })
}
