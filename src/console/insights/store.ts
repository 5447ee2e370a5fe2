/** The report of shadow evaluation, for the API and for the operator's commands. */
import { dayMs } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import { getWilson } from '../../core/usage/shadow.ts'
import type { Database } from '../../database/database.ts'
import { type ComparisonSums, readComparisons } from '../../learning/shadow-comparisons.ts'
import { findAccount } from '../auth/stores/users.ts'
import type { ShadowReport } from './schemas.ts'

/** Days of the report. */
export const shadowDays = 30

export type ShadowReportDeps = {
  readonly database: Database
  readonly config: { readonly routing: { readonly judgeModel: string | null } }
}

/** Returns the report of an account. `now` is in epoch milliseconds. */
export async function readShadow(
  { database, config }: ShadowReportDeps,
  accountId: string,
  now: number,
): Promise<ShadowReport> {
  const [account, [total, ...models]] = await Promise.all([
    findAccount(database, accountId),
    readComparisons(database, accountId, now - shadowDays * dayMs),
  ])
  if (total === undefined) throw new Error('a sum over no rows is a row too')
  return {
    shadow: account?.shadow ?? null,
    judge_model: config.routing.judgeModel,
    days: shadowDays,
    total: shownSums(total),
    models: models.map(group => ({
      model: group.model ?? '',
      baseline_model: group.baselineModel ?? '',
      ...shownSums(group),
    })),
  }
}

function shownSums({ wins, ties, losses, none, ...sums }: ComparisonSums): ShadowReport['total'] {
  const compared = wins + ties + losses
  return {
    compared,
    wins,
    ties,
    losses,
    no_verdict: none,
    matched_or_better: getWilson(wins + ties, compared),
    cost_usd: toUsd(sums.microcents),
    served_cost_usd: toUsd(sums.servedMicrocents),
    baseline_cost_usd: toUsd(sums.baselineMicrocents),
  }
}
