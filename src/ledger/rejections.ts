/**
 * Explains requests that were rejected before admission. They have no usage, so the ledger does not contain them. The
 * record is best effort and bounded: a flood of rejections must not load the database. Rows wait in memory for at most
 * one second, surplus ones are dropped and counted, and all are deleted after 30 days.
 */
import { whenNeeded } from '../core/jobs/repeating.ts'
import type { Log } from '../core/ports/log.ts'
import type { Rejection } from '../core/usage/rejection.ts'
import type { Database } from '../database/database.ts'
import { retentionDeadlineMs } from '../database/repositories/audit.ts'

const flushMs = 1_000
/** Per flush, so per second. */
const maximumWaiting = 500
const maximumPerAccount = 20
const keptDays = 30
const deadlineMs = 5_000

type RejectionLogDeps = {
  readonly database: Database
  readonly log: Pick<Log, 'warn'>
}

/** Collects rejections and writes them in batches, one at a time: batches behind a slow database would wait without a bound. */
export class RejectionLog {
  private readonly deps: RejectionLogDeps
  private waiting: Rejection[] = []
  private readonly perAccount = new Map<string, number>()
  private dropped = 0
  private running: Promise<void> = Promise.resolve()
  private readonly flushing = whenNeeded(flushMs, () => this.flush())

  constructor(deps: RejectionLogDeps) {
    this.deps = deps
  }

  /** Adds a rejection, or drops it if too many wait. */
  add(rejection: Rejection): void {
    const ofAccount = this.perAccount.get(rejection.account_id) ?? 0
    if (this.waiting.length >= maximumWaiting || ofAccount >= maximumPerAccount) {
      this.dropped++
      return
    }
    this.perAccount.set(rejection.account_id, ofAccount + 1)
    this.waiting.push(rejection)
    this.flushing.need()
  }

  /** Writes the waiting rejections. Never rejects: a batch that cannot be written is dropped. */
  flush(): Promise<void> {
    if (this.waiting.length === 0) return this.running
    const batch = this.waiting
    this.waiting = []
    this.perAccount.clear()
    this.running = this.running.then(() => this.write(batch))
    return this.running
  }

  async close(): Promise<void> {
    await this.flushing.close()
    await this.flush()
  }

  private async write(batch: readonly Rejection[]): Promise<void> {
    const { database, log } = this.deps
    try {
      await insertRejections(database, batch)
    } catch {
      this.dropped += batch.length
    }
    if (this.dropped > 0) log.warn('rejections_dropped', { records: this.dropped })
    this.dropped = 0
  }
}

function insertRejections(database: Database, batch: readonly Rejection[]): Promise<unknown> {
  return database.run(
    ({ sql }) => sql`
      insert into rejected_requests (
        request_id, at, account_id, key_id, requested_model, dialect, strategy, streamed, error_code, param, layer,
        category, latency_ms)
      select request_id, to_timestamp(at_ms / 1000.0), account_id, key_id, requested_model, dialect, strategy, streamed,
        error_code, param, layer, category, latency_ms
      from json_to_recordset(${JSON.stringify(batch)}::text::json) as rejection(
        request_id text, at_ms bigint, account_id text, key_id text, requested_model text, dialect text, strategy text,
        streamed boolean, error_code text, param text, layer text, category text, latency_ms int)
      on conflict (request_id) do nothing`,
    deadlineMs,
  )
}

/** Deletes rejections that are older than the retention, at most `limit`. Returns their number. */
export async function pruneRejections(database: Database, limit: number): Promise<number> {
  const rows = await database.run(
    ({ sql }) => sql`
      delete from rejected_requests where request_id in (
        select request_id from rejected_requests where at < clock_timestamp() - ${keptDays}::int * interval '1 day'
        order by at limit ${limit})
      returning request_id`,
    retentionDeadlineMs,
  )
  return rows.length
}
