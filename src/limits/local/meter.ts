/**
 * The in-process meter. Decisions are synchronous, so no lock is needed to apply all four limits atomically. Day
 * counters hold spent plus reserved usage and start from the ledger and the journal.
 *
 * Reservations end with the process; the next start settles their requests from checkpoints. A reservation that is
 * never settled (a defect elsewhere) is released after 15 minutes. If it is settled later, its usage still counts.
 */

import { type Limits, zeroLimits } from '../../core/limits/plans.ts'
import { type DailyUsage, nothing } from '../../core/limits/spent.ts'
import { formatDay, untilMidnight } from '../../core/text/utc-days.ts'
import { type CheckpointBatch, createProgressNotes, type NotesStore } from '../checkpoint-batch.ts'
import { journalGone, type RecordJournal, untilDurable, writeDurably } from '../durable-record.ts'
import type { Admission, AdmissionRequest, LimitErrorCode, Meter, Reservation } from '../meter.ts'
import { recordOf, spentBy } from '../settled-record.ts'
import { createSettledSeats } from '../settled-reservations.ts'
import {
  countersOf,
  countOpenReservations,
  type LocalAccount,
  newAccount,
  releaseExpired,
  releaseReservation,
  standingOf,
} from './account.ts'
import { sizeReservation } from './reservation-size.ts'

export type LocalMeterOptions = {
  readonly clock: { now(): number }
  readonly journal: RecordJournal
  /**
   * Returns the usage of an account on a UTC day (since the epoch) from ledger and journal. Called once per account.
   */
  readonly seed: (accountId: string, day: number) => Promise<DailyUsage>
  readonly checkpoints?: NotesStore
}

export type LocalMeter = Meter &
  Pick<CheckpointBatch, 'flush'> & {
    /** Releases the reservation of a request without usage and without a record. */
    release(seat: Pick<Reservation, 'requestId' | 'accountId'>): void
  }

const seatRetryMs = 1000
const idleMs = 10 * 60_000
const maximumAccounts = 100_000
/** Maximum idle accounts checked per sweep. */
const maximumSweep = 1000

/**
 * Creates an in-process meter. `close` stops only its timer, because journal, ledger and checkpoints belong to the
 * caller.
 */
export function createLocalMeter(options: LocalMeterOptions): LocalMeter {
  const { clock, journal, seed, checkpoints } = options
  const accounts = new Map<string, LocalAccount>()
  const seeding = new Map<string, Promise<LocalAccount>>()
  const settled = createSettledSeats()
  const notes = createProgressNotes(checkpoints)

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

  const decide = (account: LocalAccount, request: AdmissionRequest): Admission => {
    const now = clock.now()
    const { limits, requestId } = request
    const before = account.seats.get(requestId) ?? settled.get(requestId)
    if (before !== undefined) return { admitted: true, seat: before.seat, standing: standingOf(account, limits, now) }
    if (!journal.isWritable()) throw journalGone()

    account.usedAt = now
    releaseExpired(account, now)
    const day = formatDay(now)
    const wait = account.requests.waitUntilUnder(limits.requestsPerMinute, now)
    if (wait > 0) return refused(account, limits, now, 'requests_per_minute_exceeded', wait)
    const freeSeats = limits.concurrentRequests - countOpenReservations(account)
    if (freeSeats <= 0) return refused(account, limits, now, 'concurrent_requests_exceeded', seatRetryMs)
    const counters = countersOf(account, day)
    const grant = sizeReservation(request, limits, counters, freeSeats)
    if (typeof grant === 'string') return refused(account, limits, now, grant, untilMidnight(now))

    account.requests.add(now)
    counters.tokens += grant.tokens
    counters.microcents += grant.microcents
    const seat: Reservation = {
      requestId,
      accountId: request.accountId,
      outputCap: grant.outputCap,
      reservedTokens: grant.tokens,
      reservedMicrocents: grant.microcents,
      day,
    }
    account.seats.set(requestId, { seat, limits, admittedAt: now, progress: null, lapsed: false })
    return { admitted: true, seat, standing: standingOf(account, limits, now) }
  }

  return {
    admit(request) {
      const account = accounts.get(request.accountId)
      if (account === undefined) return firstSight(request.accountId).then(seen => decide(seen, request))
      try {
        return Promise.resolve(decide(account, request))
      } catch (error) {
        return Promise.reject(error)
      }
    },

    raise(seat, reservedTokens, reservedMicrocents) {
      const account = accounts.get(seat.accountId)
      const held = account?.seats.get(seat.requestId)
      if (account === undefined || held === undefined || held.lapsed) return Promise.resolve(null)
      const counters = countersOf(account, held.seat.day)
      const tokens = counters.tokens + Math.max(0, reservedTokens - held.seat.reservedTokens)
      const microcents = counters.microcents + Math.max(0, reservedMicrocents - held.seat.reservedMicrocents)
      const { dailyTokens, dailyCostMicrocents } = held.limits
      if (tokens > dailyTokens || microcents > dailyCostMicrocents) return Promise.resolve(null)
      held.seat = {
        ...held.seat,
        reservedTokens: held.seat.reservedTokens + tokens - counters.tokens,
        reservedMicrocents: held.seat.reservedMicrocents + microcents - counters.microcents,
      }
      counters.tokens = tokens
      counters.microcents = microcents
      return Promise.resolve(held.seat)
    },

    async settle(settlement) {
      const { accountId, requestId } = settlement.seat
      const account = accounts.get(accountId) ?? newAccount(settlement.seat.day, nothing, clock.now())
      const held = account.seats.get(requestId)
      if (held === undefined) {
        await untilDurable(journal, requestId)
        return standingOf(account, settled.get(requestId)?.limits ?? zeroLimits, clock.now())
      }
      // Removed first, so that any later failure leaves it released and settled once.
      account.seats.delete(requestId)
      settled.set(requestId, { seat: held.seat, limits: held.limits })
      const spent = spentBy(settlement, held.seat)
      const counters = countersOf(account, held.seat.day)
      if (held.lapsed) account.lapsedSeats--
      else releaseReservation(counters, held.seat)
      counters.tokens += spent.tokens
      counters.microcents += spent.microcents
      await writeDurably(journal, recordOf(settlement.record, held.seat, spent))
      notes.end(held)
      return standingOf(account, held.limits, clock.now())
    },

    release({ requestId, accountId }) {
      const account = accounts.get(accountId)
      const held = account?.seats.get(requestId)
      if (account === undefined || held === undefined) return
      account.seats.delete(requestId)
      if (held.lapsed) account.lapsedSeats--
      else releaseReservation(countersOf(account, held.seat.day), held.seat)
      notes.end(held)
    },

    checkpoint(seat, progress) {
      const held = accounts.get(seat.accountId)?.seats.get(seat.requestId)
      if (held !== undefined) notes.note(held, progress)
    },

    async loadStatus(accountId, limits) {
      const account = accounts.get(accountId) ?? (await firstSight(accountId))
      return standingOf(account, limits, clock.now())
    },

    standing(accountId, limits) {
      const account = accounts.get(accountId)
      return account === undefined ? null : standingOf(account, limits, clock.now())
    },

    async close() {
      notes.close()
    },

    flush: notes.flush,
  }
}

function refused(
  account: LocalAccount,
  limits: Limits,
  now: number,
  code: LimitErrorCode,
  retryAfterMs: number,
): Admission {
  const standing = standingOf(account, limits, now)
  return { admitted: false, code, retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)), standing }
}

/** Evicts idle accounts. If they return, they are read from the ledger again. */
function evictIdle(accounts: Map<string, LocalAccount>, now: number): void {
  let swept = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    // Moved to the end, so that the next sweep continues with unchecked accounts.
    if (account.seats.size > 0 || account.usedAt >= now - idleMs) accounts.set(id, account)
    if (++swept === maximumSweep) return
  }
}
