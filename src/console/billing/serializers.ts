/** Billing in the form that an account's owner sees: built field by field, so that no column is exposed by accident. */
import { budgetWarning, usedShare } from '../../core/billing/billing.ts'
import { type BudgetPeriod, type Dues, findGrace } from '../../core/billing/grace.ts'
import type { Plans } from '../../core/limits/plans.ts'
import { toUsd } from '../../core/usage/money.ts'
import type { InvoiceLine } from '../../database/tables.ts'
import { shownLimits } from '../auth/sign-in.ts'
import { type ShownBilling, type ShownInvoice, type ShownInvoiceLine, shownSums } from './schemas.ts'
import type { BillingAccount } from './stores/billing.ts'
import type { InvoiceWithCycle } from './stores/invoices.ts'

const iso = (time: Date | number | null) => (time === null ? null : new Date(time).toISOString())

/** Amounts of the current billing cycle and of the soft cap's period. */
type Spending = {
  readonly cycleMicrocents: number
  readonly period: BudgetPeriod
  readonly periodMicrocents: number
}

/** Data of the response. `now` in epoch milliseconds. */
type BillingView = {
  readonly plans: Plans
  readonly collectedBy: ShownBilling['collected_by']
  /** True if owners may change to `usage`. */
  readonly isOwnersChoice: boolean
  readonly dues: Dues
  readonly spent: Spending
  readonly now: number
}

/** The plan, its cycle, the payment method and the soft cap, with the amounts spent until `now`. */
export function shownBilling(
  { account, method }: BillingAccount,
  { plans, collectedBy, isOwnersChoice, dues, spent, now }: BillingView,
): ShownBilling {
  const { plan, unpaidSince, cycleStartedAt, cycleEndsAt, softCapMicrocents } = account
  const grace = findGrace(dues)
  const { period, periodMicrocents } = spent
  return {
    plan,
    version: account.version,
    plan_after_cycle: account.planAfterCycle ?? plan,
    plans: { evaluation: shownLimits(plans.evaluation), usage: shownLimits(plans.usage) },
    cycle:
      cycleStartedAt === null || cycleEndsAt === null
        ? null
        : {
            starts_at: cycleStartedAt.toISOString(),
            ends_at: cycleEndsAt.toISOString(),
            cost_usd: toUsd(spent.cycleMicrocents),
          },
    collected_by: collectedBy,
    upgraded_by: isOwnersChoice ? 'owner' : 'operator',
    payment_method:
      method === null
        ? null
        : { kind: method.kind, brand: method.brand, last_four: method.lastFour, added_at: iso(method.createdAt) },
    grace_ends_at: iso(grace?.endsAt ?? null),
    unpaid_since: iso(unpaidSince),
    payment_required: grace !== null && grace.endsAt <= now,
    soft_cap:
      softCapMicrocents === null
        ? null
        : {
            monthly_usd: toUsd(softCapMicrocents),
            used_usd: toUsd(periodMicrocents),
            used_share: usedShare(periodMicrocents, softCapMicrocents),
            warning: budgetWarning(periodMicrocents, softCapMicrocents, period.kind),
            period: period.kind,
            starts_at: new Date(period.startsAt).toISOString(),
            resets_at: new Date(period.endsAt).toISOString(),
          },
  }
}

/** An invoice without its lines. */
export function shownInvoice({ invoice, cycle }: InvoiceWithCycle): ShownInvoice {
  return {
    id: invoice.id,
    status: invoice.status,
    period: { starts_at: cycle.startsAt.toISOString(), ends_at: cycle.endsAt.toISOString() },
    total_usd: toUsd(invoice.totalMicrocents),
    collected_usd: invoice.status === 'paid' ? invoice.totalCents / 100 : 0,
    issued_at: invoice.issuedAt.toISOString(),
    paid_at: iso(invoice.paidAt),
  }
}

/** Invoice line of one model. */
export function shownLine(line: InvoiceLine): ShownInvoiceLine {
  return { model: line.model, ...shownSums(line) }
}
