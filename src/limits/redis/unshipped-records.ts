import type { UsageRecord } from '../../core/usage/usage-record.ts'

/** Records that this instance wrote to streams and keeps until Postgres has them, in case Redis loses its data. */
export type UnshippedRecords = {
  add(partition: number, entryId: string, record: UsageRecord): void
  /** Removes records that Postgres has committed. */
  release(requestIds: readonly string[]): void
  /**
   * Removes records older than `entryId`, the oldest entry of the partition's stream (empty = none): they are in
   * Postgres.
   */
  releaseBefore(partition: number, entryId: string): void
  partitions(): Set<number>
  /** Removes and returns all records of a partition. */
  takeOut(partition: number): UsageRecord[]
  size(): number
  /** Calls `listener` with each new record, and never more than one listener. */
  onAdd(listener: () => void): void
}

/** Creates an empty set of records. */
export function createUnshippedRecords(): UnshippedRecords {
  const records = new Map<
    string,
    { readonly partition: number; readonly entryId: string; readonly record: UsageRecord }
  >()
  let onAdd = () => {}
  return {
    add(partition, entryId, record) {
      records.set(record.request_id, { partition, entryId, record })
      onAdd()
    },
    onAdd(listener) {
      onAdd = listener
    },
    release(requestIds) {
      for (const requestId of requestIds) records.delete(requestId)
    },
    releaseBefore(partition, entryId) {
      for (const [requestId, item] of records)
        if (item.partition === partition && (entryId === '' || isOlder(item.entryId, entryId)))
          records.delete(requestId)
    },
    partitions: () => new Set([...records.values()].map(record => record.partition)),
    takeOut(partition) {
      const taken = [...records.values()].filter(record => record.partition === partition).map(record => record.record)
      for (const record of taken) records.delete(record.request_id)
      return taken
    },
    size: () => records.size,
  }
}

/** Entry IDs are `milliseconds-sequence`. */
function isOlder(text: string, other: string): boolean {
  const [oneTime = 0, oneSequence = 0] = text.split('-').map(Number)
  const [otherTime = 0, otherSequence = 0] = other.split('-').map(Number)
  return oneTime < otherTime || (oneTime === otherTime && oneSequence < otherSequence)
}
