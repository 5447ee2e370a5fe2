/** Response headers on success and on failure. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Clock } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'
import { duration } from '../../src/http/headers.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const paths = ['/v1/chat/completions', '/api/v1/chat'] as const
const send = (text: string, fields: object = {}) => ({ messages: [{ role: 'user', content: text }], ...fields })

/** The system's clock, set to that time. */
function clockFrom(time: string): Clock {
  const ahead = Date.parse(time) - Date.now()
  return { ...systemClock, now: () => Date.now() + ahead }
}

let gateway: Gateway
beforeAll(async () => {
  // A day on which models that the catalog marks as deprecated still serve.
  gateway = await startGateway({}, { clock: clockFrom('2026-11-20T12:00:00Z') })
})
afterAll(() => gateway.stop())

type Failure = { error: { request_id: string; code: string } }

describe('x-request-id', () => {
  test.each([
    ['/', 200],
    ['/healthz', 200],
    ['/readyz', 200],
    ['/simulator/directives', 200],
    ['/v1/models', 200],
    ['/v1/models/gpt-5.5', 200],
    ['/v1/models/nobody', 404],
    ['/api/v1/models', 200],
    ['/api/v1/models/health', 200],
    ['/v1/chat/completions', 405],
    ['/nowhere', 404],
  ])('has a value: GET %s', async (path, status) => {
    const answer = await fetch(gateway.url + path)
    const body = (await answer.json()) as Partial<Failure>
    expect(answer.status).toBe(status)
    const id = answer.headers.get('x-request-id') ?? ''
    expect(id).toMatch(/^req_[0-9a-f]{32}$/)
    if (status !== 200) expect(body.error?.request_id).toBe(id)
    expect((await fetch(gateway.url + path)).headers.get('x-request-id')).not.toBe(id)
  })

  test('has a value on a 304, an estimate, a rejected estimate and a failed probe', async () => {
    const etag = (await fetch(`${gateway.url}/v1/models`)).headers.get('etag') ?? ''
    const held = await fetch(`${gateway.url}/v1/models`, { headers: { 'if-none-match': etag } })
    const good = await gateway.post('/api/v1/chat/estimate', { prompt: 'Hi' })
    const bad = await gateway.post('/api/v1/chat/estimate', {})
    gateway.deps.readiness.isReady = false
    const probe = await fetch(`${gateway.url}/readyz`)
    gateway.deps.readiness.isReady = true
    expect([held, good, bad, probe].map(({ status }) => status)).toEqual([304, 200, 400, 503])
    for (const { headers } of [held, good, bad, probe]) expect(headers.get('x-request-id')).toMatch(/^req_/)
    expect(((await bad.json()) as Failure).error.request_id).toBe(bad.headers.get('x-request-id') ?? '')
  })

  test('matches the body and the stream on chat', async () => {
    for (const [path, field] of [
      [paths[0], 'id'],
      [paths[1], 'request_id'],
    ] as const) {
      const whole = await gateway.post(path, send('Hi'))
      expect(((await whole.json()) as Record<string, string>)[field]).toBe(whole.headers.get('x-request-id') ?? '')
      const streamed = await gateway.post(path, send('Hi', { stream: true }))
      expect(await streamed.text()).toContain(`"${field}":"${streamed.headers.get('x-request-id')}"`)
      const failed = await gateway.post(path, send('[[sim:status=500]]'))
      expect(((await failed.json()) as Failure).error.request_id).toBe(failed.headers.get('x-request-id') ?? '')
    }
  })
})

const quotaStatus = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  'x-gateway-budget-remaining-usd',
]

describe('headers for a known key', () => {
  test('report remaining limits on success, on a client error and on a failure', async () => {
    await gateway.post(paths[0], send('Hi'))
    for (const path of paths)
      for (const fields of [{}, { stream: true }, { temperature: 7 }, { model: 'nobody' }]) {
        const { headers } = await gateway.post(path, send('Hi', fields))
        for (const name of quotaStatus) expect([name, headers.get(name)]).not.toEqual([name, null])
        expect(headers.get('x-ratelimit-reset-requests')).toMatch(/^(\d+ms|(\d+h)?(\d+m)?\d+s)$/)
        expect(Number(headers.get('x-gateway-budget-remaining-usd'))).toBeGreaterThan(0)
      }
  })

  test('report limits for an account that was never seen before, and reserve nothing for an invalid request', async () => {
    const unseen = await startGateway({}, { limits: { requestsPerMinute: 9, dailyTokens: 50_000 } })
    try {
      const { status, headers } = await unseen.post(paths[0], '{')
      expect(status).toBe(400)
      for (const name of quotaStatus) expect([name, headers.get(name)]).not.toEqual([name, null])
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('9')
      expect(headers.get('x-ratelimit-remaining-tokens')).toBe('50000')
    } finally {
      await unseen.stop()
    }
  })

  test('show no limits to an unauthenticated client', async () => {
    const { headers } = await gateway.post(paths[0], send('Hi'), { authorization: 'Bearer x' })
    for (const name of quotaStatus) expect(headers.get(name)).toBeNull()
    expect([headers.get('www-authenticate'), headers.get('x-should-retry')]).toEqual(['Bearer', 'false'])
  })

  test('name the serving model, its time, and for JSON its cost', async () => {
    for (const path of paths) {
      const whole = await gateway.post(path, send('[[sim:status=500,only=openai]] Hi', { model: 'gpt-5.5' }))
      expect(whole.status).toBe(200)
      expect(whole.headers.get('x-gateway-model')).not.toStartWith('openai/')
      expect(whole.headers.get('x-gateway-attempts')).toBe('2')
      expect(Number(whole.headers.get('x-gateway-overhead-ms'))).toBeGreaterThanOrEqual(0)
      const { usage } = (await whole.json()) as { usage: { cost_usd: number } }
      expect(Number(whole.headers.get('x-gateway-cost-usd'))).toBe(usage.cost_usd)
      const streamed = await gateway.post(path, send('Hi', { stream: true, model: 'gpt-5.5' }))
      expect(streamed.headers.get('x-gateway-model')).toBe('openai/gpt-5.5')
      expect(streamed.headers.get('x-gateway-provider')).toBe('openai')
      expect(streamed.headers.get('x-gateway-cost-usd')).toBeNull()
      await streamed.text()
    }
  })

  test('name parameters that the model does not support', async () => {
    const { headers } = await gateway.post(paths[0], send('Hi', { model: 'claude-haiku-4-5', seed: 7, logit_bias: {} }))
    expect(headers.get('x-gateway-dropped-params')).toContain('seed')
  })

  test('forbid caching', async () => {
    for (const fields of [{}, { temperature: 7 }])
      expect((await gateway.post(paths[0], send('Hi', fields))).headers.get('cache-control')).toBe('no-store')
    const stream = await gateway.post(paths[0], send('Hi', { stream: true }))
    expect(stream.headers.get('cache-control')).toBe('no-cache, no-store, no-transform')
    await stream.text()
  })
})

test('no candidate left: stops retries of client libraries, and a 503 names the retry time', async () => {
  const codes: Record<string, [number, string]> = {
    'status=500': [502, 'upstream_failed'],
    'status=429,retry_after=7': [503, 'no_model_available'],
    quota: [503, 'no_model_available'],
  }
  // A gateway of its own, because providers with this failure get a cooldown.
  const own = await startGateway()
  for (const [directive, [status, code]] of Object.entries(codes)) {
    const answer = await own.post(paths[0], send(`[[sim:${directive}]] Hi`, { model: 'gpt-5.5' }))
    expect([answer.status, ((await answer.json()) as Failure).error.code]).toEqual([status, code])
    expect(answer.headers.get('x-should-retry')).toBe('false')
    const wait = answer.headers.get('retry-after')
    if (status === 503) expect(Number(wait)).toBeGreaterThanOrEqual(1)
    else expect(wait).toBeNull()
    if (directive.includes('retry_after')) expect(wait).toBe('7')
  }
  await own.stop()
})

describe('deprecated model', () => {
  test('has RFC 9745 and RFC 8594 headers, streamed or not, and still serves', async () => {
    for (const path of paths)
      for (const stream of [false, true]) {
        const answer = await gateway.post(path, send('Hi', { model: 'gpt-4.1', stream }))
        expect(answer.status).toBe(200)
        const { headers } = answer
        const since = Number(headers.get('deprecation')?.slice(1))
        expect(headers.get('deprecation')).toStartWith('@')
        expect(since * 1000).toBeLessThanOrEqual(gateway.deps.clock.now())
        expect(headers.get('sunset')).toBe('Thu, 14 Jan 2027 00:00:00 GMT')
        expect(headers.get('link')).toContain('successor-version')
        await answer.text()
      }
  })

  test('does not affect another model', async () => {
    const { headers } = await gateway.post(paths[0], send('Hi', { model: 'gpt-5.5' }))
    expect([headers.get('deprecation'), headers.get('sunset')]).toEqual([null, null])
  })

  test('answers 400 model_deprecated with the successor from its date on', async () => {
    const late = await startGateway({}, { clock: clockFrom('2027-01-14T00:00:00Z') })
    for (const path of paths) {
      const answer = await late.post(path, send('Hi', { model: 'gpt-4.1' }))
      const { error } = (await answer.json()) as { error: Record<string, string> }
      expect([answer.status, error.code, error.param]).toEqual([400, 'model_deprecated', 'model'])
      expect(error.message).toContain('openai/gpt-6.1-terra')
    }
    await late.stop()
  })
})

test('formatDuration: has the form that client libraries read', () => {
  const shown = [0, 0.2, 999, 1000, 59_001, 60_000, 3_600_000, 3_723_000, 86_400_000].map(duration)
  expect(shown).toEqual(['0ms', '1ms', '999ms', '1s', '1m0s', '1m0s', '1h0m0s', '1h2m3s', '24h0m0s'])
})
