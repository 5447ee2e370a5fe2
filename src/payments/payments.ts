/** The port behind which money is collected: by hand (`manual.ts`), or through Stripe (`stripe.ts`). */
import type { SeenInvoice } from '../core/billing.ts'

/** A payment method as it may be stored and shown. */
export type AddedMethod = {
  readonly kind: 'manual' | 'stripe'
  readonly stripePaymentMethodId: string | null
  readonly brand: string | null
  readonly lastFour: string | null
}

/** An invoice to be collected. Its lines' cents add up to `totalCents`. */
export type Order = {
  readonly invoiceId: string
  readonly accountId: string
  readonly customerId: string | null
  readonly hasMethod: boolean
  readonly totalCents: number
  /** Where it was begun before. */
  readonly processorId: string | null
  readonly lines: readonly { readonly name: string; readonly cents: number }[]
}

/** An event as it was signed. Of its object only the id is believed. */
export type SignedEvent = {
  readonly id: string
  readonly type: string
  readonly objectId: string | null
  /** Epoch milliseconds. */
  readonly occurredAt: number
}

/** What the object of an event is at this moment. */
export type Look =
  | { readonly kind: 'none' }
  | { readonly kind: 'invoice'; readonly seen: SeenInvoice }
  | { readonly kind: 'method_gone'; readonly stripePaymentMethodId: string }

export type Webhooks = {
  /** The event in a body, which is taken byte for byte. Throws `invalid_request` where its signature does not hold. */
  read(body: Uint8Array, signature: string | null): SignedEvent
  /** Reads the event's object again. Throws `service_unavailable` where that cannot be done now. */
  look(event: SignedEvent): Promise<Look>
}

/** Each throws `service_unavailable` where the payment processor cannot be reached. What is asked twice is done once. */
export type Payments = {
  readonly kind: 'manual' | 'stripe'
  /** The account at the processor, made where it has none; null = it keeps none. */
  customer(accountId: string, email: string, known: string | null): Promise<string | null>
  /** Makes a method, named as the processor names it, the one that invoices are collected from. */
  addMethod(customerId: string | null, methodId: string | null): Promise<AddedMethod>
  removeMethod(stripePaymentMethodId: string | null): Promise<void>
  /**
   * Collects an invoice, or goes on where it was left; what became of it is in the answer. `onBegun` is awaited before
   * anything can be charged.
   */
  collect(order: Order, onBegun: (processorId: string) => Promise<void>): Promise<SeenInvoice>
  /** Null = nobody sends any. */
  readonly webhooks: Webhooks | null
}
