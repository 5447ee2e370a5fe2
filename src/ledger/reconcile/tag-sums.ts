/** Compares the ledger with the daily totals of tags, as `reconcile.ts` does with those of keys and models. */
import type { Sql } from 'postgres'
import type { Database } from '../../database/database.ts'

/** Sums of one row of the daily totals, as far as they are compared. */
export type DailySums = {
  readonly requests: number
  readonly completed: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly billed_microcents: number
}
export type DailyPlace = {
  readonly account_id: string
  readonly day: string
  readonly key_id: string
  readonly model: string
}

/** A difference between the ledger and the daily totals of a tag; null = nothing stored. */
export type TagDifference = DailyPlace & {
  readonly kind: 'tag_rollup'
  /** `name=value`. */
  readonly tag: string
  readonly ledger: DailySums | null
  readonly rollup: DailySums | null
}

/** Returns the first differences per account, day, key, model and tag, from one statement, hence one snapshot. */
export async function compareTagSums(
  database: Database,
  { from, to, accountId }: { readonly from: string; readonly to: string; readonly accountId: string | null },
  { maximum, deadlineMs }: { readonly maximum: number; readonly deadlineMs: number },
): Promise<readonly TagDifference[]> {
  const rows = await database.run(
    ({ sql }) => sql<{ differences: string | null }[]>`
      with ledger as (
        select
          account_id, (at at time zone 'UTC')::date as day, key_id,
          case when model = '' then '' else provider || '/' || model end as model, key || '=' || value as tag,
          count(*) as requests, count(*) filter (where status = 'completed') as completed,
          sum(input_tokens)::bigint as input_tokens, sum(cached_input_tokens)::bigint as cached_input_tokens,
          sum(output_tokens)::bigint as output_tokens, sum(reasoning_tokens)::bigint as reasoning_tokens,
          sum(billed_microcents)::bigint as billed_microcents
        from usage_records, jsonb_each_text(tags)
        where at >= (${from}::text || ' 00:00+00')::timestamptz
          and at < (${to}::text || ' 00:00+00')::timestamptz + interval '1 day'
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
        group by 1, 2, 3, 4, 5
      ), rollup as (
        select account_id, day, key_id, model, tag, requests, completed, input_tokens, cached_input_tokens,
          output_tokens, reasoning_tokens, billed_microcents
        from usage_tags_daily
        where day between ${from}::text::date and ${to}::text::date
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
      ), different as (
        select
          'tag_rollup' as kind, account_id, day, key_id, model, tag,
          case when ledger.requests is not null then ${sums(sql, sql`ledger`)} end as ledger,
          case when rollup.requests is not null then ${sums(sql, sql`rollup`)} end as rollup
        from ledger full join rollup using (account_id, day, key_id, model, tag)
        where (
          ledger.requests, ledger.completed, ledger.input_tokens, ledger.cached_input_tokens, ledger.output_tokens,
          ledger.reasoning_tokens, ledger.billed_microcents
        ) is distinct from (
          rollup.requests, rollup.completed, rollup.input_tokens, rollup.cached_input_tokens, rollup.output_tokens,
          rollup.reasoning_tokens, rollup.billed_microcents
        )
        order by account_id, day, key_id, model, tag
        limit ${maximum}
      )
      select json_agg(different)::text as differences from different`,
    deadlineMs,
  )
  return JSON.parse(rows[0]?.differences ?? '[]') as TagDifference[]
}

const sums = (sql: Sql, table: ReturnType<Sql>) => sql`json_build_object(
  'requests', ${table}.requests, 'completed', ${table}.completed, 'input_tokens', ${table}.input_tokens,
  'cached_input_tokens', ${table}.cached_input_tokens, 'output_tokens', ${table}.output_tokens,
  'reasoning_tokens', ${table}.reasoning_tokens, 'billed_microcents', ${table}.billed_microcents)`
