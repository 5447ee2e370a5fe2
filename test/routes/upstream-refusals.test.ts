/** What clients learn of a refusal by the provider: its wait, its field and code, and nothing of its text. */

import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { leapingClock } from '../harness/moved-clock.ts'
import { startUpstream, type Upstream, type UpstreamAnswer, type UpstreamRequest } from '../harness/upstream.ts'

setDefaultTimeout(60_000)

const json = { 'content-type': 'application/json' }
const secret = 'canary-of-the-prompt'
let script: (request: UpstreamRequest) => UpstreamAnswer | Promise<UpstreamAnswer> = () => ({ status: 500 })
let upstream: Upstream
let gateway: Gateway
const { clock, leap } = leapingClock()
const firstByteMs = 31_000

beforeAll(async () => {
  upstream = startUpstream(request =>
    request.method === 'GET'
      ? { headers: json, pieces: ['{"object":"list","data":[{"id":"slow","object":"model"}]}'] }
      : script(request),
  )
  const model = (id: string) => ({
    id,
    pricing: { input_per_mtok: 1, output_per_mtok: 1 },
    capabilities: { tools: true },
  })
  const provider = (id: string, ids: string[]) => ({ id, base_url: `${upstream.url}/${id}/v1`, models: ids.map(model) })
  const providers = [provider('one', ['a', 'b', 'c', 'd', 'e', 'f']), provider('two', ['a'])]
  gateway = await startGateway({ OLLAMA_BASE_URL: `${upstream.url}/ollama` }, { clock, file: { providers } })
})
afterEach(() => {
  script = () => ({ status: 500 })
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const whole = (text: string) =>
  JSON.stringify({
    id: 'c',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  })
const refusal = (status: number, error: object, headers: Record<string, string> = {}): UpstreamAnswer => ({
  status,
  headers: { ...json, ...headers },
  pieces: [JSON.stringify({ error })],
})

type ErrorBody = { readonly error: Readonly<Record<string, unknown>> }
const messages = [{ role: 'user', content: 'Hi' }]
async function send(path: string, fields: object) {
  const answer = await gateway.post(path, { fallback: 'none', ...fields })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text }
}
const chat = (model: string, fields: object = {}) => send('/v1/chat/completions', { model, messages, ...fields })
const errorIn = ({ text }: { readonly text: string }) => (JSON.parse(text) as ErrorBody).error

describe('429 of the only upstream', () => {
  test.each([
    ['/v1/chat/completions', { messages }],
    ['/v1/responses', { input: 'Hi' }],
    ['/v1/messages', { messages, max_tokens: 10 }],
  ])('%s: has the wait of the upstream, and may be repeated', async (path, fields) => {
    script = () => refusal(429, { message: 'slow down' }, { 'retry-after': '90' })
    const answer = await send(path, { model: 'one/a', ...fields })
    expect([answer.status, errorIn(answer).type]).toEqual([429, 'rate_limit_error'])
    expect([answer.headers.get('retry-after'), answer.headers.get('x-should-retry')]).toEqual(['90', null])
  })

  test('advises against a retry only after three candidates', async () => {
    script = () => refusal(500, { message: 'broken' })
    const item = await chat('one/b')
    expect([item.status, item.headers.get('x-should-retry')]).toEqual([502, null])
    const three = await chat('one/c', { fallback: 'any', fallback_max_cost_factor: 1000 })
    expect([three.status, three.headers.get('x-should-retry')]).toEqual([502, 'false'])
  })
})

describe('400 of an upstream', () => {
  const quoted = `You said "${secret}".`
  test.each<readonly [string, object, object, Record<string, unknown>]>([
    [
      'a parameter and a code',
      { message: `Unsupported value. ${quoted}`, param: 'temperature', code: 'unsupported_value' },
      { temperature: 0.5 },
      { param: 'temperature', code: 'unsupported_parameter', upstream_code: 'unsupported_value' },
    ],
    [
      'the cap under the name that the client used',
      { message: quoted, param: 'max_tokens', code: 'invalid_value' },
      { max_completion_tokens: 10 },
      { param: 'max_completion_tokens', code: 'invalid_request', upstream_code: 'invalid_value' },
    ],
    [
      'a tool by its place',
      { message: quoted, param: 'tools[3].function.parameters' },
      {},
      { param: 'tools.3', code: 'invalid_request' },
    ],
    [
      'a parameter only in its text',
      { message: `Invalid value for 'top_p'. ${quoted}` },
      { top_p: 0.5 },
      { param: 'top_p', code: 'invalid_request' },
    ],
    [
      'a field that only the client knows',
      { message: quoted, param: 'my_field' },
      { my_field: 1 },
      { param: 'my_field', code: 'invalid_request' },
    ],
    [
      'words of the prompt as a parameter',
      { message: quoted, param: secret.replaceAll('-', '_') },
      {},
      { param: null },
    ],
    ['words of the prompt in quotes', { message: quoted }, {}, { param: null }],
  ])('with %s: names what is known, and nothing of its text', async (_, error, fields, expected) => {
    script = () => refusal(400, { type: 'invalid_request_error', ...error })
    const answer = await chat('one/d', fields)
    expect(answer.status).toBe(400)
    expect(errorIn(answer)).toMatchObject(expected)
    const { param, message } = errorIn(answer)
    if (typeof param === 'string') expect(message).toContain(`\`${param}\``)
    expect(answer.text).not.toContain('canary')
    expect(answer.text).not.toContain('You said')
  })

  test('names the field as each API calls it', async () => {
    script = () => refusal(422, { message: 'wrong', param: 'max_tokens' })
    const responses = await send('/v1/responses', { model: 'one/d', input: 'Hi', max_output_tokens: 9 })
    expect(errorIn(responses)).toMatchObject({ param: 'max_output_tokens' })
    const own = await send('/v1/messages', { model: 'one/d', messages, max_tokens: 9 })
    expect(errorIn(own)).toMatchObject({ param: 'max_tokens' })
    script = () => ({ status: 422, headers: json, pieces: ['{"detail":[{"loc":["body","temperature"],"msg":"no"}]}'] })
    expect(errorIn(await chat('one/d', { temperature: 1 }))).toMatchObject({ param: 'temperature' })
  })
})

describe('refused stream', () => {
  const unverified = {
    message: 'Your organization must be verified to stream this model.',
    type: 'invalid_request_error',
    param: 'stream',
    code: 'unsupported_value',
  }
  const unstreaming = ({ body }: UpstreamRequest) =>
    body.includes('"stream":true') ? refusal(400, unverified) : { headers: json, pieces: [whole('whole')] }
  const calls = () => upstream.ledger().filter(({ method }) => method === 'POST').length

  test('repeats the call without a stream, for JSON and streaming clients, and remembers it', async () => {
    script = unstreaming
    const before = calls()
    const first = await chat('one/e')
    expect([first.status, errorOrText(first.text)]).toEqual([200, 'whole'])
    expect(calls() - before).toBe(2)
    const streamed = await chat('one/e', { stream: true })
    expect([streamed.status, streamed.text.includes('"whole"'), streamed.text.endsWith('data: [DONE]\n\n')]).toEqual([
      200,
      true,
      true,
    ])
    expect(calls() - before).toBe(3)
  })

  test('waits for a whole output longer than for a first byte', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    script = async request => {
      if (!request.body.includes('"stream":true')) await promise
      return unstreaming(request)
    }
    const before = calls()
    const answer = chat('one/f')
    await eventually(() => calls() === before + 2)
    leap(firstByteMs)
    resolve()
    expect((await answer).status).toBe(200)
  })

  const errorOrText = (text: string) =>
    (JSON.parse(text) as { choices: { message: { content: string } }[] }).choices[0]?.message.content
})

test('local server: has time to load its model before its first byte', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  script = async () => {
    await promise
    return { headers: json, pieces: [whole('loaded')] }
  }
  const [serving, ending] = [chat('ollama/slow'), chat('two/a')]
  await upstream.until(ledger => ledger.filter(({ outcome }) => outcome === 'open').length === 2)
  leap(firstByteMs)
  const other = await ending
  resolve()
  const served = await serving
  expect([served.status, served.text.includes('loaded'), other.status]).toEqual([200, true, 504])
})

describe('thread', () => {
  test('gets the refusal after which the official SDK sends the whole conversation', async () => {
    const sent: string[] = []
    script = ({ body }) => {
      sent.push(body)
      const isFirst = sent.length === 1
      const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }
      const message = isFirst
        ? { role: 'assistant', content: null, tool_calls: [call] }
        : { role: 'assistant', content: '18' }
      const finish_reason = isFirst ? 'tool_calls' : 'stop'
      return { headers: json, pieces: [JSON.stringify({ id: 'c', choices: [{ index: 0, message, finish_reason }] })] }
    }
    const client = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0, logLevel: 'off' })
    const runner = client.beta.messages.toolRunner({
      model: 'two/a',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Weather in Oslo?' }],
      tools: [
        {
          name: 'weather',
          description: 'Weather of a place',
          input_schema: { type: 'object', properties: { city: { type: 'string' } } },
          run: () => 'sunny',
          parse: (input: unknown) => input,
        },
      ],
    })
    const last = await runner
    expect(last.content).toMatchObject([{ type: 'text', text: '18' }])
    expect(sent).toHaveLength(2)
    for (const part of ['Weather in Oslo?', 'call_1', 'sunny']) expect(sent[1]).toContain(part)
  })

  test.each(['thread', 'previous_response_id', 'previous_message_id', 'conversation', 'cached_content'])(
    '%s: is an error in each API, for models of Anthropic too',
    async field => {
      const code = field === 'thread' ? { details: { error_code: 'thread_unsupported_request' } } : {}
      for (const model of ['two/a', 'gateway-ai'])
        for (const [path, fields] of [
          ['/v1/messages', { messages, max_tokens: 10 }],
          ['/v1/chat/completions', { messages }],
          ['/v1/responses', { input: 'Hi' }],
        ] as const) {
          const answer = await send(path, {
            model,
            ...fields,
            [field]: field === 'thread' ? { type: 'create' } : 'x_1',
          })
          expect([path, answer.status]).toEqual([path, 400])
          expect(errorIn(answer)).toMatchObject({ param: field, ...(path === '/v1/messages' ? code : {}) })
        }
    },
  )

  test('container: is an error too', async () => {
    const answer = await send('/v1/messages', { model: 'two/a', messages, max_tokens: 10, container: 'c_1' })
    expect([answer.status, errorIn(answer).param]).toEqual([400, 'container'])
  })

  test('orphan tool result: is an error', async () => {
    const result = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny' }]
    const use = [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }]
    script = () => ({ headers: json, pieces: [whole('fine')], headDelayMs: 0 })
    const asked = (...turns: object[]) => send('/v1/messages', { model: 'two/a', max_tokens: 10, messages: turns })
    const [user, assistant] = [
      (content: unknown) => ({ role: 'user', content }),
      (content: unknown) => ({ role: 'assistant', content }),
    ]
    expect((await asked(user('Hi'), assistant(use), user(result))).status).toBe(200)
    expect((await asked(user('Hi'), assistant(use), user('wait'), user(result))).status).toBe(200)
    for (const turns of [
      [user(result)],
      [user('Hi'), assistant('Hello'), user(result)],
      [user('Hi'), assistant(use), user(result), assistant('Hello'), user(result)],
    ]) {
      const answer = await asked(...turns)
      expect([answer.status, errorIn(answer).param]).toEqual([
        400,
        `messages.${turns.length - 1}.content.0.tool_use_id`,
      ])
    }
  })
})

describe("OpenRouter's preferences", () => {
  test('allow_fallbacks false: makes one call', async () => {
    const before = upstream.ledger().length
    const answer = await chat('one/b', {
      fallback: 'any',
      provider: { allow_fallbacks: false, data_collection: 'allow' },
    })
    expect([answer.status, upstream.ledger().length - before]).toEqual([502, 1])
  })

  test.each([
    ['data_collection', { data_collection: 'deny' }],
    ['zdr', { zdr: true }],
    ['only', { only: ['x'] }],
    ['ignore', { ignore: ['two'] }],
    ['order', { order: ['x'], allow_fallbacks: false }],
  ])('%s: is refused by its own name in each API if no host meets it', async (field, provider) => {
    for (const [path, fields] of [
      ['/v1/messages', { messages, max_tokens: 10 }],
      ['/v1/chat/completions', { messages }],
      ['/v1/responses', { input: 'Hi' }],
    ] as const) {
      const answer = await send(path, { model: 'two/a', ...fields, provider })
      expect([path, answer.status, errorIn(answer).param]).toEqual([path, 400, `provider.${field}`])
    }
  })

  test('preferences that a host meets: are served, and none is named as dropped', async () => {
    script = () => ({ headers: json, pieces: [whole('fine')] })
    const ordered = await chat('two/a', { provider: { order: ['x'], data_collection: 'allow' } })
    expect([ordered.status, ordered.headers.get('x-gateway-dropped-params')]).toEqual([200, null])
    expect((await chat('two/a', { provider: { ignore: ['x'], only: ['two'] } })).status).toBe(200)
    const sorted = await chat('two/a', { provider: { sort: 'price', allow_fallbacks: true, only: [] } })
    expect([sorted.status, sorted.headers.get('x-gateway-dropped-params')]).toEqual([200, null])
  })
})
