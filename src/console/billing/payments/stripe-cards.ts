/**
 * Cards, entered on Stripe's own pages: Checkout in `setup` mode for a new card, the hosted invoice page for an invoice that
 * was declined or that the owner's bank wants confirmed. The gateway sees no card number and accepts no pasted card ID: it
 * reads the setup session from Stripe.
 */
import Stripe from 'stripe'
import { getDigest } from '../../../core/accounts/api-keys.ts'
import { currency } from '../../../core/billing/billing.ts'
import { GatewayError } from '../../../core/validation/errors.ts'
import type { Cards, SetupSession } from '../payment-processor.ts'

/** Cards over `stripe`. Its pages lead back to `publicUrl`, never to the host that a request names. */
export function stripeCards(stripe: Stripe, publicUrl: string): Cards {
  return {
    customer: (accountId, email, known) =>
      known === null
        ? callStripe(async () => {
            const metadata = { account_id: accountId }
            // Includes the email: Stripe rejects the same key with other parameters for one day.
            const idempotencyKey = `customer:${accountId}:${getDigest(email)}`
            const made = await stripe.customers.create({ email, metadata }, { idempotencyKey })
            return made.id
          })
        : Promise.resolve(known),
    openSetup: (accountId, customerId) =>
      callStripe(async () => {
        const session = await stripe.checkout.sessions.create({
          mode: 'setup',
          customer: customerId,
          currency,
          allowed_payment_method_types: ['card'],
          client_reference_id: accountId,
          metadata: { account_id: accountId },
          // Stripe puts the session's ID in the place of the braces.
          success_url: `${publicUrl}/#/billing?setup_session={CHECKOUT_SESSION_ID}`,
          cancel_url: `${publicUrl}/#/billing`,
        })
        return getPage(session.url)
      }),
    readSetup: sessionId => callStripe(() => readSetup(stripe, sessionId)),
    setDefault: (customerId, methodId) =>
      callStripe(async () => {
        await stripe.customers.update(customerId, { invoice_settings: { default_payment_method: methodId } })
      }),
    remove: methodId =>
      callStripe(async () => {
        // One that Stripe no longer has is removed.
        const method = await stripe.paymentMethods.retrieve(methodId).catch(orMissing)
        if (method !== null && method.customer !== null) await stripe.paymentMethods.detach(methodId).catch(orMissing)
      }),
    invoicePage: processorId =>
      callStripe(async () => {
        const { status, hosted_invoice_url: url } = await stripe.invoices.retrieve(processorId)
        return status === 'open' && url != null ? getPage(url) : null
      }),
  }
}

/** Reads a setup session with its card; null = Stripe has none of this ID, or it was not opened for an account. */
export async function readSetup(stripe: Stripe, sessionId: string): Promise<SetupSession | null> {
  const session = await stripe.checkout.sessions
    .retrieve(sessionId, { expand: ['setup_intent.payment_method'] })
    .catch(orMissing)
  const accountId = session?.metadata?.account_id
  if (session === null || session.mode !== 'setup' || accountId === undefined) return null
  const customerId = findId(session.customer)
  const intent = typeof session.setup_intent === 'string' ? null : session.setup_intent
  const method = typeof intent?.payment_method === 'string' ? null : (intent?.payment_method ?? null)
  const isDone = session.status === 'complete' && intent?.status === 'succeeded'
  if (!isDone || method === null || customerId === null || findId(method.customer) !== customerId)
    return { accountId, card: null }
  return {
    accountId,
    card: {
      accountId,
      customerId,
      method: {
        kind: 'stripe',
        stripePaymentMethodId: method.id,
        brand: method.card?.brand ?? method.type,
        lastFour: method.card?.last4 ?? null,
      },
      enteredAt: method.created * 1000,
    },
  }
}

/** Returns the URL if it is a web page, since a browser is redirected to it. */
function getPage(url: string | null): string {
  if (url !== null && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url
  throw new GatewayError('service_unavailable', 'The payment processor returned no page. Retry.', {
    retryAfterMs: 5_000,
  })
}

/** Helpers for calls to Stripe: error conversion, missing objects as null, references as IDs. */

/** Returns the ID of a reference, expanded or not. */
export function findId(reference: string | { readonly id: string } | null): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

/** Returns null for an object that Stripe does not have; throws any other error again. */
export function orMissing(cause: unknown): null {
  if (cause instanceof Stripe.errors.StripeInvalidRequestError && cause.statusCode === 404) return null
  throw cause
}

/** Runs calls to Stripe and turns its errors into ours. Stripe's own text is dropped: it may repeat what it was sent. */
export async function callStripe<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof Stripe.errors.StripeError)) throw cause
    const detail = `stripe: ${cause.type} ${cause.code ?? ''} ${cause.statusCode ?? ''}`.trim()
    if (cause instanceof Stripe.errors.StripeCardError)
      throw new GatewayError('payment_required', 'The card was declined. Choose another payment method.', { detail })
    if (cause instanceof Stripe.errors.StripeInvalidRequestError)
      throw new GatewayError(
        'invalid_request',
        'The payment processor rejected the request. Reload Billing and retry.',
        {
          detail,
        },
      )
    throw new GatewayError('service_unavailable', 'Payment processor unavailable. Retry.', {
      retryAfterMs: 5_000,
      detail,
    })
  }
}
