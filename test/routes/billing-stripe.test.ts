/**
 * Payments through Stripe's own library, against a simulated Stripe on a real socket: each charge and event counts
 * once, and forged events are rejected.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigError, readConfig } from '../../src/config/config.ts'
import { isSigned, stripePayments } from '../../src/console/billing/payments/stripe.ts'
import { cycleMs, graceMs, settlementDelayMs } from '../../src/core/billing/billing.ts'
import { systemClock } from '../../src/database/clock.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { patient } from '../harness/patience.ts'
import { createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'
import { addCard } from './billing-owners.ts'
import { getSignature, type StripeInvoice, type StripeServer, startStripe } from './billing-stripe.ts'

const publicUrl = 'https://gateway.example.test'
const secretKey = 'sk_test_canary_of_the_secret_key'
const [secret, nextSecret] = ['whsec_0123456789abcdefghijklmnop', 'whsec_ponmlkjihgfedcba9876543210'] as const
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let stripe: StripeServer
let gateway: Gateway
beforeAll(async () => {
  stripe = startStripe(secretKey)
  gateway = await startGateway(
    {
      TRUSTED_PROXIES: '127.0.0.1',
      STRIPE_SECRET_KEY: secretKey,
      STRIPE_WEBHOOK_SECRET: `${secret},${nextSecret}`,
      STRIPE_API_BASE: stripe.url,
      PUBLIC_URL: publicUrl,
    },
    { clock, ...withoutTimer },
  )
}, 240_000)
afterAll(async () => {
  await gateway.stop()
  await stripe.stop()
})

async function at<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
  ahead = milliseconds
  try {
    return await work()
  } finally {
    ahead = 0
  }
}

const billing = (person: Person, method = 'GET', path = '', body?: unknown) =>
  sendRequest<Record<string, unknown> & { error?: { code: string; message: string } }>(
    gateway,
    method,
    `/api/v1/billing${path}`,
    {
      token: person.token,
      body,
    },
  )

type ShownInvoice = { id: string; status: string; collected_usd: number; total_usd: number }
const getInvoices = async ({ token }: Person) =>
  (await sendRequest<{ data: ShownInvoice[] }>(gateway, 'GET', '/api/v1/billing/invoices', { token })).body.data

/** A user on plan `usage` with a card and chat requests. */
async function customer() {
  const person = await owner(gateway)
  const card = await addCard(gateway, stripe, person)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(200)
  const { key } = await createKeyFor(gateway, person)
  return { ...person, card, key }
}

let used = 0

/** Usage of this many microcents, in the ledger now. */
async function use(person: Person, microcents: number, model = 'openai/gpt-4.1') {
  const [provider = '', name = ''] = model.split('/')
  await gateway.deps.database.run(
    ({ sql }) => sql`
      with inserted as (
        insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
          input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
          billed_microcents, reserved_microcents, attempts, latency_ms)
        values (${`req_stripe_${++used}`}, clock_timestamp(), ${person.accountId}, 'key_x', ${provider}, ${name}, 'auto', false,
          'completed', 10, 0, 0, 10, 0, false, ${microcents}, ${microcents}, 1, 5)
        returning *)
      insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
        output_tokens, reasoning_tokens, billed_microcents)
      select account_id, (at at time zone 'UTC')::date, ${`key_${used}`}, ${model}, 1, 1, 10, 0, 10, 0, billed_microcents from inserted`,
  )
}

const closeCycles = () => at(cycleMs + settlementDelayMs + 60_000, () => gateway.deps.billingWorker.run())
const invoiceAt = (invoiceId: string): StripeInvoice | undefined =>
  [...stripe.invoices.values()].find(({ metadata }) => metadata.invoice_id === invoiceId)

let events = 0
const eventAbout = (type: string, objectId: string, id = `evt_${++events}`) =>
  JSON.stringify({
    id,
    type,
    created: Math.floor(Date.now() / 1000),
    data: { object: { id: objectId, status: 'paid' } },
  })

async function send(body: string | Uint8Array, signature: string | null = getSignature(body, secret)) {
  const answer = await fetch(`${gateway.url}/api/v1/billing/webhooks/stripe`, {
    method: 'POST',
    headers: signature === null ? {} : { 'stripe-signature': signature },
    body,
  })
  return { status: answer.status, text: await answer.text() }
}

describe('collection', () => {
  test('turns a cycle into one paid Stripe invoice with the exact cents, though responses are lost', async () => {
    const person = await customer()
    await use(person, 1_234_567_891)
    await use(person, 5_999_999, 'anthropic/claude-sonnet-4-5')
    await use(person, 999_999, 'google/gemini-2.5-pro')
    // More failures than the library's retries: the invoice stays open, and the next run finds it at Stripe.
    stripe.losesAnswers = 4
    await closeCycles()
    expect((await getInvoices(person))[0]?.status).toBe('open')
    await gateway.deps.database.run(({ sql }) => sql`update invoices set updated_at = 'epoch' where status = 'open'`)
    await closeCycles()
    const [invoice] = await getInvoices(person)
    expect(invoice).toMatchObject({ status: 'paid', total_usd: 12.41567889, collected_usd: 12.41 })
    const own = [...stripe.invoices.values()].filter(({ metadata }) => metadata.account_id === person.accountId)
    expect(own).toMatchObject([{ status: 'paid', total: 1241, amount_paid: 1241, currency: 'usd' }])
    const amounts = stripe.items.filter(item => item.invoice === own[0]?.id).map(item => item.amount)
    expect(amounts).toEqual([1234, 6, 1])
    await closeCycles()
    expect([...stripe.invoices.values()].filter(({ metadata }) => metadata.account_id === person.accountId)).toEqual(
      own,
    )
  })

  test.each([
    ['is below what Stripe charges', 49_000_000, 0],
    ['is met by the customer’s credit', 700_000_000, 700],
    ['is met by credit but for what is too little to charge', 700_000_000, 660],
  ])('pays an invoice that %s without a charge', async (_, microcents, credit) => {
    const person = await customer()
    await use(person, microcents)
    const charged = [...stripe.customers.values()].find(({ default: card }) => card === person.card)
    stripe.credits.set(charged?.id ?? '', credit)
    await closeCycles()
    const [invoice] = await getInvoices(person)
    expect(invoice).toMatchObject({ status: 'paid', collected_usd: microcents / 1e8 })
    expect(invoiceAt(invoice?.id ?? '')).toMatchObject({ status: 'paid', amount_paid: 0, amount_remaining: 0 })
    expect((await billing(person)).body.unpaid_since).toBeNull()
  })

  test('declined card: leaves the invoice unpaid and chat open in the grace period, until another card pays', async () => {
    const person = await customer()
    await use(person, 700_000_000)
    stripe.declined.add(person.card)
    await closeCycles()
    expect((await getInvoices(person))[0]).toMatchObject({ status: 'unpaid', total_usd: 7, collected_usd: 0 })
    const { grace_ends_at, unpaid_since, payment_required } = (await billing(person)).body
    expect(payment_required).toBe(false)
    const declined = Date.parse(String(unpaid_since))
    expect(Date.parse(String(grace_ends_at))).toBe(declined + graceMs)
    const chatAt = (time: number) =>
      at(time - systemClock.now(), () =>
        sendRequest(gateway, 'POST', '/api/v1/chat', { token: person.key, body: { prompt: 'hi' } }),
      )
    // The account's unpaid state is cached before its quota status is read within the hour.
    await eventually(async () => (await chatAt(declined + graceMs)).status === 402, 2500)
    expect((await chatAt(declined + graceMs - 5_000)).status).toBe(200)
    await addCard(gateway, stripe, person)
    await closeCycles()
    expect((await getInvoices(person))[0]?.status).toBe('paid')
    await eventually(async () => (await chatAt(declined + graceMs)).status === 200, 2500)
    expect((await billing(person)).body).toMatchObject({ grace_ends_at: null, unpaid_since: null })
  })

  test('declined invoice: repeats after 20 and 40 minutes, then once per day', async () => {
    const person = await customer()
    await use(person, 700_000_000)
    stripe.declined.add(person.card)
    await closeCycles()
    const payments = () =>
      stripe.requests.filter(request => request === `POST /v1/invoices/${invoiceAt(own?.id ?? '')?.id}/pay`).length
    const [own] = await getInvoices(person)
    const declined = Date.parse(String((await billing(person)).body.unpaid_since))
    const counted: number[] = []
    for (const minutes of [19, 21, 30, 42, 59, 61, 23 * 60, 25 * 60]) {
      await at(declined + minutes * 60_000 - systemClock.now(), () => gateway.deps.billingWorker.run())
      counted.push(payments())
    }
    expect(counted).toEqual([1, 2, 2, 3, 3, 3, 3, 4])
  })

  test('payment that the bank must confirm: succeeds on the invoice page and ends the grace period', async () => {
    const person = await customer()
    await use(person, 700_000_000)
    stripe.confirmed.add(person.card)
    await closeCycles()
    const [invoice] = await getInvoices(person)
    expect(invoice?.status).toBe('unpaid')
    expect((await billing(person)).body).toMatchObject({ payment_required: false })
    const path = `/invoices/${invoice?.id}/payment-page`
    const stranger = await owner(gateway)
    expect((await billing(stranger, 'POST', path, {})).status).toBe(404)
    const page = await billing(person, 'POST', path, {})
    const theirs = invoiceAt(invoice?.id ?? '')
    expect([page.status, page.body.url]).toEqual([200, theirs?.hosted_invoice_url])
    await fetch(String(page.body.url), { method: 'POST' })
    expect((await send(eventAbout('invoice.paid', theirs?.id ?? ''))).status).toBe(200)
    expect((await getInvoices(person))[0]?.status).toBe('paid')
    expect((await billing(person)).body).toMatchObject({ grace_ends_at: null, unpaid_since: null })
    expect((await billing(person, 'POST', path, {})).status).toBe(409)
  })

  test('account without a payment method: charges nothing, whatever its customer has at Stripe', async () => {
    const person = await customer()
    await use(person, 700_000_000)
    expect((await billing(person, 'DELETE', '/payment-method')).status).toBe(204)
    const method = stripe.methods.get(person.card)
    const [theirs] = [...stripe.customers.values()].filter(({ default: card }) => card === person.card)
    if (method !== undefined) method.customer = theirs?.id ?? null
    await closeCycles()
    const [own] = await getInvoices(person)
    expect(own?.status).toBe('unpaid')
    expect(stripe.requests).not.toContain(`POST /v1/invoices/${invoiceAt(own?.id ?? '')?.id}/pay`)
  })

  test('unavailable Stripe: answers 503 and changes nothing; the invoice waits', async () => {
    const person = await customer()
    stripe.isDown = true
    const { status, body } = await billing(person, 'POST', '/payment-method/setup', {})
    expect([status, body.error?.code]).toEqual([503, 'service_unavailable'])
    await use(person, 700_000_000)
    await closeCycles()
    stripe.isDown = false
    expect((await getInvoices(person))[0]?.status).toBe('open')
  }, 240_000)
})

test('customer: exists once per account for concurrent requests, and again for another owner on the same day', async () => {
  const payments = stripePayments(
    { secretKey, webhookSecrets: [], apiBase: stripe.url, publicUrl, timeoutMs: patient.paymentMs },
    { fetch: (url, init) => fetch(url, init), now: Date.now },
  )
  const made = (email: string) => payments.cards?.customer('acc_of_two_owners', email, null)
  const [first, again, other] = [
    await made('one@example.test'),
    await made('one@example.test'),
    await made('two@example.test'),
  ]
  expect(again).toBe(first)
  expect(other).toStartWith('cus_')
})

/** An invoice that is open here and finalized at Stripe, as during a bank confirmation. */
async function pending() {
  const person = await customer()
  await use(person, 500_000_000)
  stripe.declined.add(person.card)
  await closeCycles()
  const [own] = await getInvoices(person)
  const theirs = invoiceAt(own?.id ?? '')
  if (own === undefined || theirs === undefined) throw new Error('there is an invoice')
  return { person, own, theirs }
}

const paid = ({ total }: StripeInvoice) => ({ status: 'paid', amount_paid: total, amount_remaining: 0 }) as const

const getStatus = async (person: Person) => (await getInvoices(person))[0]?.status

describe('Stripe event', () => {
  test('gets 400 and has no effect when it is forged, unsigned, stale or from the future [W3]', async () => {
    const { person, theirs } = await pending()
    Object.assign(theirs, paid(theirs))
    const body = eventAbout('invoice.paid', theirs.id)
    const now = Math.floor(Date.now() / 1000)
    const signed = getSignature(body, secret)
    const digest = signed.split('v1=')[1]
    const bad: (string | null)[] = [
      null,
      '',
      getSignature(body, ''),
      getSignature(body, 'whsec_of_somebody_else_0000000000'),
      getSignature(`${body} `, secret),
      getSignature(body, secret, now - 330),
      getSignature(body, secret, now + 330),
      `t=${now}`,
      `v1=${digest}`,
      `t=${now},v0=${digest}`,
      `t=${now},t=${now - 5000},v1=${digest}`,
      `t=NaN,v1=${digest}`,
      `t=${now},${`v1=${'0'.repeat(64)},`.repeat(40)}v1=${digest}`,
    ]
    for (const signature of bad) expect([signature, (await send(body, signature)).status]).toEqual([signature, 400])
    expect(await getStatus(person)).toBe('unpaid')
    expect((await send(body, signed)).status).toBe(200)
    expect(await getStatus(person)).toBe('paid')
  })

  test('passes with several v1 signatures and either of two live secrets, over the exact bytes of the body [W3]', async () => {
    const body = eventAbout('customer.updated', 'cus_1')
    expect((await send(body, getSignature(body, nextSecret))).status).toBe(200)
    const [time, digest] = getSignature(eventAbout('a', 'b'), secret).split(',')
    expect((await send(body, `${time},${digest},${getSignature(body, secret).split(',')[1]}`)).status).toBe(200)
    // Bytes that are not UTF-8 change when they are decoded.
    const bytes = Buffer.concat([
      Buffer.from(eventAbout('customer.updated', 'cus_1').slice(0, -1)),
      Buffer.from(',"x":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ])
    expect((await send(bytes)).status).toBe(200)
    expect((await send(Buffer.from(bytes.toString('utf8')), getSignature(bytes, secret))).status).toBe(400)
  })

  test('fails with other bytes, another time or another secret [W3]', () => {
    const text = fc.string({ maxLength: 60 })
    fc.assert(
      fc.property(text, text, fc.integer({ min: -600, max: 600 }), (body, other, skew) => {
        const seconds = 1_800_000_000
        const header = getSignature(body, secret, seconds + skew)
        const holds = (content: string, secrets: readonly string[]) =>
          isSigned(Buffer.from(content), header, secrets, seconds * 1000 + 999)
        expect(holds(body, [secret])).toBe(Math.abs(skew) <= 300)
        if (other !== body) expect(holds(other, [secret])).toBe(false)
        expect(holds(body, [nextSecret])).toBe(false)
        expect(holds(body, ['', nextSecret])).toBe(false)
        expect(isSigned(Buffer.from(body), getSignature(body, '', seconds), [''], seconds * 1000)).toBe(false)
      }),
    )
  })

  test('gets 413 before its signature check when its body exceeds 256 KB [W1]', async () => {
    const body = 'x'.repeat(262_145)
    expect((await send(body, null)).status).toBe(413)
    const chunked = new ReadableStream({
      pull(controller) {
        controller.enqueue(Buffer.alloc(65_536, 'x'))
      },
    })
    const answer = await fetch(`${gateway.url}/api/v1/billing/webhooks/stripe`, { method: 'POST', body: chunked })
    expect(answer.status).toBe(413)
    expect((await send(`{"x":"${'x'.repeat(262_144 - 8)}"}`)).status).toBe(400)
  })

  test('counts only by the state at Stripe, and only for this invoice, account, amount and currency [W5]', async () => {
    const { person, theirs } = await pending()
    expect((await send(eventAbout('invoice.paid', theirs.id))).status).toBe(200)
    expect(await getStatus(person)).toBe('unpaid')
    const whole = { ...theirs, ...paid(theirs), metadata: { ...theirs.metadata } } as const
    for (const wrong of [
      { total: 1, amount_paid: 1 },
      { amount_paid: theirs.total - 1, amount_remaining: 1 },
      { currency: 'jpy' },
      { customer: 'cus_other' },
      { metadata: { ...theirs.metadata, account_id: 'acc_other' } },
    ]) {
      Object.assign(theirs, whole, wrong)
      expect((await send(eventAbout('invoice.paid', theirs.id))).status).toBe(200)
      expect(await getStatus(person)).toBe('unpaid')
    }
    // Another paid invoice of the same customer, with this one's metadata.
    stripe.invoices.set('in_copy', { ...whole, id: 'in_copy' })
    await send(eventAbout('invoice.paid', 'in_copy'))
    expect(await getStatus(person)).toBe('unpaid')
    stripe.invoices.delete('in_copy')
    Object.assign(theirs, whole)
    await send(eventAbout('invoice.paid', theirs.id))
    expect(await getStatus(person)).toBe('paid')
    await send(eventAbout('invoice.payment_failed', theirs.id))
    expect(await getStatus(person)).toBe('paid')
  })

  test('has one effect and one row when hundreds are tripled, shuffled and concurrent; all get 200 [W4]', async () => {
    // Sequential, because each moves the clock.
    const owners: Awaited<ReturnType<typeof pending>>[] = []
    for (let count = 0; count < 6; count++) owners.push(await pending())
    const bodies = owners.flatMap(({ theirs }, index) => {
      if (index % 2 === 0) Object.assign(theirs, paid(theirs))
      return Array.from({ length: 40 }, (_, nth) =>
        eventAbout(nth % 3 === 0 ? 'invoice.paid' : 'invoice.payment_failed', theirs.id),
      )
    })
    const order =
      fc.sample(fc.shuffledSubarray([...bodies, ...bodies, ...bodies], { minLength: 3 * bodies.length }), {
        seed: 7,
        numRuns: 1,
      })[0] ?? []
    const statuses = new Set<number>()
    const lanes = Array.from({ length: 16 }, async (_, lane) => {
      for (let at = lane; at < order.length; at += 16) statuses.add((await send(order[at] ?? '')).status)
    })
    await Promise.all(lanes)
    expect([...statuses]).toEqual([200])
    const outcomes = gateway.logLines.flatMap(line => {
      const { event, event_id: id, outcome } = JSON.parse(line)
      return event.startsWith('payment_event_') && bodies.some(body => body.includes(`"${id}"`)) ? [outcome] : []
    })
    expect(outcomes.filter(outcome => outcome === 'applied').length).toBe(bodies.length)
    for (const [index, { person }] of owners.entries())
      expect(await getStatus(person)).toBe(index % 2 === 0 ? 'paid' : 'unpaid')
  }, 240_000)

  test('starts the grace period when Stripe reports a removed card', async () => {
    const person = await customer()
    await fetch(`${stripe.url}/v1/payment_methods/${person.card}/detach`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretKey}` },
    })
    expect((await send(eventAbout('payment_method.detached', person.card))).status).toBe(200)
    const { body } = await billing(person)
    expect(body).toMatchObject({ payment_method: null, payment_required: false })
    expect(body.grace_ends_at).not.toBeNull()
  })

  test('gets 503 when Stripe is unavailable, so that its repetition has the effect', async () => {
    const { person, theirs } = await pending()
    Object.assign(theirs, paid(theirs))
    const body = eventAbout('invoice.paid', theirs.id)
    stripe.isDown = true
    expect((await send(body)).status).toBe(503)
    stripe.isDown = false
    expect((await send(body)).status).toBe(200)
    expect(await getStatus(person)).toBe('paid')
  }, 240_000)

  test('leaves no body, signature or secret in a log line [W6]', async () => {
    const body = JSON.stringify({ ...JSON.parse(eventAbout('invoice.paid', 'in_0')), canary: 'canary_of_the_body' })
    const signature = getSignature(body, secret)
    await send(body, signature)
    await send(body, `${signature}0`)
    const log = gateway.logLines.join('\n')
    for (const canary of ['canary', secretKey, secret, nextSecret, signature]) expect(log).not.toContain(canary)
  })
})

describe('Stripe configuration', () => {
  const getProblems = (environment: Record<string, string>): readonly string[] => {
    try {
      readConfig(environment)
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.problems
      throw error
    }
  }

  test('prevents the start when the webhook secret is missing, empty or short [W2]', () => {
    for (const wrong of [
      undefined,
      '',
      '   ',
      'whsec_short',
      `${secret},`,
      `,${secret}`,
      `${secret},short`,
      `${secret},${secret},${secret}`,
    ]) {
      const given = wrong === undefined ? {} : { STRIPE_WEBHOOK_SECRET: wrong }
      expect(getProblems({ STRIPE_SECRET_KEY: secretKey, ...given })).toEqual([
        expect.stringContaining('STRIPE_WEBHOOK_SECRET'),
      ])
    }
    expect(getProblems({ STRIPE_WEBHOOK_SECRET: secret })).toEqual([expect.stringContaining('STRIPE_SECRET_KEY')])
    expect(getProblems({ STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: secret })).toEqual([])
    expect(getProblems({ STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: `${secret}, ${nextSecret}` })).toEqual([])
    expect(readConfig({}).stripe).toBeNull()
  })

  test('sends keys only over https, or over plain http to the own machine or network [W2]', () => {
    const at = (base: string) =>
      getProblems({ STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: secret, STRIPE_API_BASE: base })
    expect(at('https://api.stripe.com')).toEqual([])
    expect(at('http://127.0.0.1:12111')).toEqual([])
    expect(getProblems({ STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: secret, HOST: '0.0.0.0' })).toEqual([
      expect.stringContaining('PUBLIC_URL'),
    ])
    for (const wrong of ['http://api.stripe.com', 'ftp://x', 'https://u:p@api.stripe.com', 'https://api.stripe.com/v1'])
      expect(at(wrong)).toEqual([expect.stringContaining('STRIPE_API_BASE')])
  })
})
