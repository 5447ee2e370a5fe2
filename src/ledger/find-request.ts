/** Finds one request of an account by any of its IDs: in the ledger, or among the rejected requests. */
import type { Sql, TransactionSql } from 'postgres'
import { whenNeeded } from '../core/jobs/repeating.ts'
import { autoModel } from '../core/models/models.ts'
import type { Log } from '../core/ports.ts'
import type { Rejection } from '../core/usage/rejection.ts'
import { mostCountedRejections } from '../core/usage/usage-groups.ts'
import type { RequestTrace } from '../core/usage/usage-record.ts'
import type { Database } from '../database/database.ts'
import { retentionDeadlineMs } from '../database/repositories/audit.ts'
import { withAccountRls } from '../database/statement.ts'
import { type UsageScope, visibleRecords, visibleRejected } from '../database/visible-requests.ts'
import {
  keyColumns,
  keyCondition,
  type LoggedRequest,
  type LogPage,
  type LogRange,
  type RequestFilters,
  requestColumns,
} from './request-filters.ts'

/** A request with its trace; null = a checkpoint. */
export type TracedRequest = LoggedRequest & {
  readonly trace: RequestTrace | null
  readonly shortfall_microcents: number
}

export type RejectedRequest = Omit<Rejection, 'at_ms' | 'account_id'> & {
  readonly at_micros: number
  readonly key_name: string | null
}

export type FoundRequest =
  | { readonly kind: 'recorded'; readonly request: TracedRequest }
  | { readonly kind: 'rejected'; readonly request: RejectedRequest }

const deadlineMs = 5_000
const mostReadRejections = 50_000

/** IDs of responses are derived from the request ID. */
const derivedId = /^(?:resp|msg|chatcmpl)_(.+)$/

/**
 * Returns the request with this ID; null = the scope has none. `id` is the request ID, the ID of the response in any
 * dialect, or the ID that the provider gave its response.
 */
export function findRequest(database: Database, scope: UsageScope, id: string): Promise<FoundRequest | null> {
  const { accountId } = scope
  const requestId = id.replace(derivedId, 'req_$1')
  return withAccountRls(database, accountId).sql(async sql => {
    // Without statistics, the planner would look for an ID in the index of all requests of the account.
    for (const match of [
      sql`request_id = ${requestId}`,
      sql`upstream_hash = hashtext(${id}) and upstream_id = ${id}`,
    ]) {
      const [request] = await sql<TracedRequest[]>`
        select found.*, ${keyColumns(sql)}
        from (
          select ${requestColumns(sql)}, trace, shortfall_microcents::float8
          from (select * from usage_records where ${match} offset 0) as usage_records
          where account_id = ${accountId} ${visibleRecords(sql, scope)}
          order by at desc limit 1) as found`
      if (request !== undefined) return { kind: 'recorded', request }
    }
    const [rejected] = await sql<RejectedRequest[]>`
      select found.*, (select name from api_keys where id = found.key_id) as key_name
      from (
        select ${rejectedColumns(sql)} from rejected_requests
        where request_id = ${requestId} and account_id = ${accountId} ${visibleRejected(sql, scope)}) as found`
    return rejected === undefined ? null : { kind: 'rejected', request: rejected }
  }, deadlineMs)
}

const rejectedColumns = (sql: TransactionSql) => sql`
  request_id, (extract(epoch from at) * 1000000)::float8 as at_micros, key_id, requested_model, dialect, strategy,
  streamed, error_code, param, layer, category, latency_ms`

/**
 * Returns a page of the rejected requests that match, newest first. They have no metadata and no tags, and no model
 * served them: `provider` and `model` match the requested one.
 */
export async function listRejected(
  database: Database,
  scope: UsageScope,
  filters: RequestFilters,
  { before, limit }: LogRange,
): Promise<LogPage<RejectedRequest>> {
  if (cannotMatchRejected(filters)) return { requests: [], next: null }
  const rows = await withAccountRls(database, scope.accountId).sql(
    sql => sql<RejectedRequest[]>`
      select ${rejectedColumns(sql)}, (select name from api_keys where id = key_id) as key_name
      from rejected_requests
      ${whereRejected(sql, scope, filters)}
        ${
          before === null
            ? sql``
            : sql`and (at, request_id) <
                (timestamptz 'epoch' + ${before.atMicros}::bigint * interval '1 microsecond', ${before.requestId})`
        }
      order by at desc, request_id desc
      limit ${limit + 1}`,
    deadlineMs,
  )
  const last = rows[limit - 1]
  const hasMore = rows.length > limit && last !== undefined
  return {
    requests: rows.slice(0, limit),
    next: hasMore ? { atMicros: last.at_micros, requestId: last.request_id } : null,
  }
}

/**
 * Returns the number of rejected requests that match among the newest 50,000 of the range, at most
 * `mostCountedRejections`; null = none can match the filters. Both bounds limit the work after a flood of rejections.
 */
export async function countRejected(
  database: Database,
  scope: UsageScope,
  filters: RequestFilters,
): Promise<number | null> {
  if (filters.status !== null || cannotMatchRejected(filters)) return null
  const [row] = await withAccountRls(database, scope.accountId).sql(
    sql => sql<{ count: number }[]>`
      with newest as (
        select * from rejected_requests
        where account_id = ${scope.accountId}
          ${filters.from === null ? sql`` : sql`and at >= to_timestamp(${filters.from / 1000})`}
          ${filters.to === null ? sql`` : sql`and at < to_timestamp(${filters.to / 1000})`}
        order by at desc, request_id desc limit ${mostReadRejections})
      select count(*)::int as count
      from (
        select from newest as rejected_requests ${whereRejected(sql, scope, filters)} limit ${mostCountedRejections}
      ) as found`,
    deadlineMs,
  )
  return row?.count ?? 0
}

/** Rejected requests have no metadata, no tags and no query type. */
const cannotMatchRejected = ({ metadata, tag, queryType }: RequestFilters) =>
  metadata !== null || tag !== null || queryType !== null

function whereRejected(sql: Sql | TransactionSql, scope: UsageScope, filters: RequestFilters) {
  const { accountId } = scope
  const { from, to, keyId, memberId, projectId, provider, model, errorCode, dialect, streamed, routingMode } = filters
  const { minimumLatencyMs, maximumLatencyMs } = filters
  return sql`
    where account_id = ${accountId} ${visibleRejected(sql, scope)}
      ${from === null ? sql`` : sql`and at >= to_timestamp(${from / 1000})`}
      ${to === null ? sql`` : sql`and at < to_timestamp(${to / 1000})`}
      ${
        keyId === null && memberId === null && projectId === null
          ? sql``
          : sql`and key_id in (
              select id from api_keys where account_id = ${accountId} ${keyCondition(sql, keyId, [memberId])}
                ${projectId === null ? sql`` : sql`and project_id = ${projectId}`})`
      }
      ${provider === null ? sql`` : sql`and starts_with(requested_model, ${`${provider}/`})`}
      ${model === null ? sql`` : sql`and (requested_model = ${model} or right(requested_model, ${model.length + 1}) = ${`/${model}`})`}
      ${errorCode === null ? sql`` : sql`and error_code = ${errorCode}`}
      ${dialect === null ? sql`` : sql`and dialect = ${dialect}`}
      ${streamed === null ? sql`` : sql`and streamed = ${streamed}`}
      ${routingMode === null ? sql`` : sql`and (coalesce(requested_model, ${autoModel}) = ${autoModel}) = ${routingMode === 'auto'}`}
      ${minimumLatencyMs === null ? sql`` : sql`and latency_ms >= ${minimumLatencyMs}`}
      ${maximumLatencyMs === null ? sql`` : sql`and latency_ms <= ${maximumLatencyMs}`}`
}

/**
 * Explains requests that were rejected before admission. They have no usage, so the ledger does not contain them. The
 * record is best effort and bounded: a flood of rejections must not load the database. Rows wait in memory for at most
 * one second, surplus ones are dropped and counted, and all are deleted after 30 days.
 */

const flushMs = 1_000
/** Per flush, so per second. */
const maximumWaiting = 500
const maximumPerAccount = 20
const keptDays = 30

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
