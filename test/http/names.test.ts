/** Names outside ASCII in every dialect, and responses that fail after the model answered. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { asciiName } from '../../src/core/text/safe-name.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { startUpstream, type Upstream } from '../harness/upstream.ts'

setDefaultTimeout(60_000)

const ids = ['模型-1', 'modèle', '100% "best", model\\x', '😀'] as const
const vectors = 'вектор'
const pricing = { input_per_mtok: 1, output_per_mtok: 10 }
const chunk = (delta: object, finish_reason: string | null, rest: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'x',
  choices: [{ index: 0, delta, finish_reason }],
  ...rest,
})
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const sse = [chunk({ content: 'Hi' }, null), chunk({}, 'stop', { usage })].map(
  item => `data: ${JSON.stringify(item)}\n\n`,
)

let upstream: Upstream
let gateway: Gateway
beforeAll(async () => {
  upstream = startUpstream(({ path }) =>
    path.endsWith('/embeddings')
      ? {
          headers: { 'content-type': 'application/json' },
          pieces: [JSON.stringify({ data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 3 } })],
        }
      : { headers: { 'content-type': 'text/event-stream' }, pieces: [...sse, 'data: [DONE]\n\n'] },
  )
  const models = ids.map(id => ({ id, pricing }))
  const embedding_models = [{ id: vectors, input_per_mtok: 1, max_input_tokens: 100, dimensions: 2 }]
  const file = { providers: [{ id: 'uni', base_url: upstream.url, models, embedding_models }] }
  gateway = await startGateway({}, { file })
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const hi = [{ role: 'user', content: 'Hi' }]
const dialects = {
  'Chat Completions': (model: string) => ['/v1/chat/completions', { model, messages: hi }],
  'a stream of Chat Completions': (model: string) => ['/v1/chat/completions', { model, messages: hi, stream: true }],
  Messages: (model: string) => ['/v1/messages', { model, messages: hi, max_tokens: 50 }],
  Responses: (model: string) => ['/v1/responses', { model, input: 'Hi' }],
  'the native API': (model: string) => ['/api/v1/chat', { model, prompt: 'Hi' }],
  embeddings: (_: string) => ['/v1/embeddings', { model: `uni/${vectors}`, input: 'Hi' }],
} satisfies Record<string, (model: string) => [string, object]>

describe('name of a model', () => {
  test.each(Object.entries(dialects))('reaches the client encoded in %s', async (dialect, request) => {
    for (const id of ids) {
      const [path, body] = request(`uni/${id}`)
      const answer = await gateway.post(path, body)
      const text = await answer.text()
      const name = dialect === 'embeddings' ? `uni/${vectors}` : `uni/${id}`
      expect([answer.status, answer.headers.get('x-gateway-model')]).toEqual([200, asciiName(name)])
      if (dialect !== 'embeddings') expect(answer.headers.get('x-gateway-requested-model')).toBe(asciiName(name))
      // The body has the name itself.
      if (dialect === 'Chat Completions') expect(JSON.parse(text).model).toBe(name)
    }
  })

  test('reaches metrics and the log', async () => {
    await (await gateway.post('/v1/chat/completions', { model: `uni/${ids[0]}`, messages: hi })).text()
    expect(await (await fetch(`${gateway.url}/metrics`)).text()).toContain(`model="${ids[0]}"`)
  })
})

describe('dropped parameters', () => {
  test('reach the header encoded and bounded', async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`поле_${index}`, 1]))
    const answer = await gateway.post('/v1/embeddings', { model: `uni/${vectors}`, input: 'Hi', ...many })
    expect(answer.status).toBe(200)
    const list = answer.headers.get('x-gateway-dropped-params') ?? ''
    expect(list).toStartWith(asciiName('поле_0'))
    expect(list).toMatch(/, and \d+ more$/)
    expect(list.length).toBeLessThan(1_100)
  })
})

describe('response that is lost after the model answered', () => {
  test.each(Object.entries(dialects))('gives no error that a client library repeats in %s', async (_, request) => {
    const { budget } = gateway.deps
    const { findWarning } = budget
    let failures = 0
    const failing = () => {
      failures += 1
      Object.assign(budget, { findWarning })
      throw new TypeError('header')
    }
    Object.assign(budget, { findWarning: failing })
    const before = upstream.ledger().length
    const [path, body] = request(`uni/${ids[0]}`)
    const answer = await gateway.post(path, body)
    expect([failures, upstream.ledger().length - before]).toEqual([1, 1])
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
      502,
      'false',
      null,
    ])
    expect(await answer.text()).toContain('is billed')
  })
})
