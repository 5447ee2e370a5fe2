import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import type { QueryType } from '../../src/core/chat/chat.ts'
import { webPrices } from '../../src/core/chat/web-sources.ts'
import { plans } from '../../src/core/limits/plans.ts'
import { createLocalRateLimiters } from '../../src/core/limits/rate-limits.ts'
import { buildCatalog } from '../../src/core/models/models.ts'
import { estimate } from '../../src/dialects/native/estimate.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { createEstimateCalibration } from '../../src/learning/estimate-calibration.ts'
import { catalog } from '../../src/models/catalog.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { planWebAccess } from '../../src/web/web-plan.ts'
import { anyBodies } from '../harness/bodies.ts'

const readPrompt = openPromptAnalyzer().read

const address = 'http://localhost/api/v1/chat/estimate'

const findCaller = (accountId: string | null) =>
  accountId === null ? null : ({ accountId, keyId: 'key_1', plan: 'usage', limits: plans.usage } as const)

function start() {
  const clock = { time: Date.parse('2026-11-20T12:00:00Z'), now: () => clock.time }
  const names = buildCatalog(catalog)
  const calibration = createEstimateCalibration({ clock })
  const app = new Elysia({ normalize: false })
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      estimate({
        catalog: names,
        chooseModel: () => names.resolve('gpt-6-luna'),
        read: readPrompt,
        planWeb: (messages, scan) =>
          planWebAccess({ messages, web: 'auto' }, scan, {}, { canSearch: true, prices: webPrices, read: readPrompt }),
        calibration,
        recall: headers => findCaller(headers.get('x-test-account')),
        getAddress: request => request.headers.get('x-test-address') ?? 'one',
        clock,
        limits: createLocalRateLimiters(clock),
        bodies: anyBodies(),
      }),
    )
  const send = (body: string, headers: Record<string, string> = {}) =>
    app.handle(
      new Request(address, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
      }),
    )
  return {
    clock,
    calibration,
    sendRequest: (request: Request) => app.handle(request),
    send,
    post: (body: unknown) => send(JSON.stringify(body)),
  }
}
type Estimated = { model: string; input_tokens: number; estimated_cost_usd: number; models: object[] }
const read = async (answer: Response | Promise<Response>) =>
  (await (await answer).json()) as Estimated & { error: { code: string; message: string } }

const messages = [{ role: 'user', content: 'What is the capital of Peru?' }]

describe('POST /api/v1/chat/estimate', () => {
  test('200: calibrates with measured costs; an account’s own ones only for its key', async () => {
    const { post, send, calibration } = start()
    type Told = {
      query_type: QueryType
      typical_error_pct: number | null
      expected_output_tokens: number
      output_from: string
    }
    const told = async (answer: Response | Promise<Response>) => (await (await answer).json()) as Told
    const body = { messages, model: 'gpt-5.5' }
    const before = await told(post(body))
    expect(before).toMatchObject({ typical_error_pct: null, output_from: 'table' })
    for (let value = 0; value < 30; value++)
      calibration.settled('acc_1', before.query_type, { lengthRatio: 3, costRatio: 1.5 })
    for (let value = 0; value < 3_000; value++)
      calibration.settled('acc_2', before.query_type, { lengthRatio: 1, costRatio: 1.1 })
    const keyless = await told(post(body))
    expect(keyless).toMatchObject({ typical_error_pct: 10, output_from: 'traffic' })
    const own = await told(send(JSON.stringify(body), { 'x-test-account': 'acc_1' }))
    expect(own).toMatchObject({ typical_error_pct: 50, output_from: 'account' })
    expect(own.expected_output_tokens).toBeGreaterThan(1.5 * keyless.expected_output_tokens)
  })

  test('200: estimates the named model and every other one', async () => {
    const body = await read(start().post({ messages, model: 'gpt-5.5', max_output_tokens: 50 }))
    expect(body).toMatchObject({ model: 'openai/gpt-5.5', confidence: 'high', expected_output_tokens: 50 })
    expect(body.estimated_cost_usd).toBeGreaterThan(0)
    expect(body.models).toHaveLength(23)
  })

  test.each([{ messages }, { messages, model: 'gateway-ai' }, { prompt: 'hi' }])(
    '200: estimates %j for the model that automatic routing would choose',
    async body => {
      expect(await read(start().post(body))).toMatchObject({ model: 'openai/gpt-6-luna' })
    },
  )

  test('200: includes the cost of the web unless it is off', async () => {
    const body = { prompt: 'Search the web for the price of gold today', model: 'gpt-5.5' }
    const [auto, off] = [await read(start().post(body)), await read(start().post({ ...body, web: 'off' }))]
    expect(auto.estimated_cost_usd - off.estimated_cost_usd).toBeGreaterThan(0.005)
    expect((await start().post({ ...body, web: 'often' })).status).toBe(400)
  })

  test('200: counts text and image parts', async () => {
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: 'https://example.org/a.png', detail: 'low' } },
      { type: 'image', url: 'https://example.org/b.png', detail: 'low' },
    ]
    const { input_tokens } = await read(start().post({ messages: [{ role: 'user', content }], model: 'gpt-5.5' }))
    expect(input_tokens).toBeGreaterThan(2 * 85)
  })

  test.each<[unknown, number, string, string | null]>([
    [{}, 400, 'invalid_request', 'messages'],
    [{ messages: [] }, 400, 'invalid_request', 'messages'],
    [{ messages, prompt: 'hi' }, 400, 'invalid_request', 'prompt'],
    [{ messages: [{ role: 'robot', content: 'hi' }] }, 400, 'invalid_request', 'messages.0.role'],
    [{ messages: [{ role: 'user', content: 5 }] }, 400, 'invalid_request', 'messages.0.content'],
    [{ messages, max_output_tokens: 0 }, 400, 'invalid_request', 'max_output_tokens'],
    [{ messages, max_output_tokens: '5' }, 400, 'invalid_request', 'max_output_tokens'],
    [{ messages, surprise: 1 }, 400, 'invalid_request', 'surprise'],
    [{ messages, model: 'nobody' }, 404, 'model_not_found', 'model'],
    [{ prompt: 'a'.repeat(32_769) }, 400, 'invalid_request', 'prompt'],
    [
      { messages: Array.from({ length: 5 }, () => ({ role: 'user', content: 'a'.repeat(8_000) })) },
      413,
      'body_too_large',
      'messages',
    ],
  ])('%.60j: %i %s, naming %s', async (body, status, code, param) => {
    const answer = await start().post(body)
    expect(answer.status).toBe(status)
    expect((await read(answer)).error).toMatchObject({ code, param })
  })

  test('400 model_deprecated: names the successor of a retired model', async () => {
    const { clock, post } = start()
    clock.time = Date.parse('2026-12-01T00:00:00Z')
    const answer = await post({ messages, model: 'gemini-2.5-pro' })
    expect(answer.status).toBe(400)
    const { error } = await read(answer)
    expect(error).toMatchObject({ code: 'model_deprecated', param: 'model' })
    expect(error.message).toContain('google/gemini-3.8-flash')
    expect((await read(post({ messages, model: 'gpt-5.5' }))).models).toHaveLength(20)
  })

  test('grants the CORS preflight, with readable errors', async () => {
    const { sendRequest: send, post } = start()
    const preflight = await send(new Request(address, { method: 'OPTIONS' }))
    const origins = [preflight, await post({ messages }), await post({})]
    expect(origins.map(({ status }) => status)).toEqual([204, 200, 400])
    for (const { headers } of origins) expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type')
  })

  test('429 names the account when the client has a key, and all clients when their limit is reached', async () => {
    const { send } = start()
    const body = JSON.stringify({ prompt: 'hi' })
    const own = { 'x-test-account': 'acc_1' }
    for (let count = 0; count < 5; count += 1) expect((await send(body, own)).status).toBe(200)
    const { error } = await read(send(body, own))
    expect(error).toMatchObject({
      code: 'requests_per_minute_exceeded',
      message: expect.not.stringContaining('IP address'),
    })
    for (let count = 0; count < 45; count += 1)
      expect((await send(body, { 'x-test-address': `address ${count}` })).status).toBe(200)
    const full = await read(send(body, { 'x-test-address': 'another' }))
    expect(full.error.message).toStartWith('Too many requests of all clients.')
  })

  test('400 invalid_json, 413 body_too_large', async () => {
    const { send } = start()
    expect((await send('{')).status).toBe(400)
    expect((await send(`{"prompt":"${'a'.repeat(262_144)}"}`)).status).toBe(413)
  })

  test('429 ip_rate_limited from the sixth concurrent request with the retry time; another IP address continues', async () => {
    const { clock, send, post } = start()
    for (let count = 0; count < 5; count += 1) expect((await post({ prompt: 'hi' })).status).toBe(200)
    const refused = await post({ prompt: 'hi' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3'])
    expect(refused.headers.get('x-should-retry')).toBeNull()
    expect((await read(refused)).error.code).toBe('ip_rate_limited')
    expect((await send('{"prompt":"hi"}', { 'x-test-address': 'two' })).status).toBe(200)
    clock.time += 3_000
    expect((await post({ prompt: 'hi' })).status).toBe(200)
  })
})
