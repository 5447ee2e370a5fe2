/** Helpers for calls to Stripe: error conversion, missing objects as null, references as IDs. */
import Stripe from 'stripe'
import { GatewayError } from '../../../core/validation/errors.ts'

/** Returns the ID of a reference, expanded or not. */
export function idOf(reference: string | { readonly id: string } | null): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

/** Returns null for an object that Stripe does not have; throws any other error again. */
export function orMissing(cause: unknown): null {
  if (cause instanceof Stripe.errors.StripeInvalidRequestError && cause.statusCode === 404) return null
  throw cause
}

/** Runs calls to Stripe and turns its errors into ours. Stripe's own text is dropped: it may repeat what it was sent. */
export async function ask<T>(work: () => Promise<T>): Promise<T> {
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
