/** Billing as an account's owner sees it: built field by field, so that nothing of a row gets out by itself. */
import { budgetWarning, refusedFrom, shareOf } from '../../core/billing.ts'
import { toUsd } from '../../core/money.ts'
import type { Plans } from '../../core/plans.ts'
import { shownLimits } from '../../http/sign-in.ts'
import type { BillingAccount } from '../../stores/billing.ts'
import type { InvoiceWithCycle } from '../../stores/invoices.ts'
import type { InvoiceLine } from '../../stores/tables.ts'
import type { ShownBilling, ShownInvoice, ShownInvoiceLine } from './shapes.ts'

const iso = (time: Date | null) => time?.toISOString() ?? null

/** The plan, its cycle, the payment method and the soft cap, with what is spent of them by `now` (epoch milliseconds). */
export function shownBilling(
  { account, method }: BillingAccount,
  plans: Plans,
  collectedBy: ShownBilling['collected_by'],
  spent: { readonly cycleMicrocents: number; readonly monthMicrocents: number },
  now: number,
): ShownBilling {
  const { plan, graceEndsAt, unpaidSince, cycleStartedAt, cycleEndsAt, softCapMicrocents } = account
  const refused = refusedFrom({
    plan,
    graceEndsAt: graceEndsAt?.getTime() ?? null,
    unpaidSince: unpaidSince?.getTime() ?? null,
  })
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
    payment_method:
      method === null
        ? null
        : { kind: method.kind, brand: method.brand, last_four: method.lastFour, added_at: iso(method.createdAt) },
    grace_ends_at: iso(graceEndsAt),
    unpaid_since: iso(unpaidSince),
    payment_required: refused !== null && refused <= now,
    soft_cap:
      softCapMicrocents === null
        ? null
        : {
            monthly_usd: toUsd(softCapMicrocents),
            used_usd: toUsd(spent.monthMicrocents),
            used_share: shareOf(spent.monthMicrocents, softCapMicrocents),
            warning: budgetWarning(spent.monthMicrocents, softCapMicrocents),
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

/** One model's line. */
export function shownLine(line: InvoiceLine): ShownInvoiceLine {
  return {
    model: line.model,
    requests: line.requests,
    input_tokens: line.inputTokens,
    cached_input_tokens: line.cachedInputTokens,
    output_tokens: line.outputTokens,
    reasoning_tokens: line.reasoningTokens,
    cost_usd: toUsd(line.amountMicrocents),
  }
}
