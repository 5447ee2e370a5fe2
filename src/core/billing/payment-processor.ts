/** The port behind which money is collected: by hand (`manual.ts`), or through Stripe (`stripe.ts`). */
import type { ProcessorInvoice } from './billing.ts'

/** A payment method as it may be stored and shown. */
export type AddedMethod = {
  readonly kind: 'manual' | 'stripe'
  readonly stripePaymentMethodId: string | null
  readonly brand: string | null
  readonly lastFour: string | null
}

/** A card that an owner entered on the payment processor's page, as the processor has it. */
export type EnteredCard = {
  /** The account that the page was opened for. */
  readonly accountId: string
  readonly customerId: string
  readonly method: AddedMethod & { readonly stripePaymentMethodId: string }
  /** When the processor stored the card, in epoch milliseconds by its clock. */
  readonly enteredAt: number
}

/** An invoice to be collected. Its lines' cents add up to `totalCents`. */
export type Order = {
  readonly invoiceId: string
  readonly accountId: string
  readonly customerId: string | null
  readonly hasMethod: boolean
  /** The card to charge; null = none, and nothing is charged. */
  readonly stripePaymentMethodId: string | null
  readonly totalCents: number
  /** Where it was begun before. */
  readonly processorId: string | null
  readonly lines: readonly { readonly name: string; readonly cents: number }[]
}

/** An event as it was signed. Of its object only the id is believed. */
export type WebhookEvent = {
  readonly id: string
  readonly type: string
  readonly objectId: string | null
  /** Epoch milliseconds. */
  readonly occurredAt: number
}

/** What the object of an event is at this moment. */
export type EventObject =
  | { readonly kind: 'none' }
  | { readonly kind: 'invoice'; readonly seen: ProcessorInvoice }
  | { readonly kind: 'card'; readonly card: EnteredCard }
  | { readonly kind: 'method_gone'; readonly stripePaymentMethodId: string }

export type Webhooks = {
  /** The event in a body, which is taken byte for byte. Throws `invalid_request` where its signature does not hold. */
  read(body: Uint8Array, signature: string | null): WebhookEvent
  /** Reads the event's object again. Throws `service_unavailable` where that cannot be done now. */
  look(event: WebhookEvent): Promise<EventObject>
}

/** A setup session: one visit to the processor's page for cards. */
export type SetupSession = {
  readonly accountId: string
  /** Null = the owner has not finished the page, or the processor does not have the card under our customer. */
  readonly card: EnteredCard | null
}

/** Cards are entered on pages of the payment processor only: no card number and no ID of a card comes through the gateway. */
export type Cards = {
  /** Returns the account's customer at the processor, and creates it if `known` is null. */
  customer(accountId: string, email: string, known: string | null): Promise<string>
  /** Returns the address of a page on which the account's owner enters a card. */
  openSetup(accountId: string, customerId: string): Promise<string>
  /** Reads a setup session; null = the processor has none of this ID that an account of ours opened. */
  readSetup(sessionId: string): Promise<SetupSession | null>
  /** Makes a card the customer's default. Collections of the gateway name their card and do not depend on it. */
  setDefault(customerId: string, stripePaymentMethodId: string): Promise<void>
  /** Detaches a card from its customer. */
  remove(stripePaymentMethodId: string): Promise<void>
  /** Returns the address of the page on which an invoice can be paid or confirmed; null = it has none (any more). */
  invoicePage(processorId: string): Promise<string | null>
}

/** Each throws `service_unavailable` where the payment processor cannot be reached. What is asked twice is done once. */
export type Payments = {
  readonly kind: 'manual' | 'stripe'
  /** Null = no payment processor takes cards. */
  readonly cards: Cards | null
  /**
   * Collects an invoice, or goes on where it was left; what became of it is in the answer. `onBegun` is awaited before
   * anything can be charged.
   */
  collect(order: Order, onBegun: (processorId: string) => Promise<void>): Promise<ProcessorInvoice>
  /** Null = nobody sends any. */
  readonly webhooks: Webhooks | null
}
