/**
 * The meter in one process: every decision is synchronous, so taking all four limits or none needs no lock. Day counters
 * hold what is spent plus what is reserved; they begin with what the ledger and the journal know of the account's day.
 *
 * Seats belong to the process and end with it; what their requests had used by then is in the checkpoints, which the next
 * start settles. One that is never settled (a defect elsewhere) is taken back after `leaseMs`, with its reservation; if it
 * is settled after all, what it used still counts.
 */
import { dayMs, dayOf } from '../core/days.ts'
import { GatewayError } from '../core/errors.ts'
import { ceilingOfMillionth } from '../core/money.ts'
import { type Limits, noLimits } from '../core/plans.ts'
import { createRecent } from '../core/recent.ts'
import type { UsageRecord } from '../core/usage.ts'
import { createWindowLog, type WindowLog } from '../core/windows-log.ts'
import type { Checkpoints } from './checkpoints.ts'
import { type Journal, JournalUnwritable } from './journal.ts'
import type { Admission, AdmitRequest, Meter, Progress, RefusalCode, Seat, Settlement, Standing } from './meter.ts'
import type { Spent } from './spent.ts'

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

/** A seat that is taken, and what is needed to carry it from one meter to another. */
export type OpenSeat = {
  readonly seat: Seat
  readonly limits: Limits
  readonly admittedAt: number
  /** Says what its request has used by then; null = nothing was ever noted. */
  readonly progress: (() => Progress) | null
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
  /** Brings to disk what a request of another meter's has used, until `forget`. */
  keep(seat: Seat, progress: () => Progress): void
  /** That request is over, or its checkpoint is kept elsewhere. */
  forget(requestId: string): void
  /** Forgets an account and hands over its open seats. Their checkpoints stay on disk until `forget`. */
  release(accountId: string): OpenSeat[]
  /** Brings the checkpoints noted since the last call to disk. */
  flush(): void
}

/** What a request has used, as it says itself; null = it is over, or has never said. */
type Noted = { seat: Seat; progress: OpenSeat['progress'] }
type Held = Omit<OpenSeat, keyof Noted> & Noted & { lapsed: boolean }
type Counters = { tokens: number; microcents: number }
type Account = {
  readonly requests: WindowLog
  /** In order of admission. */
  readonly seats: Map<string, Held>
  lapsedSeats: number
  readonly days: Map<number, Counters>
  usedAt: number
}
export type Grant = { readonly outputCap: number; readonly tokens: number; readonly microcents: number }

const minuteMs = 60_000
const seatRetryMs = 1000
const leaseMs = 15 * minuteMs
const idleMs = 10 * minuteMs
const durableDeadlineMs = 2000
const checkpointEveryMs = 250
const maximumAccounts = 100_000
/** Idle accounts looked for at a time, once there are too many. */
const maximumSweep = 1000
/** Seats of settled requests that are remembered, so that a repeated id is answered as before. */
const maximumSettled = 20_000
const perMillion = 1_000_000n

/** An in-process meter. `close` ends its timer: journal, ledger and checkpoints belong to others. */
export function createLocalMeter(options: LocalMeterOptions): LocalMeter {
  const { clock, journal, seed, adopt, checkpoints, allowed = (_, limits) => limits, onAdmitted = () => {} } = options
  const accounts = new Map<string, Account>()
  const seeding = new Map<string, Promise<Account>>()
  const settled = createRecent<Pick<Held, 'seat' | 'limits'>>(maximumSettled)
  /** Noted, and not on disk yet. */
  const progress = new Map<string, Noted>()
  /** Of another meter's requests, those on disk. */
  const keeping = new Set<string>()
  const over: string[] = []

  const flush = () => {
    const records = new Map<string, UsageRecord>()
    for (const [requestId, { seat, progress: said }] of progress)
      if (said !== null) records.set(requestId, recordSaid(seat, said()))
    checkpoints?.write(records, over)
    progress.clear()
    over.length = 0
  }
  const timer = checkpoints === undefined ? null : setInterval(flush, checkpointEveryMs)
  timer?.unref()

  const note = (held: Held, said: () => Progress) => {
    held.progress = said
    progress.set(held.seat.requestId, held)
  }

  /** A map keeps for a while what is deleted from it (`core/roster.ts`): let that not be the whole request. */
  const unnote = (requestId: string, noted = progress.get(requestId)) => {
    if (noted !== undefined) noted.progress = null
    progress.delete(requestId)
  }

  const seatTaken = (account: Account, open: OpenSeat) => {
    const { requestId, day, reservedTokens, reservedMicrocents } = open.seat
    const held = { ...open, lapsed: false }
    account.seats.set(requestId, held)
    keeping.delete(requestId)
    if (open.progress !== null) note(held, open.progress)
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

  const firstSight = (accountId: string): Promise<Account> => {
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

  const decide = (account: Account, request: AdmitRequest, within?: Limits): Admission => {
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
      const account =
        accounts.get(accountId) ?? newAccount(settlement.seat.day, { tokens: 0, microcents: 0 }, clock.now())
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
      if (held.progress !== null) over.push(requestId)
      unnote(requestId, held)
      return standingOf(account, held.limits, clock.now())
    },

    checkpoint(seat, said) {
      const held = accounts.get(seat.accountId)?.seats.get(seat.requestId)
      if (held !== undefined) note(held, said)
    },

    standing(accountId, limits) {
      const account = accounts.get(accountId)
      return account === undefined ? null : standingOf(account, limits, clock.now())
    },

    async close() {
      if (timer !== null) clearInterval(timer)
      flush()
    },

    flush,
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
    keep(seat, said) {
      keeping.add(seat.requestId)
      progress.set(seat.requestId, { seat, progress: said })
    },
    forget(requestId) {
      if (!keeping.delete(requestId)) return
      unnote(requestId)
      over.push(requestId)
    },
    holds: seat => accounts.get(seat.accountId)?.seats.has(seat.requestId) ?? false,
    seatsOf: accountId => openSeats(accounts.get(accountId)),
    record: settlement => write(recordOf(settlement.record, settlement.seat, spentBy(settlement, settlement.seat))),
    release(accountId) {
      const seats = openSeats(accounts.get(accountId))
      accounts.delete(accountId)
      for (const { seat, progress } of seats) if (progress !== null) keeping.add(seat.requestId)
      return seats
    },
  }
}

function openSeats(account: Account | undefined): OpenSeat[] {
  return account === undefined ? [] : [...account.seats.values()].filter(held => !held.lapsed)
}

/** How many output tokens an account can pay for, and what that reserves; or the limit that not even one fits under. */
export function grantOf(
  request: AdmitRequest,
  limits: Limits,
  counters: Spent,
  freeSeats: number,
): Grant | RefusalCode {
  const { choices, inputTokens } = request
  const wanted = Math.max(1, request.outputTokens)

  const tokensLeft = limits.dailyTokens - counters.tokens - inputTokens
  const tokensShared = request.fairShare
    ? Math.max(Math.floor(tokensLeft / freeSeats), Math.min(tokensLeft, choices))
    : tokensLeft
  const cap = Math.min(wanted, Math.floor(tokensShared / choices))
  if (cap < 1) return 'daily_tokens_exceeded'

  const left = limits.dailyCostMicrocents - counters.microcents - request.extraMicrocents
  return fullGrant(request, cap, left, freeSeats) ?? partialGrant(request, cap, left, freeSeats)
}

/** All of `cap`, as nearly every account can pay it many times over; null where that is not sure in doubles. */
function fullGrant(request: AdmitRequest, cap: number, left: number, freeSeats: number): Grant | null {
  const { choices, inputTokens, inputPrice, outputPrice } = request
  const inputCost = inputTokens * inputPrice
  const outputCost = cap * choices * outputPrice
  const needed = inputCost + outputCost * (request.fairShare ? freeSeats : 1)
  if (needed > Number.MAX_SAFE_INTEGER || ceilingOfMillionth(needed) > left) return null
  return {
    outputCap: cap,
    tokens: inputTokens + cap * choices,
    microcents: ceilingOfMillionth(inputCost + outputCost) + request.extraMicrocents,
  }
}

/**
 * As much of `cap` as `left` (of 1e-8 USD) pays for. Counted in 1e-8 USD times a million, where prices are whole and nothing
 * is rounded before the one ceiling at the end; such products outgrow a double.
 */
function partialGrant(request: AdmitRequest, cap: number, left: number, freeSeats: number): Grant | RefusalCode {
  const { choices, inputTokens } = request
  const inputCost = BigInt(inputTokens) * BigInt(request.inputPrice)
  const outputPrice = BigInt(choices) * BigInt(request.outputPrice)
  const forOutput = BigInt(left) * perMillion - inputCost
  if (forOutput < outputPrice) return 'daily_cost_exceeded'
  const share = request.fairShare ? forOutput / BigInt(freeSeats) : forOutput
  const affordable = outputPrice === 0n ? cap : Number(share / outputPrice)
  const outputCap = Math.max(1, Math.min(cap, affordable))

  const cost = inputCost + BigInt(outputCap) * outputPrice
  return {
    outputCap,
    tokens: inputTokens + outputCap * choices,
    microcents: Number((cost + perMillion - 1n) / perMillion) + request.extraMicrocents,
  }
}

/** What counts: never more than was reserved, so that a settlement cannot carry an account over its limits. */
export function spentBy(settlement: Pick<Progress, 'tokens' | 'microcents'>, seat: Seat): Spent {
  return {
    tokens: Math.max(0, Math.min(settlement.tokens, seat.reservedTokens)),
    microcents: Math.max(0, Math.min(settlement.microcents, seat.reservedMicrocents)),
  }
}

/** The record as the ledger will hold it: on the reservation's day, and billed what the meter counted. */
export function recordOf(record: UsageRecord, seat: Seat, spent: Spent): UsageRecord {
  const at_ms = Math.min(Math.max(record.at_ms, seat.day * dayMs), (seat.day + 1) * dayMs - 1)
  const { microcents: billed_microcents } = spent
  const { reservedMicrocents: reserved_microcents } = seat
  const isSo =
    record.at_ms === at_ms &&
    record.billed_microcents === billed_microcents &&
    record.reserved_microcents === reserved_microcents
  return isSo ? record : { ...record, at_ms, billed_microcents, reserved_microcents }
}

function recordSaid(seat: Seat, said: Progress): UsageRecord {
  return recordOf(said.record, seat, spentBy(said, seat))
}

function refused(account: Account, limits: Limits, now: number, code: RefusalCode, retryAfterMs: number): Admission {
  const standing = standingOf(account, limits, now)
  return { admitted: false, code, retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)), standing }
}

function standingOf(account: Account, limits: Limits, now: number): Standing {
  const counters = account.days.get(dayOf(now))
  return {
    requests: {
      limit: limits.requestsPerMinute,
      remaining: left(limits.requestsPerMinute, account.requests.count(now)),
      resetMs: account.requests.waitUntilEmpty(now),
    },
    tokens: {
      limit: limits.dailyTokens,
      remaining: left(limits.dailyTokens, counters?.tokens ?? 0),
      resetMs: untilMidnight(now),
    },
    costMicrocents: {
      limit: limits.dailyCostMicrocents,
      remaining: left(limits.dailyCostMicrocents, counters?.microcents ?? 0),
    },
    seats: { limit: limits.concurrentRequests, remaining: left(limits.concurrentRequests, seatsTaken(account)) },
  }
}

function newAccount(day: number, spent: Spent, now: number): Account {
  return {
    requests: createWindowLog(minuteMs),
    seats: new Map(),
    lapsedSeats: 0,
    days: new Map([[day, { ...spent }]]),
    usedAt: now,
  }
}

/** The counters of a day. A new day begins with none; earlier ones go once no seat is left to settle on them. */
function countersOf(account: Account, day: number): Counters {
  const counters = account.days.get(day)
  if (counters !== undefined) return counters
  const held = new Set([...account.seats.values()].map(one => one.seat.day))
  for (const earlier of account.days.keys()) if (!held.has(earlier)) account.days.delete(earlier)
  const fresh = { tokens: 0, microcents: 0 }
  account.days.set(day, fresh)
  return fresh
}

function takeBackLapsed(account: Account, now: number): void {
  for (const held of account.seats.values()) {
    if (held.lapsed) continue
    if (held.admittedAt > now - leaseMs) return
    held.lapsed = true
    account.lapsedSeats++
    giveBack(countersOf(account, held.seat.day), held.seat)
  }
}

function giveBack(counters: Counters, seat: Seat): void {
  counters.tokens -= seat.reservedTokens
  counters.microcents -= seat.reservedMicrocents
}

/** Accounts that have been idle are read from the ledger again, should they come back. */
function evictIdle(accounts: Map<string, Account>, now: number): void {
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

const left = (limit: number, used: number) => Math.max(0, limit - used)
const seatsTaken = (account: Account) => account.seats.size - account.lapsedSeats
const untilMidnight = (now: number) => (dayOf(now) + 1) * dayMs - now
