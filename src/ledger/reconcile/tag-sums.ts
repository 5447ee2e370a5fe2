/** Compares the ledger with the daily totals of tags, as `reconcile.ts` does with those of keys and models. */
import type { Sql } from 'postgres'
import { summedMoney, summedTokens } from '../../core/usage/usage-groups.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import type { Database } from '../../database/database.ts'

const amounts = [...summedTokens, ...summedMoney]
const sumNames = ['requests', 'completed', ...amounts] as const

/** Sums of one row of the daily totals, as far as they are compared. */
export type DailySums = Readonly<Record<(typeof sumNames)[number], number>>

/** SQL for these sums over records of the ledger. */
export const ledgerSums = (sql: Sql) =>
  amounts.reduce(
    (all, name) => sql`${all}, coalesce(sum(${sql(name)}), 0)::bigint as ${sql(name)}`,
    sql`count(*) as requests, count(*) filter (where status = 'completed') as completed`,
  )

/** SQL for the columns of the daily totals that are compared. */
export const totalColumns = (sql: Sql) => sql`account_id, day, key_id, model, ${sql(sumNames)}`

/** SQL for both rows as JSON, null = there is no row, and for the condition that they differ. */
export const jsonSums = (sql: Sql) => sql`
  case when ledger.requests is not null then to_jsonb(ledger) - ${placeKeys}::text[] end as ledger,
  case when rollup.requests is not null then to_jsonb(rollup) - ${placeKeys}::text[] end as rollup`
export const areDifferent = (sql: Sql) => {
  const named = (table: string) => sql(sumNames.map(name => `${table}.${name}`))
  return sql`(${named('ledger')}) is distinct from (${named('rollup')})`
}
const placeKeys = '{account_id,day,key_id,model,tag}'

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
          ${ledgerSums(sql)}
        from usage_records, jsonb_each_text(tags)
        where at >= (${from}::text || ' 00:00+00')::timestamptz
          and at < (${to}::text || ' 00:00+00')::timestamptz + interval '1 day'
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
        group by 1, 2, 3, 4, 5
      ), rollup as (
        select ${totalColumns(sql)}, tag from usage_tags_daily
        where day between ${from}::text::date and ${to}::text::date
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
      ), different as (
        select
          'tag_rollup' as kind, account_id, day, key_id, model, tag,
          ${jsonSums(sql)}
        from ledger full join rollup using (account_id, day, key_id, model, tag)
        where ${areDifferent(sql)}
        order by account_id, day, key_id, model, tag
        limit ${maximum}
      )
      select json_agg(different)::text as differences from different`,
    deadlineMs,
  )
  return JSON.parse(rows[0]?.differences ?? '[]') as TagDifference[]
}

/**
 * Requests whose checkpoint was in the ledger before their final record (`core/usage/usage-truth.ts`), as
 * reconciliation reports them.
 */

/** The first and the current usage of a request in the ledger. */
export type Replacement = {
  readonly request_id: string
  readonly account_id: string
  readonly day: string
  readonly before: DailyUsage & { readonly status: string }
  readonly after: DailyUsage & { readonly status: string }
}

export type Replaced = {
  /** Requests whose checkpoint was replaced by their final record; not a difference, since the final record counts. */
  readonly replaced: { readonly requests: number; readonly tokens: number; readonly billed_microcents: number }
  /** The first of those. */
  readonly replacements: readonly Replacement[]
}

/** Returns replaced records of the ledger. If a request was replaced several times, the first row is its original. */
export async function readReplaced(
  database: Database,
  { from, to, accountId }: { readonly from: string; readonly to: string; readonly accountId: string | null },
  { maximum, deadlineMs }: { readonly maximum: number; readonly deadlineMs: number },
): Promise<Replaced> {
  const rows = await database.run(
    ({ sql }) => sql<{ sums: string; rows: string | null }[]>`
      with first as (
        select distinct on (request_id) request_id, account_id, at, "row" as old
        from usage_replaced
        where at >= (${from}::text || ' 00:00+00')::timestamptz
          and at < (${to}::text || ' 00:00+00')::timestamptz + interval '1 day'
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
        order by request_id, replaced_at
      ), replaced as (
        select request_id, account_id, (at at time zone 'UTC')::date as day,
          (old ->> 'input_tokens')::bigint + (old ->> 'output_tokens')::bigint as old_tokens,
          (old ->> 'billed_microcents')::bigint as old_microcents, old ->> 'status' as old_status,
          input_tokens + output_tokens as tokens, billed_microcents as microcents, status
        from first join usage_records using (request_id, at, account_id)
      )
      select
        json_build_object('requests', count(*), 'tokens', coalesce(sum(tokens - old_tokens), 0),
          'billed_microcents', coalesce(sum(microcents - old_microcents), 0))::text as sums,
        (select json_agg(json_build_object(
            'request_id', request_id, 'account_id', account_id, 'day', day,
            'before', json_build_object('tokens', old_tokens, 'microcents', old_microcents, 'status', old_status),
            'after', json_build_object('tokens', tokens, 'microcents', microcents, 'status', status)))
          from (select * from replaced order by day, request_id limit ${maximum}) as listed)::text as rows
      from replaced`,
    deadlineMs,
  )
  return {
    replaced: JSON.parse(rows[0]?.sums ?? '{}') as Replaced['replaced'],
    replacements: JSON.parse(rows[0]?.rows ?? '[]') as Replacement[],
  }
}
