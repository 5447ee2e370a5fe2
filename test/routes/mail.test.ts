/** Emails of the gateway, read from the socket of a real mail server. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { ShownAlert } from '../../src/console/alerts/schemas.ts'
import { systemClock } from '../../src/database/clock.ts'
import { createMail, EmailRejectedError, smtpTransport } from '../../src/mail/queue.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { type SmtpServer, startSmtpServer } from '../harness/smtp.ts'
import { confirmedOwner, fromAnotherIp, owner, sendRequest, signIn } from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

type Failure = { readonly error: { readonly code: string } }

const publicUrl = 'http://gateway.internal:8080'
let smtp: SmtpServer
let gateway: Gateway
/** Milliseconds by which the gateway's clock is ahead. */
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
beforeAll(async () => {
  smtp = startSmtpServer()
  gateway = await startGateway(
    {
      TRUSTED_PROXIES: '127.0.0.1',
      SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      MAIL_FROM: 'Gateway <gateway@example.test>',
      PUBLIC_URL: publicUrl,
    },
    { clock },
  )
})
afterAll(async () => {
  await gateway.stop()
  smtp.stop()
})
let before = 0
beforeEach(() => {
  before = smtp.letters.length
})

/** Emails to an address, except confirmations. */
const lettersTo = (email: string) =>
  smtp.letters.filter(({ to, text }) => to.includes(email) && !text.includes('/#/verify/'))

async function letterTo(email: string) {
  await eventually(() => lettersTo(email).length > 0, 5000)
  const letter = lettersTo(email).at(-1)
  if (letter === undefined) throw new Error('no letter')
  return letter
}

const askReset = (email: string, headers = fromAnotherIp()) =>
  sendRequest(gateway, 'POST', '/api/v1/auth/reset', { body: { email }, headers })
const choose = (token: string, password: string) =>
  sendRequest<Failure>(gateway, 'POST', `/api/v1/auth/reset/${token}`, { body: { password } })
const resetTokenIn = (text: string) => /\/#\/reset\/(gw_reset_[\w-]{43})\s/.exec(text)?.[1] ?? 'none'

describe('invitation email', () => {
  test('goes only to the invited user, with a link under the configured address, whatever the request’s Host', async () => {
    const boss = await confirmedOwner(gateway, smtp)
    const { status, text } = await sendRequest(gateway, 'POST', '/api/v1/team/invitations', {
      token: boss.token,
      body: { email: 'invited@example.test' },
      headers: { ...fromAnotherIp(), host: 'localhost:1234', 'x-forwarded-host': 'evil.test' },
    })
    expect(status).toBe(201)
    expect(text).not.toContain('gw_invite_')
    const letter = await letterTo('invited@example.test')
    expect(letter.from).toBe('gateway@example.test')
    expect(letter.text).toContain(boss.email)
    expect(letter.text).not.toContain('evil.test')
    const token = /http:\/\/gateway\.internal:8080\/#\/invitation\/(gw_invite_[\w-]{43})\s/.exec(letter.text)?.[1]
    const accepted = await sendRequest(gateway, 'POST', `/api/v1/team/invitations/${token}/accept`, {
      body: { password: 'a password of mine' },
    })
    expect(accepted.status).toBe(201)
  })
})

describe('password reset', () => {
  test('sends an email, works once, and ends all sessions [P6] [P7]', async () => {
    const person = await confirmedOwner(gateway, smtp)
    expect((await askReset(person.email.toUpperCase())).status).toBe(202)
    const token = resetTokenIn((await letterTo(person.email)).text)
    expect((await choose(token, 'short')).status).toBe(400)
    expect((await choose(token, 'a new password')).status).toBe(204)
    expect((await sendRequest(gateway, 'GET', '/api/v1/account', { token: person.token })).status).toBe(401)
    expect(
      (await sendRequest(gateway, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: person.refreshToken } }))
        .status,
    ).toBe(401)
    expect(await signIn(gateway, person)).toBeNull()
    expect(await signIn(gateway, { ...person, password: 'a new password' })).not.toBeNull()
    expect((await choose(token, 'yet another one')).status).toBe(404)
  })

  test('responds alike for known and unknown addresses; only the known one gets an email [P6] [P7]', async () => {
    const person = await confirmedOwner(gateway, smtp)
    const [known, unknown] = [await askReset(person.email), await askReset('nobody@example.test')]
    const shape = ({ status, text, headers }: typeof known) => ({
      status,
      text,
      names: [...headers.keys()].filter(name => name !== 'date').sort(),
    })
    expect(shape(known)).toEqual(shape(unknown))
    await letterTo(person.email)
    expect(lettersTo('nobody@example.test')).toEqual([])
  })

  test('succeeds once for two concurrent uses of one token; a new token replaces the old one', async () => {
    const person = await confirmedOwner(gateway, smtp)
    await askReset(person.email)
    const first = resetTokenIn((await letterTo(person.email)).text)
    await askReset(person.email)
    await eventually(() => lettersTo(person.email).length === 2, 5000)
    expect((await choose(first, 'with the old token')).status).toBe(404)
    const second = resetTokenIn(lettersTo(person.email)[1]?.text ?? '')
    const racing = await Promise.all([1, 2, 3, 4].map(n => choose(second, `password number ${n}`)))
    expect(racing.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404])
  })

  test('expires after 30 minutes, and when the address has changed', async () => {
    const person = await confirmedOwner(gateway, smtp)
    const { database } = gateway.deps
    for (const change of ['late', 'moved'] as const) {
      const count = lettersTo(person.email).length
      await askReset(person.email)
      await eventually(() => lettersTo(person.email).length > count, 5000)
      const token = resetTokenIn(lettersTo(person.email).at(-1)?.text ?? '')
      await database.run(({ sql }) =>
        change === 'late'
          ? sql`update password_resets set expires_at = created_at + interval '30 minutes' - interval '31 minutes' where user_id = ${person.id}`
          : sql`update users set email = 'moved@example.test' where id = ${person.id}`,
      )
      expect((await choose(token, 'a new password')).status).toBe(404)
    }
  })

  test('ends the lockout of its address, because the mailbox proves ownership', async () => {
    const person = await confirmedOwner(gateway, smtp)
    for (let tries = 0; tries < 10; tries++) await signIn(gateway, { ...person, password: 'wrong password' })
    expect(await signIn(gateway, person)).toBeNull()
    await askReset(person.email)
    await eventually(() => lettersTo(person.email).some(({ text }) => text.includes('#/reset/')), 5000)
    const token = resetTokenIn(lettersTo(person.email).find(({ text }) => text.includes('#/reset/'))?.text ?? '')
    expect((await choose(token, 'a new password')).status).toBe(204)
    expect(await signIn(gateway, { ...person, password: 'a new password' })).not.toBeNull()
  })

  test('sends at most three emails per hour to a mailbox, with the same response', async () => {
    const person = await confirmedOwner(gateway, smtp)
    for (let count = 0; count < 5; count++) expect((await askReset(person.email)).status).toBe(202)
    // The queue sends in order: a fourth email would come before this one.
    const next = await confirmedOwner(gateway, smtp)
    await askReset(next.email)
    await letterTo(next.email)
    await eventually(() => lettersTo(person.email).length >= 3)
    expect(lettersTo(person.email)).toHaveLength(3)
  })

  test('leaves no token in the database or the log', async () => {
    const person = await confirmedOwner(gateway, smtp)
    await askReset(person.email)
    const token = resetTokenIn((await letterTo(person.email)).text)
    const rows = await gateway.deps.database.run(({ sql }) => sql`select password_resets::text from password_resets`)
    expect(JSON.stringify(rows)).not.toContain(token.slice(-43))
    expect(gateway.logLines.join('\n')).not.toContain(token.slice(-43))
    expect(gateway.logLines.join('\n')).not.toContain(person.email)
  })
})

test('sign-in lockout: sends one email to the user, and none for an unknown address [P5]', async () => {
  const person = await confirmedOwner(gateway, smtp)
  for (const email of [person.email, 'unknown@example.test'])
    for (let tries = 0; tries < 12; tries++) await signIn(gateway, { email, password: 'wrong password' })
  expect((await letterTo(person.email)).text).toContain('locked')
  expect(lettersTo(person.email)).toHaveLength(1)
  expect(lettersTo('unknown@example.test')).toEqual([])
})

test('soft cap: emails the owners once at 80% and once at 100%, by alerts that it creates', async () => {
  const person = await confirmedOwner(gateway, smtp)
  const { database, alertWorker, clock: moved } = gateway.deps
  const month = new Date(moved.now()).toISOString().slice(0, 7)
  const as = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(gateway, method, `/api/v1${path}`, { token: person.token, body })
  for (const monthly_usd of [1, 2, null, 1]) await as('PUT', '/billing/soft-cap', { monthly_usd })
  const { data } = (await as<{ data: ShownAlert[] }>('GET', '/alerts')).body
  expect(data.map(({ metric, threshold, budget, span }) => ({ metric, threshold, budget, span }))).toEqual(
    [0.8, 1].map(threshold => ({ metric: 'budget', threshold, budget: 'account', span: 'month' })),
  )
  const spend = async (microcents: number) => {
    await database.run(
      ({ sql }) => sql`
        insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
          output_tokens, reasoning_tokens, billed_microcents)
        values (${person.accountId}, ${`${month}-01`}::text::date, 'k', 'm', 1, 1, 0, 0, 0, 0, ${microcents})
        on conflict (account_id, day, key_id, model) do update set billed_microcents = excluded.billed_microcents`,
    )
    ahead += 61_000
    await Promise.all([alertWorker.run(), alertWorker.run()])
  }
  await spend(85_000_000)
  await eventually(() => lettersTo(person.email).length === 1, 10_000)
  await spend(90_000_000)
  await spend(120_000_000)
  await eventually(() => lettersTo(person.email).length >= 2, 10_000)
  const letters = lettersTo(person.email).map(({ text }) => text)
  expect(letters).toHaveLength(2)
  expect(letters[0]).toContain(`The account used 85% of its budget of 1.00 USD for ${month}.`)
  expect(letters[1]).toContain('Its threshold is 100%.')
})

test('test of an alert: emails its recipients, and reports what the mail server refused', async () => {
  const person = await confirmedOwner(gateway, smtp)
  const as = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(gateway, method, `/api/v1/alerts${path}`, { token: person.token, body })
  const { id } = (await as<ShownAlert>('POST', '', { metric: 'latency', threshold: 900 })).body
  expect((await as<object>('POST', `/${id}/test`)).body).toEqual({ emails: { sent: 1, failed: 0 }, webhooks: 0 })
  expect(lettersTo(person.email).at(-1)?.text).toContain('This is a test of an alert.')
  smtp.refuseNext('550 no such user')
  expect((await as<object>('POST', `/${id}/test`)).body).toEqual({ emails: { sent: 0, failed: 1 }, webhooks: 0 })
  const { data, delivery } = (await as<{ data: ShownAlert[]; delivery: object }>('GET', '')).body
  expect([data[0]?.firing, delivery]).toEqual([false, { email: true, webhooks: 0 }])
})

describe('email queue', () => {
  const letter = { kind: 'alert', to: 'a@example.test', subject: 's', text: 't' } as const
  const instant = {
    sleep: () => Promise.resolve(),
    after(_: number, action: () => void) {
      queueMicrotask(action)
      return () => {}
    },
  }
  const quiet = { warn: () => {} }

  test('retries failures, drops rejected emails, and holds at most its maximum', async () => {
    let tries = 0
    const events: string[] = []
    const log = { warn: (event: string) => void events.push(event) }
    const failing = createMail({
      transport: {
        async send() {
          if (++tries < 3) throw new Error('no connection')
        },
        close: () => {},
      },
      clock: instant,
      log,
    })
    failing.send(letter)
    await eventually(() => tries === 3, 1000)
    expect(events).toEqual([])

    const refusing = createMail({
      transport: { send: () => Promise.reject(new EmailRejectedError('refused with 550')), close: () => {} },
      clock: instant,
      log,
    })
    refusing.send(letter)
    await eventually(() => events.length === 1, 1000)
    expect(events).toEqual(['email_failed'])

    const stuck = createMail({ transport: { send: () => new Promise(() => {}), close: () => {} }, clock: instant, log })
    for (let count = 0; count < 1001; count++) stuck.send(letter)
    expect(events).toEqual(['email_failed', 'email_dropped'])
  })

  test('sends after the mail server was busy, and blocks no request meanwhile', async () => {
    const boss = await confirmedOwner(gateway, smtp)
    before = smtp.letters.length
    smtp.refuseNext('451 try again later')
    const { status } = await sendRequest(gateway, 'POST', '/api/v1/team/invitations', {
      token: boss.token,
      body: { email: 'patient@example.test' },
    })
    expect(status).toBe(201)
    // The server has rejected it once, and the response has not waited for the second attempt.
    expect(smtp.letters.length).toBe(before)
    await letterTo('patient@example.test')
    expect(smtp.letters.length).toBe(before + 1)
  })

  test('sends pending emails before the process ends', async () => {
    const sent: string[] = []
    const slow = createMail({
      transport: {
        async send({ to }) {
          await oneTurn()
          sent.push(to)
        },
        close: () => {},
      },
      clock: { ...instant, sleep: Bun.sleep },
      log: quiet,
    })
    for (let count = 0; count < 12; count++) slow.send(letter)
    await slow.close()
    expect(sent).toHaveLength(12)
  })

  test('reports the number of emails that wait for a retry when it closes', async () => {
    const events: unknown[] = []
    let waiting = 0
    const failing = createMail({
      transport: { send: () => Promise.reject(new Error('no connection')), close: () => {} },
      clock: {
        ...instant,
        after() {
          waiting++
          return () => {}
        },
      },
      log: { warn: (event, fields) => void events.push([event, fields]) },
    })
    failing.send(letter)
    failing.send(letter)
    await eventually(() => waiting === 2, 1000)
    await failing.close()
    expect(events).toEqual([['email_dropped', { waiting: 2 }]])
  })
})

test('password reset without email: answers 404 for every address', async () => {
  const plain = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  try {
    const known = await owner(plain)
    for (const email of [known.email, 'nobody@example.test'])
      expect((await sendRequest(plain, 'POST', '/api/v1/auth/reset', { body: { email } })).status).toBe(404)
  } finally {
    await plain.stop()
  }
})

describe('smtpTransport, on a permanent error', () => {
  const email = { kind: 'password_reset', to: 'one@example.test', subject: 's', text: 't' } as const

  test.each([
    ['the recipient', {}, '550 no such mailbox', true],
    ['the sender', { sender: '550 not allowed to send' }, null, false],
    ['every connection', { greeting: '554 no service' }, null, false],
  ] as const)('blames the email for: %s', async (_, options, refusal, isRejected) => {
    const server = startSmtpServer(options)
    if (refusal !== null) server.refuseNext(refusal)
    const transport = smtpTransport({
      url: `smtp://127.0.0.1:${server.port}`,
      from: 'g@example.test',
      requireTls: false,
      openingMs: 10_000,
    })
    try {
      const failure = await transport.send(email).catch((cause: unknown) => cause)
      expect(failure).toBeInstanceOf(Error)
      expect(failure instanceof EmailRejectedError).toBe(isRejected)
    } finally {
      transport.close()
      server.stop()
    }
  })
})
