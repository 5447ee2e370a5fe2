/** What providers report or refuse beside the text: a whole gateway in front of scripted providers, in every dialect. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gateway, providersAt, startGateway } from '../harness/gateway.ts'
import {
  jsonAnswer,
  startUpstream,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from '../harness/upstream.ts'

setDefaultTimeout(240_000)

type Json = Readonly<Record<string, unknown>>

let upstream: Upstream
let gateway: Gateway
let script: (request: UpstreamRequest) => UpstreamAnswer

const counts = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
const completion = (choice: Json = {}) => ({
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop', ...choice }],
  usage: counts,
})
const claude = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 5, output_tokens: 2 },
}
const gemini = {
  responseId: 'r1',
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 },
}
const vectors = {
  object: 'list',
  data: [{ index: 0, embedding: Buffer.from(new Float32Array(1_536).fill(0.5).buffer).toString('base64') }],
  usage: { prompt_tokens: 1, total_tokens: 1 },
}

const polite = ({ path }: UpstreamRequest) => {
  if (path.includes('/messages')) return jsonAnswer(claude)
  if (path.includes('/embeddings')) return jsonAnswer(vectors)
  return jsonAnswer(path.includes('/v1beta') ? gemini : completion())
}

/** A stream of chunks of Chat Completions. */
const stream = (frames: readonly Json[]): UpstreamAnswer => ({
  headers: { 'content-type': 'text/event-stream' },
  framing: 'chunked',
  pieces: [...frames.map(frame => `data: ${JSON.stringify(frame)}\n\n`), 'data: [DONE]\n\n'],
})
const chunk = (choice: Json, fields: Json = {}) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, finish_reason: null, delta: {}, ...choice }],
  ...fields,
})

beforeAll(async () => {
  script = polite
  upstream = startUpstream(request => script(request))
  const at = (path: string) => `${upstream.url}/${path}/v1`
  const pricing = { input_per_mtok: 1, output_per_mtok: 1 }
  const row = { id: 'small', pricing, capabilities: { vision: true } }
  gateway = await startGateway(
    { ...providersAt(upstream.url), OPENROUTER_API_KEY: 'k', OPENROUTER_BASE_URL: at('openrouter') },
    { file: { providers: [{ id: 'relay', base_url: at('relay'), models: [row] }] } },
  )
})
afterEach(() => {
  script = polite
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const sentText = () => upstream.ledger().at(-1)?.body ?? ''
const sent = () => JSON.parse(sentText())
const getFrames = async (answer: Response): Promise<readonly Json[]> =>
  (await answer.text()).split('\n').flatMap(line => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
const hello = [{ role: 'user', content: 'Hello' }]
const alone = { fallback: false, web: 'off' }

/** Sends a body as JSON text to the endpoint of a dialect. */
const dialects = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  native: '/api/v1/chat',
} as const
type Dialect = keyof typeof dialects
const getTurn = (dialect: Dialect, model: string, content: unknown): Json => {
  if (dialect === 'responses') return { model, input: [{ role: 'user', content }], store: false, ...alone }
  const bound = dialect === 'messages' ? { max_tokens: 100 } : {}
  return { model, messages: [{ role: 'user', content }], ...bound, ...alone }
}
const models = ['relay/small', 'openai/gpt-5.5', 'anthropic/claude-haiku-4-5', 'google/gemini-3.8-flash'] as const
const everyPath = (Object.keys(dialects) as Dialect[]).flatMap(dialect =>
  models.map(model => [dialect, model] as const),
)

describe('matched stop sequence', () => {
  const send = (fields: Json = {}) =>
    gateway.post(dialects.messages, { ...getTurn('messages', 'relay/small', 'Hi'), stop_sequences: ['END'], ...fields })

  test.each([
    ['vLLM', { stop_reason: 'END' }, ['END'], 'END'],
    ['SGLang', { matched_stop: 'END' }, ['###', 'END'], 'END'],
    ['a relay that does not name the only one', { native_finish_reason: 'stop_sequence' }, ['END'], 'END'],
    ['a relay that does not name one of two', { native_finish_reason: 'stop_sequence' }, ['END', '###'], null],
    ['a stop of the server’s own', { stop_reason: '<|eot|>' }, ['END'], null],
    ['an end without a stop', { stop_reason: null }, ['END'], null],
  ])('reaches Messages when the upstream has %s', async (_name, fields, stop_sequences, expected) => {
    const ending = { stop_reason: expected === null ? 'end_turn' : 'stop_sequence', stop_sequence: expected }
    script = () => jsonAnswer(completion(fields))
    expect(await (await send({ stop_sequences })).json()).toMatchObject(ending)
    script = () =>
      stream([chunk({ delta: { content: 'Hello' } }), chunk({ finish_reason: 'stop', ...fields }, { usage: counts })])
    const frames = await getFrames(await send({ stop_sequences, stream: true }))
    expect(frames.find(({ type }) => type === 'message_delta')).toMatchObject({ delta: ending })
  })
})

describe('image with a wrong media type', () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64')
  const jpeg = Buffer.from('ffd8ffe000104a464946000101000001', 'hex').toString('base64')
  const getPart = (dialect: Dialect, type: string, data: string) => {
    const url = `data:${type};base64,${data}`
    if (dialect === 'messages') return { type: 'image', source: { type: 'base64', media_type: type, data } }
    if (dialect === 'responses') return { type: 'input_image', image_url: url }
    return { type: 'image_url', image_url: { url } }
  }

  test.each(everyPath)('reaches the provider with the right one: %s to %s', async (dialect, model) => {
    for (const [type, data, kind] of [
      ['image/png', jpeg, 'image/jpeg'],
      ['image/jpeg', png, 'image/png'],
      ['IMAGE/PNG', png, 'image/png'],
      ['image/jpg', jpeg, 'image/jpeg'],
      ['application/octet-stream', png, 'image/png'],
    ] as const) {
      const answer = await gateway.post(dialects[dialect], getTurn(dialect, model, [getPart(dialect, type, data)]))
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
      expect(sentText()).toContain(data)
      expect(sentText().match(/(?:image|application)\/\w+/gi)).toEqual([kind])
    }
  })

  test('reaches OpenAI’s Responses API with the right one, in results of tools too', async () => {
    const image = getPart('responses', 'image/png', jpeg)
    const turn = getTurn('responses', 'openai/gpt-5.5', [image])
    const items = [
      { role: 'user', content: [image] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [image] },
    ]
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }]
    // The simulated provider has no answer in this form; what it received counts.
    await (
      await gateway.post(dialects.responses, { ...turn, input: items, tools, reasoning: { effort: 'high' } })
    ).text()
    expect(upstream.ledger().at(-1)?.path).toEndWith('/responses')
    expect(sentText().match(/image\/(?:png|jpeg)/g)).toEqual(['image/jpeg', 'image/jpeg'])
  })

  test('changes nothing else of a Messages body when it is in the result of a tool', async () => {
    const image = (type: string) =>
      `{"type":"image","source":{"data":"${jpeg}","type":"base64" , "media_type":"${type}"}}`
    const body = (type: string) =>
      `{"model":"claude-haiku-4-5","max_tokens":100, "tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[` +
      `{"role":"user","content":"Look"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"1.0"},${image(type)}]}]}]}`
    expect((await gateway.post(dialects.messages, body('image/png'))).status).toBe(200)
    expect(sentText()).toBe(body('image/jpeg'))
  })
})

describe('unpaired surrogate', () => {
  test.each(everyPath)('reaches no provider, and pairs stay: %s to %s', async (dialect, model) => {
    const written = JSON.stringify(getTurn(dialect, model, 'TEXT')).replace(
      'TEXT',
      String.raw`a\ud83d b\uDE00 \ud83d\ude00 \\ud83d`,
    )
    const answer = await gateway.post(dialects[dialect], written)
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    const texts: string[] = []
    JSON.stringify(sent(), (_, value) => {
      if (typeof value === 'string') texts.push(value)
      return value
    })
    expect(texts.every(text => text.isWellFormed())).toBe(true)
    expect(
      texts.some(
        text => text.includes(String.raw`a\ufffd b\ufffd`) || text.includes('a\ufffd b\ufffd \u{1f600} \\ud83d'),
      ),
    ).toBe(true)
    expect(sentText()).not.toMatch(/(?<!\\)(?:\\\\)*\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])/)
  })

  test('reaches no provider of embeddings', async () => {
    const body = String.raw`{"model":"text-embedding-3-small","input":"a\ud83d \ud83d\ude00"}`
    expect((await gateway.post('/v1/embeddings', body)).status).toBe(200)
    expect(JSON.stringify(sent())).toContain('a\ufffd \u{1f600}')
  })

  test('in an output reaches no client', async () => {
    script = () =>
      stream([chunk({ delta: { content: 'a\ud83d' } }), chunk({ delta: { content: 'b' }, finish_reason: 'stop' })])
    for (const dialect of Object.keys(dialects) as Dialect[]) {
      const answer = await gateway.post(dialects[dialect], { ...getTurn(dialect, 'relay/small', 'Hi'), stream: true })
      const text = await answer.text()
      expect(text).toContain('a\ufffd')
      expect(text).not.toContain('\\ud83d')
    }
  })
})

describe('large response', () => {
  const large = 'x'.repeat(9_000_000)

  test('completes when one event of a stream is larger than a request of text', async () => {
    script = () =>
      stream([
        chunk({ delta: { content: 'Hel' } }, { echo: large }),
        chunk({ delta: { content: 'lo' }, finish_reason: 'stop' }, { usage: counts }),
      ])
    const answer = await gateway.post(dialects.chat, { ...getTurn('chat', 'relay/small', 'Hi'), stream: true })
    const content = (await getFrames(answer)).flatMap(({ choices }) => (Array.isArray(choices) ? choices : []))
    expect(content.map(({ delta }) => delta?.content ?? '').join('')).toBe('Hello')
    expect(content.at(-1)?.finish_reason).toBe('stop')
  })

  test('completes when JSON has that size', async () => {
    script = () => jsonAnswer({ ...completion(), echo: large })
    const answer = await gateway.post(dialects.chat, getTurn('chat', 'relay/small', 'Hi'))
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
  })
})

test('reasoning_details: reach OpenRouter again when a client of the stream sends back what it received', async () => {
  const model = 'openrouter/moonshotai/kimi-k3'
  const text = (part: string, fields: Json = {}) => ({
    delta: { reasoning: part, reasoning_details: [{ type: 'reasoning.text', text: part, index: 0, ...fields }] },
  })
  const encrypted = [{ type: 'reasoning.encrypted', data: 'ENC', id: 'a', index: 1 }]
  const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
  script = () =>
    stream([
      chunk(text('h')),
      chunk(text('m', { signature: 'SIG' })),
      chunk({ delta: { reasoning_details: encrypted, tool_calls: [call] } }),
      chunk({ finish_reason: 'tool_calls' }, { usage: counts }),
    ])
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  const body = { model, tools, ...alone }
  const frames = await getFrames(await gateway.post(dialects.chat, { ...body, messages: hello, stream: true }))
  const deltas = frames
    .flatMap(({ choices }) => (Array.isArray(choices) ? choices : []))
    .map(({ delta }) => delta ?? {})
  const details = deltas.flatMap(({ reasoning_details: list }) => list ?? [])
  expect(details.length).toBeGreaterThan(0)
  script = polite
  const turn = {
    role: 'assistant',
    content: null,
    reasoning_content: deltas.map(({ reasoning_content: part }) => part ?? '').join(''),
    reasoning_details: details,
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const result = { role: 'tool', tool_call_id: 'a', content: 'r' }
  expect((await gateway.post(dialects.chat, { ...body, messages: [...hello, turn, result] })).status).toBe(200)
  expect(sent().messages[1]).toMatchObject({
    reasoning: 'hm',
    reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: 'SIG', index: 0 }, ...encrypted],
  })
})
