/**
 * Payment through Stripe. All objects are created with an idempotency key and our IDs as metadata. A call whose
 * response was lost is repeated without a second effect: by the key within Stripe's 24 hours, and later because
 * existing objects are looked up first.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import Stripe from 'stripe'
import { currency, type InvoiceStatus, type ProcessorInvoice } from '../../../core/billing/billing.ts'
import type { Clock, Network } from '../../../core/ports.ts'
import { GatewayError } from '../../../core/validation/errors.ts'
import type { EventObject, Order, Payments, PaymentWebhookEvent, PaymentWebhooks } from '../payment-processor.ts'
import { callStripe, findId, orMissing, readSetup, stripeCards } from './stripe-cards.ts'

type StripeSettings = {
  readonly secretKey: string
  /** One secret, or two during a rotation; none is empty. */
  readonly webhookSecrets: readonly string[]
  /** Null = Stripe's own. */
  readonly apiBase: string | null
  /** Origin of the dashboard, to which Stripe's pages return. */
  readonly publicUrl: string
  /** Time of one call in milliseconds. */
  readonly timeoutMs: number
}

const retries = 2

/** Creates Stripe as the payment processor. Makes no call before the first use. */
export function stripePayments(settings: StripeSettings, deps: Pick<Network, 'fetch'> & Pick<Clock, 'now'>): Payments {
  const stripe = connect(settings, deps.fetch)
  return {
    kind: 'stripe',
    cards: stripeCards(stripe, settings.publicUrl),
    collect: (order, onBegun) => callStripe(() => collect(stripe, order, onBegun)),
    webhooks: getWebhooks(stripe, settings, deps.now),
  }
}

function connect({ secretKey, apiBase, timeoutMs }: StripeSettings, fetch: Network['fetch']) {
  const base = apiBase === null ? null : new URL(apiBase)
  const call = (url: string | URL | Request, init?: RequestInit) => fetch(String(url), { ...init, redirect: 'error' })
  // Only for the type: it is called as a plain function.
  const own = Object.assign(call, { preconnect: () => {} })
  return new Stripe(secretKey, {
    httpClient: Stripe.createFetchHttpClient(own),
    timeout: timeoutMs,
    maxNetworkRetries: retries,
    telemetry: false,
    ...(base === null
      ? {}
      : {
          protocol: base.protocol === 'http:' ? 'http' : 'https',
          host: base.hostname,
          port: base.port || (base.protocol === 'http:' ? '80' : '443'),
        }),
  })
}

/** Finds or creates Stripe's invoice for an order, fills it, finalizes it if it has exactly our total, and pays it. */
async function collect(
  stripe: Stripe,
  order: Order,
  onBegun: (processorId: string) => Promise<void>,
): Promise<ProcessorInvoice> {
  if (order.customerId === null) throw new Error(`invoice ${order.invoiceId} has no customer to charge`)
  let invoice = (await existing(stripe, order, order.customerId)) ?? (await begin(stripe, order, order.customerId))
  await onBegun(invoice.id)
  if (invoice.status === 'draft') {
    await fill(stripe, order, order.customerId, invoice.id)
    invoice = await stripe.invoices.retrieve(invoice.id)
    if (invoice.total !== order.totalCents || invoice.currency !== currency || !matchesOrder(invoice, order))
      return seen(invoice)
    invoice = await stripe.invoices.finalizeInvoice(
      invoice.id,
      { auto_advance: false },
      { idempotencyKey: `${order.invoiceId}:finalize` },
    )
  }
  if (invoice.status !== 'open' || !matchesOrder(invoice, order)) return seen(invoice)
  // Without our payment method nothing is charged, whatever other methods the customer has at Stripe.
  if (order.stripePaymentMethodId === null) return seen(invoice, true)
  try {
    return seen(await stripe.invoices.pay(invoice.id, { payment_method: order.stripePaymentMethodId }), true)
  } catch (cause) {
    // A declined card, a required confirmation, and "already paid" are results; the invoice shows which.
    if (!(cause instanceof Stripe.errors.StripeCardError || cause instanceof Stripe.errors.StripeInvalidRequestError))
      throw cause
    return seen(await stripe.invoices.retrieve(invoice.id), true)
  }
}

function matchesOrder(invoice: Stripe.Invoice, { invoiceId, customerId }: Order): boolean {
  return invoice.metadata?.invoice_id === invoiceId && findId(invoice.customer) === customerId
}

const recentInvoices = 100

async function existing(stripe: Stripe, order: Order, customer: string): Promise<Stripe.Invoice | null> {
  if (order.processorId !== null) return stripe.invoices.retrieve(order.processorId)
  const { data } = await stripe.invoices.list({ customer, limit: recentInvoices })
  return data.find(invoice => invoice.metadata?.invoice_id === order.invoiceId) ?? null
}

function begin(stripe: Stripe, { invoiceId, accountId }: Order, customer: string): Promise<Stripe.Invoice> {
  return stripe.invoices.create(
    {
      customer,
      currency,
      collection_method: 'charge_automatically',
      auto_advance: false,
      pending_invoice_items_behavior: 'exclude',
      metadata: { invoice_id: invoiceId, account_id: accountId },
    },
    { idempotencyKey: `${invoiceId}:create` },
  )
}

async function fill(stripe: Stripe, order: Order, customer: string, invoice: string): Promise<void> {
  const there = new Set<string>()
  for await (const item of stripe.invoiceItems.list({ invoice, limit: 100 })) there.add(item.metadata?.line ?? '')
  for (const [index, { name, cents }] of order.lines.entries())
    if (cents > 0 && !there.has(String(index)))
      await stripe.invoiceItems.create(
        { invoice, customer, currency, amount: cents, description: name, metadata: { line: String(index) } },
        { idempotencyKey: `${order.invoiceId}:line:${index}` },
      )
}

function seen(invoice: Stripe.Invoice, wasAttempted = false): ProcessorInvoice {
  return {
    processorId: invoice.id,
    invoiceId: invoice.metadata?.invoice_id ?? null,
    accountId: invoice.metadata?.account_id ?? null,
    customerId: findId(invoice.customer),
    currency: invoice.currency,
    totalCents: invoice.total,
    remainingCents: invoice.amount_remaining,
    status: getStatus(invoice, wasAttempted),
  }
}

function getStatus({ status, attempt_count }: Stripe.Invoice, wasAttempted: boolean): InvoiceStatus {
  switch (status) {
    case 'paid':
      return 'paid'
    case 'void':
      return 'void'
    case 'uncollectible':
      return 'unpaid'
    case 'open':
      return wasAttempted || attempt_count > 0 ? 'unpaid' : 'open'
    default:
      return 'open'
  }
}

const invoiceEvents = new Set([
  'invoice.paid',
  'invoice.payment_succeeded',
  'invoice.payment_failed',
  'invoice.payment_action_required',
  'invoice.marked_uncollectible',
  'invoice.voided',
])

/** The fields of an event that are read. Others may be outdated and are requested again. */
const eventSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  type: Type.String({ minLength: 1, maxLength: 255 }),
  created: Type.Integer({ minimum: 0, maximum: 1e11 }),
  data: Type.Object({ object: Type.Object({ id: Type.Optional(Type.String({ maxLength: 255 })) }) }),
})

function getWebhooks(stripe: Stripe, { webhookSecrets }: StripeSettings, now: () => number): PaymentWebhooks {
  return {
    read(body, signature) {
      if (!isSigned(body, signature, webhookSecrets, now())) throw unsigned()
      const event = parsed(body)
      if (!Value.Check(eventSchema, event)) throw unsigned()
      const { id, type, created, data } = event
      return { id, type, objectId: data.object.id ?? null, occurredAt: created * 1000 }
    },
    look: event => callStripe(() => fetchEventObject(stripe, event)),
  }
}

async function fetchEventObject(stripe: Stripe, { type, objectId }: PaymentWebhookEvent): Promise<EventObject> {
  if (objectId === null) return { kind: 'none' }
  if (invoiceEvents.has(type)) {
    const invoice = await stripe.invoices.retrieve(objectId).catch(orMissing)
    return invoice === null ? { kind: 'none' } : { kind: 'invoice', seen: seen(invoice) }
  }
  if (type === 'checkout.session.completed') {
    const session = await readSetup(stripe, objectId)
    return session === null || session.card === null ? { kind: 'none' } : { kind: 'card', card: session.card }
  }
  if (type === 'payment_method.detached') {
    const method = await stripe.paymentMethods.retrieve(objectId).catch(orMissing)
    return method?.customer == null ? { kind: 'method_gone', stripePaymentMethodId: objectId } : { kind: 'none' }
  }
  return { kind: 'none' }
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw unsigned()
  }
}

/** Returns the same error for any invalid event, so that an attacker learns nothing about the cause. */
function unsigned(): GatewayError {
  return new GatewayError('invalid_request', 'Invalid webhook signature.', { shouldRetry: false })
}

/**
 * Tolerance in seconds between signing and arrival, in both directions: Stripe's own library accepts signatures from
 * the future.
 */
const toleranceSeconds = 300
const maximumSignatures = 16
const digestHex = /^[0-9a-f]{64}$/

/**
 * Returns true if a `Stripe-Signature` header (`t=…,v1=…,v1=…`) was made with one of `secrets` for these exact body
 * bytes and is current. Compares every secret with every signature in constant time.
 */
export function isSigned(
  body: Uint8Array,
  header: string | null,
  secrets: readonly string[],
  /** Epoch milliseconds. */
  now: number,
): boolean {
  const fields = (header ?? '').split(',').map(field => field.trim().split('='))
  const times = fields.filter(([name]) => name === 't').map(([, value]) => value ?? '')
  const signatures = fields
    .filter(([name, value]) => name === 'v1' && digestHex.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  const [time] = times
  if (time === undefined || times.length !== 1 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(Math.floor(now / 1000) - Number(time)) > toleranceSeconds) return false
  if (signatures.length === 0 || signatures.length > maximumSignatures) return false
  let holds = false
  for (const secret of secrets) {
    if (secret === '') continue
    const expected = createHmac('sha256', secret).update(`${time}.`).update(body).digest()
    for (const signature of signatures) holds = timingSafeEqual(expected, signature) || holds
  }
  return holds
}
