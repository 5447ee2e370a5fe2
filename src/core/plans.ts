/** The plans as data (`spec.md` section 8). Money is an integer of 1e-8 USD. */

/** What an account may use. */
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

export type PlanName = keyof typeof plans

/** Who is asking, once a key has been recognised. */
export type Caller = {
  readonly accountId: string
  readonly keyId: string
  readonly plan: PlanName
  readonly limits: Limits
  /** Epoch milliseconds from which on the account has to pay before it may chat; absent = never. */
  readonly refusedFrom?: number
  /** Integer of 1e-8 USD a month; absent = none. */
  readonly softCapMicrocents?: number
}

/** What an account has left, as of the last answer of the meter; `resetMs` counts from then. */
export type Standing = {
  readonly requests: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly tokens: { readonly limit: number; readonly remaining: number; readonly resetMs: number }
  readonly costMicrocents: { readonly limit: number; readonly remaining: number }
  readonly seats: { readonly limit: number; readonly remaining: number }
}
