import { currency } from '../core/billing.ts'
import { invalid } from '../core/validate.ts'
import type { Payments } from './payments.ts'

/**
 * Payment by agreement: whoever runs the gateway collects outside of it. An invoice of an account that has agreed to pay
 * counts as paid when it is issued; without the agreement it stays unpaid.
 */
export const manualPayments: Payments = {
  kind: 'manual',
  customer: async () => null,
  async addMethod(_customerId, methodId) {
    if (methodId !== null)
      throw invalid('payment_method', 'cannot be taken: no payment processor is configured, leave it out')
    return { kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null }
  },
  removeMethod: async () => {},
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
