/**
 * Which of several records of one request counts. A request may be settled twice: by its own gateway as it ended (`final`), and
 * by another one to the last checkpoint, where the first seemed dead. The higher truth wins, in whatever order they arrive. The
 * ledger does the same in SQL (`ledger/shipper.ts`).
 */
import type { Truth, UsageRecord } from './usage-record.ts'

/** What a record counts for, and how true it is. Money is an integer of 1e-8 USD. */
export type CountedUsage = { readonly truth: Truth; readonly tokens: number; readonly microcents: number }

/** Records of before truths were written are final. */
export const truthOf = (record: Pick<UsageRecord, 'truth'>): Truth => record.truth ?? 'final'

/** Above 0 where `one` wins: a final one, else the one that has more, which a checkpoint only gains with time. */
export function compareTruth(one: CountedUsage, other: CountedUsage): number {
  return (
    Number(one.truth === 'final') - Number(other.truth === 'final') ||
    one.microcents - other.microcents ||
    one.tokens - other.tokens
  )
}

/** Returns the truer of two records of one request. Commutative, associative and idempotent. */
export function mergeRecords(one: UsageRecord, other: UsageRecord): UsageRecord {
  const order = compareTruth(countedUsage(one), countedUsage(other)) || one.latency_ms - other.latency_ms
  // Equal records are ordered by their text, so that the result does not depend on which arrived first.
  return (order || compareTexts(JSON.stringify(one), JSON.stringify(other))) >= 0 ? one : other
}

/** One record of each request, in the order in which requests first appear. */
export function mergedRecords(records: readonly UsageRecord[]): UsageRecord[] {
  const merged = new Map<string, UsageRecord>()
  for (const record of records) {
    const before = merged.get(record.request_id)
    merged.set(record.request_id, before === undefined ? record : mergeRecords(before, record))
  }
  return [...merged.values()]
}

/** Returns the difference that `update` makes to the counted usage of its request; negative if a checkpoint was too high. */
export function correctionOf(counted: CountedUsage | undefined, update: CountedUsage) {
  if (counted === undefined) return { tokens: update.tokens, microcents: update.microcents }
  if (compareTruth(update, counted) <= 0) return { tokens: 0, microcents: 0 }
  return { tokens: update.tokens - counted.tokens, microcents: update.microcents - counted.microcents }
}

export function countedUsage(record: UsageRecord): CountedUsage {
  return {
    truth: truthOf(record),
    tokens: record.input_tokens + record.output_tokens,
    microcents: record.billed_microcents,
  }
}

const compareTexts = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)
