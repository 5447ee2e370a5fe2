/**
 * Payment through Stripe. Whatever is made carries an idempotency key of ours and our ids as metadata: a call whose answer
 * was lost is repeated without being done twice, within Stripe's memory of a day by the key, and after it because what is
 * there already is looked for first.
 */
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import Stripe from 'stripe'
import { currency, type InvoiceStatus, type SeenInvoice } from '../core/billing.ts'
import { GatewayError } from '../core/errors.ts'
import { digestOf } from '../core/secrets.ts'
import { invalid } from '../core/validate.ts'
import type { Look, Order, Payments, SignedEvent, Webhooks } from './payments.ts'
import { isSigned } from './signature.ts'

export type StripeSettings = {
  readonly secretKey: string
  /** One, or two while one is being replaced; none is empty. */
  readonly webhookSecrets: readonly string[]
  /** Null = Stripe's own. */
  readonly apiBase: string | null
}

const timeoutMs = 8_000
const retries = 2

/** Stripe as the payment processor. Nothing is asked of it before the first call. */
export function stripePayments(
  settings: StripeSettings,
  deps: { readonly fetch: (url: string, init: RequestInit) => Promise<Response>; readonly now: () => number },
): Payments {
  const stripe = connect(settings, deps.fetch)
  return {
    kind: 'stripe',
    customer: (accountId, email, known) =>
      known === null
        ? ask(async () => {
            const metadata = { account_id: accountId }
            // By whom too: of one key Stripe refuses, for a day, whatever differs.
            const idempotencyKey = `customer:${accountId}:${digestOf(email)}`
            const made = await stripe.customers.create({ email, metadata }, { idempotencyKey })
            return made.id
          })
        : Promise.resolve(known),
    addMethod(customerId, methodId) {
      if (methodId === null || customerId === null)
        throw invalid('payment_method', 'is missing: send the id of a Stripe payment method, such as `pm_…`')
      return ask(async () => {
        const known = await stripe.paymentMethods.retrieve(methodId)
        const method =
          idOf(known.customer) === customerId
            ? known
            : await stripe.paymentMethods.attach(methodId, { customer: customerId })
        if (idOf(method.customer) !== customerId) throw invalid('payment_method', 'belongs to somebody else')
        await stripe.customers.update(customerId, { invoice_settings: { default_payment_method: methodId } })
        return {
          kind: 'stripe',
          stripePaymentMethodId: method.id,
          brand: method.card?.brand ?? method.type,
          lastFour: method.card?.last4 ?? null,
        }
      })
    },
    async removeMethod(methodId) {
      if (methodId === null) return
      await ask(async () => {
        const method = await stripe.paymentMethods.retrieve(methodId)
        if (method.customer !== null) await stripe.paymentMethods.detach(methodId)
      })
    },
    collect: (order, onBegun) => ask(() => collect(stripe, order, onBegun)),
    webhooks: webhooksOf(stripe, settings, deps.now),
  }
}

function connect({ secretKey, apiBase }: StripeSettings, fetch: (url: string, init: RequestInit) => Promise<Response>) {
  const base = apiBase === null ? null : new URL(apiBase)
  const call = (url: string | URL | Request, init?: RequestInit) => fetch(String(url), { ...init, redirect: 'error' })
  // Only of the type: it is a function that is called and nothing else.
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

/** Stripe's invoice for an order: found or made, filled, finalized once it comes to our very sum, and paid. */
async function collect(
  stripe: Stripe,
  order: Order,
  onBegun: (processorId: string) => Promise<void>,
): Promise<SeenInvoice> {
  if (order.customerId === null) throw new Error(`invoice ${order.invoiceId} has no customer to collect it from`)
  let invoice = (await existing(stripe, order, order.customerId)) ?? (await begin(stripe, order, order.customerId))
  await onBegun(invoice.id)
  if (invoice.status === 'draft') {
    await fill(stripe, order, order.customerId, invoice.id)
    invoice = await stripe.invoices.retrieve(invoice.id)
    if (invoice.total !== order.totalCents || invoice.currency !== currency || !isOf(invoice, order))
      return seen(invoice)
    invoice = await stripe.invoices.finalizeInvoice(
      invoice.id,
      { auto_advance: false },
      { idempotencyKey: `${order.invoiceId}:finalize` },
    )
  }
  if (invoice.status !== 'open' || !isOf(invoice, order)) return seen(invoice)
  try {
    return seen(await stripe.invoices.pay(invoice.id), true)
  } catch (cause) {
    // A refused card is an answer, and so is "paid already".
    if (!(cause instanceof Stripe.errors.StripeCardError || cause instanceof Stripe.errors.StripeInvalidRequestError))
      throw cause
    return seen(await stripe.invoices.retrieve(invoice.id), true)
  }
}

function isOf(invoice: Stripe.Invoice, { invoiceId, customerId }: Order): boolean {
  return invoice.metadata?.invoice_id === invoiceId && idOf(invoice.customer) === customerId
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

function seen(invoice: Stripe.Invoice, wasAttempted = false): SeenInvoice {
  return {
    processorId: invoice.id,
    invoiceId: invoice.metadata?.invoice_id ?? null,
    accountId: invoice.metadata?.account_id ?? null,
    customerId: idOf(invoice.customer),
    currency: invoice.currency,
    totalCents: invoice.total,
    remainingCents: invoice.amount_remaining,
    status: statusOf(invoice, wasAttempted),
  }
}

function statusOf({ status, attempt_count }: Stripe.Invoice, wasAttempted: boolean): InvoiceStatus {
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

function idOf(reference: string | { readonly id: string } | null): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

const invoiceEvents = new Set([
  'invoice.paid',
  'invoice.payment_succeeded',
  'invoice.payment_failed',
  'invoice.payment_action_required',
  'invoice.marked_uncollectible',
  'invoice.voided',
])

/** What of an event is read. Everything else in it may be old by now, and is asked for again. */
const eventSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  type: Type.String({ minLength: 1, maxLength: 255 }),
  created: Type.Integer({ minimum: 0, maximum: 1e11 }),
  data: Type.Object({ object: Type.Object({ id: Type.Optional(Type.String({ maxLength: 255 })) }) }),
})

function webhooksOf(stripe: Stripe, { webhookSecrets }: StripeSettings, now: () => number): Webhooks {
  return {
    read(body, signature) {
      if (!isSigned(body, signature, webhookSecrets, now())) throw unsigned()
      const event = parsed(body)
      if (!Value.Check(eventSchema, event)) throw unsigned()
      const { id, type, created, data } = event
      return { id, type, objectId: data.object.id ?? null, occurredAt: created * 1000 }
    },
    look: event => ask(() => look(stripe, event)),
  }
}

async function look(stripe: Stripe, { type, objectId }: SignedEvent): Promise<Look> {
  if (objectId === null) return { kind: 'none' }
  if (invoiceEvents.has(type)) {
    const invoice = await stripe.invoices.retrieve(objectId).catch(orMissing)
    return invoice === null ? { kind: 'none' } : { kind: 'invoice', seen: seen(invoice) }
  }
  if (type === 'payment_method.detached') {
    const method = await stripe.paymentMethods.retrieve(objectId).catch(orMissing)
    return method?.customer == null ? { kind: 'method_gone', stripePaymentMethodId: objectId } : { kind: 'none' }
  }
  return { kind: 'none' }
}

function orMissing(cause: unknown): null {
  if (cause instanceof Stripe.errors.StripeInvalidRequestError && cause.statusCode === 404) return null
  throw cause
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw unsigned()
  }
}

/** One answer to whatever is wrong with an event: whoever did not sign it learns nothing of why. */
function unsigned(): GatewayError {
  return new GatewayError('invalid_request', 'The signature of this event does not hold.', { shouldRetry: false })
}

/** Stripe's failures in our words. Its own text stays here: it may repeat what it was sent. */
async function ask<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof Stripe.errors.StripeError)) throw cause
    const detail = `stripe: ${cause.type} ${cause.code ?? ''} ${cause.statusCode ?? ''}`.trim()
    if (cause instanceof Stripe.errors.StripeCardError)
      throw new GatewayError('payment_required', 'The card was declined. Choose another payment method.', { detail })
    if (cause instanceof Stripe.errors.StripeInvalidRequestError)
      throw new GatewayError('invalid_request', 'The payment processor does not know this payment method.', {
        param: 'payment_method',
        detail,
      })
    throw new GatewayError('service_unavailable', 'The payment processor cannot be reached. Try again shortly.', {
      retryAfterMs: 5_000,
      detail,
    })
  }
}
