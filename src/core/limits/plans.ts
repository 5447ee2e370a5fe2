/** The plans as data. Money is an integer of 1e-8 USD. */

import { type Static, Type } from '@sinclair/typebox'
import type { FallbackPolicy, Strategy } from '../chat/chat.ts'
import type { Demand } from '../policy/constraints.ts'
import type { Rule } from '../policy/rules.ts'
import { dayMs } from '../text/utc-days.ts'
import { fromUsd, shownUsd } from '../usage/money.ts'
import type { Shadow } from '../usage/shadow.ts'
import { strictObject } from '../validation/validate.ts'
import type { ScopeLimits } from './scopes.ts'

/** Limits of one account. */
export type Limits = {
  readonly requestsPerMinute: number
  readonly concurrentRequests: number
  readonly dailyTokens: number
  readonly dailyCostMicrocents: number
}

export const plans = {
  evaluation: {
    requestsPerMinute: 5,
    concurrentRequests: 1,
    dailyTokens: 20_000,
    dailyCostMicrocents: 17_000_000,
  },
  usage: {
    requestsPerMinute: 30,
    concurrentRequests: 5,
    dailyTokens: 500_000,
    dailyCostMicrocents: 167_000_000,
  },
} as const satisfies Record<string, Limits>

/**
 * Own limits of the account that a first start creates locally. It is the operator's: a coding agent exceeds plan
 * `usage` within minutes.
 */
export const firstAccountLimits: Limits = {
  requestsPerMinute: 600,
  concurrentRequests: 50,
  dailyTokens: 20_000_000,
  dailyCostMicrocents: 2_000_000_000,
}

/** Returns the limits as one line. */
export function limitsText(limits: Limits): string {
  const { requestsPerMinute, concurrentRequests, dailyTokens, dailyCostMicrocents } = limits
  return `${requestsPerMinute} requests per minute, ${concurrentRequests} concurrent requests, ${dailyTokens.toLocaleString('en')} tokens and ${shownUsd(dailyCostMicrocents)} per day`
}

export type PlanName = keyof typeof plans

/** Usage of a key beyond what was reserved and billed for it, on one UTC day. */
type Shortfall = {
  /** `YYYY-MM-DD`; null = none yet. */
  readonly shortfallDay: string | null
  readonly shortfallMicrocents: number
  /** The request with the largest part of it. */
  readonly shortfallRequestId: string | null
}

/** Why a key may not chat, and for how long. */
type Pause = {
  /** Epoch milliseconds: the end of the UTC day. */
  readonly until: number
  readonly requestId: string
}

/**
 * Returns the pause of a key for its shortfall, which can be over; null = there is none. Accounts on `usage` pay for all that they
 * use.
 */
export function findPause(
  plan: PlanName,
  { shortfallDay, shortfallMicrocents, shortfallRequestId }: Shortfall,
  maximumShortfall: number,
): Pause | null {
  if (plan !== 'evaluation' || shortfallMicrocents <= maximumShortfall) return null
  if (shortfallDay === null || shortfallRequestId === null) return null
  return { until: Date.parse(shortfallDay) + dayMs, requestId: shortfallRequestId }
}

/** The limits of both plans, with the operator's overrides applied. */
export type Plans = Readonly<Record<PlanName, Limits>>

/** Upper bounds of limits: what the database column holds and what money arithmetic represents exactly. */
export const highestLimits = { count: 2_147_483_647, dailyTokens: 1_000_000_000_000_000, dailyUsd: 20_000_000 } as const

const figuresSchema = Type.Optional(
  strictObject({
    requests_per_minute: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
    concurrent_requests: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
    daily_tokens: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.dailyTokens })),
    daily_cost_usd: Type.Optional(Type.Number({ minimum: 0, maximum: highestLimits.dailyUsd })),
  }),
)

/** Schema of the operator's plan overrides (`plans` in `GATEWAY_CONFIG`). Omitted limits keep their defaults. */
export const planFiguresSchema = strictObject({ evaluation: figuresSchema, usage: figuresSchema })

/** Returns the plans with the operator's overrides applied. */
export function applyPlanOverrides(figures: Static<typeof planFiguresSchema>): Plans {
  return { evaluation: limitsWith(plans.evaluation, figures.evaluation), usage: limitsWith(plans.usage, figures.usage) }
}

function limitsWith(published: Limits, figures: Static<typeof figuresSchema> = {}): Limits {
  const { requests_per_minute, concurrent_requests, daily_tokens, daily_cost_usd } = figures
  return {
    requestsPerMinute: requests_per_minute ?? published.requestsPerMinute,
    concurrentRequests: concurrent_requests ?? published.concurrentRequests,
    dailyTokens: daily_tokens ?? published.dailyTokens,
    dailyCostMicrocents: daily_cost_usd === undefined ? published.dailyCostMicrocents : fromUsd(daily_cost_usd),
  }
}

/** The account, key and limits behind a verified API key. */
export type Caller = {
  readonly accountId: string
  readonly keyId: string
  /** The stricter policy of its account and key; absent = `any`. */
  readonly fallback?: FallbackPolicy
  /** Who may continue cut texts of its requests; absent = the request chooses. */
  readonly continuation?: FallbackPolicy
  readonly plan: PlanName
  readonly limits: Limits
  /** Epoch milliseconds from which chat requires a payment first; absent = never. */
  readonly refusedFrom?: number
  /** Set if the key's usage exceeded its billed amount too far, with the member who owns the key; absent = never. */
  readonly pause?: Pause & { readonly userId: string }
  /** Soft cap of one period (`grace.ts`), an integer of 1e-8 USD; absent = none. */
  readonly softCapMicrocents?: number
  /** Start of a billing cycle, in epoch milliseconds; absent = nothing is billed, or there is no soft cap. */
  readonly cycleStartedAt?: number
  /** First key of the key's lineage; absent = the key itself. */
  readonly lineageId?: string
  /** Limits of the key's lineage; absent = none. */
  readonly keyLimits?: ScopeLimits
  /** Limits of the account's tags, by the scope's name; absent = none. */
  readonly tagLimits?: ReadonlyMap<string, ScopeLimits>
  /** Patterns of the models that the key may use; absent = all. */
  readonly models?: readonly string[]
  /** Constraints of account, project and key; absent = none. */
  readonly demands?: readonly Demand[]
  /** Rules of the account; absent = none. */
  readonly rules?: readonly Rule[]
  /** Tags of all requests with the key; absent = none. */
  readonly tags?: Readonly<Record<string, string>>
  /** Project of the key; absent = none. */
  readonly projectId?: string
  /** Strategy of requests with the key that name none; absent = none. */
  readonly strategy?: Strategy
  /** True if the key or the account has web access turned off; absent = web access is allowed. */
  readonly webOff?: boolean
  /** `provider/model` that savings compare with; absent = the operator's. */
  readonly baseline?: string
  /** Shadow evaluation of its requests; absent = off. */
  readonly shadow?: Shadow
  /** True if the account's requests may hedge unless they say otherwise; absent = only if they say so. */
  readonly hedges?: boolean
}

/** What an account has remaining, as of the meter's last response. `resetMs` counts from then. */
export type QuotaStatus = {
  readonly requests: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly tokens: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly costMicrocents: { readonly limit: number; readonly remaining: number }
  readonly reservations: { readonly limit: number; readonly remaining: number }
}
