/** Monthly soft caps: what was spent, who is told of it, and when. */
import { budgetMilestones, budgetWarning, milestoneOf, monthOf, shareOf } from '../core/billing.ts'
import type { Caller } from '../core/plans.ts'
import { createRecent } from '../core/recent.ts'
import type { Database } from './database.ts'
import { onAccount } from './on-account.ts'

/** What an account was billed in a UTC month (`YYYY-MM`), from the daily sums. */
export async function spentInMonth(database: Database, accountId: string, month: string): Promise<number> {
  const first = `${month}-01`
  const rows = await onAccount(database, accountId).sql(
    query => query<{ microcents: number }[]>`
      select coalesce(sum(billed_microcents), 0)::float8 as microcents
      from usage_daily
      where account_id = ${accountId} and day >= ${first}::text::date
        and day < ${first}::text::date + interval '1 month'`,
  )
  return rows[0]?.microcents ?? 0
}

/**
 * Notes that an account's owners are told that they have reached `percent` of their soft cap in a month. Their e-mail
 * addresses where this is the first to say so; else none: of all gateways one writes.
 */
export async function noteMilestone(
  database: Database,
  accountId: string,
  month: string,
  percent: number,
): Promise<readonly string[]> {
  const reached = JSON.stringify(budgetMilestones.filter(one => one <= percent))
  const rows = await database.run(
    ({ sql: query }) => query<{ email: string }[]>`
      with noted as (
        insert into budget_notices (account_id, month, percent, created_at)
        select ${accountId}, ${month}, value::text::int, clock_timestamp() from json_array_elements(${reached}::text::json)
        on conflict do nothing
        returning percent)
      select email from users
      where account_id = ${accountId} and role = 'owner' and removed_at is null
        and exists (select from noted where percent = ${percent})`,
  )
  return rows.map(({ email }) => email)
}

export type BudgetBook = {
  /** How much of its monthly soft cap an account has used, 1 = all; 0 where it has none, or that is not known yet. */
  shareOf(caller: Caller): number
  /** What it is to be told of that; null below the warning. */
  warningOf(caller: Caller): string | null
}

type BudgetLine = {
  readonly month: string
  readonly microcents: number
  refreshAt: number
  /** Of which milestone somebody was told. */
  readonly milestone: number | null
}

const budgetFreshMs = 5_000
const maximumBudgets = 10_000

/**
 * What accounts with a soft cap have spent this month, seconds old: no request waits for it. Who was not seen yet is asked
 * for in the background, and warned from the next look on.
 */
export function createBudgetBook(
  database: Database,
  clock: { now(): number },
  /** Hears of a milestone that was reached, once or more often. */
  reached: (accountId: string, month: string, percent: number, capMicrocents: number) => void = () => {},
): BudgetBook {
  const lines = createRecent<BudgetLine>(maximumBudgets)

  const refresh = async (accountId: string, month: string, cap: number) => {
    const microcents = await spentInMonth(database, accountId, month)
    const earlier = lines.get(accountId)
    const milestone = milestoneOf(microcents, cap)
    const told = earlier?.month === month ? earlier.milestone : null
    if (milestone !== null && milestone > (told ?? 0)) reached(accountId, month, milestone, cap)
    lines.set(accountId, { month, microcents, refreshAt: clock.now() + budgetFreshMs, milestone })
  }
  const spent = (accountId: string, cap: number): number => {
    const now = clock.now()
    const month = monthOf(now)
    const known = lines.get(accountId)
    const line = known?.month === month ? known : { month, microcents: 0, refreshAt: 0, milestone: null }
    if (line.refreshAt <= now) {
      line.refreshAt = now + budgetFreshMs
      lines.set(accountId, line)
      refresh(accountId, month, cap).catch(() => {})
    }
    return line.microcents
  }

  return {
    shareOf: ({ accountId, softCapMicrocents }) =>
      softCapMicrocents === undefined ? 0 : shareOf(spent(accountId, softCapMicrocents), softCapMicrocents),
    warningOf: ({ accountId, softCapMicrocents }) =>
      softCapMicrocents === undefined ? null : budgetWarning(spent(accountId, softCapMicrocents), softCapMicrocents),
  }
}
