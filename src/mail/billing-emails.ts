/** Emails about unpaid invoices and the grace period. Each states the cause, the time limit and the next step. */
import type { BillingNotice, Grace } from '../core/billing/grace.ts'
import { type Email, lines } from './templates.ts'

/** An email about money to one owner of an account. */
export type BillingEmail = {
  readonly kind: BillingNotice['kind']
  readonly to: string
  /** Identifies the email among all emails of this gateway. */
  readonly id: string
  /** Null = the account owes nothing. */
  readonly grace: Grace | null
  /** Null = the email is not about an invoice. */
  readonly invoice: { readonly id: string; readonly totalUsd: number } | null
}

/** Builds the email. Its link leads to `publicUrl`, an origin. */
export function billingEmail({ kind, to, id, grace, invoice }: BillingEmail, publicUrl: string): Email {
  const isInvoice = grace?.cause === 'invoice'
  const action = isInvoice
    ? 'Open Billing to pay the invoice or to replace the payment method:'
    : 'Open Billing to add a payment method:'
  const link = `${publicUrl}/#/billing`
  const messageId = `<${id}@${new URL(publicUrl).hostname}>`
  const until = grace === null ? '' : `${new Date(grace.endsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  switch (kind) {
    case 'invoice_unpaid':
      return {
        kind,
        to,
        messageId,
        subject: 'Your gateway-ai invoice is unpaid',
        text: lines(
          `Invoice ${invoice?.id ?? ''} of ${(invoice?.totalUsd ?? 0).toFixed(2)} USD could not be collected.`,
          'The card was declined, your bank wants you to confirm the payment, or the account has no payment method.',
          'Open Billing to pay the invoice or to replace the payment method:',
          link,
        ),
      }
    case 'grace_began':
      return {
        kind,
        to,
        messageId,
        subject: 'Your gateway-ai grace period has started',
        text: lines(
          isInvoice ? 'An invoice of your account is unpaid.' : 'Your account has no payment method.',
          `Chat requests work until ${until}. After that they are blocked until payment.`,
          action,
          link,
        ),
      }
    case 'grace_ended':
      return {
        kind,
        to,
        messageId,
        subject: 'Your gateway-ai grace period has ended',
        text: lines(
          isInvoice ? 'An invoice of your account is still unpaid.' : 'Your account still has no payment method.',
          `Chat requests are blocked since ${until}. Access returns within seconds after the payment.`,
          action,
          link,
        ),
      }
    default:
      return kind satisfies never
  }
}
