/** The plans as data. Money is an integer of 1e-8 USD. */
import { type Static, Type } from '@sinclair/typebox'
import { fromUsd } from '../usage/money.ts'

/** What an account may use. */
export type Limits = {
  readonly requestsPerMinute: number
  readonly concurrentRequests: number
  readonly dailyTokens: number
  readonly dailyCostMicrocents: number
}

/** Of whoever nothing is known. */
export const zeroLimits: Limits = {
  requestsPerMinute: 0,
  concurrentRequests: 0,
  dailyTokens: 0,
  dailyCostMicrocents: 0,
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

export type PlanName = keyof typeof plans

/** Both plans, with this gateway's own figures where the operator has given any. */
export type Plans = Readonly<Record<PlanName, Limits>>

/** The highest a limit may be: what its column holds, and what is still exact in money. */
export const highestLimits = { count: 2_147_483_647, dailyTokens: 1_000_000_000_000_000, dailyUsd: 20_000_000 } as const

const figuresSchema = Type.Optional(
  Type.Object(
    {
      requests_per_minute: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
      concurrent_requests: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
      daily_tokens: Type.Optional(Type.Integer({ minimum: 0, maximum: highestLimits.dailyTokens })),
      daily_cost_usd: Type.Optional(Type.Number({ minimum: 0, maximum: highestLimits.dailyUsd })),
    },
    { additionalProperties: false },
  ),
)

/** The operator's own figures for the plans (`GATEWAY_CONFIG`, `plans`); what is left out stays as it is published. */
export const planFiguresSchema = Type.Object(
  { evaluation: figuresSchema, usage: figuresSchema },
  { additionalProperties: false },
)

/** The plans under these figures. */
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

/** Who is asking, once a key has been recognised. */
export type Caller = {
  readonly accountId: string
  readonly keyId: string
  readonly plan: PlanName
  readonly limits: Limits
  /** Epoch milliseconds from which on the account has to pay before it may chat; absent = never. */
  readonly refusedFrom?: number
  /** Its requests used so much more than was billed that it may not chat until an operator resumes it; absent = it may. */
  readonly isPaused?: boolean
  /** Soft cap of one period (`budget-period.ts`), an integer of 1e-8 USD; absent = none. */
  readonly softCapMicrocents?: number
  /** Start of a billing cycle, in epoch milliseconds; absent = nothing is billed, or there is no soft cap. */
  readonly cycleStartedAt?: number
  /** The key or the account wants nothing of the web; absent = it may be asked. */
  readonly webOff?: boolean
}

/** What an account has left, as of the last answer of the meter; `resetMs` counts from then. */
export type QuotaStatus = {
  readonly requests: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly tokens: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly costMicrocents: { readonly limit: number; readonly remaining: number }
  readonly seats: { readonly limit: number; readonly remaining: number }
}
