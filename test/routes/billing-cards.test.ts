/**
 * Cards of accounts, entered on Stripe's page: read from Stripe on return and by event, in any order, and never set by
 * a pasted ID.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cycleMs, graceMs, settlementDelayMs } from '../../src/core/billing/billing.ts'
import { systemClock } from '../../src/database/clock.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { createKeyFor, owner, type Person, sendRequest, upgraded } from '../harness/users.ts'
import { addCard, openSetup } from './billing-owners.ts'
import { getSignature, type StripeServer, startStripe } from './billing-stripe.ts'

const publicUrl = 'https://gateway.example.test'
const secret = 'whsec_0123456789abcdefghijklmnop'
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let stripe: StripeServer
let gateway: Gateway
beforeAll(async () => {
  stripe = startStripe('sk_test_of_the_cards')
  gateway = await startGateway(
    {
      TRUSTED_PROXIES: '127.0.0.1',
      STRIPE_SECRET_KEY: 'sk_test_of_the_cards',
      STRIPE_WEBHOOK_SECRET: secret,
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

const billing = ({ token }: Person, method = 'GET', path = '', body?: unknown) =>
  sendRequest<Record<string, unknown> & { error?: { code: string; message: string } }>(
    gateway,
    method,
    `/api/v1/billing${path}`,
    { token, body },
  )

let events = 0
/** An event signed by Stripe; the gateway must use only the ID of its object. */
async function send(type: string, id: string) {
  const data = { object: { id, status: 'complete', metadata: { account_id: 'acc_of_the_event' } } }
  const body = JSON.stringify({ id: `evt_card_${++events}`, type, created: 1_800_000_000, data })
  const headers = { 'stripe-signature': getSignature(body, secret) }
  const response = await fetch(`${gateway.url}/api/v1/billing/webhooks/stripe`, { method: 'POST', headers, body })
  await response.text()
  return { status: response.status }
}

test('POST payment-method/setup: leads to Stripe and back to the configured origin, whatever the host of the request [P8]', async () => {
  const person = await owner(gateway)
  const { body } = await sendRequest<{ url: string }>(gateway, 'POST', '/api/v1/billing/payment-method/setup', {
    token: person.token,
    body: {},
    headers: { host: 'localhost:1234', 'x-forwarded-host': 'evil.test', 'x-forwarded-for': '10.200.0.1' },
  })
  expect(body.url).toStartWith(`${stripe.url}/c/pay/cs_test_`)
  const session = stripe.sessions.get(body.url.split('/').at(-1) ?? '')
  expect(session).toMatchObject({
    metadata: { account_id: person.accountId },
    success_url: `${publicUrl}/#/billing?setup_session={CHECKOUT_SESSION_ID}`,
    cancel_url: `${publicUrl}/#/billing`,
  })
})

test('PUT payment-method: rejects a pasted ID and names the page for cards', async () => {
  const person = await owner(gateway)
  for (const body of [
    { payment_method: stripe.addMethod() },
    { payment_method: 'pm_unknown' },
    { payment_method: '' },
  ]) {
    const refused = await billing(person, 'PUT', '/payment-method', body)
    expect(refused).toMatchObject({ status: 400, body: { error: { param: 'payment_method' } } })
    expect(refused.body.error?.message).toContain('/api/v1/billing/payment-method/setup')
  }
  expect(await billing(person, 'PUT', '/payment-method', {})).toMatchObject({
    status: 400,
    body: { error: { param: 'setup_session' } },
  })
  expect((await billing(person)).body.payment_method).toBeNull()
  expect(stripe.requests).not.toContain('GET /v1/payment_methods/pm_unknown')
})

test('PUT payment-method: sets the card of a finished session before any event arrives', async () => {
  const person = await owner(gateway)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(402)
  const session = await openSetup(gateway, person)
  const put = (id = session) => billing(person, 'PUT', '/payment-method', { setup_session: id })
  expect(await put()).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  const card = stripe.enterCard(session)
  expect(await put()).toMatchObject({
    status: 200,
    body: { payment_method: { kind: 'stripe', brand: 'visa', last_four: '4242' } },
  })
  expect((await put()).status).toBe(200)
  const customerId = stripe.methods.get(card)?.customer ?? ''
  expect(stripe.customers.get(customerId)?.default).toBe(card)
  expect((await put('cs_test_unknown')).status).toBe(404)
  const stranger = await owner(gateway)
  const stolen = await billing(stranger, 'PUT', '/payment-method', { setup_session: session })
  const missing = await billing(stranger, 'PUT', '/payment-method', { setup_session: 'cs_test_unknown' })
  expect([stolen.status, stolen.body.error?.message]).toEqual([404, missing.body.error?.message])
})

test('PUT payment-method: replaces a card, detaches the old one, and charges the new one', async () => {
  const person = await owner(gateway)
  const old = await addCard(gateway, stripe, person)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(200)
  const card = await addCard(gateway, stripe, person)
  expect(stripe.requests).toContain(`POST /v1/payment_methods/${old}/detach`)
  await gateway.deps.database.run(
    ({ sql }) => sql`
      insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
        output_tokens, reasoning_tokens, billed_microcents)
      select id, (cycle_started_at at time zone 'UTC')::date + 2, 'k', 'openai/gpt-4.1', 1, 1, 10, 0, 10, 0, 700000000
      from accounts where id = ${person.accountId}`,
  )
  stripe.declined.add(old)
  ahead = cycleMs + settlementDelayMs + 60_000
  await gateway.deps.billingWorker.run()
  ahead = 0
  const invoices = await sendRequest<{ data: { status: string }[] }>(gateway, 'GET', '/api/v1/billing/invoices', {
    token: person.token,
  })
  expect(invoices.body.data.map(({ status }) => status)).toEqual(['paid'])
  expect((await billing(person, 'DELETE', '/payment-method')).status).toBe(204)
  expect(stripe.requests).toContain(`POST /v1/payment_methods/${card}/detach`)
})

test('checkout.session.completed: sets the card of an owner who never returns from the page', async () => {
  const person = await owner(gateway)
  const session = await openSetup(gateway, person)
  // An event may arrive before the page is finished, and contradict it: only Stripe's stored state counts.
  expect((await send('checkout.session.completed', session)).status).toBe(200)
  expect((await billing(person)).body.payment_method).toBeNull()
  const card = stripe.enterCard(session)
  expect((await send('checkout.session.completed', session)).status).toBe(200)
  expect((await billing(person)).body).toMatchObject({ payment_method: { kind: 'stripe', last_four: '4242' } })
  expect(stripe.customers.get(stripe.methods.get(card)?.customer ?? '')?.default).toBe(card)
})

test('checkout.session.completed: leaves the newest card in place, in whatever order events and returns arrive', async () => {
  const person = await owner(gateway)
  const sessions = [
    await openSetup(gateway, person),
    await openSetup(gateway, person),
    await openSetup(gateway, person),
  ]
  const cards = sessions.map(session => stripe.enterCard(session))
  const [first = '', second = '', third = ''] = sessions
  const defaultCard = () => stripe.customers.get(stripe.methods.get(cards[2] ?? '')?.customer ?? '')?.default
  expect((await send('checkout.session.completed', second)).status).toBe(200)
  expect(defaultCard()).toBe(cards[1])
  expect((await billing(person, 'PUT', '/payment-method', { setup_session: third })).status).toBe(200)
  const late = [first, second, third, first].map(session => send('checkout.session.completed', session))
  expect((await Promise.all(late)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(defaultCard()).toBe(cards[2])
  expect((await billing(person, 'PUT', '/payment-method', { setup_session: first })).status).toBe(409)
  // A late event does not restore a removed card.
  expect((await billing(person, 'DELETE', '/payment-method')).status).toBe(204)
  expect((await send('checkout.session.completed', third)).status).toBe(200)
  expect((await billing(person)).body.payment_method).toBeNull()
})

test('checkout.session.completed: sets nothing when account, customer, mode or result differ [W5]', async () => {
  const person = await owner(gateway)
  const other = await owner(gateway)
  await openSetup(gateway, other)
  const id = await openSetup(gateway, person)
  const card = stripe.enterCard(id)
  const session = stripe.sessions.get(id)
  const method = stripe.methods.get(card)
  if (session === undefined || method === undefined) throw new Error('the session and the card are at Stripe')
  const whole = { ...session, setup_intent: { ...session.setup_intent } }
  const owned = method.customer
  const foreign = [...stripe.customers.keys()].find(customerId => customerId !== owned) ?? ''
  const wrongs: [Partial<typeof whole>, string | null][] = [
    [{ metadata: { account_id: other.accountId } }, owned],
    [{ metadata: {} }, owned],
    [{ customer: foreign }, owned],
    [{ mode: 'payment' }, owned],
    [{ status: 'expired' }, owned],
    [{ setup_intent: { ...whole.setup_intent, status: 'requires_action' } }, owned],
    [{}, foreign],
    [{}, null],
  ]
  for (const [wrong, customerId] of wrongs) {
    Object.assign(session, whole, wrong)
    method.customer = customerId
    expect((await send('checkout.session.completed', id)).status).toBe(200)
    for (const { token } of [person, other])
      expect((await sendRequest(gateway, 'GET', '/api/v1/billing', { token })).body.payment_method).toBeNull()
  }
  Object.assign(session, whole)
  method.customer = owned
  expect((await send('checkout.session.completed', id)).status).toBe(200)
  expect((await billing(person)).body.payment_method).not.toBeNull()
})

test('PUT payment-method: sets one card once when returns and events race', async () => {
  const person = await owner(gateway)
  const session = await openSetup(gateway, person)
  stripe.enterCard(session)
  const racing = Array.from({ length: 12 }, async (_, nth) =>
    nth % 2 === 0
      ? (await send('checkout.session.completed', session)).status
      : (await billing(person, 'PUT', '/payment-method', { setup_session: session })).status,
  )
  expect(new Set(await Promise.all(racing))).toEqual(new Set([200]))
  const rows = await gateway.deps.database.run(
    ({ sql }) => sql`select removed_at from payment_methods where account_id = ${person.accountId}`,
  )
  expect([...rows]).toEqual([{ removed_at: null }])
})

test('DELETE payment-method: blocks chat with 402 after 1 hour, and a new card restores it immediately', async () => {
  const person = await owner(gateway)
  const { key } = await createKeyFor(gateway, person)
  const chatAt = async (late: number) => {
    ahead = late
    try {
      return await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'Say hello.' } })
    } finally {
      ahead = 0
    }
  }
  const remove = () => billing(person, 'DELETE', '/payment-method')
  // No method, and none needed.
  expect((await remove()).status).toBe(204)
  await addCard(gateway, stripe, person)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(200)
  expect((await remove()).status).toBe(204)
  const { grace_ends_at: ends } = (await billing(person)).body
  expect(Date.parse(String(ends)) - Date.now()).toBeGreaterThan(graceMs - 60_000)
  // A repeated removal does not start another hour.
  expect((await remove()).status).toBe(204)
  expect((await billing(person)).body).toMatchObject({ payment_method: null, grace_ends_at: ends })
  await eventually(async () => (await chatAt(graceMs + 1000)).status === 402, 10_000)
  expect((await chatAt(graceMs - 60_000)).status).toBe(200)
  await addCard(gateway, stripe, person)
  await eventually(async () => (await chatAt(graceMs + 1000)).status === 200, 10_000)
})

test('DELETE payment-method: leaves the agreement to manual invoicing that the operator made', async () => {
  const person = await owner(gateway)
  await upgraded(gateway, person)
  expect((await billing(person, 'DELETE', '/payment-method')).status).toBe(204)
  expect((await billing(person)).body).toMatchObject({ payment_method: { kind: 'manual' }, grace_ends_at: null })
})

test('deleted account: pays for its last cycle, and then has no card here or at Stripe', async () => {
  const person = await owner(gateway)
  const card = await addCard(gateway, stripe, person)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(200)
  const { key } = await createKeyFor(gateway, person)
  const { accountId, email, password, token } = person
  // Usage of 7 USD within the cycle, before the deletion.
  await gateway.deps.database.run(
    ({ sql }) => sql`
      insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
        billed_microcents, reserved_microcents, attempts, latency_ms)
      select ${`req_${accountId}`}, cycle_started_at + interval '1 ms', id, 'k', 'openai', 'gpt-4.1', 'auto', false, 'completed',
        10, 0, 0, 10, 0, false, 700000000, 700000000, 1, 5
      from accounts where id = ${accountId}`,
  )
  expect(
    (await sendRequest(gateway, 'DELETE', '/api/v1/account', { token, body: { name: email, password } })).status,
  ).toBe(204)
  // Not a chat: it would be one more request until the key has ended.
  await eventually(
    async () =>
      (await sendRequest(gateway, 'POST', '/api/v1/route', { token: key, body: { prompt: 'hi' } })).status === 401,
    10_000,
  )
  const rows = async () => {
    const { run } = gateway.deps.database
    const [found] = await run(
      ({ sql }) => sql<{ methods: number; paid: string | null }[]>`
        select (select count(*)::int from payment_methods where account_id = ${accountId}) as methods,
          (select sum(total_cents) from invoices where account_id = ${accountId} and status = 'paid') as paid`,
    )
    return found
  }
  await gateway.deps.billingWorker.run()
  // Requests that were open may still add usage.
  expect(await rows()).toEqual({ methods: 1, paid: null })
  expect(stripe.methods.get(card)?.customer).not.toBeNull()
  ahead = settlementDelayMs + 60_000
  await gateway.deps.billingWorker.run()
  ahead = 0
  expect(await rows()).toEqual({ methods: 0, paid: '700' })
  expect(stripe.methods.get(card)?.customer).toBeNull()
  // A late event about its card adds none.
  const session = [...stripe.sessions.values()].find(({ metadata }) => metadata.account_id === accountId)
  expect((await send('checkout.session.completed', session?.id ?? '')).status).toBe(200)
  expect((await rows())?.methods).toBe(0)
})

test('deleted accounts: lose their cards also when one cannot be detached, and when Stripe no longer has one', async () => {
  const people = await Promise.all(['a', 'b', 'c'].map(() => owner(gateway)))
  const cards: string[] = []
  for (const person of people) {
    cards.push(await addCard(gateway, stripe, person))
    const { token, email: name, password } = person
    expect((await sendRequest(gateway, 'DELETE', '/api/v1/account', { token, body: { name, password } })).status).toBe(
      204,
    )
  }
  const [stuck = '', gone = '', fine = ''] = cards
  const { run } = gateway.deps.database
  // The first in turn.
  await run(({ sql }) => sql`update payment_methods set id = 'pay_' where stripe_payment_method_id = ${stuck}`)
  stripe.stuck.add(stuck)
  stripe.methods.delete(gone)
  const left = async () =>
    (
      await run(
        ({ sql }) => sql<{ card: string }[]>`
          select stripe_payment_method_id as card from payment_methods
          where stripe_payment_method_id in (select json_array_elements_text(${JSON.stringify(cards)}::text::json))`,
      )
    ).map(({ card }) => card)
  await gateway.deps.billingWorker.run()
  expect(await left()).toEqual([stuck])
  expect(stripe.methods.get(fine)?.customer).toBeNull()
  stripe.stuck.clear()
  await gateway.deps.billingWorker.run()
  expect(await left()).toEqual([])
})
