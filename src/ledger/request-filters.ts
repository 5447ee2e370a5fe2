/** Filters of requests, for the log and for totals of the log. */
import type { Sql, TransactionSql } from 'postgres'
import { projectTagName } from '../core/request/tags.ts'
import { shadowKeyId } from '../core/usage/shadow.ts'
import type { statusFilters } from '../core/usage/usage-groups.ts'
import type { RequestTrace, UsageRecord } from '../core/usage/usage-record.ts'

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
  readonly queryType: string | null
  /** Milliseconds, inclusive. */
  readonly minimumLatencyMs: number | null
  readonly maximumLatencyMs: number | null
  readonly routingMode: UsageRecord['routing_mode'] | null
  readonly streamed: boolean | null
  /** Whether a part of the usage has no known price. */
  readonly unpriced: boolean | null
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

/** The same as a query of their IDs. Calls of shadow evaluation have no API key, and are of no user. */
export function selectedKeys(
  sql: Sql | TransactionSql,
  accountId: string,
  keyId: string | null,
  users: readonly (string | null)[],
) {
  if (keyId === shadowKeyId && users.every(userId => userId === null)) return sql`select ${keyId}::text as id`
  return sql`select id from api_keys where account_id = ${accountId} ${keyCondition(sql, keyId, users)}`
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
  const { queryType, routingMode, streamed, unpriced, tag, projectId } = filters
  return sql`
    ${servedOrRequested(sql, provider, model)}
    ${statusCondition(sql, status)}
    ${isOfFailed(filters) ? sql`and status <> 'completed'` : sql``}
    ${errorCode === null ? sql`` : sql`and error_code = ${errorCode}`}
    ${dialect === null ? sql`` : sql`and dialect = ${dialect}`}
    ${queryType === null ? sql`` : sql`and query_type = ${queryType}`}
    ${minimumLatencyMs === null ? sql`` : sql`and latency_ms >= ${minimumLatencyMs}`}
    ${maximumLatencyMs === null ? sql`` : sql`and latency_ms <= ${maximumLatencyMs}`}
    ${routingMode === null ? sql`` : sql`and routing_mode = ${routingMode}`}
    ${streamed === null ? sql`` : sql`and streamed = ${streamed}`}
    ${unpriced === null ? sql`` : unpriced ? sql`and unpriced is not null` : sql`and unpriced is null`}
    ${tag === null ? sql`` : hasTag(sql, tag)}
    ${projectId === null ? sql`` : sql`and tags ->> ${projectTagName} = ${projectId}`}
    ${metadata === null ? sql`` : sql`and metadata @> ${JSON.stringify(metadata)}::text::jsonb`}`
}

/** A request of the log, and the parts of the queries that read it. */

type Queries = Sql | TransactionSql

/** Fields that are null in the log where a record has none, or no gateway wrote it. */
type Absent =
  | ('dialect' | 'requested_model' | 'upstream_id' | 'own_key_microcents' | 'unpriced' | 'routing_saved_microcents')
  | ('cache_saved_microcents' | 'tried' | 'tags')
type Hidden = 'account_id' | 'at_ms' | 'lineage_id' | 'reserved_microcents' | 'shortfall_microcents' | 'trace' | 'truth'

/** A request as shown to its account. */
export type LoggedRequest = Required<Omit<UsageRecord, Absent | Hidden>> & {
  readonly [Name in Absent]: Exclude<UsageRecord[Name], undefined> | null
} & {
  /** Effort of the serving attempt; null = its provider's default. */
  readonly effort: string | null
  /** Constraints in force, and who received the prompt; null = none. */
  readonly guarantees: NonNullable<RequestTrace['g']> | null
  /** Epoch microseconds, the resolution of Postgres, which a cursor needs. */
  readonly at_micros: number
  readonly key_name: string | null
  /** User of the key; null = the user was removed. */
  readonly user_id: string | null
  readonly user_email: string | null
}

/** A position in the log: just below the request that it names. */
export type LogPosition = { readonly atMicros: number; readonly requestId: string }

/** At most `limit` requests below `before`; null = from the newest. */
export type LogRange = { readonly before: LogPosition | null; readonly limit: number }

export type LogPage<Row = LoggedRequest> = {
  readonly requests: readonly Row[]
  /** Where to continue; null = the end. */
  readonly next: LogPosition | null
}

/** Columns of a logged request. */
export const requestColumns = (sql: Queries) => sql`
  request_id, at, (extract(epoch from at) * 1000000)::float8 as at_micros, key_id, provider, model, requested_model,
  upstream_id, routing_mode, strategy, query_type, streamed, dialect, status, error_code, finish_reason,
  input_tokens::float8, cached_input_tokens::float8, cache_write_tokens::float8, output_tokens::float8,
  reasoning_tokens::float8, estimated, billed_microcents::float8, search_microcents::float8, fetch_microcents::float8, hedge_microcents::float8,
  own_key_microcents::float8, unpriced, routing_saved_microcents::float8, cache_saved_microcents::float8, attempts, tried, latency_ms::float8, first_token_ms::float8, metadata, tags, trace ->> 'e' as effort, trace->'g' as guarantees`

/** Columns of the key of the request `found`. */
export const keyColumns = (sql: Queries) => sql`
  (select name from api_keys where id = found.key_id) as key_name,
  (select user_id from api_keys where id = found.key_id) as user_id,
  (select email from api_keys join users on users.id = user_id where api_keys.id = found.key_id) as user_email`

/** Matches the model that served; of a request without one, the model that it named. */
function servedOrRequested(sql: Queries, provider: string | null, model: string | null) {
  if (provider === null && model === null) return sql``
  const served = sql`
    ${provider === null ? sql`true` : sql`provider = ${provider}`}
    and ${model === null ? sql`true` : sql`model = ${model}`}`
  const requested =
    model === null
      ? sql`starts_with(requested_model, ${`${provider}/`})`
      : provider === null
        ? sql`(requested_model = ${model} or right(requested_model, ${model.length + 1}) = ${`/${model}`})`
        : sql`requested_model = ${`${provider}/${model}`}`
  return sql`and ((${served}) or (model = '' and ${requested}))`
}
