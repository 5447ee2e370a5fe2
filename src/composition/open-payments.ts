import type { Config } from '../config.ts'
import { manualPayments, type Payments } from '../console/billing/payment-processor.ts'
import type { Clock, Network } from '../core/ports.ts'

/** Opens manual invoicing, or Stripe, whose library is loaded only if Stripe is configured. */
export async function openPayments(
  { stripe, serviceDeadlines }: Config,
  network: Network,
  clock: Clock,
): Promise<Payments> {
  if (stripe === null) return manualPayments
  const { stripePayments } = await import('../console/billing/payments/stripe.ts')
  return stripePayments({ ...stripe, timeoutMs: serviceDeadlines.paymentMs }, { fetch: network.fetch, now: clock.now })
}
