/** `POST /api/v1/route` for accounts at their limits: same result as the chat, and no reservation. */
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { newAccount, type TestAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { reportSkipped } from '../harness/needs.ts'
import { startRedis } from '../harness/redis.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const redis = await startRedis()
const places: (readonly [string, Gateway])[] = [['limits in process', await startGateway()]]
if (redis === null) reportSkipped('redis', 'POST /api/v1/route, limits in Redis')
else places.push(['limits in Redis', await startGateway({ REDIS_URL: redis.url })])
afterAll(async () => {
  for (const [, gateway] of places) await gateway.stop()
  await redis?.stop()
})

describe.each(places)('POST /api/v1/route, %s', (_, gateway) => {
  const body = { prompt: 'Say hello in French.', model: 'gpt-5.5', web: 'off' }

  async function send(path: string, account: TestAccount, fields: object = {}) {
    const answer = await gateway.post(path, { ...body, ...fields }, account.headers)
    const told: unknown = await answer.json()
    return { status: answer.status, headers: answer.headers, told }
  }
  const dryRun = (account: TestAccount, fields: object = {}) => send('/api/v1/route', account, fields)
  const chat = (account: TestAccount, fields: object = {}) => send('/api/v1/chat', account, fields)

  test.each([
    ['daily_tokens_exceeded', { dailyTokens: 10 }],
    ['daily_cost_exceeded', { dailyCostMicrocents: 100 }],
  ])('answers 429 %s like the chat when the remaining daily limit is too small', async (code, limits) => {
    const account = await newAccount(gateway, limits)
    const [dry, real] = [await dryRun(account), await chat(account)]
    expect(dry).toMatchObject({ status: 429, told: { error: { code, type: 'insufficient_quota' } } })
    expect(real).toMatchObject({ status: 429, told: { error: { code } } })
    expect(dry.headers.get('x-should-retry')).toBe('false')
    const [dryWait, realWait] = [dry, real].map(({ headers }) => Number(headers.get('retry-after')))
    expect(Math.abs((dryWait ?? 0) - (realWait ?? 0))).toBeLessThan(20)
  })

  test('answers 429 requests_per_minute_exceeded when the limit is reached, and 200 before', async () => {
    const account = await newAccount(gateway, { requestsPerMinute: 2 })
    for (let request = 0; request < 2; request++) {
      expect((await dryRun(account)).status).toBe(200)
      expect((await chat(account)).status).toBe(200)
    }
    const dry = await dryRun(account)
    expect(dry).toMatchObject({ status: 429, told: { error: { code: 'requests_per_minute_exceeded' } } })
    expect(Number(dry.headers.get('retry-after'))).toBeWithin(1, 61)
    expect(dry.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  })

  test('answers 429 concurrent_requests_exceeded while the only reservation is open, and 200 afterwards', async () => {
    const account = await newAccount(gateway, { concurrentRequests: 1 })
    const running = await gateway.post(
      '/api/v1/chat',
      { ...body, prompt: '[[sim:tokens=40,hang_after=1]] Hi', stream_mode: 'realtime' },
      account.headers,
    )
    expect(await dryRun(account)).toMatchObject({
      status: 429,
      told: { error: { code: 'concurrent_requests_exceeded' } },
    })
    await running.body?.cancel()
    await eventually(async () => (await dryRun(account)).status === 200)
    expect((await chat(account)).status).toBe(200)
  })

  test('reserves nothing: the chat can still use all remaining limits', async () => {
    const account = await newAccount(gateway, { requestsPerMinute: 1, concurrentRequests: 1 })
    const left = ({ headers }: { headers: Headers }) =>
      ['x-ratelimit-remaining-requests', 'x-ratelimit-remaining-tokens', 'x-gateway-budget-remaining-usd'].map(name =>
        headers.get(name),
      )
    const first = await dryRun(account)
    for (let run = 0; run < 5; run++) expect(left(await dryRun(account))).toEqual(left(first))
    expect((await chat(account)).status).toBe(200)
  })

  test('removes the web from the plan when the daily limit covers the output only', async () => {
    const prompt = 'Summarize https://example.com/ for me.'
    const fields = { prompt, web: 'auto', max_output_tokens: 10 }
    const rich = await newAccount(gateway, {})
    expect((await dryRun(rich, fields)).told).toMatchObject({ web: { urls: 1 } })
    const poor = await newAccount(gateway, { dailyTokens: 400 })
    expect(await dryRun(poor, fields)).toMatchObject({ status: 200, told: { web: { urls: 0, search: false } } })
  })

  test('puts an unhealthy named model first, and marks one with an open circuit as skipped', async () => {
    const account = await newAccount(gateway, {})
    const name = 'anthropic/claude-haiku-4-5'
    const fail = () => chat(account, { prompt: '[[sim:status=503,only=claude-haiku-4-5]] Hi', model: name })
    await fail()
    const asked = await dryRun(account, { model: name })
    expect(namesIn(asked.told)[0]).toBe(name)
    expect(JSON.stringify(asked.told)).toContain('it stays first because the request names it')
    for (let request = 0; request < 2; request++) await fail()
    const skipped = (await dryRun(account, { model: name })).told
    const order = namesIn(skipped)
    expect(order.at(-1)).toBe(name)
    expect(JSON.stringify(skipped)).toContain('skipped, and called only as the last resort: circuit_open')
    const { told } = await chat(account, { model: name })
    expect(told).toMatchObject({
      model_used: order[0],
      routing: {
        attempts: [
          { model: name, outcome: 'skipped_circuit_open' },
          { model: order[0], outcome: 'served' },
        ],
      },
    })
  })
})

function namesIn(told: unknown): readonly string[] {
  if (typeof told !== 'object' || told === null || !('candidates' in told) || !Array.isArray(told.candidates)) return []
  return told.candidates.flatMap((candidate: unknown) =>
    typeof candidate === 'object' && candidate !== null && 'model' in candidate && typeof candidate.model === 'string'
      ? [candidate.model]
      : [],
  )
}
