/**
 * Grace period: the one rule for when an account has to pay before it may chat. A removed payment method and an unpaid
 * invoice both start an hour of grace; the hour of the first cause counts. Owners get an email about each unpaid invoice,
 * about the start of the grace period and about its end.
 */
import type { PlanName } from '../limits/plans.ts'
import { dayMs } from '../text/utc-days.ts'
import { type Cycle, cycleFrom, cycleMs, graceMs, type InvoiceStatus, type PeriodKind } from './billing.ts'

/** Amounts that an account owes. Times are epoch milliseconds. */
export type Dues = {
  readonly plan: PlanName
  /** End of the grace period that a removed payment method started; null = there is a method, or none is needed. */
  readonly graceEndsAt: number | null
  /** When the first of the currently unpaid invoices was declined; null = none is unpaid. */
  readonly unpaidSince: number | null
}

export type Grace = { readonly beganAt: number; readonly endsAt: number; readonly cause: 'payment_method' | 'invoice' }

/** Returns the grace period of an account, which may have ended; null = the account owes nothing. */
export function findGrace({ plan, graceEndsAt, unpaidSince }: Dues): Grace | null {
  // The free plan needs no payment method. Its unpaid invoices date from a paid plan.
  const method: Grace | null =
    plan === 'evaluation' || graceEndsAt === null
      ? null
      : { cause: 'payment_method', beganAt: graceEndsAt - graceMs, endsAt: graceEndsAt }
  const invoice: Grace | null =
    unpaidSince === null ? null : { cause: 'invoice', beganAt: unpaidSince, endsAt: unpaidSince + graceMs }
  if (method === null || invoice === null) return method ?? invoice
  return invoice.beganAt <= method.beganAt ? invoice : method
}

/** Returns when chat begins to answer 402; null = never. */
export function paymentRequiredFrom(dues: Dues): number | null {
  return findGrace(dues)?.endsAt ?? null
}

/**
 * Milliseconds that an invoice waits for its next collection: the first one, one within the grace period, one after it.
 */
export const collectionWaitMs = { open: 60_000, inGrace: 20 * 60_000, afterGrace: dayMs } as const

const noticeKinds = ['invoice_unpaid', 'grace_began', 'grace_ended'] as const

/** An email to the owners of an account, sent once per kind and subject. */
export type BillingNotice = {
  readonly kind: (typeof noticeKinds)[number]
  /** The invoice's ID, or the start of the grace period in ISO 8601. */
  readonly subject: string
  readonly dueAt: number
}

/** Returns the notices for a change of dues at `at`. A grace period that has already ended causes none. */
export function graceNotices(before: Dues, after: Dues, at: number): readonly BillingNotice[] {
  const grace = findGrace(after)
  if (grace === null || grace.endsAt <= at || findGrace(before)?.beganAt === grace.beganAt) return []
  const subject = getSubject(grace)
  return [
    { kind: 'grace_began', subject, dueAt: at },
    { kind: 'grace_ended', subject, dueAt: grace.endsAt },
  ]
}

/** Returns true if a notice is still correct when it is about to be sent. A payment in between makes it obsolete. */
export function isNoticeTrue(
  { kind, subject }: Pick<BillingNotice, 'kind' | 'subject'>,
  dues: Dues,
  invoiceStatus: InvoiceStatus | null,
  at: number,
): boolean {
  if (kind === 'invoice_unpaid') return invoiceStatus === 'unpaid'
  const grace = findGrace(dues)
  if (grace === null || getSubject(grace) !== subject) return false
  return kind === 'grace_ended' ? grace.endsAt <= at : at < grace.endsAt
}

function getSubject({ beganAt }: Grace): string {
  return new Date(beganAt).toISOString()
}

/**
 * Period of the monthly soft cap. An account that is billed uses its 30-day billing cycle, so that the cap and the invoice
 * count the same requests. An account without a cycle (plan `evaluation`) uses the UTC calendar month.
 */

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
