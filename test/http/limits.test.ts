/** The four limits over HTTP: cost and concurrent requests stay correct under concurrency. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { findRequest } from '../database/usage-row.ts'
import { newAccount, type TestAccount } from '../harness/account.ts'
import { eventually, untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const paths = ['/v1/chat/completions', '/api/v1/chat'] as const
const sendRequest = (text: string, fields: object = {}) => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user', content: text }],
  ...fields,
})

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

async function send(account: TestAccount, text: string, fields: object = {}, path: string = paths[0]) {
  const answer = await gateway.post(path, sendRequest(text, fields), account.headers)
  const body = await answer.text()
  const error = body.startsWith('{"error"') ? (JSON.parse(body).error as Record<string, string>) : null
  return { status: answer.status, headers: answer.headers, error, body }
}

const getRetry = ({ headers }: { headers: Headers }) => [headers.get('retry-after'), headers.get('x-should-retry')]

type Totals = { requests: number; tokens: number; billed: number; reserved: number; over: number }

/** Usage of an account in the ledger when all `expected` requests are in it. */
async function ledger(account: TestAccount, expected: number): Promise<Totals> {
  return untilFound(async () => {
    const [row] = await gateway.deps.database.run(({ orm }) =>
      orm.execute<Record<keyof Totals, string>>(sql`
        select count(*) as requests, coalesce(sum(input_tokens + output_tokens), 0) as tokens,
          coalesce(sum(billed_microcents), 0) as billed, coalesce(sum(reserved_microcents), 0) as reserved,
          count(*) filter (where billed_microcents > reserved_microcents) as over
        from usage_records where account_id = ${account.id}`),
    )
    const totals = Object.fromEntries(Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)])) as Totals
    return totals.requests >= expected ? totals : null
  })
}

describe('reached limit', () => {
  for (const path of paths) {
    test(`gets 429 with the retry time for requests per minute: ${path}`, async () => {
      const account = await newAccount(gateway, { requestsPerMinute: 2 })
      const startedAt = performance.now()
      for (const left of ['1', '0']) {
        const { status, headers } = await send(account, 'Hi', {}, path)
        expect([status, headers.get('x-ratelimit-remaining-requests')]).toEqual([200, left])
      }
      const refused = await send(account, 'Hi', {}, path)
      expect([refused.status, refused.error?.type, refused.error?.code]).toEqual([
        429,
        'rate_limit_error',
        'requests_per_minute_exceeded',
      ])
      // The oldest request leaves the minute 60 s after its admission.
      const wait = Number(refused.headers.get('retry-after'))
      expect(wait).toBeWithin(60 - Math.ceil((performance.now() - startedAt) / 1000), 61)
      expect(refused.headers.get('x-should-retry')).toBeNull()
      expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
      expect((await ledger(account, 2)).requests).toBe(2)
    })

    test(`gets 429 with the retry time for concurrent requests: ${path}`, async () => {
      const account = await newAccount(gateway, { concurrentRequests: 1 })
      const running = send(account, '[[sim:first_ms=1000]]', {}, path)
      const limits = { requestsPerMinute: 1, concurrentRequests: 1, dailyTokens: 1, dailyCostMicrocents: 1 }
      await eventually(
        () => gateway.deps.meter.quotaStatus(account.id, limits)?.reservations.remaining === 0,
        10_000,
        1,
      )
      const refused = await send(account, 'Hi', {}, path)
      expect([refused.status, refused.error?.type, refused.error?.code]).toEqual([
        429,
        'rate_limit_error',
        'concurrent_requests_exceeded',
      ])
      expect(getRetry(refused)).toEqual(['1', null])
      expect((await running).status).toBe(200)
      expect((await send(account, 'Hi', {}, path)).status).toBe(200)
    })

    test(`gets 429 with the retry time for daily tokens: ${path}`, async () => {
      const account = await newAccount(gateway, { dailyTokens: 200 })
      const untilMidnight = () => 86_400 - ((Date.now() / 1000) % 86_400)
      const before = untilMidnight()
      const refused = await send(account, 'word '.repeat(400), {}, path)
      const after = untilMidnight()
      expect([refused.status, refused.error?.type, refused.error?.code]).toEqual([
        429,
        'insufficient_quota',
        'daily_tokens_exceeded',
      ])
      const [wait, retry] = getRetry(refused)
      // Whole seconds; a wait over midnight is that of the next day.
      if (after < before) expect(Number(wait)).toBeWithin(Math.floor(after), Math.ceil(before) + 2)
      expect(retry).toBe('false')
      expect(refused.headers.get('x-ratelimit-remaining-tokens')).toBe('200')
    })

    test(`gets 429 with the retry time for daily cost: ${path}`, async () => {
      const account = await newAccount(gateway, { dailyCostMicrocents: 1_000 })
      const refused = await send(account, 'Hi', {}, path)
      expect([refused.status, refused.error?.type, refused.error?.code]).toEqual([
        429,
        'insufficient_quota',
        'daily_cost_exceeded',
      ])
      expect(getRetry(refused)[1]).toBe('false')
      expect(Number(getRetry(refused)[0])).toBeGreaterThan(0)
      expect(refused.headers.get('x-gateway-budget-remaining-usd')).toBe('0.00001')
    })
  }

  test('has the same status for a stream, before it begins', async () => {
    const account = await newAccount(gateway, { dailyCostMicrocents: 1_000 })
    for (const stream_mode of ['buffered', 'realtime'])
      expect((await send(account, 'Hi', { stream_mode })).error?.code).toBe('daily_cost_exceeded')
  })
})

test('rejected request: costs nothing and counts against no limit', async () => {
  const account = await newAccount(gateway, { dailyTokens: 300 })
  const before = (await send(account, '[[sim:tokens=5]] Hi', { max_tokens: 10 })).headers
  await ledger(account, 1)
  const names = ['x-ratelimit-remaining-requests', 'x-ratelimit-remaining-tokens', 'x-gateway-budget-remaining-usd']
  for (const fields of [
    { messages: [{ role: 'user', content: 'word '.repeat(600) }] },
    { temperature: 9 },
    { model: 'x' },
  ]) {
    const { status, headers } = await send(account, 'Hi', fields)
    expect(status).toBeGreaterThanOrEqual(400)
    for (const name of names) expect([name, headers.get(name)]).toEqual([name, before.get(name)])
  }
  // Records enter the ledger in their order: that of a rejected request would come before this one.
  expect((await send(account, '[[sim:tokens=5]] Hi', { max_tokens: 10 })).status).toBe(200)
  expect((await ledger(account, 2)).requests).toBe(2)
})

describe('two hundred concurrent requests', () => {
  /** Sends all requests and waits for all of their records. */
  const race = async (account: TestAccount, fields: object, text = '[[sim:tokens=20]] Hi') => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(account, text, fields)))
    const served = answers.filter(({ status }) => status === 200)
    const codes = new Set(answers.flatMap(({ error }) => (error === null ? [] : [error.code])))
    return { served, codes: [...codes], totals: await ledger(account, served.length) }
  }
  const wide = { requestsPerMinute: 10_000, concurrentRequests: 1_000 }

  test('never exceed the daily cost limit', async () => {
    const dailyCostMicrocents = 1_000_000
    const account = await newAccount(gateway, { ...wide, dailyCostMicrocents })
    for (const fields of [{ max_tokens: 30 }, { stream: true, max_tokens: 30 }, {}]) {
      const { codes, totals } = await race(account, fields)
      expect(codes).toEqual(['daily_cost_exceeded'])
      expect([totals.billed <= dailyCostMicrocents, totals.over]).toEqual([true, 0])
    }
    expect((await ledger(account, 1)).billed).toBeGreaterThan(dailyCostMicrocents * 0.5)
  })

  test('never exceed the daily token limit', async () => {
    const account = await newAccount(gateway, { ...wide, dailyTokens: 1_000 })
    const { served, codes, totals } = await race(account, { max_tokens: 30 })
    expect(codes).toEqual(['daily_tokens_exceeded'])
    expect([served.length > 0, totals.tokens <= 1_000, totals.over]).toEqual([true, true, 0])
  })

  test('share one concurrent request: one is served, and the reservation is released', async () => {
    const account = await newAccount(gateway, { ...wide, concurrentRequests: 1 })
    const { served, codes } = await race(account, {}, '[[sim:tokens=10,first_ms=3000]] Hi')
    expect([served.length, codes]).toEqual([1, ['concurrent_requests_exceeded']])
    expect((await send(account, 'Hi')).status).toBe(200)
  })

  test('share the requests per minute', async () => {
    const account = await newAccount(gateway, { ...wide, requestsPerMinute: 17 })
    const { served, codes, totals } = await race(account, { max_tokens: 5 })
    expect([served.length, codes, totals.requests]).toEqual([17, ['requests_per_minute_exceeded'], 17])
  })
})

test('bill: exceeds the reservation only when the provider ignores the cap, and matches the response', async () => {
  const account = await newAccount(gateway)
  let served = 0
  for (const directive of [
    'tokens=40',
    'usage_absurd',
    'usage_negative',
    'usage_nan',
    'no_usage',
    'usage_zero',
    'ignore_cap',
  ]) {
    const { status, body, headers } = await send(account, `[[sim:${directive}]] Hi`, {
      max_tokens: 16,
      fallback: false,
    })
    expect([directive, status]).toEqual([directive, 200])
    const id = headers.get('x-request-id') ?? ''
    await ledger(account, ++served)
    const row = await findRequest(gateway.deps.database, id)
    if (row === null) throw new Error(`${directive}: no row`)
    const { usage } = JSON.parse(body) as { usage: Record<string, number> }
    // Only a provider that ignores the cap exceeds the reservation: an account on `usage` owes what was used.
    const isWithin = row.billedMicrocents <= row.reservedMicrocents
    expect([directive, isWithin]).toEqual([directive, directive !== 'ignore_cap'])
    expect([usage.prompt_tokens, usage.completion_tokens]).toEqual([row.inputTokens, row.outputTokens])
    expect(usage.cost_usd).toBe(row.billedMicrocents / 1e8)
  }
})
