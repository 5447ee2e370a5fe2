/** Monthly soft caps: amounts billed in the running period, and the emails about them. */
import {
  budgetMilestones,
  budgetWarning,
  milestoneOf,
  settlementDelayMs,
  usedShare,
} from '../../core/billing/billing.ts'
import { type BudgetPeriod, budgetPeriod, periodKey } from '../../core/billing/budget-period.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import { withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { enqueueEvent } from './webhook-events.ts'

/**
 * Returns the amount billed to an account on the UTC days of a period, from the daily totals. Both ends count as whole days:
 * the caller subtracts `spentBefore`, and a running period has no usage after its end.
 */
export async function spentOnDays(
  database: Database,
  accountId: string,
  { startsAt, endsAt }: Pick<BudgetPeriod, 'startsAt' | 'endsAt'>,
): Promise<number> {
  const [first, last] = [startsAt, endsAt - 1].map(at => new Date(at).toISOString().slice(0, 10))
  const rows = await withAccountRls(database, accountId).sql(
    query => query<{ microcents: number }[]>`
      select coalesce(sum(billed_microcents), 0)::float8 as microcents
      from usage_daily
      where account_id = ${accountId} and day >= ${first ?? ''}::text::date and day <= ${last ?? ''}::text::date`,
  )
  return rows[0]?.microcents ?? 0
}

/** Returns the amount billed to an account on the UTC day of `startsAt`, before that moment. */
export async function spentBefore(database: Database, accountId: string, startsAt: number): Promise<number> {
  const midnight = startsAt - (startsAt % dayMs)
  if (midnight === startsAt) return 0
  const [from, to] = [midnight, startsAt].map(at => new Date(at).toISOString())
  const rows = await withAccountRls(database, accountId).sql(
    query => query<{ microcents: number }[]>`
      select coalesce(sum(billed_microcents), 0)::float8 as microcents
      from usage_records
      where account_id = ${accountId} and at >= ${from ?? ''}::text::timestamptz and at < ${to ?? ''}::text::timestamptz`,
  )
  return rows[0]?.microcents ?? 0
}

/**
 * Records that an account reached `percent` of its soft cap in a period, with the event for its webhooks. Returns the
 * addresses of its owners for the first call only, so that one gateway of many sends the email.
 */
export async function recordBudgetNotice(
  database: Database,
  accountId: string,
  period: BudgetPeriod,
  { percent, capMicrocents }: { readonly percent: number; readonly capMicrocents: number },
): Promise<readonly string[]> {
  const reached = JSON.stringify(budgetMilestones.filter(one => one <= percent))
  return database.run(({ sql }) =>
    sql.begin(async step => {
      const noted = await step<{ percent: number }[]>`
        insert into budget_notices (account_id, month, percent, created_at)
        select ${accountId}, ${periodKey(period)}, value::text::int, clock_timestamp() from json_array_elements(${reached}::text::json)
        on conflict do nothing
        returning percent`
      if (!noted.some(one => one.percent === percent)) return []
      await enqueueEvent(step, accountId, {
        type: 'budget.reached',
        data: { percent, monthly_usd: toUsd(capMicrocents), period: periodKey(period) },
      })
      const owners = await step<{ email: string }[]>`
        select email from users where account_id = ${accountId} and role = 'owner' and removed_at is null`
      return owners.map(({ email }) => email)
    }),
  )
}

export type BudgetTracker = {
  /**
   * Returns the used share of an account's soft cap in the period (1 = all); 0 if there is none or it is not loaded
   * yet.
   */
  shareOf(caller: Caller): number
  /** Returns the text of the warning header; null below the warning. */
  warningOf(caller: Caller): string | null
}

type BudgetLine = {
  readonly period: BudgetPeriod
  readonly microcents: number
  /** Amount billed on the first day before the period; null = its records may still arrive. */
  readonly before: number | null
  refreshAt: number
  /** The milestone that was last reported. */
  readonly milestone: number | null
}

const budgetFreshMs = 5_000
const maximumBudgets = 10_000

/**
 * Creates a cache of the amounts billed to accounts with a soft cap in the running period, at most some seconds old. No
 * request waits for it: the amount of a new account is read in the background, and the warning starts with a later
 * request.
 */
export function createBudgetBook(
  database: Database,
  clock: { now(): number },
  /** Called when a milestone is reached, possibly repeatedly. */
  reached: (accountId: string, period: BudgetPeriod, percent: number, capMicrocents: number) => void = () => {},
): BudgetTracker {
  const lines = createRecentMap<BudgetLine>(maximumBudgets)
  const lineOf = (accountId: string, period: BudgetPeriod): BudgetLine | null => {
    const known = lines.get(accountId)
    return known?.period.startsAt === period.startsAt && known.period.kind === period.kind ? known : null
  }

  const refresh = async (accountId: string, period: BudgetPeriod, cap: number) => {
    // The amount before the period is read once, so that a refresh only sums daily totals.
    const before = lineOf(accountId, period)?.before ?? (await spentBefore(database, accountId, period.startsAt))
    const microcents = Math.max(0, (await spentOnDays(database, accountId, period)) - before)
    const now = clock.now()
    // The totals of the last day may already include usage of the next period.
    if (now >= period.endsAt) return
    const milestone = milestoneOf(microcents, cap)
    const told = lineOf(accountId, period)?.milestone ?? 0
    if (milestone !== null && milestone > told) reached(accountId, period, milestone, cap)
    const isSettled = now >= period.startsAt + settlementDelayMs
    lines.set(accountId, {
      period,
      microcents,
      before: isSettled ? before : null,
      refreshAt: now + budgetFreshMs,
      milestone,
    })
  }
  const spent = (accountId: string, cap: number, period: BudgetPeriod): number => {
    const now = clock.now()
    const line = lineOf(accountId, period) ?? { period, microcents: 0, before: null, refreshAt: 0, milestone: null }
    if (line.refreshAt <= now) {
      line.refreshAt = now + budgetFreshMs
      lines.set(accountId, line)
      refresh(accountId, period, cap).catch(() => {})
    }
    return line.microcents
  }
  const periodOf = ({ cycleStartedAt }: Caller) => budgetPeriod(cycleStartedAt ?? null, clock.now())

  return {
    shareOf: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      return cap === undefined ? 0 : usedShare(spent(accountId, cap, periodOf(caller)), cap)
    },
    warningOf: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      if (cap === undefined) return null
      const period = periodOf(caller)
      return budgetWarning(spent(accountId, cap, period), cap, period.kind)
    },
  }
}
