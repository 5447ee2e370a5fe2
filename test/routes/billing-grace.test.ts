/** A declined invoice from the first email to the restored access: real Stripe format, real SMTP, moved clock. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { startNoticeWorker } from '../../src/console/billing/worker.ts'
import { cycleMs, graceMs, settlementDelayMs } from '../../src/core/billing/billing.ts'
import { systemClock } from '../../src/database/clock.ts'
import { createMailer } from '../../src/mail/mailer.ts'
import { createMail, smtpTransport } from '../../src/mail/queue.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { patient } from '../harness/patience.ts'
import { type SmtpServer, startSmtpServer } from '../harness/smtp.ts'
import { confirmedOwner, createKeyFor, type Person, sendRequest } from '../harness/users.ts'
import { addCard } from './billing-owners.ts'
import { getSignature, type StripeServer, startStripe } from './billing-stripe.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const publicUrl = 'https://gateway.example.test'
const secret = 'whsec_0123456789abcdefghijklmnop'
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let smtp: SmtpServer
let stripe: StripeServer
let gateway: Gateway
const environment = () => ({
  TRUSTED_PROXIES: '127.0.0.1',
  STRIPE_SECRET_KEY: 'sk_test_of_the_grace_period',
  STRIPE_WEBHOOK_SECRET: secret,
  STRIPE_API_BASE: stripe.url,
  PUBLIC_URL: publicUrl,
  SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
  MAIL_FROM: 'gateway@example.test',
})
beforeAll(async () => {
  smtp = startSmtpServer()
  stripe = startStripe('sk_test_of_the_grace_period')
  gateway = await startGateway(environment(), { clock, ...withoutTimer })
})
afterAll(async () => {
  await gateway.stop()
  await stripe.stop()
  smtp.stop()
})

/** Runs work at a moment in epoch milliseconds. The clock moves back afterwards, because sessions are of today. */
async function atTime<T>(time: number, work: () => Promise<T>): Promise<T> {
  ahead = time - systemClock.now()
  try {
    return await work()
  } finally {
    ahead = 0
  }
}

const billing = async ({ token }: Person, method = 'GET', path = '', body?: unknown) =>
  (await sendRequest(gateway, method, `/api/v1/billing${path}`, { token, body })).body
const subjectsTo = ({ email }: Person) =>
  smtp.letters
    .filter(({ to }) => to.includes(email))
    .map(({ text }) => /^Subject: (.*)$/m.exec(text)?.[1]?.trim())
    .filter(subject => subject?.startsWith('Your gateway-ai'))
const textsTo = ({ email }: Person) =>
  smtp.letters.filter(({ to, text }) => to.includes(email) && !text.includes('gw_verify_')).map(({ text }) => text)

const unpaid = 'Your gateway-ai invoice is unpaid'
const began = 'Your gateway-ai grace period has started'
const ended = 'Your gateway-ai grace period has ended'

/** An account on plan `usage` that used 7 USD and has a card that is declined. */
async function debtor() {
  const person = await confirmedOwner(gateway, smtp)
  const card = await addCard(gateway, stripe, person)
  await billing(person, 'POST', '/upgrade', { confirm: true })
  const { key } = await createKeyFor(gateway, person)
  await gateway.deps.database.run(
    ({ sql }) => sql`
      insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
        output_tokens, reasoning_tokens, billed_microcents)
      select id, (cycle_started_at at time zone 'UTC')::date + 2, 'k', 'openai/gpt-4.1', 1, 1, 10, 0, 10, 0, 700000000
      from accounts where id = ${person.accountId}`,
  )
  stripe.declined.add(card)
  return { ...person, card, key }
}

/** Collects the invoice, which is declined. Returns the time. */
async function decline(person: Person): Promise<number> {
  await atTime(systemClock.now() + cycleMs + settlementDelayMs + 60_000, () => gateway.deps.billingWorker.run())
  return Date.parse(String((await billing(person)).unpaid_since))
}

/** Sends the due emails of a moment, twice. */
const mailAt = (time: number) =>
  atTime(time, async () => {
    await gateway.deps.noticeWorker?.run()
    await gateway.deps.noticeWorker?.run()
  })

const chatAt = (time: number, key: string) =>
  atTime(time, () => sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'hi' } }))

describe('declined invoice', () => {
  test('blocks chat after the 1-hour grace period and three emails, until the invoice is paid', async () => {
    const person = await debtor()
    const declined = await decline(person)
    await mailAt(declined)
    expect(subjectsTo(person)).toEqual([unpaid, began])
    const [first = '', second = ''] = textsTo(person)
    expect(first).toContain('7.00 USD')
    expect(first).toContain(`${publicUrl}/#/billing`)
    expect(second).toContain(new Date(declined + graceMs).toISOString().slice(11, 16))
    await eventually(async () => (await chatAt(declined + graceMs, person.key)).status === 402, 2_500)
    expect((await chatAt(declined + graceMs - 5_000, person.key)).status).toBe(200)
    await mailAt(declined + graceMs - 5_000)
    expect(subjectsTo(person)).toHaveLength(2)
    await mailAt(declined + graceMs)
    expect(subjectsTo(person)).toEqual([unpaid, began, ended])
    // Collected and declined again: no email repeats.
    await atTime(declined + 2 * 86_400_000, () => gateway.deps.billingWorker.run())
    await mailAt(declined + 2 * 86_400_000)
    expect(subjectsTo(person)).toHaveLength(3)
    await addCard(gateway, stripe, person)
    await atTime(declined + graceMs + 60_000, () => gateway.deps.billingWorker.run())
    await eventually(async () => (await chatAt(declined + graceMs + 60_000, person.key)).status === 200, 2_500)
    expect(await billing(person)).toMatchObject({ unpaid_since: null, grace_ends_at: null, payment_required: false })
  })

  test('causes no further email when an event of Stripe reports its payment within the hour', async () => {
    const person = await debtor()
    const declined = await decline(person)
    await mailAt(declined)
    const theirs = [...stripe.invoices.values()].find(({ metadata }) => metadata.account_id === person.accountId)
    await fetch(theirs?.hosted_invoice_url ?? '', { method: 'POST' })
    const event = { id: 'evt_paid', type: 'invoice.paid', created: 1_800_000_000, data: { object: { id: theirs?.id } } }
    const body = JSON.stringify(event)
    const headers = { 'stripe-signature': getSignature(body, secret) }
    const answer = await fetch(`${gateway.url}/api/v1/billing/webhooks/stripe`, { method: 'POST', headers, body })
    expect(answer.status).toBe(200)
    await mailAt(declined + graceMs)
    expect(subjectsTo(person)).toEqual([unpaid, began])
    expect((await chatAt(declined + graceMs, person.key)).status).toBe(200)
  })

  test('causes one email from two gateways on one database after the mail server was busy', async () => {
    const person = await debtor()
    const declined = await decline(person)
    smtp.refuseNext('451 later', '451 later')
    await mailAt(declined)
    expect(subjectsTo(person)).toEqual([])
    const { database, log } = gateway.deps
    const transport = smtpTransport({
      url: environment().SMTP_URL,
      from: 'second@example.test',
      requireTls: false,
      openingMs: patient.mailOpeningMs,
    })
    const mail = createMail({ transport, clock, log })
    const post = createMailer(mail, publicUrl)
    const second = startNoticeWorker({ database, post, clock, log, ...withoutTimer })
    try {
      await atTime(declined + 15_000, () => Promise.all([gateway.deps.noticeWorker?.run(), second.run()]))
      expect(subjectsTo(person).toSorted()).toEqual([began, unpaid])
    } finally {
      await second.close()
      await mail.close()
    }
  })
})

test('removed payment method: starts the same grace period, with an email at its start and end', async () => {
  const person = await debtor()
  await billing(person, 'DELETE', '/payment-method')
  const { grace_ends_at } = await billing(person)
  const ends = Date.parse(String(grace_ends_at))
  await mailAt(ends - graceMs)
  expect(subjectsTo(person)).toEqual([began])
  expect(textsTo(person)[0]).toContain('no payment method')
  await mailAt(ends)
  await mailAt(ends + graceMs)
  expect(subjectsTo(person)).toEqual([began, ended])
})
