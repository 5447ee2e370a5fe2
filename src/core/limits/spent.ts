import type { UsageRecord } from '../usage/usage-record.ts'

/** Usage of an account on one day. Money is an integer of 1e-8 USD. */
export type DailyUsage = { readonly tokens: number; readonly microcents: number }

export const nothing: DailyUsage = { tokens: 0, microcents: 0 }

/** Returns the sum of several daily usages. */
export function sumOf(all: readonly DailyUsage[]): DailyUsage {
  return all.reduce(
    (sum, one) => ({ tokens: sum.tokens + one.tokens, microcents: sum.microcents + one.microcents }),
    nothing,
  )
}

/** Returns the usage that a record counts against its day. */
export function spentOf(record: UsageRecord): DailyUsage {
  return { tokens: record.input_tokens + record.output_tokens, microcents: record.billed_microcents }
}
