import { currency } from '../core/billing/billing.ts'
import type { Payments } from '../core/billing/payment-processor.ts'

/**
 * Payment by agreement: whoever runs the gateway collects outside of it. An invoice of an account that has agreed to pay
 * counts as paid when it is issued; without the agreement it stays unpaid.
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
