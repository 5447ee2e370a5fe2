/** Comparisons of shadow evaluation in Postgres, without texts. Money is an integer of 1e-8 USD. */
import type { ShadowVerdict } from '../core/usage/shadow.ts'
import type { Database } from '../database/database.ts'
import { withAccountRls } from '../database/statement.ts'

/** A comparison before its first call. Models are `provider/model`. */
export type Comparison = {
  readonly requestId: string
  readonly accountId: string
  /** Epoch milliseconds; its UTC month pays. */
  readonly at: number
  readonly queryType: string | null
  readonly level: string
  readonly model: string
  readonly effort: string | null
  readonly baselineModel: string
  readonly judgeModel: string
  readonly servedMicrocents: number
}

/**
 * Lets a comparison cost up to `microcents` in all. Returns false if all comparisons of the month could then cost more than
 * `cap`, or the account is deleted. The lock of the account makes all processes ask one after the other. What a dead process
 * held stays counted: its provider may have been paid.
 */
export function holdComparison(
  database: Database,
  comparison: Comparison,
  microcents: number,
  cap: number,
): Promise<boolean> {
  const { requestId, accountId, at, queryType, level, model, effort, baselineModel, judgeModel } = comparison
  const time = new Date(at).toISOString()
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const held = await step`
      insert into shadow_comparisons (request_id, account_id, at, query_type, level, model, effort, baseline_model,
        judge_model, microcents, served_microcents)
      select ${requestId}::text, id, ${time}::text::timestamptz, ${queryType}::text, ${level}::text, ${model}::text,
        ${effort}::text, ${baselineModel}::text, ${judgeModel}::text, ${microcents}::float8,
        ${comparison.servedMicrocents}::float8
      from accounts
      where id = ${accountId} and deleted_at is null and ${microcents}::float8 + (
        select coalesce(sum(microcents), 0) from shadow_comparisons
        where account_id = ${accountId} and request_id <> ${requestId}
          and at >= date_trunc('month', ${time}::text::timestamptz, 'UTC')) <= ${cap}::float8
      on conflict (request_id) do update set microcents = excluded.microcents
      returning 1`
    return held.length > 0
  })
}

/** Ends a comparison with what it has cost. */
export async function endComparison(
  database: Database,
  { requestId, accountId }: Pick<Comparison, 'requestId' | 'accountId'>,
  end: { readonly verdict: ShadowVerdict; readonly microcents: number; readonly baselineMicrocents: number },
): Promise<void> {
  await withAccountRls(database, accountId).sql(
    step => step`
      update shadow_comparisons set verdict = ${end.verdict}, microcents = ${end.microcents}::float8,
        baseline_microcents = ${end.baselineMicrocents}::float8
      where request_id = ${requestId} and account_id = ${accountId}`,
  )
}

/** Sums of comparisons. Costs of served outputs and of the baseline's are those of compared requests. */
export type ComparisonSums = {
  readonly wins: number
  readonly ties: number
  readonly losses: number
  readonly none: number
  readonly microcents: number
  readonly servedMicrocents: number
  readonly baselineMicrocents: number
}

/** Null = the sum of all. */
type ComparisonGroup = ComparisonSums & { readonly model: string | null; readonly baselineModel: string | null }

/** Returns the comparisons of an account since a time (epoch milliseconds): all together, and by model and baseline. */
export function readComparisons(database: Database, accountId: string, since: number): Promise<ComparisonGroup[]> {
  return withAccountRls(database, accountId).sql(
    step => step<ComparisonGroup[]>`
      select model, baseline_model as "baselineModel",
        count(*) filter (where verdict = 'win')::int as wins,
        count(*) filter (where verdict = 'tie')::int as ties,
        count(*) filter (where verdict = 'loss')::int as losses,
        count(*) filter (where verdict = 'none')::int as none,
        coalesce(sum(microcents), 0)::float8 as microcents,
        coalesce(sum(served_microcents) filter (where verdict <> 'none'), 0)::float8 as "servedMicrocents",
        coalesce(sum(baseline_microcents) filter (where verdict <> 'none'), 0)::float8 as "baselineMicrocents"
      from shadow_comparisons
      where account_id = ${accountId} and verdict is not null and at >= ${new Date(since).toISOString()}::text::timestamptz
      group by grouping sets ((), (model, baseline_model))
      order by grouping(model) desc, count(*) desc, model, baseline_model
      limit 101`,
  )
}
