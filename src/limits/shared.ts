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
import { createRecentMap, maximumAccounts, setBounded } from '../core/text/recent-map.ts'
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
  type OwnReservation,
  reserveFromAllowance,
  takeGrants,
} from './allowance.ts'
import {
  abandonedMs,
  failuresLoggedEveryMs,
  leaseMs,
  minuteMs,
  renewMs,
  reportGraceMs,
  requestsPerCall,
  retryMs,
} from './constants.ts'
import { releaseReservation, type StatusCounters, toQuotaStatus } from './counters.ts'
import type {
  Admission,
  AdmissionRequest,
  InterimUsage,
  LimitReached,
  Meter,
  OpenReservation,
  QuotaStatus,
  Reservation,
  Settlement,
} from './meter.ts'
import { Presence } from './presence.ts'
import {
  AccountPending,
  createRedisStore,
  isOfRedis,
  type LimitLedger,
  type LimitRedis,
  type RedisDecision,
  type RedisStore,
  StaleGeneration,
  toDetail,
} from './redis.ts'
import { type AccountPart, type EndedRequest, Report } from './reports.ts'
import {
  CheckpointBatch,
  type CheckpointStore,
  getRecord,
  journalGone,
  maximumSettled,
  type RecordJournal,
  spentBy,
  untilDurable,
  writeDurably,
} from './usage-records.ts'

export type SharedMeterOptions = {
  readonly redis: LimitRedis
  readonly keys: LimitKeys
  readonly ledger: LimitLedger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly journal: RecordJournal & {
    /** Returns records that may be missing in the ledger. */
    waiting(): readonly UsageRecord[]
  }
  readonly checkpoints?: CheckpointStore
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

/** A partition of Redis, and the reports to it: one after the other, since a grant is relative to what its report stated. */
type Partition = { readonly presence: Presence; reporting: Promise<unknown> }

const maximumRecent = 200_000

export class SharedMeter implements Meter {
  private readonly accounts = new Map<string, OwnAccount>()
  private readonly settled = createRecentMap<Pick<OpenReservation, 'reservation' | 'limits'>>(maximumSettled)
  /** Requests that ended in the last minute, oldest first. */
  private recent: (EndedRequest & { readonly at: number })[] = []
  /** Settlements that Redis has not confirmed, by request ID. */
  private readonly pending = new Map<string, Pending>()
  /** Counters of accounts as Redis last replied them. The least recently updated ones are dropped first. */
  private readonly counted = new Map<string, StatusCounters>()
  private readonly checkpoints: CheckpointBatch
  private readonly store: RedisStore
  private readonly partitions: readonly Partition[]
  /** Instances on Redis. One that is missing for less than a lease still counts: a new generation knows none at first. */
  private instances = { count: 1, at: 0 }
  private waiting: { readonly at: number; readonly requests: readonly EndedRequest[] } | null = null
  private renewing: Promise<void> | null = null
  private readonly givingBack = new Map<string, Promise<unknown>>()
  private failures = { count: 0, loggedAt: Number.NEGATIVE_INFINITY }
  private readonly stopRenewing: () => void

  constructor(private readonly options: SharedMeterOptions) {
    const { redis, keys, clock, returnAfterMs, onEvent, reportGraceMs: graceMs = reportGraceMs } = options
    this.checkpoints = new CheckpointBatch(options.checkpoints)
    this.store = createRedisStore({
      redis,
      keys,
      ledger: options.ledger,
      generation: partition => this.getPartition(partition).presence.generation(),
      leaseMs: options.leaseMs ?? leaseMs,
      reportGraceMs: graceMs,
      time: options.time,
      now: clock.now,
    })
    this.partitions = keys.partitions.map(partition => ({
      presence: new Presence({
        redis,
        partition,
        store: this.store,
        report: () => this.report(partition, { isLost: true }),
        settle: async () => {
          this.waiting = null
          await this.settlePending(partition)
          await this.report(partition)
        },
        monotonic: clock.monotonic,
        reportGraceMs: graceMs,
        returnAfterMs,
        onEvent,
      }),
      reporting: Promise.resolve(),
    }))
    this.stopRenewing = options.isManual ? () => {} : intervalTimer(renewMs, () => void this.renew())
  }

  /** Resolves when limits can be decided, or after `waitMs`. */
  async ready(waitMs: number): Promise<void> {
    await Promise.all(this.partitions.map(({ presence }) => presence.ready(waitMs)))
  }

  /** Returns true if Redis decides now, for all accounts. */
  isShared(): boolean {
    return this.partitions.every(({ presence }) => presence.isHere())
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
    if (outcome === 'allocated') throw undecided('other instances hold the remaining amounts')
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
    return outcome === 'admitted' || outcome === 'allocated' ? null : { code: outcome, scope, retryAfterMs }
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
    const open = this.accounts.get(accountId)?.counters.reservations.get(requestId)
    const { presence } = this.partitionOf(accountId)
    if (open === undefined || !presence.isHere()) return null
    const raised = await this.store
      .raise(open, { tokens: reservedTokens, microcents: reservedMicrocents })
      .catch((cause: unknown) => this.missed(cause, presence))
    if (raised === null) return null
    const { tokens, microcents, dayTokens, dayMicrocents } = raised
    open.reservation = { ...open.reservation, reservedTokens: tokens, reservedMicrocents: microcents }
    const counted = this.counted.get(accountId)
    if (counted !== undefined) this.count(accountId, { ...counted, tokens: dayTokens, microcents: dayMicrocents })
    return open.reservation
  }

  async settle(settlement: Settlement): Promise<QuotaStatus> {
    const { requestId, accountId } = settlement.reservation
    const own = this.accounts.get(accountId)
    const open: OwnReservation | undefined = own?.counters.reservations.get(requestId)
    const before = this.settled.get(requestId)
    if (open === undefined && before !== undefined) {
      await untilDurable(this.options.journal, requestId)
      return this.status(accountId, before.limits)
    }
    const { reservation = settlement.reservation, limits = zeroLimits } = open ?? {}
    const spent = spentBy(settlement, reservation)
    // A report sees the request either open or in the journal: nothing is awaited between.
    const pending = { ...this.end(own, open, spent), reservation, spent }
    this.settled.set(requestId, { reservation, limits })
    const record = getRecord(withOrigin(settlement.record, open), reservation, spent)
    // Not in `recent`.
    if (open === undefined) this.waiting = null
    await Promise.all([writeDurably(this.options.journal, record), this.settleInRedis(pending)])
    if (open !== undefined) this.checkpoints.end(open)
    return this.status(accountId, limits)
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
    const open = this.accounts.get(reservation.accountId)?.counters.reservations.get(reservation.requestId)
    if (open === undefined) return
    this.checkpoints.note(open, () => {
      const used = progress()
      return { ...used, record: withOrigin(used.record, open) }
    })
  }

  quotaStatus(accountId: string, limits: Limits): QuotaStatus | null {
    return this.counted.has(accountId) ? this.status(accountId, limits) : null
  }

  /** Renews leases and allowances. `isLeaving`: gives the allowances back. Never throws. */
  renew(isLeaving = false): Promise<void> {
    this.renewing ??= this.renewAll(isLeaving).finally(() => {
      this.renewing = null
    })
    return this.renewing
  }

  async close(): Promise<void> {
    this.stopRenewing()
    await this.renewing
    // Allowances that are given back at once are not held by a dead instance.
    for (let times = 0; times < 2; times++) await this.renew(true)
    await Promise.all(this.partitions.map(({ presence }) => presence.close()))
    this.checkpoints.close()
  }

  private getPartition(partition: number): Partition {
    const found = this.partitions[partition]
    if (found === undefined) throw new RedisUnavailableError('its connection is opened')
    return found
  }

  private partitionOf(accountId: string): Partition {
    return this.getPartition(this.options.keys.partition(accountId))
  }

  private own(accountId: string): OwnAccount {
    const known = this.accounts.get(accountId)
    if (known !== undefined) return known
    const own = newOwnAccount(this.options.clock.now())
    this.accounts.set(accountId, own)
    return own
  }

  private count(accountId: string, counted: StatusCounters): void {
    setBounded(this.counted, accountId, counted, maximumAccounts)
  }

  private status(accountId: string, limits: Limits): QuotaStatus {
    return toQuotaStatus(this.counted.get(accountId) ?? null, limits, this.options.clock.now())
  }

  /** Returns the decision of Redis, for which a request waits at most `limitsMs` in all; null = it is away or late. */
  private async decided(request: AdmissionRequest, call: 'admit' | 'check'): Promise<RedisDecision | null> {
    let isLate = false
    const { limitsMs } = this.options.deadlines
    return this.options.redis
      .within(
        this.untilDecided(request, call, () => isLate),
        limitsMs,
      )
      .catch((cause: unknown) => {
        if (!(cause instanceof RedisUnavailableError)) throw cause
        isLate = true
        if (call === 'admit') this.abandon(request)
        return null
      })
  }

  private async untilDecided(
    request: AdmissionRequest,
    call: 'admit' | 'check',
    isLate: () => boolean,
  ): Promise<RedisDecision | null> {
    const { clock, deadlines } = this.options
    const { presence } = this.partitionOf(request.accountId)
    const until = clock.monotonic() + deadlines.limitsMs
    let isRepeated = false
    while (!isLate() && (await presence.here(until - clock.monotonic()))) {
      try {
        const decided = await this.store[call](request)
        if (decided.outcome === 'allocated' && !isRepeated) {
          isRepeated = true
          await this.giveBack(request)
          continue
        }
        if (!isLate()) this.count(request.accountId, decided.counted)
        else if (call === 'admit') this.abandon(request)
        return decided
      } catch (cause) {
        if (cause instanceof AccountPending) {
          if (this.fromAllowance(request) !== null) return null
          if (cause.waitMs > until - clock.monotonic()) throw undecided('instances report what they hold')
          await Bun.sleep(cause.waitMs)
        } else {
          if (call === 'admit' && !(cause instanceof GatewayError)) this.abandon(request)
          this.missed(cause, presence)
          if (!isOfRedis(cause)) throw undecided('a call for this account failed')
        }
      }
    }
    return null
  }

  /** Handles a failed call. An error that is not of Redis is one of this call: other ones go on. */
  private missed(cause: unknown, presence: Presence): null {
    if (cause instanceof StaleGeneration) presence.lost()
    else if (cause instanceof RedisUnavailableError) presence.failed(cause)
    else if (cause instanceof GatewayError) throw cause
    else this.logFailure(cause instanceof Error ? cause.message : 'unknown')
    return null
  }

  private logFailure(reason: string): void {
    const now = this.options.clock.monotonic()
    this.failures.count++
    if (now - this.failures.loggedAt < failuresLoggedEveryMs) return
    this.options.onEvent?.('limits_failed', `${reason}; ${this.failures.count} since the last report`)
    this.failures = { count: 0, loggedAt: now }
  }

  /** An admission without a reply may have been executed: a settlement with nothing releases it. */
  private abandon({ requestId, accountId }: AdmissionRequest): void {
    if (this.settled.has(requestId) || this.accounts.get(accountId)?.counters.reservations.has(requestId)) return
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
      instances: this.instances.count,
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
  private end(own: OwnAccount | undefined, open: OwnReservation | undefined, spent: DailyUsage) {
    if (own === undefined || open === undefined) return { detail: '' }
    const { requestId, accountId } = open.reservation
    const detail = getDetail(open, spent)
    own.counters.reservations.delete(requestId)
    releaseReservation(own.counters, open, spent)
    this.recent.push({ requestId, accountId, at: this.options.clock.now(), detail })
    return open.isFromAllowance === true ? { detail, ...endFromAllowance(own, open, spent) } : { detail: '' }
  }

  /** Counts a settlement in Redis, now or when it is back. Its request waits at most `limitsMs` for it. Never throws. */
  private settleInRedis(pending: Pending): Promise<void> {
    this.pending.set(pending.reservation.requestId, pending)
    const { limitsMs } = this.options.deadlines
    return this.options.redis.within(this.untilSettled(pending, limitsMs), limitsMs).catch(() => {})
  }

  private async untilSettled(pending: Pending, waitMs: number): Promise<void> {
    const { reservation, spent, detail } = pending
    const { accountId } = reservation
    const { presence } = this.partitionOf(accountId)
    const isHere = await presence.here(waitMs)
    try {
      const settled = isHere ? await this.store.settle(reservation, spent, detail) : null
      if (isHere) this.confirm(pending)
      const before = this.counted.get(accountId)
      const after = settled ?? (isHere || before === undefined ? null : released(before, reservation, spent))
      if (after !== null) this.count(accountId, { requests: 0, minuteEndsAt: 0, ...before, ...after })
    } catch (cause) {
      this.missed(cause, presence)
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

  private async settlePending(partition: number): Promise<void> {
    const isHere = ({ reservation }: Pending) => this.options.keys.partition(reservation.accountId) === partition
    const all = [...this.pending.values()].filter(isHere)
    for (let at = 0; at < all.length; at += requestsPerCall) {
      const settled = all.slice(at, at + requestsPerCall).map(async pending => {
        const { reservation, spent, detail } = pending
        await this.store.settle(reservation, spent, detail).catch((cause: unknown) => {
          if (isOfRedis(cause)) throw cause
          this.missed(cause, this.getPartition(partition).presence)
        })
        this.confirm(pending)
      })
      for (const result of await Promise.allSettled(settled)) if (result.status === 'rejected') throw result.reason
    }
  }

  /** Gives the allowances of an account back, because they are in the way of a request. */
  private giveBack(request: AdmissionRequest): Promise<unknown> {
    const { accountId } = request
    const running = this.givingBack.get(accountId)
    if (running !== undefined) return running
    const own = this.own(accountId)
    // Also without allowances of its own: its report ends those of dead instances, which no other one may do.
    getAllowances(own, request)
    const partition = this.options.keys.partition(accountId)
    const report = () => this.report(partition, { isEnding: true, accounts: new Map([[accountId, own]]) })
    // The first report learns that Redis wants them back, the second one returns them.
    const given = report()
      .then(report)
      .finally(() => this.givingBack.delete(accountId))
    this.givingBack.set(accountId, given)
    return given
  }

  private async renewAll(isLeaving: boolean): Promise<void> {
    const now = this.options.clock.now()
    for (const [accountId, own] of this.accounts) {
      this.releaseAbandoned(own, now)
      if (isIdle(own, now)) this.accounts.delete(accountId)
    }
    const first = this.recent.findIndex(({ at }) => at > now - minuteMs)
    this.recent = first === -1 ? [] : this.recent.slice(Math.max(first, this.recent.length - maximumRecent))
    await Promise.all(
      this.partitions.map(async ({ presence }, partition) => {
        if (!presence.isHere()) return
        try {
          await this.settlePending(partition)
          await this.report(partition, { isEnding: isLeaving, isLeaving })
        } catch (cause) {
          this.missed(cause, presence)
        }
      }),
    )
  }

  /** Ends requests that were never settled (a defect elsewhere). If one is settled later, its usage still counts. */
  private releaseAbandoned(own: OwnAccount, now: number): void {
    for (const open of own.counters.reservations.values()) {
      if (open.admittedAt > now - abandonedMs) return
      const { reservation } = open
      const ended = { ...this.end(own, open, nothing), detail: getDetail(open, nothing) }
      this.pending.set(reservation.requestId, { ...ended, reservation, spent: nothing })
    }
  }

  /**
   * Reports to a partition, by default all accounts. `isLost`: Redis has lost their counters. Returns false if it is too
   * late for that.
   */
  private report(
    partition: number,
    options: {
      readonly accounts?: Map<string, OwnAccount>
      readonly isLost?: boolean
      readonly isEnding?: boolean
      readonly isLeaving?: boolean
    } = {},
  ): Promise<boolean> {
    const isIn = ({ accountId }: { readonly accountId: string }) => this.options.keys.partition(accountId) === partition
    const { isLost = false, isEnding = false, isLeaving = false } = options
    const send = async (): Promise<boolean> => {
      const { accounts = new Map([...this.accounts].filter(([accountId]) => isIn({ accountId }))) } = options
      const waiting = isLost ? this.getWaiting().filter(isIn) : []
      for (const { accountId } of waiting) if (!accounts.has(accountId)) accounts.set(accountId, this.own(accountId))
      const report = new Report(accounts, isEnding)
      if (isLost) report.addNewest(this.recent)
      report.addEnded(waiting)
      // What ended is in this report or in the ledger.
      if (isLost) for (const pending of this.pending.values()) if (isIn(pending.reservation)) this.confirm(pending)
      do {
        // Requests may have ended during the last call.
        if (isLost) report.addNewest(this.recent)
        const parts = report.take()
        const isMore = isLost && !report.isWhole()
        if (!(await this.sendReport(partition, parts, { isMore, isLeaving }))) return false
      } while (!report.isWhole())
      return true
    }
    const own = this.getPartition(partition)
    const sent = own.reporting.then(send)
    own.reporting = sent.catch(() => {})
    return sent
  }

  /** Sends one call of a report. Returns false if it is too late for its generation. */
  private async sendReport(
    partition: number,
    parts: readonly AccountPart[],
    more: { readonly isMore: boolean; readonly isLeaving: boolean },
  ): Promise<boolean> {
    const { clock, gatewayId: instance } = this.options
    const sentAt = clock.monotonic()
    for (const { open } of parts) for (const request of open) request.isReported = true
    let reply: Awaited<ReturnType<RedisStore['report']>>
    try {
      reply = await this.store.report(partition, { instance, parts, ...more })
    } catch (cause) {
      if (parts.length === 0 || isOfRedis(cause)) throw cause
      if (parts.length === 1) this.missed(cause, this.getPartition(partition).presence)
      // One of them fails: the others go on.
      else for (const part of parts) if (!(await this.sendReport(partition, [part], more))) return false
      return true
    }
    if (reply === null) return false
    const now = clock.now()
    if (reply.instances >= this.instances.count || Math.abs(now - this.instances.at) > leaseMs)
      this.instances = { count: reply.instances, at: now }
    for (const [index, { own, rows }] of parts.entries()) {
      own.countedAt = sentAt
      takeGrants(own, rows, reply.grants[index] ?? [])
    }
    return true
  }

  /** Returns ended requests that the ledger may not have and new counters need. Repeated reports read the journal once. */
  private getWaiting(): readonly EndedRequest[] {
    const { clock, journal } = this.options
    // What ended since is in `recent`.
    if (this.waiting !== null && clock.monotonic() - this.waiting.at < minuteMs / 2) return this.waiting.requests
    const [firstDay] = monthDays(formatDay(clock.now()))
    // A day more, since the clocks may differ.
    const requests = journal
      .waiting()
      .filter(({ at_ms }) => at_ms >= (firstDay - 1) * dayMs)
      .map(record => ({
        requestId: record.request_id,
        accountId: record.account_id,
        detail: getRecordDetail(record),
      }))
    this.waiting = { at: clock.monotonic(), requests }
    return requests
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

function getDetail({ reservation, admittedAt, scopes }: OwnReservation, usage: DailyUsage): string {
  return toDetail(reservation, usage, admittedAt, scopes.map(getCounterName))
}

/** Returns the counters after a request that Redis has not settled. */
function released(counted: StatusCounters, { day, ...reserved }: Reservation, spent: DailyUsage): StatusCounters {
  const open = Math.max(0, counted.open - 1)
  if (counted.day !== day) return { ...counted, open }
  const tokens = counted.tokens - reserved.reservedTokens + spent.tokens
  return { ...counted, open, tokens, microcents: counted.microcents - reserved.reservedMicrocents + spent.microcents }
}

/** Notes in a record that Redis has not admitted its request: a successor of this process counts it there. */
function withOrigin(record: UsageRecord, open: OwnReservation | undefined): UsageRecord {
  return open?.isFromAllowance === true ? { ...record, from_allowance: true } : record
}

function getRecordDetail(record: UsageRecord): string {
  const { at_ms } = record
  return toDetail({ day: formatDay(at_ms), outputCap: 0 }, getSpent(record), at_ms, getScopeNames(record))
}

function undecided(detail: string): GatewayError {
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: retryMs,
    detail: `limits: ${detail}`,
  })
}
