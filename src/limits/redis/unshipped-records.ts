import type { UsageRecord } from '../../core/usage/usage-record.ts'

/** What this gateway put into streams and must keep until Postgres has it: an emptied Redis would have taken it. */
export type UnshippedRecords = {
  add(partition: number, entryId: string, record: UsageRecord): void
  /** Postgres has committed these. */
  release(requestIds: readonly string[]): void
  /** The oldest entry that is still in the partition's stream, empty = none: everything older is in Postgres. */
  releaseBefore(partition: number, entryId: string): void
  partitions(): Set<number>
  /** Takes out all of a partition's, to be kept elsewhere. */
  takeOut(partition: number): UsageRecord[]
  size(): number
}

/** Without any record. */
export function createKeptRecords(): UnshippedRecords {
  const records = new Map<
    string,
    { readonly partition: number; readonly entryId: string; readonly record: UsageRecord }
  >()
  return {
    add: (partition, entryId, record) => void records.set(record.request_id, { partition, entryId, record }),
    release(requestIds) {
      for (const requestId of requestIds) records.delete(requestId)
    },
    releaseBefore(partition, entryId) {
      for (const [requestId, one] of records)
        if (one.partition === partition && (entryId === '' || isOlder(one.entryId, entryId))) records.delete(requestId)
    },
    partitions: () => new Set([...records.values()].map(one => one.partition)),
    takeOut(partition) {
      const taken = [...records.values()].filter(one => one.partition === partition).map(one => one.record)
      for (const record of taken) records.delete(record.request_id)
      return taken
    },
    size: () => records.size,
  }
}

/** Entry ids are `milliseconds-sequence`. */
function isOlder(one: string, other: string): boolean {
  const [oneTime = 0, oneSequence = 0] = one.split('-').map(Number)
  const [otherTime = 0, otherSequence = 0] = other.split('-').map(Number)
  return oneTime < otherTime || (oneTime === otherTime && oneSequence < otherSequence)
}
