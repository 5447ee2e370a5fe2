/**
 * An invoice by key, tag, member, model or dialect. The lines add up to the invoice exactly: late usage, which the ledger
 * has in another cycle than the invoice, is one line of its own.
 */
import type { LineSums } from './billing.ts'

/** By tag: the values of one tag name, so that a request with several tags counts once. */
export const breakdownDimensions = ['key', 'tag', 'member', 'model', 'dialect'] as const
export type BreakdownDimension = (typeof breakdownDimensions)[number]

/**
 * In the order of the lines. `others` = all values beyond the bound; `untagged` = requests without the tag; `correction` =
 * late usage of the previous cycle that the invoice has, less usage of its own cycle that the ledger received after it.
 */
export const breakdownKinds = ['usage', 'others', 'untagged', 'correction'] as const

type BreakdownSums = Omit<LineSums, 'model'>
export type BreakdownLine = BreakdownSums & {
  readonly kind: (typeof breakdownKinds)[number]
  /** ID of a key (the first of its lineage), tag `name=value`, ID of a user, model, or dialect; null = none. */
  readonly id: string | null
  /** Name of the key, or email of the user. */
  readonly name: string | null
}

/** Returns the lines of a breakdown, highest amount first. What `used` lacks of the invoice is the correction. */
export function toBreakdown(used: readonly BreakdownLine[], invoiced: readonly BreakdownSums[]): BreakdownLine[] {
  const missing = combined(sumsOf(invoiced), sumsOf(used), (one, other) => one - other)
  const isWhole = Object.values(missing).every(value => value === 0)
  const correction = { kind: 'correction', id: null, name: null, ...missing } as const
  return [...used, ...(isWhole ? [] : [correction])].sort(
    (one, other) =>
      breakdownKinds.indexOf(one.kind) - breakdownKinds.indexOf(other.kind) ||
      other.amountMicrocents - one.amountMicrocents,
  )
}

const noSums: BreakdownSums = {
  requests: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  amountMicrocents: 0,
}

/** Each sum is below 2^53, as an invoice's total is. */
function sumsOf(lines: readonly BreakdownSums[]): BreakdownSums {
  return lines.reduce((sums, line) => combined(sums, line, (one, other) => one + other), noSums)
}

function combined(
  left: BreakdownSums,
  right: BreakdownSums,
  combine: (one: number, other: number) => number,
): BreakdownSums {
  const of = (field: keyof BreakdownSums) => combine(left[field], right[field])
  return {
    requests: of('requests'),
    inputTokens: of('inputTokens'),
    cachedInputTokens: of('cachedInputTokens'),
    outputTokens: of('outputTokens'),
    reasoningTokens: of('reasoningTokens'),
    amountMicrocents: of('amountMicrocents'),
  }
}
