/** The port to the payment processor: manual invoicing, or Stripe (`payments/stripe.ts`). */
import { currency, type ProcessorInvoice } from '../../core/billing/billing.ts'

/** The stored and displayed part of a payment method. */
type AddedMethod = {
  readonly kind: 'manual' | 'stripe'
  readonly stripePaymentMethodId: string | null
  readonly brand: string | null
  readonly lastFour: string | null
}

/** A card that an owner entered on the payment processor's page. */
export type EnteredCard = {
  /** The account that the page was opened for. */
  readonly accountId: string
  readonly customerId: string
  readonly method: AddedMethod & { readonly stripePaymentMethodId: string }
  /** When the processor stored the card, in epoch milliseconds by its clock. */
  readonly enteredAt: number
}

/** An invoice to collect. The cents of its lines add up to `totalCents`. */
export type Order = {
  readonly invoiceId: string
  readonly accountId: string
  readonly customerId: string | null
  readonly hasMethod: boolean
  /** The card to charge; null = none, and nothing is charged. */
  readonly stripePaymentMethodId: string | null
  readonly totalCents: number
  /** The processor's invoice ID if an earlier collection created one. */
  readonly processorId: string | null
  readonly lines: readonly { readonly name: string; readonly cents: number }[]
}

/** A signed event. Only the ID of its object is trusted; the object is read again. */
export type PaymentWebhookEvent = {
  readonly id: string
  readonly type: string
  readonly objectId: string | null
  /** Epoch milliseconds. */
  readonly occurredAt: number
}

/** The current state of an event's object. */
export type EventObject =
  | { readonly kind: 'none' }
  | { readonly kind: 'invoice'; readonly seen: ProcessorInvoice }
  | { readonly kind: 'card'; readonly card: EnteredCard }
  | { readonly kind: 'method_gone'; readonly stripePaymentMethodId: string }

export type PaymentWebhooks = {
  /**
   * Verifies and parses an event. `body` must be the exact bytes. Throws `invalid_request` if the signature is invalid.
   */
  read(body: Uint8Array, signature: string | null): PaymentWebhookEvent
  /** Reads the event's object again. Throws `service_unavailable` if the processor cannot be reached. */
  look(event: PaymentWebhookEvent): Promise<EventObject>
}

/** A setup session: one visit to the processor's page for cards. */
export type SetupSession = {
  readonly accountId: string
  /** Null = the owner has not finished the page, or the card does not belong to our customer. */
  readonly card: EnteredCard | null
}

/** Cards are entered on pages of the payment processor only: no card number and no ID of a card comes through the gateway. */
export type Cards = {
  /** Returns the account's customer at the processor, and creates it if `known` is null. */
  customer(accountId: string, email: string, known: string | null): Promise<string>
  /** Returns the URL of a page on which the account's owner enters a card. */
  openSetup(accountId: string, customerId: string): Promise<string>
  /** Reads a setup session; null = the processor has no such session of one of our accounts. */
  readSetup(sessionId: string): Promise<SetupSession | null>
  /** Makes a card the customer's default. Collections of the gateway name their card and do not depend on it. */
  setDefault(customerId: string, stripePaymentMethodId: string): Promise<void>
  /** Detaches a card from its customer. */
  remove(stripePaymentMethodId: string): Promise<void>
  /** Returns the URL of the page on which an invoice can be paid or confirmed; null = there is none. */
  invoicePage(processorId: string): Promise<string | null>
}

/**
 * Every method throws `service_unavailable` if the payment processor cannot be reached. Repeated calls have one effect.
 */
export type Payments = {
  readonly kind: 'manual' | 'stripe'
  /** Null = no payment processor takes cards. */
  readonly cards: Cards | null
  /**
   * Collects an invoice or resumes an earlier collection, and returns the result. Awaits `onBegun` before anything can
   * be charged.
   */
  collect(order: Order, onBegun: (processorId: string) => Promise<void>): Promise<ProcessorInvoice>
  /** Null = the processor sends no webhooks. */
  readonly webhooks: PaymentWebhooks | null
}

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
