/**
 * Reads the usage streams in Redis: one consumer group with one consumer per instance. An entry is acknowledged and
 * deleted when Postgres has committed its record. Entries of a dead consumer are claimed by another one.
 */
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { allPartitions, getKeys } from '../core/limits/redis.ts'
import { type UsageRecord, usageRecordSchema } from '../core/usage/usage-record.ts'
import { getTruth } from '../core/usage/usage-truth.ts'
import type { Redis } from '../database/redis.ts'
import type { UnshippedRecords } from '../limits/redis/unshipped-records.ts'
import type { JournalBatch } from './journal.ts'

type UsageStreamOptions = {
  readonly redis: Redis
  readonly gatewayId: string
  /** Milliseconds of a monotonic clock. */
  readonly monotonic: () => number
  readonly kept: UnshippedRecords
  /** Called for an entry that is not a usage record. */
  readonly onDamage?: (detail: string) => void
}

export type UsageStream = {
  /**
   * Returns up to `maximum` records to ship; null = none, or Redis does not answer. Only one batch is open at any time.
   */
  take(maximum: number): Promise<JournalBatch | null>
  /** Returns how many records may be waiting: those of this instance, plus one if it is time to check for others'. */
  backlog(): number
  /** Calls `listener` with each new record of this instance. */
  onRecord(listener: () => void): void
}

type Entry = { readonly partition: number; readonly id: string; readonly record: UsageRecord | null }

const group = 'ledger'
const readCount = 500
const readDeadlineMs = 500
/** Pause between reads of partitions to which this instance has written nothing; the shipper looks once per second. */
const lookAfterMs = 900
/**
 * Interval of claiming entries of other consumers, and the required idle time. Short: the consumer is probably dead,
 * and the ledger keeps one of two shipped copies.
 */
const claimEveryMs = 1000
const claimAfterMs = 4000

const isRecord = TypeCompiler.Compile(usageRecordSchema)

/** Creates a consumer. It has no timer: the shipper calls it. */
export function createUsageStream({
  redis,
  gatewayId,
  monotonic,
  kept,
  onDamage = () => {},
}: UsageStreamOptions): UsageStream {
  let queue: Entry[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  let claimedAt = monotonic()

  const read = async (partition: number): Promise<Entry[]> => {
    const { stream } = getKeys(partition)
    const command = ['XREADGROUP', 'GROUP', group, gatewayId, 'COUNT', String(readCount), 'STREAMS', stream, '>']
    try {
      return getEntries(partition, firstStream(await redis.send(stream, command, readDeadlineMs)))
    } catch (cause) {
      if (!(cause instanceof Error) || !cause.message.startsWith('NOGROUP')) throw cause
      await redis.send(stream, ['XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM']).catch(() => {})
      return []
    }
  }

  const claim = async (partition: number): Promise<Entry[]> => {
    const { stream } = getKeys(partition)
    const command = ['XAUTOCLAIM', stream, group, gatewayId, String(claimAfterMs), '0', 'COUNT', String(readCount)]
    const reply = await redis.send(stream, command, readDeadlineMs).catch(() => null)
    return Array.isArray(reply) ? getEntries(partition, reply[1]) : []
  }

  const fill = async () => {
    const now = monotonic()
    const own = kept.partitions()
    const isTime = now - lookedAt >= lookAfterMs
    if (isTime) lookedAt = now
    // In one tick, so that all reads share one round trip.
    const found = await Promise.all(
      (isTime ? allPartitions : allPartitions.filter(partition => own.has(partition))).map(read),
    )
    if (now - claimedAt >= claimEveryMs) {
      claimedAt = now
      found.push(...(await Promise.all(allPartitions.map(claim))))
    }
    queue = found.flat()
  }

  const finish = (entries: readonly Entry[]) => {
    // A shipped checkpoint does not confirm the request's final record, which may be kept under the same ID.
    kept.release(
      entries.flatMap(({ record }) =>
        record === null || getTruth(record) === 'checkpoint' ? [] : [record.request_id],
      ),
    )
    const byPartition = Map.groupBy(entries, entry => entry.partition)
    for (const [partition, ofPartition] of byPartition) {
      const { stream } = getKeys(partition)
      const ids = ofPartition.map(entry => entry.id)
      // If this fails, the entries are delivered again, and the ledger keeps one copy.
      redis.send(stream, ['XACK', stream, group, ...ids]).catch(() => {})
      redis.send(stream, ['XDEL', stream, ...ids]).catch(() => {})
    }
  }

  return {
    async take(maximum) {
      if (!redis.isReady()) return null
      if (queue.length === 0) await fill().catch(() => {})
      if (queue.length === 0) return null
      const entries = queue.slice(0, maximum)
      const release = () => {
        queue = queue.slice(entries.length)
        finish(entries)
      }
      for (const entry of entries) if (entry.record === null) onDamage(`stream entry ${entry.id} is not a usage record`)
      return { records: entries.flatMap(entry => entry.record ?? []), release }
    },
    onRecord: kept.onAdd,
    backlog: () => queue.length + kept.size() + (redis.isReady() && monotonic() - lookedAt >= lookAfterMs ? 1 : 0),
  }
}

/** `[[stream, entries]]`, or null if there are none. */
function firstStream(reply: unknown): unknown {
  return Array.isArray(reply) && Array.isArray(reply[0]) ? reply[0][1] : []
}

function getEntries(partition: number, entries: unknown): Entry[] {
  if (!Array.isArray(entries)) return []
  return entries.flatMap(entry =>
    // A claimed entry that was deleted in the meantime has no fields.
    Array.isArray(entry) && Array.isArray(entry[1])
      ? [{ partition, id: String(entry[0]), record: recordIn(String(entry[1][1])) }]
      : [],
  )
}

/** Returns the record of an entry; null = it is not a record. */
export function recordIn(text: string): UsageRecord | null {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord.Check(value) ? value : null
  } catch {
    return null
  }
}
