/**
 * Ships usage records from the journal to Postgres: in batches, oldest first, repeated until they
 * are stored (`store-usage.ts`).
 */

import { whenNeeded } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import { failureReason } from '../core/validation/errors.ts'
import { type Database, isRowFault, postgresError } from '../database/database.ts'
import type { Journal } from './journal.ts'
import { toRecord } from './record-lines.ts'
import { run } from './store-usage.ts'

type ShipperOptions = {
  readonly journal: Pick<Journal, 'take' | 'setAside' | 'aside' | 'backlog' | 'onRecord'>
  readonly database: Database
  /** Receives the accounts that learned from stored records. */
  readonly onLearned?: (accountIds: readonly string[]) => void
  readonly clock: Pick<Clock, 'now'>
  readonly log: Pick<Log, 'warn' | 'error'>
}

const storeDeadlineMs = 5_000
const work = { module: new URL('./store-usage.ts', import.meta.url).href, run }

/**
 * Inserts records (JSON texts), one per request, adds them to the daily totals and the keys' shortfalls, and learns from
 * them. A truer record replaces a checkpoint; a trigger archives the old row and subtracts it from the totals. Returns the
 * accounts that learned. Throws like `Database.transact`.
 */
export async function storeRecords(database: Database, texts: readonly string[]): Promise<string[]> {
  const records = `[${texts.join()}]`
  const store = async (isNew: boolean) =>
    JSON.parse(await database.transact(work, `{"isNew":${isNew},"records":${records}}`, storeDeadlineMs))
  try {
    return await store(true)
  } catch (error) {
    if (!isRowFault(error)) throw error
    return await store(false)
  }
}

export type Shipper = {
  /** Returns the number of unshipped records. */
  backlog(): number
  /** Returns the number of records that Postgres rejected. */
  aside(): number
  /** Returns how long the oldest record of the current batch has waited since its settlement; 0 = none. */
  lagMs(): number
  /** Ships remaining records for at most `deadlineMs`; returns true if none is left. For shutdown. */
  drain(deadlineMs: number): Promise<boolean>
  /** Stops the timers and waits for the current batch. */
  close(): Promise<void>
}

const maximumBatch = 1_000
const tickMs = 100
/**
 * Pause after a batch per record of it, unless the next batch is full earlier. A single record is shipped at the next
 * tick. Under load, larger batches share their dozen statements, on which the embedded database spends most of its CPU
 * time.
 */
const pauseMsPerRecord = 5
const maximumPauseMs = 500
const firstBackoffMs = 200
const maximumBackoffMs = 2000

/** Starts shipping. At rest nothing runs. */
export function createShipper({ journal, database, onLearned = () => {}, clock, log }: ShipperOptions): Shipper {
  let running: Promise<void> | null = null
  let failures = 0
  let notBefore = 0
  let pausedUntil = 0
  let partitionedMonth = ''
  /** Settlement time of the oldest record in the current batch, in epoch milliseconds. */
  let oldestAt: number | null = null

  const { backlog } = journal

  const shipAll = async () => {
    for (let batch = journal.take(maximumBatch); batch !== null; batch = journal.take(maximumBatch)) {
      const [oldest, newest] = [batch.texts[0], batch.texts.at(-1)]
      if (oldest !== undefined && newest !== undefined) {
        const { at_ms, latency_ms } = toRecord(oldest)
        oldestAt = at_ms + latency_ms
        const month = getMonth(Math.max(clock.now(), toRecord(newest).at_ms))
        const refusal = month === partitionedMonth ? null : await addMonths(database, month)
        await store(batch.texts)
        if (refusal !== null) log.warn('usage_partition_failed', { month, detail: refusal })
        partitionedMonth = month
        pausedUntil = performance.now() + Math.min(maximumPauseMs, batch.texts.length * pauseMsPerRecord)
      }
      batch.release()
      oldestAt = null
      failures = 0
      // The rest is shipped with what follows: many small batches cost more.
      if (backlog() < maximumBatch) return
    }
  }

  /**
   * Stores all records. If Postgres rejects the values of a row, the batch is halved until the row is isolated
   * and set aside, so that it does not block the others forever; without its learning data first, which must not keep
   * usage out of the ledger. Any other failure is thrown: all records wait.
   */
  const store = async (texts: readonly string[]): Promise<void> => {
    try {
      onLearned(await storeRecords(database, texts))
    } catch (error) {
      if (!isRowFault(error)) throw error
      if (texts.length > 1) {
        const half = Math.ceil(texts.length / 2)
        await store(texts.slice(0, half))
        return store(texts.slice(half))
      }
      for (const record of texts.map(toRecord)) {
        if (record.learning != null) return store([JSON.stringify({ ...record, learning: null })])
        journal.setAside(record)
        log.error('usage_record_rejected', { request_id: record.request_id, detail: failureReason(error) })
      }
    }
  }

  const run = (): Promise<void> => {
    running ??= shipAll()
      .catch(error => {
        failures++
        notBefore = performance.now() + Math.min(maximumBackoffMs, firstBackoffMs * 2 ** Math.min(failures, 8))
        if (failures === 1 || failures % 20 === 0)
          log.warn('usage_shipping_failed', { backlog: backlog(), failures, detail: failureReason(error) })
      })
      .finally(() => {
        running = null
      })
    return running
  }

  const isDue = (now: number) => {
    if (running !== null || now < notBefore) return false
    const waiting = backlog()
    return waiting >= maximumBatch || (waiting > 0 && now >= pausedUntil)
  }
  const ticking = whenNeeded(tickMs, () => {
    if (isDue(performance.now())) void run()
    if (running !== null || backlog() > 0) ticking.need()
  })
  journal.onRecord(ticking.need)
  ticking.need()

  return {
    backlog,
    aside: journal.aside,
    lagMs: () => (oldestAt === null ? 0 : Math.max(0, clock.now() - oldestAt)),
    async drain(deadlineMs) {
      const until = performance.now() + deadlineMs
      while (backlog() > 0 && performance.now() < until) {
        const before = failures
        await atMost(run(), until - performance.now())
        if (failures > before) await Bun.sleep(Math.min(tickMs, Math.max(0, until - performance.now())))
      }
      return backlog() === 0
    },
    async close() {
      await ticking.close()
      await running
    },
  }
}

const getMonth = (at: number) => new Date(at).toISOString().slice(0, 7)

/**
 * Creates the partitions of a month (`YYYY-MM`) and the next one. Gives up its lock after 2 s, so that it never blocks
 * the ledger: the default partition accepts the rows too. Returns why Postgres refused; null = it did not. Throws if
 * Postgres does not answer.
 */
function addMonths(database: Database, month: string): Promise<string | null> {
  const [year = 0, index = 0] = month.split('-').map(Number)
  const [first, next, end] = [0, 1, 2].map(more =>
    new Date(Date.UTC(year, index - 1 + more, 1)).toISOString().slice(0, 10),
  )
  // Only digits and hyphens: a table's name and bounds cannot be parameters.
  const partition = (from = '', to = '') =>
    `create table if not exists usage_records_${from.slice(0, 7).replace('-', '_')}
      partition of usage_records for values from ('${from} 00:00+00') to ('${to} 00:00+00')`
  return database.run(
    ({ sql }) =>
      sql
        .begin(async transaction => {
          await transaction`set local lock_timeout = 2000`
          await transaction`delete from usage_near_midnight where at < clock_timestamp() - interval '40 days'`
          await transaction.unsafe(partition(first, next))
          await transaction.unsafe(partition(next, end))
          return null
        })
        .catch((error: unknown) => {
          const refusal = postgresError(error)
          if (refusal === null) throw error
          return refusal.message
        }),
    storeDeadlineMs,
  )
}

/** Waits for `work`, but not longer than `milliseconds`. Leaves no timer behind that would keep the process alive. */
function atMost(work: Promise<void>, milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, Math.max(0, milliseconds))
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}
