/**
 * The meter of a process without Redis. Decisions are synchronous, so no lock is needed to apply all limits atomically.
 * Day counters hold spent plus reserved usage and start from the ledger and the journal. Reservations end with the
 * process; the next start settles their requests from checkpoints.
 */

import { zeroLimits } from '../core/limits/plans.ts'
import { getCounterName, noScopes, type ScopeUsage } from '../core/limits/scopes.ts'
import type { Clock } from '../core/ports.ts'
import { createRecentMap, maximumAccounts } from '../core/text/recent-map.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../core/usage/usage-record.ts'
import { abandonedMs, idleMs } from './constants.ts'
import {
  type AccountCounters,
  addUsage,
  getAccountTime,
  getCounterState,
  getQuotaStatus,
  newAccount,
  newCounters,
  releaseReservation,
  reserve,
} from './counters.ts'
import { allows, type Decision, decide } from './decide.ts'
import type { Admission, AdmissionRequest, LimitReached, Meter, OpenReservation } from './meter.ts'
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

export type MemoryMeterOptions = {
  readonly clock: Pick<Clock, 'now'>
  readonly journal: RecordJournal
  /**
   * Returns the usage of an account on a UTC day (since the epoch) from ledger and journal. Called once per account.
   */
  readonly seed: (accountId: string, day: number) => Promise<DailyUsage>
  /** The same for scopes of the account, each with the month of the day. Called once per scope. Absent = none was used. */
  readonly seedScopes?: (accountId: string, names: readonly string[], day: number) => Promise<readonly ScopeUsage[]>
  readonly checkpoints?: CheckpointStore
}

export type MemoryMeter = Meter & Pick<CheckpointBatch, 'flush'>

/** Maximum idle accounts checked per sweep. */
const maximumSweep = 1000

/**
 * Creates a meter in process. `close` stops only its timer, because journal, ledger and checkpoints belong to the
 * caller.
 */
export function createMemoryMeter(options: MemoryMeterOptions): MemoryMeter {
  const { clock, journal, seed, seedScopes = unused } = options
  const accounts = new Map<string, AccountCounters>()
  const seeding = new Map<string, Promise<AccountCounters>>()
  const settled = createRecentMap<Pick<OpenReservation, 'reservation' | 'limits'>>(maximumSettled)
  const checkpoints = new CheckpointBatch(options.checkpoints)

  const firstSight = (accountId: string): Promise<AccountCounters> => {
    const running = seeding.get(accountId)
    if (running !== undefined) return running
    const now = clock.now()
    const day = formatDay(now)
    const seeded = seed(accountId, day)
      .then(spent => {
        if (accounts.size >= maximumAccounts) evictIdle(accounts, now)
        const account = newAccount(day, spent, now)
        accounts.set(accountId, account)
        return account
      })
      .finally(() => seeding.delete(accountId))
    seeding.set(accountId, seeded)
    return seeded
  }

  /** Loads the account and the scopes of a request that this process does not count yet. */
  const load = async ({ accountId, scopes = noScopes }: AdmissionRequest): Promise<void> => {
    const account = accounts.get(accountId) ?? (await firstSight(accountId))
    const missing = scopes.filter(scope => !account.scopes.has(getCounterName(scope)))
    if (missing.length === 0) return
    const day = formatDay(clock.now())
    const names = missing.map(({ name }) => name)
    const seeded = new Map((await seedScopes(accountId, names, day)).map(({ name, ...used }) => [name, used]))
    for (const scope of missing) {
      const counters = getCounterName(scope)
      // Another request may have loaded it meanwhile, and counts in it.
      if (!account.scopes.has(counters))
        account.scopes.set(counters, newCounters(day, seeded.get(scope.name) ?? unusedScope))
    }
  }

  /** Decides without a reservation; null = the account or a scope is not loaded. */
  const decision = (
    request: AdmissionRequest,
    now: number,
  ): { readonly account: AccountCounters; readonly decided: Decision } | null => {
    const account = accounts.get(request.accountId)
    if (account === undefined) return null
    const state = getCounterState(account, request.scopes ?? noScopes, request.limits, now)
    if (state === null) return null
    if (!journal.isWritable()) throw journalGone()
    account.usedAt = now
    return releaseAbandoned(account, now)
      ? decision(request, now)
      : { account, decided: decide(state, request, getAccountTime(account, now)) }
  }

  const admit = (request: AdmissionRequest): Admission | null => {
    const now = clock.now()
    const { limits, requestId, accountId } = request
    const known = accounts.get(accountId)
    const before = known?.reservations.get(requestId) ?? settled.get(requestId)
    if (known !== undefined && before !== undefined)
      return { admitted: true, reservation: before.reservation, quotaStatus: getQuotaStatus(known, limits, now) }
    const made = decision(request, now)
    if (made === null) return null
    const { account, decided } = made
    if ('code' in decided) return { admitted: false, ...decided, quotaStatus: getQuotaStatus(account, limits, now) }
    const reservation = reserve(account, request, decided, now)
    return { admitted: true, reservation, quotaStatus: getQuotaStatus(account, limits, now) }
  }

  /** Calls `decideNow` with everything loaded that the request counts in. Mostly at once. */
  const loaded = async <T>(request: AdmissionRequest, decideNow: () => T | null): Promise<T> => {
    let decided = decideNow()
    while (decided === null) {
      await load(request)
      decided = decideNow()
    }
    return decided
  }

  return {
    admit: request => loaded(request, () => admit(request)),

    check: request =>
      loaded(request, () => {
        const made = decision(request, clock.now())
        return made && { reached: 'code' in made.decided ? made.decided : null }
      }).then(({ reached }) => reached satisfies LimitReached | null),

    raise(reservation, reservedTokens, reservedMicrocents) {
      const account = accounts.get(reservation.accountId)
      const held = account?.reservations.get(reservation.requestId)
      if (account === undefined || held === undefined || held.isLapsed) return Promise.resolve(null)
      const more = {
        tokens: Math.max(0, reservedTokens - held.reservation.reservedTokens),
        microcents: Math.max(0, reservedMicrocents - held.reservation.reservedMicrocents),
      }
      const state = getCounterState(account, held.scopes, held.limits, clock.now())
      // After midnight its day admits no further usage, and the limits of the new day do not count it.
      const isOver = account.own.day !== held.reservation.day
      if (state === null || isOver || !allows(state, held.limits, more)) return Promise.resolve(null)
      addUsage(account, held, more)
      held.reservation = {
        ...held.reservation,
        reservedTokens: held.reservation.reservedTokens + more.tokens,
        reservedMicrocents: held.reservation.reservedMicrocents + more.microcents,
      }
      return Promise.resolve(held.reservation)
    },

    async settle(settlement) {
      const { accountId, requestId } = settlement.reservation
      const account = accounts.get(accountId) ?? newAccount(settlement.reservation.day, nothing, clock.now())
      const held = account.reservations.get(requestId)
      if (held === undefined) {
        await untilDurable(journal, requestId)
        return getQuotaStatus(account, settled.get(requestId)?.limits ?? zeroLimits, clock.now())
      }
      // Removed first, so that any later failure leaves it released and settled once.
      account.reservations.delete(requestId)
      settled.set(requestId, { reservation: held.reservation, limits: held.limits })
      const spent = spentBy(settlement, held.reservation)
      releaseReservation(account, held, spent)
      await writeDurably(journal, getRecord(settlement.record, held.reservation, spent))
      checkpoints.end(held)
      return getQuotaStatus(account, held.limits, clock.now())
    },

    checkpoint(reservation, progress) {
      const held = accounts.get(reservation.accountId)?.reservations.get(reservation.requestId)
      if (held !== undefined) checkpoints.note(held, progress)
    },

    async loadStatus(accountId, limits) {
      const account = accounts.get(accountId) ?? (await firstSight(accountId))
      return getQuotaStatus(account, limits, clock.now())
    },

    quotaStatus(accountId, limits) {
      const account = accounts.get(accountId)
      return account === undefined ? null : getQuotaStatus(account, limits, clock.now())
    },

    async close() {
      checkpoints.close()
    },

    flush: () => checkpoints.flush(),
  }
}

const unusedScope = { tokens: 0, microcents: 0, monthMicrocents: 0 }
const unused: NonNullable<MemoryMeterOptions['seedScopes']> = async (_, names) =>
  names.map(name => ({ name, ...unusedScope }))

/**
 * Releases reservations of requests that were never settled (a defect elsewhere). Returns true if there was one. If it is
 * settled later, its usage still counts.
 */
function releaseAbandoned(account: AccountCounters, now: number): boolean {
  let isReleased = false
  for (const held of account.reservations.values()) {
    if (held.isLapsed) continue
    if (held.admittedAt > now - abandonedMs) break
    releaseReservation(account, held, nothing)
    held.isLapsed = true
    isReleased = true
  }
  return isReleased
}

/** Evicts idle accounts. If they return, they are read from the ledger again. */
function evictIdle(accounts: Map<string, AccountCounters>, now: number): void {
  let swept = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    // Moved to the end, so that the next sweep continues with unchecked accounts.
    if (account.reservations.size > 0 || account.usedAt >= now - idleMs) accounts.set(id, account)
    if (++swept === maximumSweep) return
  }
}
