/**
 * The rule of admission, as a pure function: four limits of the account and of each scope, all or none. The script of
 * `redis-request-scripts.ts` is the same rule; one table of cases runs against both (test/limits/meter.contract.ts).
 */
import type { Limits } from '../core/limits/plans.ts'
import { untilNextMonth } from '../core/limits/scopes.ts'
import { untilMidnight } from '../core/text/utc-days.ts'
import type { DailyUsage } from '../core/usage/usage-record.ts'
import { retryMs } from './constants.ts'
import { type CounterState, type Grant, getAccountTime } from './counters.ts'
import type { AdmissionRequest, LimitReached } from './meter.ts'

/** A limit that no request reaches. */
export const unreached = Number.MAX_SAFE_INTEGER

export type Decision = Grant | LimitReached

/**
 * Decides by the limits of the account and of the scopes, in this order: requests, concurrent requests, tokens, cost. Of
 * limits of one kind the account's is named first; of amounts the one with the least remaining.
 */
export function decide(state: CounterState, request: AdmissionRequest, now: number): Decision {
  const { own, scopes } = state
  const { limits } = request
  const waitMs = own.requests.waitUntilUnder(limits.requestsPerMinute, now)
  if (waitMs > 0) return reached('requests_per_minute_exceeded', null, waitMs)
  for (const { name, limits: of, counters } of scopes) {
    if (of.requestsPerMinute === null) continue
    const scopeWaitMs = counters.requests.waitUntilUnder(of.requestsPerMinute, now)
    if (scopeWaitMs > 0) return reached('requests_per_minute_exceeded', name, scopeWaitMs)
  }
  const free = limits.concurrentRequests - own.open
  if (free <= 0) return reached('concurrent_requests_exceeded', null, retryMs)
  for (const { name, limits: of, counters } of scopes)
    if (of.concurrentRequests !== null && counters.open >= of.concurrentRequests)
      return reached('concurrent_requests_exceeded', name, retryMs)
  const [tokens, cost] = leastRemaining(limits, state)
  const grant = sizeReservation(request, { tokens: tokens.left, microcents: cost.left }, free)
  if (typeof grant !== 'string') return grant
  const time = getAccountTime(own, now)
  if (grant === 'tokens') return reached('daily_tokens_exceeded', tokens.scope, untilMidnight(time))
  return cost.isMonthly
    ? reached('monthly_cost_exceeded', cost.scope, untilNextMonth(time))
    : reached('daily_cost_exceeded', cost.scope, untilMidnight(time))
}

function leastRemaining(limits: Limits, { own, scopes }: CounterState) {
  const tokens = { left: limits.dailyTokens - own.tokens, scope: null as string | null }
  const cost = { left: limits.dailyCostMicrocents - own.microcents, scope: null as string | null, isMonthly: false }
  for (const { name: scope, limits: of, counters } of scopes) {
    const daily = of.dailyCostMicrocents === null ? cost.left : of.dailyCostMicrocents - counters.microcents
    if (of.dailyTokens !== null && of.dailyTokens - counters.tokens < tokens.left)
      Object.assign(tokens, { left: of.dailyTokens - counters.tokens, scope })
    if (daily < cost.left) Object.assign(cost, { left: daily, scope, isMonthly: false })
    const monthly = of.monthlyCostMicrocents === null ? cost.left : of.monthlyCostMicrocents - counters.monthMicrocents
    if (monthly < cost.left) Object.assign(cost, { left: monthly, scope, isMonthly: true })
  }
  return [tokens, cost] as const
}

/** Returns true if account and scopes allow this much more usage. */
export function allows(state: CounterState, limits: Limits, more: DailyUsage): boolean {
  const [tokens, cost] = leastRemaining(limits, state)
  return more.tokens <= tokens.left && more.microcents <= cost.left
}

function reached(code: LimitReached['code'], scope: string | null, waitMs: number): LimitReached {
  return { code, scope, retryAfterMs: Math.max(1, Math.ceil(waitMs)) }
}

const million = 1_000_000n

/** Returns the exact cost of the input and of one token of every choice, in 1e-8 USD times a million. */
export function getCosts(request: AdmissionRequest): { readonly input: bigint; readonly output: bigint } {
  const { choices, inputTokens, inputPrice, outputPrice } = request
  return { input: BigInt(inputTokens) * BigInt(inputPrice), output: BigInt(choices) * BigInt(outputPrice) }
}

/**
 * Returns how many output tokens `remaining` covers and what that reserves, or which of the two not even one token
 * fits. Only the final cost is rounded up. `freeReservations` is at least 1.
 */
function sizeReservation(
  request: AdmissionRequest,
  remaining: DailyUsage,
  freeReservations: number,
): Grant | 'tokens' | 'cost' {
  const { choices, inputTokens, fairShare, extraMicrocents } = request
  const tokensLeft = remaining.tokens - inputTokens
  const tokensShared = fairShare
    ? Math.max(Math.floor(tokensLeft / freeReservations), Math.min(tokensLeft, choices))
    : tokensLeft
  const cap = Math.min(Math.max(1, request.outputTokens), Math.floor(tokensShared / choices))
  if (cap < 1) return 'tokens'

  const costs = getCosts(request)
  const forOutput = BigInt(remaining.microcents - extraMicrocents) * million - costs.input
  if (forOutput < costs.output) return 'cost'
  const share = fairShare ? forOutput / BigInt(freeReservations) : forOutput
  const affordable = costs.output === 0n ? cap : Number(share / costs.output)
  const outputCap = Math.max(1, Math.min(cap, affordable))
  const cost = costs.input + BigInt(outputCap) * costs.output
  return {
    outputCap,
    tokens: inputTokens + outputCap * choices,
    microcents: Number((cost + million - 1n) / million) + extraMicrocents,
  }
}
