/** Limits of an API key or a tag in the API's form. */
import { type Static, Type } from '@sinclair/typebox'
import { highestLimits } from '../core/limits/plans.ts'
import { isLimited, type ScopeLimits, unlimitedScope } from '../core/limits/scopes.ts'
import { fromUsd, toUsd } from '../core/usage/money.ts'
import { nullable } from '../core/validation/validate.ts'
import { count, orNull, strictObject, usd } from './schemas.ts'

const whole = (maximum: number) => nullable(Type.Integer({ minimum: 0, maximum }))
const amount = nullable(Type.Number({ minimum: 0, maximum: highestLimits.dailyUsd }))

/** Limits in a request: absent = unchanged, null = unlimited. */
export const scopeLimitsSchema = Type.Object(
  {
    requests_per_minute: whole(highestLimits.count),
    concurrent_requests: whole(highestLimits.count),
    daily_tokens: whole(highestLimits.dailyTokens),
    daily_cost_usd: amount,
    monthly_cost_usd: amount,
  },
  { additionalProperties: false },
)

export const scopeLimitsShape = strictObject({
  requests_per_minute: orNull(count),
  concurrent_requests: orNull(count),
  daily_tokens: orNull(count),
  daily_cost_usd: orNull(usd),
  monthly_cost_usd: orNull(usd),
})

/** Usage that the limits of a scope count, as far as the ledger has it. */
export const scopeUsedShape = strictObject(
  { daily_tokens: count, daily_cost_usd: usd, monthly_cost_usd: usd },
  { description: 'of this UTC day and calendar month' },
)

/** Returns limits with a change applied; null = none is left. */
export function changedLimits(
  before: ScopeLimits | null,
  change: Static<typeof scopeLimitsSchema> | null,
  now: number,
): ScopeLimits | null {
  if (change === null) return null
  const old = before ?? unlimitedScope
  const either = <T>(sent: T | undefined, present: T) => (sent === undefined ? present : sent)
  const money = (sent: number | null | undefined, present: number | null) =>
    sent === undefined ? present : sent === null ? null : fromUsd(sent)
  const limits: ScopeLimits = {
    requestsPerMinute: either(change.requests_per_minute, old.requestsPerMinute),
    concurrentRequests: either(change.concurrent_requests, old.concurrentRequests),
    dailyTokens: either(change.daily_tokens, old.dailyTokens),
    dailyCostMicrocents: money(change.daily_cost_usd, old.dailyCostMicrocents),
    monthlyCostMicrocents: money(change.monthly_cost_usd, old.monthlyCostMicrocents),
    since: old.since ?? now,
  }
  return isLimited(limits) ? limits : null
}

/** Returns limits as shown to their account. */
export function shownScopeLimits(limits: ScopeLimits): Static<typeof scopeLimitsShape> {
  const usdOf = (microcents: number | null) => (microcents === null ? null : toUsd(microcents))
  return {
    requests_per_minute: limits.requestsPerMinute,
    concurrent_requests: limits.concurrentRequests,
    daily_tokens: limits.dailyTokens,
    daily_cost_usd: usdOf(limits.dailyCostMicrocents),
    monthly_cost_usd: usdOf(limits.monthlyCostMicrocents),
  }
}

/** Returns usage as shown beside limits. Money is an integer of 1e-8 USD. */
export function shownScopeUsed(used: {
  readonly tokens: number
  readonly microcents: number
  readonly monthMicrocents: number
}) {
  return {
    daily_tokens: used.tokens,
    daily_cost_usd: toUsd(used.microcents),
    monthly_cost_usd: toUsd(used.monthMicrocents),
  }
}
