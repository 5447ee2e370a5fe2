/**
 * The in-process meter. Decisions are synchronous, so no lock is needed to apply all limits atomically. Day
 * counters hold spent plus reserved usage and start from the ledger and the journal.
 *
 * Reservations end with the process; the next start settles their requests from checkpoints. A reservation that is
 * never settled (a defect elsewhere) is released after 15 minutes. If it is settled later, its usage still counts.
 */

import { zeroLimits } from '../../core/limits/plans.ts'
import { getCounterName, noScopes, type ScopeUsage } from '../../core/limits/scopes.ts'
import type { Clock } from '../../core/ports.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../../core/usage/usage-record.ts'
import { type CheckpointBatch, createProgressLog, type NotesStore } from '../checkpoint-batch.ts'
import type { Admission, AdmissionRequest, LimitReached, Meter, Reservation } from '../meter.ts'
import { getRecord, journalGone, type RecordJournal, spentBy, untilDurable, writeDurably } from '../settled-record.ts'
import { createSettledReservations } from '../settled-reservations.ts'
import {
  addUsage,
  countOpenReservations,
  getCounters,
  getQuotaStatus,
  type LocalAccount,
  newAccount,
  releaseExpired,
  releaseReserved,
} from './account.ts'
import { countInScopes, decideAdmission, newScope, scopesAllow, scopesToday } from './scopes.ts'

export type LocalMeterOptions = {
  readonly clock: Pick<Clock, 'now'>
  readonly journal: RecordJournal
  /**
   * Returns the usage of an account on a UTC day (since the epoch) from ledger and journal. Called once per account.
   */
  readonly seed: (accountId: string, day: number) => Promise<DailyUsage>
  /** The same for scopes of the account, each with the month of the day. Called once per scope. Absent = none was used. */
  readonly seedScopes?: (accountId: string, names: readonly string[], day: number) => Promise<readonly ScopeUsage[]>
  readonly checkpoints?: NotesStore
}

export type LocalMeter = Meter &
  Pick<CheckpointBatch, 'flush'> & {
    /** Releases the reservation of a request without usage and without a record. */
    release(reservation: Pick<Reservation, 'requestId' | 'accountId'>): void
  }

const idleMs = 10 * 60_000
const maximumAccounts = 100_000
/** Maximum idle accounts checked per sweep. */
const maximumSweep = 1000

/**
 * Creates an in-process meter. `close` stops only its timer, because journal, ledger and checkpoints belong to the
 * caller.
 */
export function createLocalMeter(options: LocalMeterOptions): LocalMeter {
  const { clock, journal, seed, seedScopes = unused, checkpoints } = options
  const accounts = new Map<string, LocalAccount>()
  const seeding = new Map<string, Promise<LocalAccount>>()
  const settled = createSettledReservations()
  const notes = createProgressLog(checkpoints)

  const firstSight = (accountId: string): Promise<LocalAccount> => {
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
        account.scopes.set(counters, newScope(seeded.get(scope.name) ?? unusedScope, day))
    }
  }

  /** Decides without a reservation; null = the account or a scope is not loaded. */
  const decision = (request: AdmissionRequest, now: number) => {
    const account = accounts.get(request.accountId)
    if (account === undefined) return null
    const scopes = scopesToday(account.scopes, request.scopes ?? noScopes, formatDay(now))
    if (scopes === null) return null
    if (!journal.isWritable()) throw journalGone()
    account.usedAt = now
    releaseExpired(account, now)
    const { limits } = request
    const state = {
      requestsWaitMs: account.requests.waitUntilUnder(limits.requestsPerMinute, now),
      freeReservations: limits.concurrentRequests - countOpenReservations(account),
      used: getCounters(account, formatDay(now)),
    }
    return { account, decided: decideAdmission(request, state, scopes, now) }
  }

  const decide = (request: AdmissionRequest): Admission | null => {
    const now = clock.now()
    const { limits, requestId, accountId, scopes = noScopes } = request
    const known = accounts.get(accountId)
    const before = known?.reservations.get(requestId) ?? settled.get(requestId)
    if (known !== undefined && before !== undefined)
      return { admitted: true, reservation: before.reservation, quotaStatus: getQuotaStatus(known, limits, now) }
    const made = decision(request, now)
    if (made === null) return null
    const { account, decided } = made
    if ('code' in decided) return { admitted: false, ...decided, quotaStatus: getQuotaStatus(account, limits, now) }
    const { outputCap, tokens, microcents } = decided
    const reservation: Reservation = {
      requestId,
      accountId,
      outputCap,
      reservedTokens: tokens,
      reservedMicrocents: microcents,
      day: formatDay(now),
    }
    account.requests.add(now)
    for (const scope of scopes)
      if (scope.limits.requestsPerMinute !== null) account.scopes.get(getCounterName(scope))?.requests.add(now)
    countInScopes(account.scopes, scopes, { open: 1 })
    addUsage(account, { reservation, scopes }, decided)
    account.reservations.set(requestId, { reservation, limits, scopes, admittedAt: now, progress: null, lapsed: false })
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
    admit: request => loaded(request, () => decide(request)),

    check: request =>
      loaded(request, () => {
        const made = decision(request, clock.now())
        return made && { reached: 'code' in made.decided ? made.decided : null }
      }).then(({ reached }) => reached satisfies LimitReached | null),

    raise(reservation, reservedTokens, reservedMicrocents) {
      const account = accounts.get(reservation.accountId)
      const held = account?.reservations.get(reservation.requestId)
      if (account === undefined || held === undefined || held.lapsed) return Promise.resolve(null)
      const counters = getCounters(account, held.reservation.day)
      const more = {
        tokens: Math.max(0, reservedTokens - held.reservation.reservedTokens),
        microcents: Math.max(0, reservedMicrocents - held.reservation.reservedMicrocents),
      }
      const { dailyTokens, dailyCostMicrocents } = held.limits
      const scopes = scopesToday(account.scopes, held.scopes, held.reservation.day)
      const isWithin =
        counters.tokens + more.tokens <= dailyTokens && counters.microcents + more.microcents <= dailyCostMicrocents
      if (!isWithin || scopes === null || !scopesAllow(scopes, more)) return Promise.resolve(null)
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
      if (held.lapsed) {
        account.lapsedReservations--
        addUsage(account, held, spent)
      } else releaseReserved(account, held, spent)
      await writeDurably(journal, getRecord(settlement.record, held.reservation, spent))
      notes.end(held)
      return getQuotaStatus(account, held.limits, clock.now())
    },

    release({ requestId, accountId }) {
      const account = accounts.get(accountId)
      const held = account?.reservations.get(requestId)
      if (account === undefined || held === undefined) return
      account.reservations.delete(requestId)
      if (held.lapsed) account.lapsedReservations--
      else releaseReserved(account, held, nothing)
      notes.end(held)
    },

    checkpoint(reservation, progress) {
      const held = accounts.get(reservation.accountId)?.reservations.get(reservation.requestId)
      if (held !== undefined) notes.note(held, progress)
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
      notes.close()
    },

    flush: notes.flush,
  }
}

const unusedScope = { tokens: 0, microcents: 0, monthMicrocents: 0 }
const unused: NonNullable<LocalMeterOptions['seedScopes']> = async (_, names) =>
  names.map(name => ({ name, ...unusedScope }))

/** Evicts idle accounts. If they return, they are read from the ledger again. */
function evictIdle(accounts: Map<string, LocalAccount>, now: number): void {
  let swept = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    // Moved to the end, so that the next sweep continues with unchecked accounts.
    if (account.reservations.size > 0 || account.usedAt >= now - idleMs) accounts.set(id, account)
    if (++swept === maximumSweep) return
  }
}
