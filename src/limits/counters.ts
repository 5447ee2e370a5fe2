/**
 * Counters of one account and its scopes in the memory of a process: all that it admits without Redis, or what it has
 * itself admitted of what Redis counts (`allowance.ts`).
 */
import type { Limits, QuotaStatus } from '../core/limits/plans.ts'
import { createWindowLog, type SlidingWindowLog } from '../core/limits/rate-limits.ts'
import { getCounterName, getMonth, type Scope, type ScopeUsage } from '../core/limits/scopes.ts'
import { dayMs, formatDay, untilMidnight } from '../core/text/utc-days.ts'
import type { DailyUsage } from '../core/usage/usage-record.ts'
import { minuteMs } from './constants.ts'
import type { AdmissionRequest, OpenReservation, Reservation } from './meter.ts'

/** Spent plus reserved usage of the newest day and month; earlier ones can admit no request. */
export type Counters = {
  readonly requests: SlidingWindowLog
  open: number
  day: number
  tokens: number
  microcents: number
  month: number
  monthMicrocents: number
}

export type AccountCounters = {
  readonly own: Counters
  /** Limited keys, projects and tags, by the name of their counters. */
  readonly scopes: Map<string, Counters>
  /** In order of admission. */
  readonly reservations: Map<string, OpenReservation>
  usedAt: number
}

/** Creates counters without open requests. */
export function newCounters(day: number, used: DailyUsage & Partial<Pick<ScopeUsage, 'monthMicrocents'>>): Counters {
  const { tokens, microcents, monthMicrocents = microcents } = used
  return {
    requests: createWindowLog(minuteMs),
    open: 0,
    day,
    tokens,
    microcents,
    month: getMonth(day),
    monthMicrocents,
  }
}

/** Creates an account without open requests. */
export function newAccount(day: number, used: DailyUsage, now: number): AccountCounters {
  return { own: newCounters(day, used), scopes: new Map(), reservations: new Map(), usedAt: now }
}

/** Returns the time of an account: a clock that was set back over midnight leaves it on its newest day. */
export const getAccountTime = ({ day }: Counters, now: number) => Math.max(now, day * dayMs)

/** Counters that a request counts in. */
export type CounterState = {
  readonly own: Counters
  readonly scopes: readonly (Scope & { readonly counters: Counters })[]
}

/** Returns the state for a decision, on the present day; null = a scope has no counters yet. */
export function getCounterState(account: AccountCounters, scopes: readonly Scope[], now: number): CounterState | null {
  const day = formatDay(getAccountTime(account.own, now))
  const counted: (Scope & { counters: Counters })[] = []
  for (const scope of scopes) {
    const counters = account.scopes.get(getCounterName(scope))
    if (counters === undefined) return null
    beginDay(counters, day)
    counted.push({ name: scope.name, limits: scope.limits, counters })
  }
  beginDay(account.own, day)
  return { own: account.own, scopes: counted }
}

function beginDay(counters: Counters, day: number): void {
  if (counters.day >= day) return
  Object.assign(counters, { day, tokens: 0, microcents: 0 })
  const month = getMonth(day)
  if (counters.month < month) Object.assign(counters, { month, monthMicrocents: 0 })
}

/** What a request is granted and what that reserves: tokens, and money in 1e-8 USD. */
export type Grant = { readonly outputCap: number; readonly tokens: number; readonly microcents: number }

/** Returns the reservation of a grant. */
export function toReservation(
  account: AccountCounters,
  { requestId, accountId }: Pick<AdmissionRequest, 'requestId' | 'accountId'>,
  { outputCap, tokens, microcents }: Grant,
  now: number,
): Reservation {
  const day = formatDay(getAccountTime(account.own, now))
  return { requestId, accountId, outputCap, reservedTokens: tokens, reservedMicrocents: microcents, day }
}

/** Counts an admitted request, and returns it as an open one. */
export function reserve(
  account: AccountCounters,
  { limits, scopes }: Pick<AdmissionRequest, 'limits' | 'scopes'>,
  reservation: Reservation,
  now: number,
): OpenReservation {
  const open: OpenReservation = { reservation, limits, scopes, admittedAt: now, progress: null, isLapsed: false }
  account.usedAt = now
  account.own.requests.add(now)
  for (const scope of scopes)
    if (scope.limits.requestsPerMinute !== null) account.scopes.get(getCounterName(scope))?.requests.add(now)
  addUsage(account, open, { tokens: reservation.reservedTokens, microcents: reservation.reservedMicrocents }, 1)
  account.reservations.set(reservation.requestId, open)
  return open
}

/** Replaces what a request reserves by `spent`. */
export function releaseReservation(account: AccountCounters, held: OpenReservation, spent: DailyUsage): void {
  const { reservation, isLapsed } = held
  const reserved = isLapsed ? 0 : 1
  const tokens = spent.tokens - reserved * reservation.reservedTokens
  addUsage(
    account,
    held,
    { tokens, microcents: spent.microcents - reserved * reservation.reservedMicrocents },
    -reserved,
  )
}

/** Adds to the counters of a request's day, and to its concurrent requests: those of its account and of its scopes. */
export function addUsage(
  { own, scopes }: AccountCounters,
  held: Pick<OpenReservation, 'scopes'> & { readonly reservation: Pick<Reservation, 'day'> },
  used: DailyUsage,
  open = 0,
): void {
  const { day } = held.reservation
  addTo(own, day, used, open)
  for (const scope of held.scopes) {
    const counters = scopes.get(getCounterName(scope))
    if (counters !== undefined) addTo(counters, day, used, open)
  }
}

function addTo(counters: Counters, day: number, { tokens, microcents }: DailyUsage, open: number): void {
  counters.open += open
  if (counters.day === day) {
    counters.tokens += tokens
    counters.microcents += microcents
  }
  // The month of counters is that of their day.
  if (counters.day === day || counters.month === getMonth(day)) counters.monthMicrocents += microcents
}

/** Counters of an account that its quota status needs. Times are epoch milliseconds of this process. */
export type StatusCounters = DailyUsage & {
  readonly requests: number
  /** When the minute has no request. */
  readonly minuteEndsAt: number
  /** UTC day of the usage, and when it ends. */
  readonly day: number
  readonly dayEndsAt: number
  readonly open: number
}

/** Returns the quota status of an account; `counted` is null if it has not been counted. */
export function toQuotaStatus(counted: StatusCounters | null, limits: Limits, now: number): QuotaStatus {
  const { requests = 0, minuteEndsAt = now, dayEndsAt = now, tokens = 0, microcents = 0, open = 0 } = counted ?? {}
  const isToday = now < dayEndsAt
  const resetMs = Math.max(0, minuteEndsAt - now)
  return {
    requests: {
      limit: limits.requestsPerMinute,
      remaining: left(limits.requestsPerMinute, resetMs === 0 ? 0 : requests),
      resetMs,
    },
    tokens: {
      limit: limits.dailyTokens,
      remaining: left(limits.dailyTokens, isToday ? tokens : 0),
      // A clock that was set back lengthens no day.
      resetMs: isToday ? Math.min(dayMs, dayEndsAt - now) : untilMidnight(now),
    },
    costMicrocents: {
      limit: limits.dailyCostMicrocents,
      remaining: left(limits.dailyCostMicrocents, isToday ? microcents : 0),
    },
    reservations: { limit: limits.concurrentRequests, remaining: left(limits.concurrentRequests, open) },
  }
}

/** Returns the quota status of an account that this process counts. */
export function getQuotaStatus({ own }: AccountCounters, limits: Limits, now: number): QuotaStatus {
  const { requests, day, tokens, microcents, open } = own
  const minuteEndsAt = now + requests.waitUntilEmpty(now)
  const dayEndsAt = (day + 1) * dayMs
  return toQuotaStatus(
    { requests: requests.count(now), minuteEndsAt, day, dayEndsAt, tokens, microcents, open },
    limits,
    now,
  )
}

const left = (limit: number, used: number) => Math.max(0, limit - used)
