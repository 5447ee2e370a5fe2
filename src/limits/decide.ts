/**
 * The rule of admission, as a pure function: four limits of the account and of each scope, all or none. The script of
 * `redis-request-scripts.ts` is the same rule; one table of cases runs against both (test/limits/meter.contract.ts).
 */
import type { Limits } from '../core/limits/plans.ts'
import { type ScopeLimits, untilNextMonth } from '../core/limits/scopes.ts'
import { untilMidnight } from '../core/text/utc-days.ts'
import { ceilingOfMillionth } from '../core/usage/money.ts'
import type { DailyUsage } from '../core/usage/usage-record.ts'
import { retryMs } from './constants.ts'
import type { AdmissionRequest, LimitReached } from './meter.ts'

/** Counters of an account or of a scope at the time of a decision. `usage` includes reservations. */
export type CounterState = {
  /** Milliseconds until the limit of requests per minute allows one more; 0 = now. */
  readonly requestsWaitMs: number
  readonly open: number
  readonly usage: DailyUsage
  readonly monthMicrocents: number
}

export type ScopeState = CounterState & { readonly name: string; readonly limits: ScopeLimits }

/** What a request is granted and what that reserves: tokens, and money in 1e-8 USD. */
export type Grant = { readonly outputCap: number; readonly tokens: number; readonly microcents: number }

export type Decision = Grant | LimitReached

/**
 * Decides by the limits of the account and of the scopes, in this order: requests, concurrent requests, tokens, cost. Of
 * limits of one kind the account's is named first; of amounts the one with the least remaining.
 */
export function decide(
  state: { readonly account: CounterState; readonly scopes: readonly ScopeState[] },
  request: AdmissionRequest,
  now: number,
): Decision {
  const { account, scopes } = state
  const { limits } = request
  if (account.requestsWaitMs > 0) return reached('requests_per_minute_exceeded', null, account.requestsWaitMs)
  for (const { name, requestsWaitMs } of scopes)
    if (requestsWaitMs > 0) return reached('requests_per_minute_exceeded', name, requestsWaitMs)
  const free = limits.concurrentRequests - account.open
  if (free <= 0) return reached('concurrent_requests_exceeded', null, retryMs)
  for (const { name, limits: own, open } of scopes)
    if (own.concurrentRequests !== null && open >= own.concurrentRequests)
      return reached('concurrent_requests_exceeded', name, retryMs)
  const [tokens, cost] = leastRemaining(limits, account.usage, scopes)
  const grant = sizeReservation(request, { tokens: tokens.left, microcents: cost.left }, free)
  if (typeof grant !== 'string') return grant
  if (grant === 'tokens') return reached('daily_tokens_exceeded', tokens.scope, untilMidnight(now))
  return cost.isMonthly
    ? reached('monthly_cost_exceeded', cost.scope, untilNextMonth(now))
    : reached('daily_cost_exceeded', cost.scope, untilMidnight(now))
}

function leastRemaining(limits: Limits, used: DailyUsage, scopes: readonly ScopeState[]) {
  const tokens = { left: limits.dailyTokens - used.tokens, scope: null as string | null }
  const cost = { left: limits.dailyCostMicrocents - used.microcents, scope: null as string | null, isMonthly: false }
  for (const { name: scope, limits: own, usage, monthMicrocents } of scopes) {
    const daily = own.dailyCostMicrocents === null ? cost.left : own.dailyCostMicrocents - usage.microcents
    if (own.dailyTokens !== null && own.dailyTokens - usage.tokens < tokens.left)
      Object.assign(tokens, { left: own.dailyTokens - usage.tokens, scope })
    if (daily < cost.left) Object.assign(cost, { left: daily, scope, isMonthly: false })
    const monthly = own.monthlyCostMicrocents === null ? cost.left : own.monthlyCostMicrocents - monthMicrocents
    if (monthly < cost.left) Object.assign(cost, { left: monthly, scope, isMonthly: true })
  }
  return [tokens, cost] as const
}

/** Returns true if account and scopes allow this much more usage. */
export function allows(
  { account, scopes }: { readonly account: CounterState; readonly scopes: readonly ScopeState[] },
  limits: Limits,
  more: DailyUsage,
): boolean {
  const [tokens, cost] = leastRemaining(limits, account.usage, scopes)
  return more.tokens <= tokens.left && more.microcents <= cost.left
}

function reached(code: LimitReached['code'], scope: string | null, waitMs: number): LimitReached {
  return { code, scope, retryAfterMs: Math.max(1, Math.ceil(waitMs)) }
}

const perMillion = 1_000_000n

/**
 * Returns how many output tokens `remaining` covers and what that reserves, or which of the two not even one token
 * fits. `freeReservations` is at least 1.
 */
function sizeReservation(
  request: AdmissionRequest,
  remaining: DailyUsage,
  freeReservations: number,
): Grant | 'tokens' | 'cost' {
  const { choices, inputTokens } = request
  const wanted = Math.max(1, request.outputTokens)

  const tokensLeft = remaining.tokens - inputTokens
  const tokensShared = request.fairShare
    ? Math.max(Math.floor(tokensLeft / freeReservations), Math.min(tokensLeft, choices))
    : tokensLeft
  const cap = Math.min(wanted, Math.floor(tokensShared / choices))
  if (cap < 1) return 'tokens'

  const left = remaining.microcents - request.extraMicrocents
  return fullGrant(request, cap, left, freeReservations) ?? partialGrant(request, cap, left, freeReservations)
}

/** Grants all of `cap`, which nearly every account can pay many times; null if doubles cannot prove it. */
function fullGrant(request: AdmissionRequest, cap: number, left: number, freeReservations: number): Grant | null {
  const { choices, inputTokens, inputPrice, outputPrice } = request
  const inputCost = inputTokens * inputPrice
  const outputCost = cap * choices * outputPrice
  const needed = inputCost + outputCost * (request.fairShare ? freeReservations : 1)
  if (needed > Number.MAX_SAFE_INTEGER || ceilingOfMillionth(needed) > left) return null
  return {
    outputCap: cap,
    tokens: inputTokens + cap * choices,
    microcents: ceilingOfMillionth(inputCost + outputCost) + request.extraMicrocents,
  }
}

/**
 * Grants as much of `cap` as `left` (1e-8 USD) pays for. Calculates in bigints of 1e-8 USD times a million, in which
 * prices are integers and only the final result is rounded up.
 */
function partialGrant(request: AdmissionRequest, cap: number, left: number, freeReservations: number): Grant | 'cost' {
  const { choices, inputTokens } = request
  const inputCost = BigInt(inputTokens) * BigInt(request.inputPrice)
  const outputPrice = BigInt(choices) * BigInt(request.outputPrice)
  const forOutput = BigInt(left) * perMillion - inputCost
  if (forOutput < outputPrice) return 'cost'
  const share = request.fairShare ? forOutput / BigInt(freeReservations) : forOutput
  const affordable = outputPrice === 0n ? cap : Number(share / outputPrice)
  const outputCap = Math.max(1, Math.min(cap, affordable))

  const cost = inputCost + BigInt(outputCap) * outputPrice
  return {
    outputCap,
    tokens: inputTokens + outputCap * choices,
    microcents: Number((cost + perMillion - 1n) / perMillion) + request.extraMicrocents,
  }
}
