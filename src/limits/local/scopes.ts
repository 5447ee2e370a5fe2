/** Counters of one account's limited keys and tags in one process (`core/limits/scopes.ts`). */
import type { Limits } from '../../core/limits/plans.ts'
import { createWindowLog, type SlidingWindowLog } from '../../core/limits/rate-limits.ts'
import { getCounterName, getMonth, type Scope, type ScopeUsage, untilNextMonth } from '../../core/limits/scopes.ts'
import { untilMidnight } from '../../core/text/utc-days.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import type { AdmissionRequest, LimitReached } from '../meter.ts'
import { sizeReservation } from './reservation-size.ts'

/** Spent plus reserved usage of the latest day and month; earlier ones can admit nothing. */
export type ScopeCounters = {
  readonly requests: SlidingWindowLog
  open: number
  day: number
  tokens: number
  microcents: number
  month: number
  monthMicrocents: number
}

const minuteMs = 60_000
const reservationRetryMs = 1000

/** Creates the counters of a scope without open requests. */
export function newScope(used: Omit<ScopeUsage, 'name'>, day: number): ScopeCounters {
  return { requests: createWindowLog(minuteMs), open: 0, day, month: getMonth(day), ...used }
}

/** Adds a change to a request's scopes: open requests, and usage of a day. Usage of an earlier day or month is not counted. */
export function countInScopes(
  counted: ReadonlyMap<string, ScopeCounters>,
  scopes: readonly Scope[],
  change: { readonly open?: number; readonly day?: number; readonly more?: DailyUsage },
): void {
  for (const scope of scopes) {
    const counters = counted.get(getCounterName(scope))
    if (counters === undefined) continue
    counters.open += change.open ?? 0
    if (change.day === undefined || change.more === undefined) continue
    if (counters.day === change.day) {
      counters.tokens += change.more.tokens
      counters.microcents += change.more.microcents
    }
    if (counters.month === getMonth(change.day)) counters.monthMicrocents += change.more.microcents
  }
}

/** A limited scope with its counters, brought to the present day. */
type Counted = Scope & { readonly counters: ScopeCounters }

/** Returns the scopes of a request with their counters of this day; null = one of them is not loaded. */
export function scopesToday(
  counted: ReadonlyMap<string, ScopeCounters>,
  scopes: readonly Scope[],
  day: number,
): readonly Counted[] | null {
  const all: Counted[] = []
  for (const scope of scopes) {
    const counters = counted.get(getCounterName(scope))
    if (counters === undefined) return null
    if (counters.day < day) {
      Object.assign(counters, { day, tokens: 0, microcents: 0 })
      const month = getMonth(day)
      if (counters.month < month) Object.assign(counters, { month, monthMicrocents: 0 })
    }
    all.push({ ...scope, counters })
  }
  return all
}

/** What an account has open and used now. */
type AccountState = { readonly requestsWaitMs: number; readonly freeReservations: number; readonly used: DailyUsage }

type Decision = Exclude<ReturnType<typeof sizeReservation>, string> | LimitReached

/**
 * Decides by the limits of the account and of the scopes, in this order: requests, concurrent requests, tokens, cost. Of
 * limits of one kind the account's is named first; of amounts the one with the least remaining.
 */
export function decideAdmission(
  request: AdmissionRequest,
  { requestsWaitMs, freeReservations, used }: AccountState,
  scopes: readonly Counted[],
  now: number,
): Decision {
  const limits: Limits = request.limits
  if (requestsWaitMs > 0) return reached('requests_per_minute_exceeded', null, requestsWaitMs)
  for (const { name, limits: own, counters } of scopes) {
    const wait = own.requestsPerMinute === null ? 0 : counters.requests.waitUntilUnder(own.requestsPerMinute, now)
    if (wait > 0) return reached('requests_per_minute_exceeded', name, wait)
  }
  if (freeReservations <= 0) return reached('concurrent_requests_exceeded', null, reservationRetryMs)
  for (const { name, limits: own, counters } of scopes)
    if (own.concurrentRequests !== null && counters.open >= own.concurrentRequests)
      return reached('concurrent_requests_exceeded', name, reservationRetryMs)
  const [tokens, cost] = leastRemaining(limits, used, scopes)
  const size = sizeReservation(request, { tokens: tokens.left, microcents: cost.left }, freeReservations)
  if (typeof size !== 'string') return size
  if (size === 'tokens') return reached('daily_tokens_exceeded', tokens.scope, untilMidnight(now))
  return cost.isMonthly
    ? reached('monthly_cost_exceeded', cost.scope, untilNextMonth(now))
    : reached('daily_cost_exceeded', cost.scope, untilMidnight(now))
}

function leastRemaining(limits: Limits, used: DailyUsage, scopes: readonly Counted[]) {
  const tokens = { left: limits.dailyTokens - used.tokens, scope: null as string | null }
  const cost = { left: limits.dailyCostMicrocents - used.microcents, scope: null as string | null, isMonthly: false }
  for (const { name: scope, limits: own, counters } of scopes) {
    const daily = own.dailyCostMicrocents === null ? cost.left : own.dailyCostMicrocents - counters.microcents
    if (own.dailyTokens !== null && own.dailyTokens - counters.tokens < tokens.left)
      Object.assign(tokens, { left: own.dailyTokens - counters.tokens, scope })
    if (daily < cost.left) Object.assign(cost, { left: daily, scope, isMonthly: false })
    const monthly =
      own.monthlyCostMicrocents === null ? cost.left : own.monthlyCostMicrocents - counters.monthMicrocents
    if (monthly < cost.left) Object.assign(cost, { left: monthly, scope, isMonthly: true })
  }
  return [tokens, cost] as const
}

/** Returns true if the scopes allow this much more usage. */
export function scopesAllow(scopes: readonly Counted[], more: DailyUsage): boolean {
  const isWithin = (limit: number | null, used: number) => limit === null || used <= limit
  return scopes.every(
    ({ limits, counters }) =>
      isWithin(limits.dailyTokens, counters.tokens + more.tokens) &&
      isWithin(limits.dailyCostMicrocents, counters.microcents + more.microcents) &&
      isWithin(limits.monthlyCostMicrocents, counters.monthMicrocents + more.microcents),
  )
}

function reached(code: LimitReached['code'], scope: string | null, waitMs: number): LimitReached {
  return { code, scope, retryAfterMs: Math.max(1, Math.ceil(waitMs)) }
}
