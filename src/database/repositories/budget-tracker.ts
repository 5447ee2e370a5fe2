/** Monthly soft caps: amounts billed in the running period. */

import type { TransactionSql } from 'postgres'
import { budgetWarning, settlementDelayMs, usedShare } from '../../core/billing/billing.ts'
import { type BudgetPeriod, budgetPeriod } from '../../core/billing/grace.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { Database } from '../database.ts'
import { withAccountRls } from '../statement.ts'

type Days = Pick<BudgetPeriod, 'startsAt' | 'endsAt'>

/**
 * Returns the amount billed to an account on the UTC days of a period, from the daily totals, and which of these requests it
 * contains. Both ends count as whole days: the caller subtracts `spentBefore`, and a running period has no usage after its end.
 * One statement reads both: a record that arrives between two would count twice.
 */
export async function spentOnDays(
  step: TransactionSql,
  accountId: string,
  { startsAt, endsAt }: Days,
  requestIds: readonly string[] = [],
): Promise<{ readonly microcents: number; readonly contained: readonly string[] }> {
  const [first, last] = [startsAt, endsAt - 1].map(at => new Date(at).toISOString().slice(0, 10))
  const rows = await step<{ microcents: number; contained: string[] }[]>`
    select coalesce(sum(billed_microcents), 0)::float8 as microcents,
      (select coalesce(json_agg(request_id), '[]') from usage_records
        where request_id in (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))
          and at >= ${new Date(startsAt).toISOString()}::text::timestamptz) as contained
    from usage_daily
    where account_id = ${accountId} and day >= ${first ?? ''}::text::date and day <= ${last ?? ''}::text::date`
  return rows[0] ?? { microcents: 0, contained: [] }
}

/** Returns the amount billed to an account on the UTC day of `startsAt`, before that moment. */
export async function spentBefore(step: TransactionSql, accountId: string, startsAt: number): Promise<number> {
  const midnight = startsAt - (startsAt % dayMs)
  if (midnight === startsAt) return 0
  const [from, to] = [midnight, startsAt].map(at => new Date(at).toISOString())
  const rows = await step<{ microcents: number }[]>`
    select coalesce(sum(billed_microcents), 0)::float8 as microcents
    from usage_records
    where account_id = ${accountId} and at >= ${from ?? ''}::text::timestamptz and at < ${to ?? ''}::text::timestamptz`
  return rows[0]?.microcents ?? 0
}

/** Returns the amount billed to an account in a running period. */
export async function spentInPeriod(step: TransactionSql, accountId: string, period: Days): Promise<number> {
  const before = await spentBefore(step, accountId, period.startsAt)
  return Math.max(0, (await spentOnDays(step, accountId, period)).microcents - before)
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
export function createBudgetTracker(database: Database, clock: Pick<Clock, 'now'>): BudgetTracker {
  const lines = createRecentMap<BudgetLine>(maximumBudgets)
  const findLine = (accountId: string, period: BudgetPeriod): BudgetLine | null => {
    const known = lines.get(accountId)
    return known?.period.startsAt === period.startsAt && known.period.kind === period.kind ? known : null
  }

  const refresh = async (accountId: string, period: BudgetPeriod) => {
    // The amount before the period is read once, so that a refresh only sums daily totals.
    const settled = findLine(accountId, period)?.settled ?? new Map<string, number>()
    const known = findLine(accountId, period)?.before
    const { before, read } = await withAccountRls(database, accountId).sql(async step => ({
      before: known ?? (await spentBefore(step, accountId, period.startsAt)),
      read: await spentOnDays(step, accountId, period, [...settled.keys()]),
    }))
    const microcents = Math.max(0, read.microcents - before)
    const now = clock.now()
    // The totals of the last day may already include usage of the next period.
    if (now >= period.endsAt) return
    for (const requestId of read.contained) settled.delete(requestId)
    const isSettled = now >= period.startsAt + settlementDelayMs
    lines.set(accountId, {
      period,
      microcents,
      settled,
      before: isSettled ? before : null,
      refreshAt: now + budgetFreshMs,
    })
  }
  const spent = (accountId: string, period: BudgetPeriod): number => {
    const now = clock.now()
    const line = findLine(accountId, period) ?? {
      period,
      microcents: 0,
      settled: new Map(),
      before: null,
      refreshAt: 0,
    }
    if (line.refreshAt <= now) {
      line.refreshAt = now + budgetFreshMs
      lines.set(accountId, line)
      refresh(accountId, period).catch(() => {})
    }
    return [...line.settled.values()].reduce((sum, amount) => sum + amount, line.microcents)
  }
  const getPeriod = ({ cycleStartedAt }: Caller) => budgetPeriod(cycleStartedAt ?? null, clock.now())

  return {
    getShare: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      return cap === undefined ? 0 : usedShare(spent(accountId, getPeriod(caller)), cap)
    },
    findWarning: caller => {
      const { accountId, softCapMicrocents: cap } = caller
      if (cap === undefined) return null
      const period = getPeriod(caller)
      return budgetWarning(spent(accountId, period), cap, period.kind)
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
