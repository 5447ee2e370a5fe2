/** Finds one request of an account by any of its IDs: in the ledger, or among the rejected requests. */
import type { Sql, TransactionSql } from 'postgres'
import { autoModel } from '../core/models/models.ts'
import type { Rejection } from '../core/usage/rejection.ts'
import type { RequestTrace } from '../core/usage/request-trace.ts'
import { mostCountedRejections } from '../core/usage/usage-groups.ts'
import { withAccountRls } from '../database/account-transaction.ts'
import type { Database } from '../database/database.ts'
import { type UsageScope, visibleRecords, visibleRejected } from '../database/visible-requests.ts'
import { keyColumns, type LoggedRequest, type LogPage, type LogRange, requestColumns } from './logged-request.ts'
import { keyCondition, type RequestFilters } from './request-filters.ts'

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
    for (const match of [sql`request_id = ${requestId}`, sql`upstream_id = ${id}`]) {
      const [request] = await sql<TracedRequest[]>`
        select found.*, ${keyColumns(sql)}
        from (
          select ${requestColumns(sql)}, trace, shortfall_microcents::float8 from usage_records
          where ${match} and account_id = ${accountId} ${visibleRecords(sql, scope)}
          order by at desc limit 1) as found`
      if (request !== undefined) return { kind: 'recorded', request }
    }
    const [rejected] = await sql<RejectedRequest[]>`
      select found.*, (select name from api_keys where id = found.key_id) as key_name
      from (
        select request_id, (extract(epoch from at) * 1000000)::float8 as at_micros, key_id, requested_model, dialect,
          strategy, streamed, error_code, param, layer, category, latency_ms
        from rejected_requests
        where request_id = ${requestId} and account_id = ${accountId} ${visibleRejected(sql, scope)}) as found`
    return rejected === undefined ? null : { kind: 'rejected', request: rejected }
  }, deadlineMs)
}

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
      select request_id, (extract(epoch from at) * 1000000)::float8 as at_micros, key_id, requested_model, dialect,
        strategy, streamed, error_code, param, layer, category, latency_ms,
        (select name from api_keys where id = key_id) as key_name
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

/** Rejected requests have no metadata and no tags. */
const cannotMatchRejected = ({ metadata, tag }: RequestFilters) => metadata !== null || tag !== null

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
