/**
 * The meter in one process: every decision is synchronous, so taking all four limits or none needs no lock. Day counters
 * hold what is spent plus what is reserved; they begin with what the ledger and the journal know of the account's day.
 *
 * Seats belong to the process and end with it; what their requests had used by then is in the checkpoints, which the next
 * start settles. One that is never settled (a defect elsewhere) is taken back after a quarter of an hour, with its reservation;
 * if it is settled after all, what it used still counts.
 */
import { dayOf, untilMidnight } from '../core/days.ts'
import { GatewayError } from '../core/errors.ts'
import { type Limits, noLimits } from '../core/plans.ts'
import type { UsageRecord } from '../core/usage.ts'
import type { Checkpoints } from './checkpoints.ts'
import { type Journal, JournalUnwritable } from './journal.ts'
import { grantOf } from './meter/grant.ts'
import {
  countersOf,
  giveBack,
  type LocalAccount,
  newAccount,
  openSeats,
  seatsTaken,
  standingOf,
  takeBackLapsed,
} from './meter/local-account.ts'
import { createProgressNotes, type ProgressNotes } from './meter/progress-notes.ts'
import { recordOf, settledRecord, spentBy } from './meter/settled-record.ts'
import { createSettledSeats } from './meter/settled-seats.ts'
import { nothing, type Spent } from './meter/spent.ts'
import type { Admission, AdmitRequest, Meter, OpenSeat, RefusalCode, Seat, Settlement } from './meter.ts'

export type LocalMeterOptions = {
  readonly clock: { now(): number }
  readonly journal: Pick<Journal, 'appendTogether' | 'isWritable' | 'untilDurable'>
  /** What ledger and journal know of an account's UTC day (since the epoch). Asked once, on first sight. */
  readonly seed: (accountId: string, day: number) => Promise<Spent>
  /** What else an account begins with: seats that another meter took, and the ages of the last minute's admissions. */
  readonly adopt?: (accountId: string) => { readonly seats: readonly OpenSeat[]; readonly ages: readonly number[] }
  readonly checkpoints?: Checkpoints
  /** What may be handed out of an account's limits here; all of them unless told. Asked in the step that decides. */
  readonly allowed?: (accountId: string, limits: Limits) => Limits
  /** Hears of every admission in the step that makes it. */
  readonly onAdmitted?: (accountId: string) => void
}

export type LocalMeter = Meter & {
  /** As in the port. `within` = what may be handed out here; what `allowed` says unless told. */
  admit(request: AdmitRequest, within?: Limits): Promise<Admission>
  /** Whether the account has been seen, once a first sight under way is over. */
  knows(accountId: string): Promise<boolean>
  /** First sight of an account, ahead of its first request. Rejects where the ledger cannot be read. */
  open(accountId: string): Promise<void>
  accounts(): IterableIterator<string>
  /** Takes over a seat of another meter, with its reservation and its place in the minute; false where the account has not been seen. */
  take(open: OpenSeat): boolean
  seatsOf(accountId: string): OpenSeat[]
  holds(seat: Seat): boolean
  /** Today's counters, seats taken, and admissions of the last minute; null where the account has not been seen. */
  used(accountId: string): (Spent & { readonly seats: number; readonly requests: number }) | null
  /** Moves a day's counters: others have used more, or less, than was known. */
  shift(accountId: string, day: number, by: Spent): void
  /** Writes the record of a request whose account it has not seen. Rejects where no store took it in time. */
  record(settlement: Settlement): Promise<void>
  /** Forgets an account and hands over its open seats. Their checkpoints stay on disk until `forget`. */
  release(accountId: string): OpenSeat[]
} & Pick<ProgressNotes, 'keep' | 'forget' | 'flush'>

const seatRetryMs = 1000
const idleMs = 10 * 60_000
const durableDeadlineMs = 2000
const maximumAccounts = 100_000
/** Idle accounts looked for at a time, once there are too many. */
const maximumSweep = 1000

/** An in-process meter. `close` ends its timer: journal, ledger and checkpoints belong to others. */
export function createLocalMeter(options: LocalMeterOptions): LocalMeter {
  const { clock, journal, seed, adopt, checkpoints, allowed = (_, limits) => limits, onAdmitted = () => {} } = options
  const accounts = new Map<string, LocalAccount>()
  const seeding = new Map<string, Promise<LocalAccount>>()
  const settled = createSettledSeats()
  const notes = createProgressNotes(checkpoints)

  const seatTaken = (account: LocalAccount, open: OpenSeat) => {
    const { requestId, day, reservedTokens, reservedMicrocents } = open.seat
    const held = { ...open, lapsed: false }
    account.seats.set(requestId, held)
    notes.takeOver(requestId)
    if (open.progress !== null) notes.note(held, open.progress)
    const counters = countersOf(account, day)
    counters.tokens += reservedTokens
    counters.microcents += reservedMicrocents
  }

  const write = async (record: UsageRecord) => {
    try {
      await journal.appendTogether(record)
    } catch (error) {
      if (!(error instanceof JournalUnwritable)) throw error
      await journal.untilDurable(record.request_id, durableDeadlineMs).catch(() => {
        throw journalGone()
      })
    }
  }

  const firstSight = (accountId: string): Promise<LocalAccount> => {
    const running = seeding.get(accountId)
    if (running !== undefined) return running
    const now = clock.now()
    const day = dayOf(now)
    const seeded = seed(accountId, day)
      .then(spent => {
        if (accounts.size >= maximumAccounts) evictIdle(accounts, now)
        const account = newAccount(day, spent, now)
        const adopted = adopt?.(accountId)
        for (const one of adopted?.seats ?? []) seatTaken(account, one)
        for (const age of adopted?.ages ?? []) account.requests.add(now - age)
        accounts.set(accountId, account)
        return account
      })
      .finally(() => seeding.delete(accountId))
    seeding.set(accountId, seeded)
    return seeded
  }

  const decide = (account: LocalAccount, request: AdmitRequest, within?: Limits): Admission => {
    const now = clock.now()
    const { limits, requestId } = request
    const before = account.seats.get(requestId) ?? settled.get(requestId)
    if (before !== undefined) return { admitted: true, seat: before.seat, standing: standingOf(account, limits, now) }
    if (!journal.isWritable()) throw journalGone()

    account.usedAt = now
    takeBackLapsed(account, now)
    const day = dayOf(now)
    const own = within ?? allowed(request.accountId, limits)
    const wait = account.requests.waitUntilUnder(own.requestsPerMinute, now)
    if (wait > 0) return refused(account, limits, now, 'requests_per_minute_exceeded', wait)
    const freeSeats = own.concurrentRequests - seatsTaken(account)
    if (freeSeats <= 0) return refused(account, limits, now, 'concurrent_requests_exceeded', seatRetryMs)
    const counters = countersOf(account, day)
    const grant = grantOf(request, own, counters, freeSeats)
    if (typeof grant === 'string') return refused(account, limits, now, grant, untilMidnight(now))

    account.requests.add(now)
    counters.tokens += grant.tokens
    counters.microcents += grant.microcents
    const seat: Seat = {
      requestId,
      accountId: request.accountId,
      outputCap: grant.outputCap,
      reservedTokens: grant.tokens,
      reservedMicrocents: grant.microcents,
      day,
    }
    account.seats.set(requestId, { seat, limits, admittedAt: now, progress: null, lapsed: false })
    onAdmitted(request.accountId)
    return { admitted: true, seat, standing: standingOf(account, limits, now) }
  }

  return {
    admit(request, within?: Limits) {
      const account = accounts.get(request.accountId)
      if (account === undefined) return firstSight(request.accountId).then(seen => decide(seen, request, within))
      try {
        return Promise.resolve(decide(account, request, within))
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
      const own = allowed(seat.accountId, held.limits)
      if (tokens > own.dailyTokens || microcents > own.dailyCostMicrocents) return Promise.resolve(null)
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
        await journal.untilDurable(requestId, durableDeadlineMs)
        return standingOf(account, settled.get(requestId)?.limits ?? noLimits, clock.now())
      }
      // The seat first: whatever fails from here on, it is free and settled once.
      account.seats.delete(requestId)
      settled.set(requestId, { seat: held.seat, limits: held.limits })
      const spent = spentBy(settlement, held.seat)
      const counters = countersOf(account, held.seat.day)
      if (held.lapsed) account.lapsedSeats--
      else giveBack(counters, held.seat)
      counters.tokens += spent.tokens
      counters.microcents += spent.microcents
      await write(recordOf(settlement.record, held.seat, spent))
      notes.end(held)
      return standingOf(account, held.limits, clock.now())
    },

    checkpoint(seat, progress) {
      const held = accounts.get(seat.accountId)?.seats.get(seat.requestId)
      if (held !== undefined) notes.note(held, progress)
    },

    standing(accountId, limits) {
      const account = accounts.get(accountId)
      return account === undefined ? null : standingOf(account, limits, clock.now())
    },

    async close() {
      notes.close()
    },

    flush: notes.flush,
    accounts: () => accounts.keys(),
    async open(accountId) {
      if (!accounts.has(accountId)) await firstSight(accountId)
    },
    take(open) {
      const account = accounts.get(open.seat.accountId)
      if (account === undefined) return false
      if (account.seats.has(open.seat.requestId)) return true
      seatTaken(account, open)
      account.requests.add(open.admittedAt)
      return true
    },
    async knows(accountId) {
      await seeding.get(accountId)?.catch(() => {})
      return accounts.has(accountId)
    },
    used(accountId) {
      const account = accounts.get(accountId)
      if (account === undefined) return null
      const now = clock.now()
      takeBackLapsed(account, now)
      const { tokens, microcents } = countersOf(account, dayOf(now))
      return { tokens, microcents, seats: seatsTaken(account), requests: account.requests.count(now) }
    },
    shift(accountId, day, by) {
      const account = accounts.get(accountId)
      if (account === undefined) return
      const counters = countersOf(account, day)
      counters.tokens += by.tokens
      counters.microcents += by.microcents
    },
    keep: notes.keep,
    forget: notes.forget,
    holds: seat => accounts.get(seat.accountId)?.seats.has(seat.requestId) ?? false,
    seatsOf(accountId) {
      const account = accounts.get(accountId)
      return account === undefined ? [] : openSeats(account)
    },
    record: settlement => write(settledRecord(settlement.seat, settlement)),
    release(accountId) {
      const account = accounts.get(accountId)
      if (account === undefined) return []
      accounts.delete(accountId)
      const seats = openSeats(account)
      for (const { seat, progress } of seats) if (progress !== null) notes.giveUp(seat.requestId)
      return seats
    },
  }
}

function refused(
  account: LocalAccount,
  limits: Limits,
  now: number,
  code: RefusalCode,
  retryAfterMs: number,
): Admission {
  const standing = standingOf(account, limits, now)
  return { admitted: false, code, retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)), standing }
}

/** Accounts that have been idle are read from the ledger again, should they come back. */
function evictIdle(accounts: Map<string, LocalAccount>, now: number): void {
  let swept = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    // Behind the others, so that the next sweep looks at those that this one did not come to.
    if (account.seats.size > 0 || account.usedAt >= now - idleMs) accounts.set(id, account)
    if (++swept === maximumSweep) return
  }
}

function journalGone(): GatewayError {
  return new GatewayError('service_unavailable', 'The service cannot record usage right now. Try again shortly.', {
    retryAfterMs: 1000,
    detail: 'the usage journal cannot be written',
  })
}
