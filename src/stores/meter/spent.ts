import type { UsageRecord } from '../../core/usage.ts'
import type { CountedUsage } from '../../core/usage-truth.ts'

/** What an account has used of a day. Money is an integer of 1e-8 USD. */
export type Spent = { readonly tokens: number; readonly microcents: number }

/** What is settled of a UTC day: no reservation is a part of it, so that within the day it only grows. */
export type Settled = Spent & { readonly day: number }

/** A settled request whose record may not be in the ledger yet, or only as a checkpoint. */
export type Waiting = CountedUsage & { readonly requestId: string; readonly day: number }

/** `final` = the ids among those that wait of which the ledger has the final record. */
export type Seeded = Spent & { readonly final?: readonly string[] }

/** What the ledger holds of an account's UTC day, and of these requests where it has them not yet, or less truly. */
export type Seed = (accountId: string, day: number, waiting: readonly Waiting[]) => Promise<Seeded>

export const nothing: Spent = { tokens: 0, microcents: 0 }

/** What a record counts for. */
export function spentOf(record: UsageRecord): Spent {
  return { tokens: record.input_tokens + record.output_tokens, microcents: record.billed_microcents }
}

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
