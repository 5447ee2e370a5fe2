/**
 * Requests whose checkpoint was in the ledger before their final record (`core/usage/usage-truth.ts`), as
 * reconciliation reports them.
 */
import type { DailyUsage } from '../../core/limits/spent.ts'
import type { Database } from '../../database/database.ts'

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
