import { currency } from '../../../core/billing/billing.ts'
import type { Payments } from '../payment-processor.ts'

/**
 * Manual invoicing: the operator collects outside of the gateway. An invoice of an account with this agreement counts
 * as paid when issued; without it, the invoice stays unpaid.
 */
export const manualPayments: Payments = {
  kind: 'manual',
  cards: null,
  async collect({ invoiceId, accountId, customerId, totalCents, hasMethod }) {
    return {
      processorId: null,
      invoiceId,
      accountId,
      customerId,
      currency,
      totalCents,
      remainingCents: hasMethod ? 0 : totalCents,
      status: hasMethod ? 'paid' : 'unpaid',
    }
  },
  webhooks: null,
}
