/** Monthly soft caps: amounts billed in the running period, and the emails about them. */

import {
  budgetMilestones,
  budgetWarning,
  findMilestone,
  settlementDelayMs,
  usedShare,
} from '../../core/billing/billing.ts'
import { type BudgetPeriod, budgetPeriod, periodKey } from '../../core/billing/budget-period.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { Database } from '../database.ts'
import { withAccountRls } from '../statement.ts'
import { enqueueEvent } from './audit.ts'

type Days = Pick<BudgetPeriod, 'startsAt' | 'endsAt'>

/**
 * Returns the amount billed to an account on the UTC days of a period, from the daily totals. Both ends count as whole days:
 * the caller subtracts `spentBefore`, and a running period has no usage after its end.
 */
export async function spentOnDays(database: Database, accountId: string, days: Days): Promise<number> {
  return (await spentWith(database, accountId, days, [])).microcents
}

/**
 * Returns the same amount, and which of these requests it contains. One statement reads both: a record that arrives
 * between two would count twice.
 */
async function spentWith(
  database: Database,
  accountId: string,
  { startsAt, endsAt }: Days,
  requestIds: readonly string[],
): Promise<{ readonly microcents: number; readonly contained: readonly string[] }> {
  const [first, last] = [startsAt, endsAt - 1].map(at => new Date(at).toISOString().slice(0, 10))
  const rows = await withAccountRls(database, accountId).sql(
    query => query<{ microcents: number; contained: string[] }[]>`
      select coalesce(sum(billed_microcents), 0)::float8 as microcents,
        (select coalesce(json_agg(request_id), '[]') from usage_records
          where request_id in (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))
            and at >= ${new Date(startsAt).toISOString()}::text::timestamptz) as contained
      from usage_daily
      where account_id = ${accountId} and day >= ${first ?? ''}::text::date and day <= ${last ?? ''}::text::date`,
  )
  return rows[0] ?? { microcents: 0, contained: [] }
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
  const reached = JSON.stringify(budgetMilestones.filter(budgetMilestone => budgetMilestone <= percent))
  return database.run(({ sql }) =>
    sql.begin(async step => {
      const noted = await step<{ percent: number }[]>`
        insert into budget_notices (account_id, month, percent, created_at)
        select ${accountId}, ${periodKey(period)}, value::text::int, clock_timestamp() from json_array_elements(${reached}::text::json)
        on conflict do nothing
        returning percent`
      if (!noted.some(item => item.percent === percent)) return []
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

type BudgetTracker = {
  /**
   * Returns the used share of an account's soft cap in the period (1 = all); 0 if there is none or it is not loaded
   * yet.
   */
  getShare(caller: Caller): number
  /** Returns the text of the warning header; null below the warning. */
  findWarning(caller: Caller): string | null
  /** Adds a request that this process settled: its record reaches the ledger, and the cached amount, only later. */
  settled(record: Pick<UsageRecord, 'account_id' | 'request_id' | 'at_ms' | 'billed_microcents'>): void
}

type BudgetLine = {
  readonly period: BudgetPeriod
  /** Amount in the ledger. */
  readonly microcents: number
  /** Amounts of this process that the ledger did not contain, by request ID. */
  readonly settled: Map<string, number>
  /** Amount billed on the first day before the period; null = its records may still arrive. */
  readonly before: number | null
  refreshAt: number
  /** The milestone that was last reported. */
  readonly milestone: number | null
}

const budgetFreshMs = 5_000
const maximumBudgets = 10_000
/** Per account. More wait only while the database is unavailable; the oldest are then forgotten until it is back. */
const maximumSettled = 2_000

/**
 * Creates a cache of the amounts billed to accounts with a soft cap in the running period. It contains requests of this
 * process at once, and those of others after at most some seconds. No request waits for it: the amount of a new account
 * is read in the background, and the warning starts with a later request.
 */
export function createBudgetTracker(
  database: Database,
  clock: Pick<Clock, 'now'>,
  /** Called when a milestone is reached, possibly repeatedly. */
  reached: (accountId: string, period: BudgetPeriod, percent: number, capMicrocents: number) => void = () => {},
): BudgetTracker {
  const lines = createRecentMap<BudgetLine>(maximumBudgets)
  const findLine = (accountId: string, period: BudgetPeriod): BudgetLine | null => {
    const known = lines.get(accountId)
    return known?.period.startsAt === period.startsAt && known.period.kind === period.kind ? known : null
  }

  const refresh = async (accountId: string, period: BudgetPeriod, cap: number) => {
    // The amount before the period is read once, so that a refresh only sums daily totals.
    const settled = findLine(accountId, period)?.settled ?? new Map<string, number>()
    const before = findLine(accountId, period)?.before ?? (await spentBefore(database, accountId, period.startsAt))
    const read = await spentWith(database, accountId, period, [...settled.keys()])
    const microcents = Math.max(0, read.microcents - before)
    const now = clock.now()
    // The totals of the last day may already include usage of the next period.
    if (now >= period.endsAt) return
    for (const requestId of read.contained) settled.delete(requestId)
    const milestone = findMilestone(microcents, cap)
    const told = findLine(accountId, period)?.milestone ?? 0
    if (milestone !== null && milestone > told) reached(accountId, period, milestone, cap)
    const isSettled = now >= period.startsAt + settlementDelayMs
    lines.set(accountId, {
      period,
      microcents,
      settled,
      before: isSettled ? before : null,
      refreshAt: now + budgetFreshMs,
      milestone,
    })
  }
  const spent = (accountId: string, cap: number, period: BudgetPeriod): number => {
    const now = clock.now()
    const line = findLine(accountId, period) ?? {
      period,
      microcents: 0,
      settled: new Map(),
      before: null,
      refreshAt: 0,
      milestone: null,
    }
    if (line.refreshAt <= now) {
      line.refreshAt = now + budgetFreshMs
      lines.set(accountId, line)
      refresh(accountId, period, cap).catch(() => {})
    }
    return [...line.settled.values()].reduce((sum, amount) => sum + amount, line.microcents)
  }
  const getPeriod = ({ cycleStartedAt }: Caller) => budgetPeriod(cycleStartedAt ?? null, clock.now())

  return {
    getShare: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      return cap === undefined ? 0 : usedShare(spent(accountId, cap, getPeriod(caller)), cap)
    },
    findWarning: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      if (cap === undefined) return null
      const period = getPeriod(caller)
      return budgetWarning(spent(accountId, cap, period), cap, period.kind)
    },
    settled: ({ account_id: accountId, request_id: requestId, at_ms: at, billed_microcents: billed }) => {
      const line = lines.get(accountId)
      if (line === undefined || billed === 0 || at < line.period.startsAt) return
      line.settled.set(requestId, billed)
      const [oldest] = line.settled.keys()
      if (line.settled.size > maximumSettled && oldest !== undefined) line.settled.delete(oldest)
    },
  }
}
