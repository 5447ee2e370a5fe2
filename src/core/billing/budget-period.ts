/**
 * Period of the monthly soft cap. An account that is billed uses its 30-day billing cycle, so that the cap and the invoice
 * count the same requests. An account without a cycle (plan `evaluation`) uses the UTC calendar month.
 */
import { type Cycle, cycleFrom, cycleMs, type PeriodKind } from './billing.ts'

export type BudgetPeriod = Cycle & { readonly kind: PeriodKind }

/**
 * Returns the period that holds `at`. `cycleStartedAt` is the start of any billing cycle of the account up to `at`: cycles
 * follow one another without a gap, so a start that is some cycles old gives the same answer. Times are epoch milliseconds.
 */
export function budgetPeriod(cycleStartedAt: number | null, at: number): BudgetPeriod {
  if (cycleStartedAt !== null) {
    const passed = Math.max(0, Math.floor((at - cycleStartedAt) / cycleMs))
    return { kind: 'billing_cycle', ...cycleFrom(cycleStartedAt + passed * cycleMs) }
  }
  const date = new Date(at)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { kind: 'calendar_month', startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) }
}

/** Returns the key of a period within an account: `2026-01` for a month, the start in ISO 8601 for a cycle. */
export function periodKey({ kind, startsAt }: BudgetPeriod): string {
  const start = new Date(startsAt).toISOString()
  return kind === 'calendar_month' ? start.slice(0, 7) : start
}
