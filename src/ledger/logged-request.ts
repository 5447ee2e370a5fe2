/** A request of the log, and the parts of the queries that read it. */
import type { Sql, TransactionSql } from 'postgres'
import type { AttemptRecord, UsageRecord } from '../core/usage/usage-record.ts'

type Queries = Sql | TransactionSql

/** A request as shown to its account. */
export type LoggedRequest = Required<
  Omit<
    UsageRecord,
    | 'account_id'
    | 'at_ms'
    | 'dialect'
    | 'lineage_id'
    | 'requested_model'
    | 'upstream_id'
    | 'reserved_microcents'
    | 'shortfall_microcents'
    | 'tags'
    | 'tried'
    | 'trace'
    | 'truth'
  >
> & {
  /** Null = a record that no gateway wrote. */
  readonly dialect: UsageRecord['dialect'] | null
  /** `provider/model` or `gateway-ai`; null as for `dialect`. */
  readonly requested_model: string | null
  /** Null = the provider gave none. */
  readonly upstream_id: string | null
  /** Null as for `dialect`. */
  readonly tried: readonly AttemptRecord[] | null
  /** Null = none. */
  readonly tags: Readonly<Record<string, string>> | null
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
  attempts, tried, latency_ms::float8, first_token_ms::float8, metadata, tags`

/** Columns of the key of the request `found`. */
export const keyColumns = (sql: Queries) => sql`
  (select name from api_keys where id = found.key_id) as key_name,
  (select user_id from api_keys where id = found.key_id) as user_id,
  (select email from api_keys join users on users.id = user_id where api_keys.id = found.key_id) as user_email`

/** Matches the model that served; of a request without one, the model that it named. */
export function servedOrRequested(sql: Queries, provider: string | null, model: string | null) {
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
