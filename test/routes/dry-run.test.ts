import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { fullName } from '../../src/core/models/models.ts'
import { type DryRun, dryRunShape } from '../../src/dialects/native/dry-run-schemas.ts'
import { catalog } from '../../src/models/catalog.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const path = '/api/v1/route'
async function dryRun(body: object): Promise<DryRun> {
  const answer = await gateway.post(path, body)
  const told: unknown = await answer.json()
  expect([answer.status, [...Value.Errors(dryRunShape, told)]]).toEqual([200, []])
  return told as DryRun
}
const easy = { prompt: 'What is the capital of Peru?' }
const hard = {
  prompt:
    'Prove that the scheduler below cannot deadlock, derive its worst case complexity, then refactor it into a lock-free queue in Rust with tests and explain each memory ordering.',
}

test('POST /api/v1/route: 200: lists candidates in order with score components, and all dropped models with reasons', async () => {
  const told = await dryRun(easy)
  expect(told).toMatchObject({ mode: 'auto', strategy: null, level: 'light', kept: false, language: 'en' })
  for (const { parts, score, reasons, estimated_cost_usd } of told.candidates) {
    expect(parts && Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(score, 3)
    expect(reasons.length).toBeGreaterThan(0)
    expect(estimated_cost_usd).toBeGreaterThan(0)
  }
  const names = [...told.candidates, ...told.dropped].map(({ model }) => model)
  expect(names.toSorted()).toEqual(catalog.map(fullName).toSorted())
})

test('POST /api/v1/route: 200: reports a higher quality gain for a harder prompt', async () => {
  const [light, strong] = [await dryRun(easy), await dryRun(hard)]
  expect(strong.strong_gain).toBeGreaterThan(light.strong_gain)
  expect(strong.level).toBe('strong')
  expect(strong.difficulty.find(({ signal }) => signal === 'proof')?.weight).toBeGreaterThan(0)
  expect(strong.difficulty.length).toBeLessThanOrEqual(6)
  const getQuality = (told: DryRun) => told.candidates[0]?.figures.quality ?? 0
  expect(getQuality(strong)).toBeGreaterThan(getQuality(light))
})

test('POST /api/v1/route: 200: lists the ranges of request and material without their text, and every score', async () => {
  const [question, program] = ['Why does this loop never end?', '```js\nfor (let at = 0; at < 9; at--) run(at)\n```']
  const content = [
    { type: 'text', text: question },
    { type: 'text', text: program },
  ]
  const told = await dryRun({ messages: [{ role: 'user', content }] })
  expect(told.segments).toEqual([
    { kind: 'request', from: 0, to: question.length },
    { kind: 'material', from: question.length + 1, to: question.length + 1 + program.length },
  ])
  expect(JSON.stringify(told)).not.toContain('loop')
  const scores = Object.values(told.query_type_scores)
  expect(scores.reduce((sum, score) => sum + score, 0)).toBeCloseTo(1, 2)
  expect(told.query_type_scores[told.query_type]).toBe(Math.max(...scores))
  const recent = await dryRun({ prompt: 'Who won the match yesterday?' })
  expect([recent.needs_current, recent.needs_current_score > told.needs_current_score]).toEqual([true, true])
  const wrapped = '<user_query>What is it?</user_query>\n<system-reminder>Be brief.</system-reminder>\n'
  expect((await dryRun({ prompt: wrapped.repeat(600) })).segments).toHaveLength(1_000)
})

test('POST /api/v1/route: 200: applies strategy, test mode, a named model and the web', async () => {
  const test = await dryRun({ ...hard, strategy: 'quality', test_mode: true })
  expect([test.strategy, test.test_mode]).toEqual(['quality', true])
  const premium = new Set(catalog.filter(({ tier }) => tier === 'premium').map(fullName))
  expect(test.candidates.some(({ model }) => premium.has(model))).toBe(false)
  expect(test.dropped.filter(({ model }) => premium.has(model)).map(({ reason }) => reason)).toEqual(
    [...premium].map(() => 'premium model excluded by test_mode'),
  )
  const named = await dryRun({ ...easy, model: 'gpt-5.5' })
  expect([named.mode, named.candidates[0]?.model, named.candidates[0]?.parts]).toEqual([
    'manual',
    'openai/gpt-5.5',
    null,
  ])
  const web = await dryRun({ prompt: 'Who won the match yesterday? See https://example.com/sports' })
  expect(web.web.urls).toBe(1)
})

test('POST /api/v1/route: 200: counts the enhanced prompt', async () => {
  const body = { prompt: 'write a poem about autumn', model: 'gpt-5.5', web: 'off' }
  const told = (await (await gateway.post('/api/v1/chat/enhance', { prompt: body.prompt })).json()) as {
    readonly enhanced_prompt: string
  }
  const [plain, enhanced] = [await dryRun(body), await dryRun({ ...body, enhance_prompt: true })]
  expect(enhanced.input_tokens).toBe((await dryRun({ ...body, prompt: told.enhanced_prompt })).input_tokens)
  expect(enhanced.input_tokens).toBeGreaterThan(plain.input_tokens)
  expect(enhanced.candidates[0]?.estimated_cost_usd).toBeGreaterThan(plain.candidates[0]?.estimated_cost_usd ?? 0)
})

test('POST /api/v1/route: lists first the model that then answers', async () => {
  for (const body of [easy, hard, { ...easy, strategy: 'balanced' }]) {
    const told = await dryRun(body)
    const answer = (await (await gateway.post('/api/v1/chat', body)).json()) as { model_used: string }
    expect(answer.model_used).toBe(told.candidates[0]?.model ?? '')
  }
})

test('POST /api/v1/route: calls, bills and counts nothing', async () => {
  const quotaStatus = async () =>
    (await gateway.post('/api/v1/chat', { ...easy, max_output_tokens: 1 })).headers.get(
      'x-ratelimit-remaining-requests',
    )
  const before = Number(await quotaStatus())
  for (let value = 0; value < 5; value++) await dryRun(easy)
  expect(Number(await quotaStatus())).toBe(before - 1)
})

test('POST /api/v1/route: reports measured speed and the typical error of cost estimates', async () => {
  const body = { ...easy, model: 'gpt-6-luna', stream: true }
  for (let value = 0; value < 12; value++) await (await gateway.post('/api/v1/chat', body)).text()
  const told = await dryRun({ ...easy, model: 'gpt-6-luna' })
  const [luna] = told.candidates
  expect(luna?.figures.measured_tries).toBeGreaterThan(11)
  const published = catalog.find(({ id }) => id === 'gpt-6-luna')?.figures.firstTokenMs ?? 0
  expect(luna?.figures.first_token_ms).toBeLessThan(published / 2)
  expect(told.typical_error_pct).toBeGreaterThanOrEqual(0)
  const estimated = await (await gateway.post('/api/v1/chat/estimate', { ...easy, model: 'gpt-6-luna' })).json()
  expect(estimated).toMatchObject({ query_type: told.query_type, typical_error_pct: told.typical_error_pct })
})

test('quota headers: appear for every known key, on dry runs and insights', async () => {
  const headers = { authorization: `Bearer ${gateway.key}` }
  const answers = [
    await gateway.post(path, easy),
    await gateway.post(path, { ...easy, strategy: 'luck' }),
    ...(await Promise.all(
      ['learning', 'models', 'recommendations'].map(read =>
        fetch(`${gateway.url}/api/v1/insights/${read}`, { headers }),
      ),
    )),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 200, 200])
  for (const { headers: told } of answers)
    for (const name of ['x-ratelimit-remaining-requests', 'x-ratelimit-limit-tokens', 'x-gateway-budget-remaining-usd'])
      expect(told.get(name)).not.toBeNull()
})

test('POST /api/v1/route: 400: a body that chat rejects, and a request without an eligible model', async () => {
  for (const [body, param] of [
    [{ ...easy, stratgy: 'cost' }, 'stratgy'],
    [{ messages: [] }, 'messages'],
    [{ ...easy, model: 'gpt-5.5', max_output_tokens: 50_000_000 }, 'max_output_tokens'],
  ] as const) {
    const answer = await gateway.post(path, body)
    expect([answer.status, ((await answer.json()) as { error: { param: string } }).error.param]).toEqual([400, param])
  }
})

test('POST /api/v1/route: 401 without a key, 404 for an unknown model', async () => {
  expect((await fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(easy) })).status).toBe(401)
  expect((await gateway.post(path, { ...easy, model: 'nobody/knows' })).status).toBe(404)
})

test('POST /api/v1/route: 429 with a retry time after sixty per minute', async () => {
  const answers = await Promise.all(Array.from({ length: 80 }, () => gateway.post(path, easy)))
  const refused = answers.find(({ status }) => status === 429)
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
})
