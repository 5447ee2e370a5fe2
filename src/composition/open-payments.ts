import type { Config } from '../config.ts'
import type { Payments } from '../console/billing/payment-processor.ts'
import { manualPayments } from '../console/billing/payments/manual.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Network } from '../core/ports/network.ts'

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
