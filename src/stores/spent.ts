/** What an account has used of a day. Money is an integer of 1e-8 USD. */
export type Spent = { readonly tokens: number; readonly microcents: number }

/** What is settled of a UTC day: no reservation is a part of it, so that within the day it only grows. */
export type Settled = Spent & { readonly day: number }

export const nothing: Spent = { tokens: 0, microcents: 0 }

export function sumOf(all: readonly Spent[]): Spent {
  return all.reduce(
    (sum, one) => ({ tokens: sum.tokens + one.tokens, microcents: sum.microcents + one.microcents }),
    nothing,
  )
}

/** The greater of either. */
export function mostOf(one: Spent, other: Spent): Spent {
  return { tokens: Math.max(one.tokens, other.tokens), microcents: Math.max(one.microcents, other.microcents) }
}

/** What is left of either, nothing at least. */
export function less(from: Spent, amount: Spent): Spent {
  return {
    tokens: Math.max(0, from.tokens - amount.tokens),
    microcents: Math.max(0, from.microcents - amount.microcents),
  }
}
