/** Billing over HTTP with manual invoicing: every transition, 402, invoices, the soft cap. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { execute } from '../../src/commands/execute.ts'
import { changeBilling } from '../../src/console/billing/stores/billing.ts'
import { cycleMs, graceMs, settlementDelayMs } from '../../src/core/billing/billing.ts'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { systemClock } from '../../src/database/clock.ts'
import { changeAccount } from '../../src/database/repositories/accounts.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { createKeyFor, owner, type Person, sendRequest, upgraded } from '../harness/users.ts'

let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, { clock, ...withoutTimer })
}, 240_000)
afterAll(() => gateway.stop())

/** Sessions are of today: the clock moves for one step, and back. */
async function at<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
  ahead = milliseconds
  try {
    return await work()
  } finally {
    ahead = 0
  }
}

type Shown = {
  plan: string
  upgraded_by: string
  error?: { code: string; message: string }
  version: number
  plan_after_cycle: string
  cycle: { starts_at: string; ends_at: string; cost_usd: number } | null
  payment_method: { kind: string } | null
  grace_ends_at: string | null
  payment_required: boolean
  soft_cap: {
    monthly_usd: number
    used_usd: number
    warning: string | null
    period: string
    starts_at: string
    resets_at: string
  } | null
}

const billing = (person: Person, method = 'GET', path = '', body?: unknown) =>
  sendRequest<Shown>(gateway, method, `/api/v1/billing${path}`, { token: person.token, body })

const chat = (key: string, body: object = {}) =>
  sendRequest<{ model_used: string; usage: { cost_usd: number }; error?: { code: string; type: string } }>(
    gateway,
    'POST',
    '/api/v1/chat',
    {
      token: key,
      body: { prompt: 'Say hello.', ...body },
    },
  )

// First in this file: the others move the clock past the cycle of this account too.
test('first account: has a billing cycle, an agreement to manual invoicing, and an invoice for what it used', async () => {
  const { email, password } = gateway.deps.firstAccount ?? {}
  const { body: session } = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/auth/login', {
    body: { email, password },
  })
  const read = (path = '') => sendRequest<Shown>(gateway, 'GET', `/api/v1/billing${path}`, { token: session.token })
  const { body } = await read()
  expect(body).toMatchObject({ plan: 'usage', plan_after_cycle: 'usage', payment_method: { kind: 'manual' } })
  expect(Date.parse(body.cycle?.ends_at ?? '') - Date.parse(body.cycle?.starts_at ?? '')).toBe(cycleMs)
  const used = await chat(gateway.key)
  expect(used.status).toBe(200)
  const cost = used.body.usage.cost_usd
  await eventually(async () => (await read()).body.cycle?.cost_usd === cost, 10_000)
  await at(cycleMs + settlementDelayMs + 60_000, () => gateway.deps.billingWorker.run())
  const { body: invoices } = await sendRequest<{ data: { total_usd: number }[] }>(
    gateway,
    'GET',
    '/api/v1/billing/invoices',
    {
      token: session.token,
    },
  )
  expect(invoices.data.map(invoice => invoice.total_usd)).toEqual([cost])
}, 60_000)

test('upgrade: requires the operator when no payment processor is configured', async () => {
  const person = await owner(gateway)
  const refuse = async () => {
    const answer = await sendRequest<{ error: { code: string; message: string } }>(
      gateway,
      'POST',
      '/api/v1/billing/upgrade',
      {
        token: person.token,
        body: { confirm: true },
      },
    )
    expect([answer.status, answer.body.error.code]).toEqual([403, 'forbidden'])
    expect(answer.body.error.message).toContain(`\`${shellCommand('accounts plan <email> usage')}\``)
    expect((await billing(person)).body.upgraded_by).toBe('operator')
  }
  await refuse()
  expect((await billing(person)).body).toMatchObject({ plan: 'evaluation', version: 0, cycle: null })
  // Nor does a downgrade that has taken effect, before or after it is stored.
  await upgraded(gateway, person)
  expect((await billing(person, 'POST', '/downgrade', {})).status).toBe(200)
  const token = person.token
  const late = await at(cycleMs + 60_000, async () => {
    const session = await gateway.deps.tokens.sign({ userId: person.id, sessionId: getSession(token) })
    return sendRequest(gateway, 'POST', '/api/v1/billing/upgrade', { token: session.token, body: { confirm: true } })
  })
  expect(late.status).toBe(403)
  await at(cycleMs + 60_000, () => gateway.deps.billingWorker.run())
  await refuse()
})

test('upgrade: requires the operator when a removed payment method has started a grace period', async () => {
  const person = await owner(gateway)
  await upgraded(gateway, person)
  const { database, newId, clock: now } = gateway.deps
  const removal = { event: 'method_removed', at: now.now(), userId: person.id, newId } as const
  expect(await changeBilling(database, person.accountId, removal)).toBe('done')
  for (const downgraded of [false, true]) {
    if (downgraded) expect((await billing(person, 'POST', '/downgrade', {})).status).toBe(200)
    const { status, body } = await billing(person, 'POST', '/upgrade', { confirm: true })
    expect([status, body.error?.code]).toEqual([403, 'forbidden'])
    expect(body.error?.message).toContain(`\`${shellCommand('accounts plan <email> usage')}\``)
    const shown = (await billing(person)).body
    expect([shown.payment_method, typeof shown.grace_ends_at]).toEqual([null, 'string'])
  }
})

test('upgrade: succeeds for an owner when the operator allows it', async () => {
  const allowing = await startGateway({ TRUSTED_PROXIES: '127.0.0.1', OWNER_UPGRADES: 'allow' })
  try {
    const { token } = await owner(allowing)
    const read = (method = 'GET', path = '', body?: unknown) =>
      sendRequest<Shown>(allowing, method, `/api/v1/billing${path}`, { token, body })
    expect((await read()).body).toMatchObject({ plan: 'evaluation', upgraded_by: 'owner', payment_method: null })
    expect((await read('POST', '/upgrade', { confirm: false })).status).toBe(400)
    const { status, body } = await read('POST', '/upgrade', { confirm: true })
    expect(status).toBe(200)
    expect(body).toMatchObject({ plan: 'usage', payment_method: { kind: 'manual' }, grace_ends_at: null })
    expect(body.cycle).not.toBeNull()
    expect((await read('POST', '/upgrade', { confirm: true })).status).toBe(409)
  } finally {
    await allowing.stop()
  }
}, 240_000)

function getSession(token: string): string {
  const claims: { sid?: string } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return claims.sid ?? ''
}

test('plan: bills immediately after an upgrade, downgrades at the end of the cycle, and an upgrade cancels the downgrade', async () => {
  const person = await owner(gateway)
  expect((await billing(person)).body).toMatchObject({
    plan: 'evaluation',
    version: 0,
    cycle: null,
    payment_method: null,
  })
  await upgraded(gateway, person)
  const { body } = await billing(person)
  expect(body).toMatchObject({
    plan: 'usage',
    plan_after_cycle: 'usage',
    version: 1,
    payment_method: { kind: 'manual' },
  })
  expect(Date.parse(body.cycle?.ends_at ?? '') - Date.parse(body.cycle?.starts_at ?? '')).toBe(30 * 86_400_000)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).status).toBe(409)
  expect((await billing(person, 'POST', '/downgrade', {})).body).toMatchObject({
    plan: 'usage',
    plan_after_cycle: 'evaluation',
  })
  expect((await billing(person, 'POST', '/downgrade', {})).status).toBe(409)
  expect((await billing(person, 'POST', '/upgrade', { confirm: true })).body).toMatchObject({
    plan_after_cycle: 'usage',
    cycle: body.cycle,
  })
  await billing(person, 'POST', '/downgrade', {})
  await at(cycleMs + 60_000, () => gateway.deps.billingWorker.run())
  expect((await billing(person)).body).toMatchObject({ plan: 'evaluation', cycle: null, version: 5 })
})

test('billing input: names the field that is unknown, unconfirmed or not an amount [A5]', async () => {
  const person = await owner(gateway)
  const refused: [string, string, unknown, string][] = [
    ['POST', '/upgrade', {}, 'confirm'],
    ['POST', '/upgrade', { confirm: false }, 'confirm'],
    ['POST', '/upgrade', { confirm: true, plan: 'usage' }, 'plan'],
    ['POST', '/upgrade', { confirm: true, version: -1 }, 'version'],
    ['POST', '/downgrade', { balance: 5 }, 'balance'],
    ['PUT', '/payment-method', { payment_method: 'pm_1' }, 'payment_method'],
    ['PUT', '/payment-method', { setup_session: 'card' }, 'setup_session'],
    ['PUT', '/payment-method', { kind: 'manual' }, 'kind'],
    ['PUT', '/soft-cap', {}, 'monthly_usd'],
    ['PUT', '/soft-cap', { monthly_usd: -1 }, 'monthly_usd'],
    ['PUT', '/soft-cap', { monthly_usd: 1e300 }, 'monthly_usd'],
    ['PUT', '/soft-cap', { monthly_usd: '5' }, 'monthly_usd'],
  ]
  for (const [method, path, body, param] of refused) {
    const answer = await sendRequest<{ error: { param: string } }>(gateway, method, `/api/v1/billing${path}`, {
      token: person.token,
      body,
    })
    expect([path, answer.status, answer.body.error.param]).toEqual([path, 400, param])
  }
  expect((await billing(person)).body).toMatchObject({ plan: 'evaluation', version: 0, payment_method: null })
})

test('plan change: answers 409 for an old version, and one of concurrent upgrade and downgrade succeeds', async () => {
  const person = await owner(gateway)
  await upgraded(gateway, person)
  expect((await billing(person, 'POST', '/downgrade', { version: 0 })).status).toBe(409)
  for (let round = 0; round < 10; round++) {
    const { version } = (await billing(person)).body
    const answers = await Promise.all([
      billing(person, 'POST', '/downgrade', { version }),
      billing(person, 'POST', '/upgrade', { confirm: true, version }),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  }
})

describe('payment method without a payment processor', () => {
  test('rejects an entered one, and removes none: neither the agreement of the operator nor a missing one', async () => {
    const person = await owner(gateway)
    const { key } = await createKeyFor(gateway, person)
    const removeTwice = async () => {
      const before = (await billing(person)).body
      for (let count = 0; count < 2; count++)
        expect((await billing(person, 'DELETE', '/payment-method')).status).toBe(204)
      expect((await billing(person)).body).toEqual(before)
    }
    for (const body of [{}, { setup_session: 'cs_test_1' }])
      expect(await billing(person, 'PUT', '/payment-method', body)).toMatchObject({
        status: 404,
        body: { error: { code: 'not_found', message: expect.stringContaining('no payment method is needed') } },
      })
    await removeTwice()
    await upgraded(gateway, person)
    await removeTwice()
    expect((await billing(person)).body).toMatchObject({ payment_method: { kind: 'manual' }, grace_ends_at: null })
    // A card from the time when the gateway had a payment processor.
    await gateway.deps.database.run(
      ({ sql }) => sql`
        update payment_methods set kind = 'stripe', stripe_payment_method_id = 'pm_former'
        where account_id = ${person.accountId}`,
    )
    await removeTwice()
    await gateway.deps.keys.look()
    expect((await at(graceMs + 1000, () => chat(key))).status).toBe(200)
  })

  test('ends the grace period of a card when the operator upgrades the account', async () => {
    const person = await owner(gateway)
    const { key } = await createKeyFor(gateway, person)
    await upgraded(gateway, person)
    const { database, newId } = gateway.deps
    const removed = { event: 'method_removed', at: Date.now(), userId: null, newId } as const
    expect(await changeBilling(database, person.accountId, removed)).toBe('done')
    await gateway.deps.keys.look()
    const refused = await at(graceMs + 1000, () => chat(key))
    expect(refused).toMatchObject({ status: 402, body: { error: { code: 'payment_required', type: 'billing_error' } } })
    await operatorMoves(person, 'usage')
    expect((await billing(person)).body).toMatchObject({ payment_method: { kind: 'manual' }, grace_ends_at: null })
    await gateway.deps.keys.look()
    expect((await at(graceMs + 1000, () => chat(key))).status).toBe(200)
  })
})

/** `accounts plan`, run by the operator beside the running gateway. */
async function operatorMoves({ email }: Person, plan: string) {
  const { databaseUrl, dataDirectory } = gateway.deps.config
  const own = process.env
  process.env = { GATEWAY_DATA_DIR: dataDirectory, ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl }) }
  const out = spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    expect(await execute(['accounts', 'plan', email, plan], '0')).toBe(0)
  } finally {
    process.env = own
    out.mockRestore()
  }
}

test('operator changes the plan: starts and ends billing immediately, with one invoice for the usage in between', async () => {
  const person = await owner(gateway)
  const { key } = await createKeyFor(gateway, person)
  await operatorMoves(person, 'usage')
  const begun = (await billing(person)).body
  expect(begun).toMatchObject({ plan: 'usage', version: 1, payment_method: { kind: 'manual' } })
  expect(Date.parse(begun.cycle?.ends_at ?? '') - Date.parse(begun.cycle?.starts_at ?? '')).toBe(cycleMs)
  await operatorMoves(person, 'usage')
  expect((await billing(person)).body).toEqual(begun)
  const paid = await chat(key)
  expect(paid.status).toBe(200)
  await operatorMoves(person, 'evaluation')
  const ended = (await billing(person)).body
  expect(ended).toMatchObject({ plan: 'evaluation', plan_after_cycle: 'evaluation', version: 2, cycle: null })
  expect(ended.grace_ends_at).toBeNull()
  const free = await chat(key)
  expect([free.status, free.body.usage.cost_usd > 0]).toEqual([200, true])
  const records = () =>
    gateway.deps.database.run(
      ({ sql }) => sql`select request_id from usage_records where account_id = ${person.accountId}`,
    )
  await eventually(async () => (await records()).length === 2, 3000)
  for (const cycles of [1, 2, 3])
    await at(cycles * cycleMs + settlementDelayMs + 60_000, () => gateway.deps.billingWorker.run())
  const { body } = await sendRequest<{ data: { total_usd: number }[] }>(gateway, 'GET', '/api/v1/billing/invoices', {
    token: person.token,
  })
  expect(body.data.map(invoice => invoice.total_usd)).toEqual([paid.body.usage.cost_usd])
})

test('invoice: has the exact usage with a line per model, hidden from another owner', async () => {
  const person = await owner(gateway)
  const { key } = await createKeyFor(gateway, person)
  const before = await chat(key)
  expect(before.status).toBe(200)
  await upgraded(gateway, person)
  const answers = [
    await chat(key, { model: 'openai/gpt-4.1' }),
    await chat(key, { model: 'openai/gpt-4.1', prompt: 'Say hello again, and at length.' }),
    await chat(key, { model: 'anthropic/claude-sonnet-4-5' }),
  ]
  const costs = new Map<string, number>()
  for (const { status, body } of answers) {
    expect(status).toBe(200)
    costs.set(body.model_used, (costs.get(body.model_used) ?? 0) + Math.round(body.usage.cost_usd * 1e8))
  }
  const total = [...costs.values()].reduce((sum, cost) => sum + cost, 0)
  await eventually(async () => Math.round(((await billing(person)).body.cycle?.cost_usd ?? 0) * 1e8) === total, 3000)
  await at(cycleMs + settlementDelayMs + 60_000, () => gateway.deps.billingWorker.run())
  const { body } = await sendRequest<{ data: { id: string; status: string; total_usd: number }[] }>(
    gateway,
    'GET',
    '/api/v1/billing/invoices',
    { token: person.token },
  )
  const [invoice, ...others] = body.data
  expect(others).toEqual([])
  expect(invoice).toMatchObject({ status: 'paid', total_usd: total / 1e8 })
  const path = `/api/v1/billing/invoices/${invoice?.id}`
  const shown = await sendRequest<{ lines: { model: string; cost_usd: number; requests: number }[] }>(
    gateway,
    'GET',
    path,
    {
      token: person.token,
    },
  )
  expect(new Map(shown.body.lines.map(line => [line.model, Math.round(line.cost_usd * 1e8)]))).toEqual(costs)
  const stranger = await owner(gateway)
  expect((await sendRequest(gateway, 'GET', path, { token: stranger.token })).status).toBe(404)

  type Breakdown = { lines: { kind: string; id: string | null; name: string | null; cost_usd: number }[] }
  const breakdown = (query: string, { token } = person) =>
    sendRequest<Breakdown>(gateway, 'GET', `${path}/breakdown?${query}`, { token })
  const amounts = async (query: string) =>
    (await breakdown(query)).body.lines.map(({ kind, id, name, cost_usd }) => [
      kind,
      id,
      name,
      Math.round(cost_usd * 1e8),
    ])
  expect(await amounts('by=key')).toEqual([['usage', expect.stringMatching(/^key_/), 'key', total]])
  expect(await amounts('by=member')).toEqual([['usage', person.id, person.email, total]])
  expect(await amounts('by=dialect')).toEqual([['usage', 'native', null, total]])
  expect(await amounts('by=tag&tag=team')).toEqual([['untagged', null, null, total]])
  expect(new Map((await amounts('by=model')).map(([, id, , cost]) => [String(id), Number(cost)]))).toEqual(costs)
  const csv = await fetch(`${gateway.url}${path}/breakdown?by=key&format=csv`, {
    headers: { authorization: `Bearer ${person.token}` },
  })
  expect(csv.headers.get('content-disposition')).toContain(`invoice-${invoice?.id}-by-key.csv`)
  const [header, line, ...rest] = (await csv.text()).trimEnd().split('\r\n')
  expect(header).toStartWith('"kind","id","name","requests"')
  expect(line).toEndWith(`"${(total / 1e8).toFixed(8)}"`)
  expect(rest).toEqual([])
  expect((await breakdown('by=key', stranger)).status).toBe(404)
  for (const query of ['', 'by=day', 'by=tag', 'by=tag&tag=a%3Db', 'by=key&tag=team', 'by=key&by=key', 'by=key&x=1'])
    expect([query, (await breakdown(query)).status]).toEqual([query, 400])
})

describe('monthly soft cap', () => {
  test('counts a request as soon as this process has settled it', async () => {
    const { accountId, deps } = gateway
    const { usage: limits } = deps.config.plans
    const caller = { accountId, keyId: 'key_cap', plan: 'usage', limits, softCapMicrocents: 1e12 } as const
    const before = deps.budget.getShare(caller)
    const { body } = await chat(gateway.key)
    expect(deps.budget.getShare(caller)).toBeGreaterThanOrEqual(before + (body.usage.cost_usd * 1e8) / 1e12)
  })

  test('adds a warning header and prefers cheaper models from 80%, and never blocks', async () => {
    const person = await owner(gateway)
    await upgraded(gateway, person)
    // Polls often, because the test waits for the result.
    await changeAccount(gateway.deps.database, person.accountId, { requestsPerMinute: 10_000 })
    const { key } = await createKeyFor(gateway, person)
    const hard = {
      prompt:
        'Prove that the halting problem is undecidable, derive the complexity of each step, then refactor this concurrent algorithm and analyse its trade-offs.',
      max_output_tokens: 50,
    }
    const first = await chat(key, hard)
    expect(first.headers.get('x-gateway-budget-warning')).toBeNull()
    const spent = async () => (await billing(person)).body.cycle?.cost_usd ?? 0
    await eventually(async () => (await spent()) > 0, 3000)
    expect(
      (await billing(person, 'PUT', '/soft-cap', { monthly_usd: (await spent()) * 1.1 })).body.soft_cap?.warning,
    ).toContain('90%')
    let warned = await chat(key, hard)
    await eventually(async () => {
      warned = await chat(key, hard)
      return warned.headers.get('x-gateway-budget-warning') !== null
    }, 3000)
    expect(warned.status).toBe(200)
    expect(warned.headers.get('x-gateway-budget-warning')).toMatch(
      /^\d+% of the soft cap of [\d.e-]+ USD for this billing cycle is used$/,
    )
    const streamed = await chatHeaders(key)
    expect(streamed.get('x-gateway-budget-warning')).not.toBeNull()
    const getPrice = (name: string) => gateway.deps.catalog.resolve(name)?.pricing.output ?? 0
    const leaned = await chat(key, hard)
    expect(getPrice(leaned.body.model_used)).toBeLessThan(getPrice(first.body.model_used))
    expect((await billing(person, 'PUT', '/soft-cap', { monthly_usd: null })).body.soft_cap).toBeNull()
    await eventually(async () => (await chat(key)).headers.get('x-gateway-budget-warning') === null, 2000)
  })
})

test('soft cap: counts the calendar month on plan evaluation, and the billing cycle from the upgrade on', async () => {
  const person = await owner(gateway)
  const now = new Date()
  const free = (await billing(person, 'PUT', '/soft-cap', { monthly_usd: 5 })).body.soft_cap
  expect(free).toMatchObject({
    period: 'calendar_month',
    starts_at: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString(),
    resets_at: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString(),
  })
  await upgraded(gateway, person)
  const { cycle, soft_cap } = (await billing(person, 'GET', '')).body
  expect(soft_cap).toMatchObject({ period: 'billing_cycle', starts_at: cycle?.starts_at, resets_at: cycle?.ends_at })
})

async function chatHeaders(key: string): Promise<Headers> {
  const answer = await gateway.post(
    '/v1/chat/completions',
    { model: 'gateway-ai', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    { authorization: `Bearer ${key}` },
  )
  await answer.text()
  return answer.headers
}

test('webhook: answers 404 without a payment processor [W2]', async () => {
  const answer = await sendRequest<{ error: { code: string } }>(gateway, 'POST', '/api/v1/billing/webhooks/stripe', {
    body: '{}',
  })
  expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found'])
})
