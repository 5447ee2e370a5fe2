/**
 * Decides which of several records of one request counts. A request may be settled twice: by its own instance at its
 * end (`final`), and by another one from its last checkpoint if the first seemed dead. The final record wins in any
 * order of arrival. The ledger applies the same rule in SQL (`ledger/store-usage.ts`).
 */
import type { Truth, UsageRecord } from './usage-record.ts'

/** Usage that a record counts for, and its truth. Money is an integer of 1e-8 USD. */
export type CountedUsage = { readonly truth: Truth; readonly tokens: number; readonly microcents: number }

/** Records without this field are final. */
export const getTruth = (record: Pick<UsageRecord, 'truth'>): Truth => record.truth ?? 'final'

/**
 * Returns a value above 0 if `one` wins: the final one, else the one with more usage, since checkpoints only increase.
 */
export function compareTruth(item: CountedUsage, other: CountedUsage): number {
  return (
    Number(item.truth === 'final') - Number(other.truth === 'final') ||
    item.microcents - other.microcents ||
    item.tokens - other.tokens
  )
}

/** Returns the record that counts of two records of one request. Commutative, associative and idempotent. */
export function mergeRecords(item: UsageRecord, other: UsageRecord): UsageRecord {
  const order = compareTruth(countedUsage(item), countedUsage(other)) || item.latency_ms - other.latency_ms
  // Equal records are ordered by their text, so that the result does not depend on which arrived first.
  return (order || compareTexts(JSON.stringify(item), JSON.stringify(other))) >= 0 ? item : other
}

/** Returns one record per request, in order of first appearance. */
export function mergedRecords(records: readonly UsageRecord[]): UsageRecord[] {
  const merged = new Map<string, UsageRecord>()
  for (const record of records) {
    const before = merged.get(record.request_id)
    merged.set(record.request_id, before === undefined ? record : mergeRecords(before, record))
  }
  return [...merged.values()]
}

/**
 * Returns the change that `update` makes to the counted usage of its request; negative if a checkpoint was too high.
 */
export function getCorrection(counted: CountedUsage | undefined, update: CountedUsage) {
  if (counted === undefined) return { tokens: update.tokens, microcents: update.microcents }
  if (compareTruth(update, counted) <= 0) return { tokens: 0, microcents: 0 }
  return { tokens: update.tokens - counted.tokens, microcents: update.microcents - counted.microcents }
}

export function countedUsage(record: UsageRecord): CountedUsage {
  return {
    truth: getTruth(record),
    tokens: record.input_tokens + record.output_tokens,
    microcents: record.billed_microcents,
  }
}

const compareTexts = (text: string, other: string) => (text < other ? -1 : text > other ? 1 : 0)
