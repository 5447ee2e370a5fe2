/**
 * The meter of gateway instances on one Redis. Redis decides; while it is away, for whatever reason, each instance decides
 * from its allowances (`allowance.ts`). The usage record is in the instance's own journal before `settle` resolves, so no
 * record depends on Redis. Calls are keyed by request ID and safe to repeat.
 */

import { intervalTimer } from '../core/jobs/repeating.ts'
import type { Limits } from '../core/limits/plans.ts'
import { RedisUnavailableError } from '../core/limits/redis.ts'
import { noScopes } from '../core/limits/scopes.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { maximumAccounts, setBounded } from '../core/text/recent-map.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, nothing, type UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import {
  decideFromAllowance,
  endFromAllowance,
  isIdle,
  newOwnAccount,
  noteAdmitted,
  type OwnAccount,
  reserveFromAllowance,
} from './allowance.ts'
import { failuresLoggedEveryMs, renewMs, requestsPerCall, retryMs } from './constants.ts'
import { releaseReservation, type StatusCounters, toQuotaStatus } from './counters.ts'
import { unreached } from './decide.ts'
import type {
  Admission,
  AdmissionRequest,
  ConversationNote,
  InterimUsage,
  LimitReached,
  Meter,
  OpenReservation,
  QuotaStatus,
  Reservation,
  Settlement,
} from './meter.ts'
import { Presence, type PresenceOptions } from './presence.ts'
import {
  AccountPending,
  createRedisStore,
  isOfRedis,
  type RedisDecision,
  type RedisStore,
  type RedisStoreOptions,
  StaleGeneration,
  toDetail,
} from './redis.ts'
import { getDetail, getRecordDetail, type ReportOptions, Reports } from './reports.ts'
import { type CheckpointStore, OpenRequests } from './usage-records.ts'

export type SharedMeterOptions = RedisStoreOptions &
  PresenceOptions &
  ReportOptions & {
    readonly checkpoints?: CheckpointStore
    readonly deadlines: Pick<ServiceDeadlines, 'limitsMs'>
    /** For tests: leases and allowances are only renewed by calls of `renew`. */
    readonly isManual?: boolean
  }

type Pending = {
  readonly reservation: Reservation
  readonly spent: DailyUsage
  /** Of a request that was admitted from allowances or has lapsed: Redis may not have it. Else empty. */
  readonly detail: string
  readonly counted?: () => void
}

export class SharedMeter implements Meter {
  private readonly requests: OpenRequests<OwnAccount>
  /** Settlements that Redis has not confirmed, by request ID. */
  private readonly pending = new Map<string, Pending>()
  /** Counters of accounts as Redis last replied them. The least recently updated ones are dropped first. */
  private readonly counted = new Map<string, StatusCounters>()
  private readonly store: RedisStore
  private readonly partitions: readonly Presence[]
  private readonly reports: Reports
  private renewing: Promise<void> | null = null
  private failures = { count: 0, loggedAt: Number.NEGATIVE_INFINITY }
  private readonly stopRenewing: () => void

  constructor(private readonly options: SharedMeterOptions) {
    const { journal, checkpoints, keys } = options
    this.requests = new OpenRequests(journal, checkpoints)
    this.store = createRedisStore(options, partition => this.getPresence(partition).generation())
    this.reports = new Reports(options, this.requests.accounts, this.store, (cause, partition) =>
      this.missed(cause, this.getPresence(partition)),
    )
    this.partitions = keys.partitions.map(partition => {
      const report = () => {
        // What ended is in this report or in the ledger.
        for (const pending of this.getPending(partition)) this.confirm(pending)
        return this.reports.send(partition, { isLost: true })
      }
      const settle = async () => {
        this.reports.forgetJournal()
        await this.settlePending(partition)
        await this.reports.send(partition)
      }
      return new Presence(options, { partition, store: this.store, report, settle })
    })
    this.stopRenewing = options.isManual ? () => {} : intervalTimer(renewMs, () => void this.renew())
  }

  /** Resolves when limits can be decided, or after `waitMs`. */
  async ready(waitMs: number): Promise<void> {
    await Promise.race([Promise.all(this.partitions.map(presence => presence.ready())), Bun.sleep(waitMs)])
  }

  /** Returns true if Redis decides now, for all accounts. */
  isShared(): boolean {
    return this.partitions.every(presence => presence.isHere())
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const before = this.requests.find(request)
    if (before !== undefined) return { admitted: true, reservation: before }
    this.requests.mustBeWritable()
    const decided = await this.decided(request, 'admit')
    if (decided === null) return this.admitFromAllowance(request)
    const { outcome, scope, retryAfterMs, reservation, note } = decided
    if (outcome === 'allocated') throw undecided('other instances hold the remaining amounts')
    if (outcome !== 'admitted') return { admitted: false, code: outcome, scope, retryAfterMs }
    noteAdmitted(this.own(request.accountId), request, reservation, this.options.clock.now())
    return { admitted: true, reservation, ...(note === null ? {} : { note }) }
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
    const open = this.requests.getOpen(reservation)
    const presence = this.presenceOf(reservation)
    if (open === undefined || open.isLapsed || !presence.isHere()) return null
    const raised = await this.store
      .raise(open, { tokens: reservedTokens, microcents: reservedMicrocents })
      .catch((cause: unknown) => this.missed(cause, presence))
    if (raised === null) return null
    this.count(reservation.accountId, raised.counted)
    if (raised.outcome !== 'admitted') return null
    open.reservation = raised.reservation
    return raised.reservation
  }

  settle(settlement: Settlement): Promise<void> {
    const { note = null } = settlement
    return this.requests.settle(settlement, (open, spent) => this.settleInRedis(this.end(open, spent), note))
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

  async charge(record: UsageRecord): Promise<void> {
    const { request_id: requestId, account_id: accountId, at_ms } = record
    const spent = getSpent(record)
    const reservation = { ...unreserved, requestId, accountId, day: formatDay(at_ms) }
    // Admitted long ago, so that no minute counts it as a request.
    const detail = toDetail(reservation, spent, 0, [])
    this.reports.noteEnded({ requestId, accountId, detail })
    // A successor of this process counts it in Redis, which has no reservation of it.
    const written = this.requests.write({ ...record, from_allowance: true })
    await Promise.all([written, this.settleInRedis({ reservation, spent, detail })])
  }

  checkpoint(reservation: Reservation, progress: () => InterimUsage): void {
    this.requests.checkpoint(reservation, progress)
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
    await Promise.all(this.partitions.map(presence => presence.close()))
    this.requests.close()
  }

  private getPresence(partition: number): Presence {
    const found = this.partitions[partition]
    if (found === undefined) throw new RedisUnavailableError('its connection is opened')
    return found
  }

  private presenceOf({ accountId }: { readonly accountId: string }): Presence {
    return this.getPresence(this.options.keys.partition(accountId))
  }

  private own(accountId: string): OwnAccount {
    const { accounts } = this.requests
    const known = accounts.get(accountId)
    if (known !== undefined) return known
    const own = newOwnAccount(this.options.clock.now())
    accounts.set(accountId, own)
    return own
  }

  private count(accountId: string, counted: StatusCounters): void {
    setBounded(this.counted, accountId, counted, maximumAccounts)
  }

  private status(accountId: string, limits: Limits): QuotaStatus {
    return toQuotaStatus(this.counted.get(accountId) ?? null, limits, this.options.clock.now())
  }

  /** Returns the decision of Redis, for which a request waits at most `limitsMs` in all; null = it is away or late. */
  private decided(request: AdmissionRequest, call: 'admit' | 'check'): Promise<RedisDecision | null> {
    let isLate = false
    const { redis, deadlines } = this.options
    return redis
      .within(
        this.untilDecided(request, call, () => isLate),
        deadlines.limitsMs,
      )
      .catch((cause: unknown) => {
        if (!(cause instanceof RedisUnavailableError)) throw cause
        isLate = true
        return null
      })
  }

  private async untilDecided(
    request: AdmissionRequest,
    call: 'admit' | 'check',
    isLate: () => boolean,
  ): Promise<RedisDecision | null> {
    const presence = this.presenceOf(request)
    let isRepeated = false
    while (!isLate() && (await presence.here())) {
      try {
        const decided = await this.store[call](request)
        if (decided.outcome === 'allocated' && !isRepeated) {
          isRepeated = true
          await this.reports.giveBack(this.own(request.accountId), request)
          continue
        }
        if (!isLate()) this.count(request.accountId, decided.counted)
        else if (call === 'admit') this.abandon(request)
        return decided
      } catch (cause) {
        if (cause instanceof AccountPending) {
          if (this.fromAllowance(request) !== null) return null
          if (cause.waitMs > this.options.deadlines.limitsMs) throw undecided('instances report what they hold')
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
  private abandon(request: AdmissionRequest): void {
    if (this.requests.find(request) !== undefined) return
    const { requestId, accountId } = request
    const reservation = { ...unreserved, requestId, accountId, day: formatDay(this.options.clock.now()) }
    this.pending.set(requestId, { reservation, spent: nothing, detail: '' })
  }

  private fromAllowance(request: AdmissionRequest) {
    const { clock } = this.options
    const own = this.requests.accounts.get(request.accountId)
    if (own === undefined) return null
    return decideFromAllowance(own, request, {
      now: clock.now(),
      monotonic: clock.monotonic(),
      instances: this.reports.instances.count,
    })
  }

  private admitFromAllowance(request: AdmissionRequest): Admission {
    const grant = this.fromAllowance(request)
    if (grant === null) throw undecided('Redis is away, and the allowance does not cover the request')
    this.pending.delete(request.requestId)
    const own = this.own(request.accountId)
    return { admitted: true, reservation: reserveFromAllowance(own, request, grant, this.options.clock.now()) }
  }

  /** Counts the end of a request here. Returns its settlement in Redis. */
  private end(open: OpenReservation, spent: DailyUsage): Pending {
    const { reservation } = open
    const { requestId, accountId } = reservation
    const own = this.own(accountId)
    const detail = getDetail(open, spent)
    releaseReservation(own, open, spent)
    this.reports.noteEnded({ requestId, accountId, detail })
    // Its allowance got it back when it lapsed.
    if (open.isLapsed) return { reservation, spent, detail }
    if (open.isFromAllowance !== true) return { reservation, spent, detail: '' }
    return { reservation, spent, detail, ...endFromAllowance(own, open, spent) }
  }

  /** Counts a settlement in Redis, now or when it is back. Its request waits at most `limitsMs` for it. Never throws. */
  private settleInRedis(pending: Pending, note: ConversationNote | null = null): Promise<void> {
    const presence = this.presenceOf(pending.reservation)
    this.pending.set(pending.reservation.requestId, pending)
    const settle = async () => {
      if (await presence.here()) await this.sendSettlement(pending, note).catch(cause => this.missed(cause, presence))
    }
    const { redis, deadlines } = this.options
    return redis.within(settle(), deadlines.limitsMs).catch(() => {})
  }

  /**
   * Sends a settlement. Throws errors of Redis. Any other is one of this call: a repetition would fail too. A later one has no
   * note: its conversation may have gone on.
   */
  private async sendSettlement(pending: Pending, note: ConversationNote | null = null): Promise<void> {
    const { reservation, spent, detail } = pending
    const { accountId } = reservation
    const settled = await this.store.settle(reservation, spent, { detail, note }).catch((cause: unknown) => {
      if (isOfRedis(cause)) throw cause
      return this.missed(cause, this.presenceOf(reservation))
    })
    this.confirm(pending)
    if (settled !== null)
      this.count(accountId, { requests: 0, minuteEndsAt: 0, ...this.counted.get(accountId), ...settled })
  }

  private confirm(pending: Pending): void {
    const { requestId } = pending.reservation
    if (this.pending.get(requestId) !== pending) return
    this.pending.delete(requestId)
    pending.counted?.()
  }

  private getPending(partition: number): Pending[] {
    const { keys } = this.options
    return [...this.pending.values()].filter(({ reservation }) => keys.partition(reservation.accountId) === partition)
  }

  private async settlePending(partition: number): Promise<void> {
    const all = this.getPending(partition)
    for (let at = 0; at < all.length; at += requestsPerCall) {
      const settled = all.slice(at, at + requestsPerCall).map(pending => this.sendSettlement(pending))
      for (const result of await Promise.allSettled(settled)) if (result.status === 'rejected') throw result.reason
    }
  }

  private async renewAll(isLeaving: boolean): Promise<void> {
    const now = this.options.clock.now()
    const { accounts } = this.requests
    for (const [accountId, own] of accounts) {
      this.requests.releaseAbandoned(own, now, open => {
        const ended = { ...this.end(open, nothing), detail: getDetail(open, nothing) }
        this.pending.set(open.reservation.requestId, ended)
      })
      if (isIdle(own, now)) accounts.delete(accountId)
    }
    this.reports.forgetEnded(request => this.presenceOf(request).isHere())
    await Promise.all(
      this.partitions.map(async (presence, partition) => {
        if (!presence.isHere()) return
        try {
          await this.settlePending(partition)
          await this.reports.send(partition, { isEnding: isLeaving, isLeaving })
        } catch (cause) {
          this.missed(cause, presence)
        }
      }),
    )
  }
}

const unreserved = { outputCap: 0, reservedTokens: 0, reservedMicrocents: 0 }

/** A request that every account has room for. */
const unlimited = {
  limits: {
    requestsPerMinute: unreached,
    concurrentRequests: unreached,
    dailyTokens: unreached,
    dailyCostMicrocents: unreached,
  },
  scopes: noScopes,
  inputTokens: 0,
  outputTokens: 1,
  choices: 1,
  fairShare: false,
  inputPrice: 0,
  outputPrice: 0,
  extraMicrocents: 0,
  conversation: null,
} as const

function undecided(detail: string): GatewayError {
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: retryMs,
    detail: `limits: ${detail}`,
  })
}
