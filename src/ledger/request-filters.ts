/** Filters of requests, for the log and for totals of the log. */
import type { Sql, TransactionSql } from 'postgres'
import { projectTagName } from '../core/request/project-tag.ts'
import type { statusFilters } from '../core/usage/usage-groups.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { servedOrRequested } from './logged-request.ts'

/** Filters of requests; all must match. null = any. */
export type RequestFilters = {
  /** Epoch milliseconds, inclusive. */
  readonly from: number | null
  /** Epoch milliseconds, exclusive. */
  readonly to: number | null
  /** Includes the keys that it was rotated to. */
  readonly keyId: string | null
  /** User whose keys made the requests. */
  readonly memberId: string | null
  readonly provider: string | null
  readonly model: string | null
  readonly status: (typeof statusFilters)[number] | null
  readonly errorCode: string | null
  readonly dialect: NonNullable<UsageRecord['dialect']> | null
  /** Milliseconds, inclusive. */
  readonly minimumLatencyMs: number | null
  readonly maximumLatencyMs: number | null
  readonly routingMode: UsageRecord['routing_mode'] | null
  readonly streamed: boolean | null
  readonly metadata: Readonly<Record<string, string>> | null
  /** `name=value`, or a name with any value. */
  readonly tag: string | null
  /** Project of the key at the time of the request. */
  readonly projectId: string | null
}

/** Returns true if a filter must test each request, beside time, key and member, which indexes cover. */
export function testsRequests({ from, to, keyId, memberId, ...others }: RequestFilters): boolean {
  return Object.values(others).some(filter => filter !== null)
}

/** Returns true if the requests that match are incomplete ones, which have an index of their own. */
export function isOfFailed({ status, errorCode }: RequestFilters): boolean {
  return (status !== null && status !== 'completed') || errorCode !== null
}

/** SQL condition for the keys of an account that `keyId` and users select; begins with `and`, or is empty. */
export function keyCondition(sql: Sql | TransactionSql, keyId: string | null, users: readonly (string | null)[]) {
  return sql`
    ${keyId === null ? sql`` : sql`and (id = ${keyId} or line_id = ${keyId})`}
    ${users.map(userId => (userId === null ? sql`` : sql`and user_id = ${userId}`))}`
}

function hasTag(sql: Sql | TransactionSql, tag: string) {
  const at = tag.indexOf('=')
  if (at < 0) return sql`and jsonb_exists(tags, ${tag})`
  return sql`and tags @> ${JSON.stringify({ [tag.slice(0, at)]: tag.slice(at + 1) })}::text::jsonb`
}

function statusCondition(sql: Sql | TransactionSql, status: RequestFilters['status']) {
  if (status === null) return sql``
  return status === 'failed_or_blocked' ? sql`and status in ('failed', 'blocked')` : sql`and status = ${status}`
}

/** SQL conditions for the columns of `usage_records`, beside time, key and member; begins with `and`, or is empty. */
export function matching(sql: Sql | TransactionSql, filters: RequestFilters) {
  const { provider, model, status, errorCode, dialect, minimumLatencyMs, maximumLatencyMs, metadata } = filters
  const { routingMode, streamed, tag, projectId } = filters
  return sql`
    ${servedOrRequested(sql, provider, model)}
    ${statusCondition(sql, status)}
    ${isOfFailed(filters) ? sql`and status <> 'completed'` : sql``}
    ${errorCode === null ? sql`` : sql`and error_code = ${errorCode}`}
    ${dialect === null ? sql`` : sql`and dialect = ${dialect}`}
    ${minimumLatencyMs === null ? sql`` : sql`and latency_ms >= ${minimumLatencyMs}`}
    ${maximumLatencyMs === null ? sql`` : sql`and latency_ms <= ${maximumLatencyMs}`}
    ${routingMode === null ? sql`` : sql`and routing_mode = ${routingMode}`}
    ${streamed === null ? sql`` : sql`and streamed = ${streamed}`}
    ${tag === null ? sql`` : hasTag(sql, tag)}
    ${projectId === null ? sql`` : sql`and tags ->> ${projectTagName} = ${projectId}`}
    ${metadata === null ? sql`` : sql`and metadata @> ${JSON.stringify(metadata)}::text::jsonb`}`
}
