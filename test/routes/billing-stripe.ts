/**
 * A small simulated Stripe on a loopback socket: customers, payment methods, setup sessions, invoices and their items,
 * with idempotency keys; and the two pages for entering a card and paying an invoice.
 */
import { createHmac } from 'node:crypto'
import { stripePage } from './billing-stripe-pages.ts'

type Row = Record<string, unknown> & { id: string }
type Metadata = Record<string, string>
export type StripeInvoice = {
  id: string
  object: 'invoice'
  customer: string
  currency: string
  status: 'draft' | 'open' | 'paid' | 'void' | 'uncollectible'
  total: number
  amount_due: number
  amount_paid: number
  amount_remaining: number
  attempt_count: number
  hosted_invoice_url: string | null
  metadata: Metadata
}
export type StripeSession = {
  id: string
  object: 'checkout.session'
  mode: string
  status: 'open' | 'complete' | 'expired'
  customer: string
  url: string | null
  success_url: string
  cancel_url: string
  setup_intent: { id: string; object: 'setup_intent'; status: string; payment_method: string | null }
  metadata: Metadata
}
export type StripeMethod = Row & { customer: string | null; created: number }

/** Stripe's minimum charge for US dollars, in cents. */
const minimumCharge = 50

export type StripeServer = {
  readonly url: string
  readonly invoices: Map<string, StripeInvoice>
  readonly customers: Map<string, Row>
  readonly methods: Map<string, StripeMethod>
  readonly sessions: Map<string, StripeSession>
  readonly items: Row[]
  /** Methods whose charges are declined. */
  readonly declined: Set<string>
  /** Methods whose charges the owner must confirm with the bank. */
  readonly confirmed: Set<string>
  /** Credit balance of a customer in cents; an invoice uses it first. */
  readonly credits: Map<string, number>
  /** `METHOD /path` of every request. */
  readonly requests: string[]
  /** Number of next changes that take effect with a lost response. */
  losesAnswers: number
  isDown: boolean
  /** A card that belongs to no customer yet. */
  addMethod(): string
  /** Payment methods that it refuses to detach. */
  readonly stuck: Set<string>
  /** Enters a card on the page of a session, as its owner does in a browser. Returns the card's ID. */
  enterCard(sessionId: string): string
  /** Pays an invoice on its page. */
  payInvoice(id: string): void
  stop(): Promise<void>
}

/** Starts a simulated Stripe. It accepts only `Bearer <secretKey>`. */
export function startStripe(secretKey: string): StripeServer {
  const customers = new Map<string, Row>()
  const methods = new Map<string, StripeMethod>()
  const sessions = new Map<string, StripeSession>()
  const invoices = new Map<string, StripeInvoice>()
  const items: Row[] = []
  const declined = new Set<string>()
  const stuck = new Set<string>()
  const confirmed = new Set<string>()
  const credits = new Map<string, number>()
  const requests: string[] = []
  const remembered = new Map<string, { readonly asked: string; readonly status: number; readonly body: unknown }>()
  let last = 0
  /** Seconds; each card is stored in its own second. */
  let stored = Math.floor(Date.now() / 1000)
  const fresh = (prefix: string) => `${prefix}_${++last}`

  /**
   * Credit is used first. If the remaining amount is too small to charge, the next invoice includes it, and this one is
   * paid.
   */
  const finalize = (invoice: StripeInvoice) => {
    const credit = credits.get(invoice.customer) ?? 0
    const due = Math.max(0, invoice.total - credit)
    const isCharged = due >= minimumCharge
    credits.set(invoice.customer, isCharged ? Math.max(0, credit - invoice.total) : credit - invoice.total)
    invoice.amount_due = invoice.amount_remaining = isCharged ? due : 0
    invoice.status = isCharged ? 'open' : 'paid'
    invoice.hosted_invoice_url = `${stripe.url}/i/${invoice.id}`
  }
  const pay = (invoice: StripeInvoice) =>
    Object.assign(invoice, { status: 'paid', amount_paid: invoice.amount_due, amount_remaining: 0 })

  const answerTo = (method: string, path: string, form: URLSearchParams): { status: number; body: unknown } => {
    const [, , kind = '', id = '', verb = ''] = path.split('/')
    const field = (name: string) => form.get(name) ?? ''
    const metadata: Metadata = {}
    for (const [name, value] of form) {
      const key = /^metadata\[(\w+)\]$/.exec(name)?.[1]
      if (key !== undefined) metadata[key] = value
    }
    const ok = (body: unknown) => ({ status: 200, body })
    const list = (data: unknown[]) => ok({ object: 'list', data, has_more: false, url: path })
    const missing = {
      status: 404,
      body: { error: { type: 'invalid_request_error', code: 'resource_missing', message: 'No such object' } },
    }
    const wrong = { status: 400, body: { error: { type: 'invalid_request_error', message: 'canary of Stripe' } } }
    switch (kind) {
      case 'customers': {
        const known = customers.get(id)
        if (id === '') {
          const made = { id: fresh('cus'), object: 'customer', metadata }
          customers.set(made.id, made)
          return ok(made)
        }
        if (known === undefined) return missing
        known.default = form.get('invoice_settings[default_payment_method]') ?? known.default
        return ok(known)
      }
      case 'payment_methods': {
        const known = methods.get(id)
        if (known === undefined) return missing
        if (verb === 'attach' && known.customer !== null) return wrong
        if (verb === 'attach') known.customer = field('customer')
        if (verb === 'detach' && stuck.has(id)) return wrong
        if (verb === 'detach') known.customer = null
        return ok(known)
      }
      case 'checkout': {
        const sessionId = path.split('/')[4] ?? ''
        if (sessionId !== '') {
          const known = sessions.get(sessionId)
          if (known === undefined) return missing
          const isExpanded = [...form].some(([name, value]) => /^expand/.test(name) && value.includes('payment_method'))
          const { setup_intent: intent } = known
          const expanded = { ...intent, payment_method: methods.get(intent.payment_method ?? '') ?? null }
          return ok({ ...known, setup_intent: isExpanded ? expanded : intent.id })
        }
        if (field('mode') !== 'setup' || !customers.has(field('customer')) || field('payment_method_types[0]') !== '')
          return wrong
        const made: StripeSession = {
          id: fresh('cs_test'),
          object: 'checkout.session',
          mode: 'setup',
          status: 'open',
          customer: field('customer'),
          url: null,
          success_url: field('success_url'),
          cancel_url: field('cancel_url'),
          setup_intent: {
            id: fresh('seti'),
            object: 'setup_intent',
            status: 'requires_payment_method',
            payment_method: null,
          },
          metadata,
        }
        made.url = `${stripe.url}/c/pay/${made.id}`
        sessions.set(made.id, made)
        return ok(made)
      }
      case 'invoiceitems': {
        if (method === 'GET') return list(items.filter(item => item.invoice === form.get('invoice')))
        const invoice = invoices.get(field('invoice'))
        if (invoice?.status !== 'draft') return wrong
        const amount = Number(field('amount'))
        const made = {
          id: fresh('ii'),
          object: 'invoiceitem',
          invoice: invoice.id,
          amount,
          description: field('description'),
          metadata,
        }
        items.push(made)
        invoice.total += amount
        invoice.amount_due = invoice.amount_remaining = invoice.total
        return ok(made)
      }
      case 'invoices': {
        if (id === '' && method === 'GET')
          return list([...invoices.values()].filter(invoice => invoice.customer === form.get('customer')))
        if (id === '') {
          const made: StripeInvoice = {
            id: fresh('in'),
            object: 'invoice',
            customer: field('customer'),
            currency: field('currency'),
            status: 'draft',
            total: 0,
            amount_due: 0,
            amount_paid: 0,
            amount_remaining: 0,
            attempt_count: 0,
            hosted_invoice_url: null,
            metadata,
          }
          invoices.set(made.id, made)
          return ok(made)
        }
        const known = invoices.get(id)
        if (known === undefined) return missing
        if (verb === 'finalize') finalize(known)
        if (verb === 'pay') {
          if (known.status !== 'open') return wrong
          known.attempt_count++
          const charged = form.get('payment_method') ?? String(customers.get(known.customer)?.default ?? '')
          if (confirmed.has(charged))
            return {
              status: 402,
              body: {
                error: {
                  type: 'card_error',
                  code: 'invoice_payment_intent_requires_action',
                  message: 'canary of Stripe',
                },
              },
            }
          if (methods.get(charged)?.customer !== known.customer || declined.has(charged))
            return {
              status: 402,
              body: { error: { type: 'card_error', code: 'card_declined', message: 'canary of Stripe' } },
            }
          pay(known)
        }
        return ok(known)
      }
      default:
        return missing
    }
  }

  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      requests.push(`${request.method} ${pathname}`)
      const body = await request.text()
      const page = stripePage(stripe, request.method, pathname)
      if (page !== null) return page
      if (stripe.isDown) return Response.json({ error: { type: 'api_error', message: 'down' } }, { status: 503 })
      if (request.headers.get('authorization') !== `Bearer ${secretKey}`)
        return Response.json({ error: { type: 'invalid_request_error', message: 'bad key' } }, { status: 401 })
      const form = request.method === 'GET' ? searchParams : new URLSearchParams(body)
      const name = request.headers.get('idempotency-key')
      const known = name === null ? undefined : remembered.get(name)
      if (known !== undefined && known.asked !== body)
        return Response.json({ error: { type: 'idempotency_error', message: 'another body' } }, { status: 400 })
      const { status, body: answer } = known ?? answerTo(request.method, pathname, form)
      if (name !== null && request.method === 'POST')
        remembered.set(name, { asked: body, status, body: structuredClone(answer) })
      if (request.method === 'POST' && stripe.losesAnswers > 0) {
        stripe.losesAnswers--
        return Response.json({ error: { type: 'api_error', message: 'lost' } }, { status: 500 })
      }
      return Response.json(answer, { status })
    },
  })

  const stripe: StripeServer = {
    url: `http://127.0.0.1:${http.port}`,
    invoices,
    customers,
    methods,
    sessions,
    items,
    declined,
    stuck,
    confirmed,
    credits,
    requests,
    losesAnswers: 0,
    isDown: false,
    addMethod() {
      const id = fresh('pm')
      methods.set(id, {
        id,
        object: 'payment_method',
        type: 'card',
        customer: null,
        created: ++stored,
        card: { brand: 'visa', last4: '4242' },
      })
      return id
    },
    enterCard(sessionId) {
      const session = sessions.get(sessionId)
      if (session?.status !== 'open') throw new Error('the session is open')
      const id = stripe.addMethod()
      const method = methods.get(id)
      if (method !== undefined) method.customer = session.customer
      session.status = 'complete'
      session.url = null
      Object.assign(session.setup_intent, { status: 'succeeded', payment_method: id })
      return id
    },
    payInvoice(id) {
      const invoice = invoices.get(id)
      if (invoice?.status === 'open') pay(invoice)
    },
    stop: () => http.stop(true),
  }
  return stripe
}

/** Returns a `Stripe-Signature` header for a body, at `seconds` since the epoch. */
export function getSignature(
  body: string | Uint8Array,
  secret: string,
  seconds = Math.floor(Date.now() / 1000),
): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex')}`
}
