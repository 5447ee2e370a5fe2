/** Requests to providers and their responses, in the providers' own formats over sockets. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { ChatOpenAI } from '@langchain/openai'
import { type Gateway, providersAt, startGateway } from '../harness/gateway.ts'
import {
  jsonAnswer,
  startUpstream,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from '../harness/upstream.ts'
import { payloads } from '../web/payloads.ts'

setDefaultTimeout(240_000)

type Json = Readonly<Record<string, unknown>>

let upstream: Upstream
let gateway: Gateway
/** Responses of one test, by the first part of the path. */
let script: (request: UpstreamRequest) => UpstreamAnswer

const completion = (content: string, fields: Json = {}) => ({
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  ...fields,
})
const claude = (content: string) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: content }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 5, output_tokens: 2 },
})
const gemini = (text: string) => ({
  responseId: 'r1',
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 },
})

/** Each provider answers in its own format. */
const polite = ({ path }: UpstreamRequest) => {
  if (path.includes('/messages')) return jsonAnswer(claude('Hello'))
  return jsonAnswer(path.includes('/v1beta') ? gemini('Hello') : completion('Hello'))
}

beforeAll(async () => {
  script = polite
  upstream = startUpstream(request => script(request))
  const pricing = { input_per_mtok: 1, output_per_mtok: 1 }
  const at = (path: string) => `${upstream.url}/${path}/v1`
  const file = {
    providers: [
      {
        id: 'relay',
        base_url: at('relay'),
        extra_fields: ['plugins'],
        models: [
          { id: 'small', pricing, context_window: 8_000, max_output_tokens: 1_000, capabilities: { vision: true } },
        ],
      },
      {
        id: 'roomy',
        base_url: at('roomy'),
        models: [{ id: 'large', pricing, context_window: 64_000, max_output_tokens: 1_000 }],
      },
    ],
  }
  gateway = await startGateway(providersAt(upstream.url), { file })
})
afterEach(() => {
  script = polite
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const hello = [{ role: 'user', content: 'Hello' }]
const native = (body: Json) => gateway.post('/api/v1/chat', { messages: hello, web: 'off', fallback: false, ...body })
const compatible = (body: Json) =>
  gateway.post('/v1/chat/completions', { messages: hello, web: 'off', fallback: false, ...body })

type Body = { [name: string]: unknown; output: string; error: Record<'code' | 'message' | 'param' | 'type', string> }
const getBody = async (answer: Response): Promise<Body> => JSON.parse(await answer.text())
/** Body of the newest request that the providers got. */
const sent = (): Json => JSON.parse(upstream.ledger().at(-1)?.body ?? '{}')
const requests = () => upstream.ledger().length

describe('unknown fields of a compatible request', () => {
  const orders = {
    api_base: 'https://evil.example',
    extra_headers: { a: 'b' },
    models: ['x'],
    plugins: [{ id: 'web' }],
  }

  test.each([
    ['relay/small', ['plugins', 'top_k'], 'api_base, extra_headers, models'],
    ['roomy/large', ['top_k'], 'api_base, extra_headers, models, plugins'],
    ['gpt-4.1', [], 'api_base, extra_headers, models, plugins, top_k'],
    ['claude-haiku-4-5', [], 'api_base, extra_headers, models, plugins, top_k'],
    // As `topK`.
    ['gemini-2.5-flash', [], 'api_base, extra_headers, models, plugins'],
  ])('request to %s: forwards %j and names the rest', async (model, forwarded, dropped) => {
    const nested = [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_id: 'x' }], api_base: 'x' }]
    const answer = await compatible({ model, messages: nested, ...orders, top_k: 4 })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-gateway-dropped-params')).toBe(dropped)
    const body = sent()
    expect(
      Object.keys({ ...orders, top_k: 4 })
        .filter(name => name in body)
        .toSorted(),
    ).toEqual([...forwarded])
    expect(JSON.stringify(body)).not.toContain('evil.example')
    expect(JSON.stringify(body)).not.toContain('cache_id')
  })
})

describe('URLs that an upstream would fetch', () => {
  const inside = payloads().filter((_, index) => index % 50 === 0)

  test('image_url: rejects every disguised or private address with one 400 that names the field', async () => {
    const before = requests()
    for (const url of inside) {
      const content = [
        { type: 'text', text: 'See' },
        { type: 'image_url', image_url: { url } },
      ]
      for (const send of [native, compatible]) {
        const answer = await send({ model: 'gpt-4.1', messages: [{ role: 'user', content }] })
        expect([url, answer.status]).toEqual([url, 400])
        const { error } = await getBody(answer)
        expect(error).toMatchObject({ code: 'invalid_request', param: 'messages.0.content.1.image_url.url' })
        if (url.length > 12) expect(error.message).not.toContain(url)
      }
    }
    expect(requests()).toBe(before)
  })

  test('image_url: forwards a public address in its normal form, and data as it is', async () => {
    const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    await compatible({ model: 'gpt-4.1', messages: image('https://Example.ORG\\a.png?x=%2e') })
    expect(JSON.stringify(sent())).toContain('"https://example.org/a.png?x=%2e"')
    await compatible({ model: 'gpt-4.1', messages: image('data:image/png;base64,AAAA') })
    expect(JSON.stringify(sent())).toContain('"data:image/png;base64,AAAA"')
  })

  test('image_url: keeps public addresses from a server inside the network, whose DNS may resolve them to it', async () => {
    const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    const before = requests()
    const answer = await compatible({ model: 'relay/small', messages: image('https://example.org/a.png') })
    expect(answer.status).toBe(400)
    expect((await getBody(answer)).error).toMatchObject({ code: 'unsupported_parameter', param: 'messages' })
    expect(requests()).toBe(before)
    expect((await compatible({ model: 'relay/small', messages: image('data:image/png;base64,AAAA') })).status).toBe(200)
  })
})

describe('provider fields', () => {
  const usage = {
    input_tokens: 5,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 30,
    cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    service_tier: 'priority',
    inference_geo: 'us',
    text: 'never passed on',
  }
  const served = { web_search_requests: 0, web_fetch_requests: 2 }
  const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }
  const call = { type: 'tool_use', id: 't1', name: 'pay', input: {}, caller }
  const { text: _, ...shown } = usage
  const asked = { model: 'claude-haiku-4-5', max_tokens: 100, messages: hello, fallback: false, web: 'off' }
  const messages = (fields: Json = {}) =>
    gateway.post('/v1/messages', { ...asked, tools: [{ name: 'pay', input_schema: { type: 'object' } }], ...fields })
  const events = (frames: readonly Json[]) => ({
    headers: { 'content-type': 'text/event-stream' },
    framing: 'chunked' as const,
    pieces: frames.map(frame => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`),
  })
  const getFrames = async (answer: Response): Promise<readonly Json[]> =>
    (await answer.text()).split('\n').flatMap(line => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))

  test('Messages JSON: has usage details, the caller of a tool and the reason of a refusal', async () => {
    const body = { ...claude(''), content: [call], stop_reason: 'tool_use' }
    script = () => jsonAnswer({ ...body, usage: { ...usage, output_tokens: 2, server_tool_use: served } })
    const answer = await getBody(await messages())
    expect(answer).toMatchObject({ content: [{ ...call, input: {} }], usage: { ...shown, server_tool_use: served } })
    expect(JSON.stringify(answer)).not.toContain('never passed on')
    const details = { type: 'refusal', category: 'cyber', explanation: 'Not allowed.' }
    script = () => jsonAnswer({ ...claude('No'), stop_reason: 'refusal', stop_details: details })
    expect(await getBody(await messages())).toMatchObject({ stop_reason: 'refusal', stop_details: details })
  })

  test('Messages stream: has usage details from its start and the caller of a tool', async () => {
    script = () =>
      events([
        { type: 'message_start', message: { ...claude(''), content: [], usage: { ...usage, output_tokens: 1 } } },
        { type: 'content_block_start', index: 0, content_block: call },
        { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"amount":1}' } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'tool_use' },
          usage: { output_tokens: 5, server_tool_use: served },
        },
        { type: 'message_stop' },
      ])
    const frames = await getFrames(await messages({ stream: true }))
    const of = (type: string) => frames.find(frame => frame.type === type)
    expect(of('message_start')).toMatchObject({ message: { usage: shown } })
    expect(of('content_block_start')).toMatchObject({ content_block: { caller } })
    expect(of('message_delta')).toMatchObject({ usage: { ...shown, output_tokens: 5, server_tool_use: served } })
  })

  test('Messages of another provider: omits details that only Anthropic has', async () => {
    const own = { service_tier: 'default', system_fingerprint: 'fp_7' }
    script = () => jsonAnswer(completion('Hello', own))
    const answer = await getBody(await messages({ model: 'gpt-4.1', tools: [] }))
    expect(answer.usage).not.toHaveProperty('service_tier')
    expect(answer.usage).toMatchObject({
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    })
  })

  test('chat completions JSON: has tier, fingerprint and predicted tokens, and omits a tier that OpenAI lacks', async () => {
    const details = { accepted_prediction_tokens: 3, rejected_prediction_tokens: 4 }
    const counts = { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14, completion_tokens_details: details }
    script = () => jsonAnswer(completion('Hello', { service_tier: 'flex', system_fingerprint: 'fp_7', usage: counts }))
    const answer = await getBody(await compatible({ model: 'gpt-4.1' }))
    expect(answer).toMatchObject({ service_tier: 'flex', system_fingerprint: 'fp_7' })
    expect(answer.usage).toMatchObject({ completion_tokens_details: details })
    script = () => jsonAnswer(completion('Hello', { service_tier: 'on_demand', system_fingerprint: null }))
    const other = await getBody(await compatible({ model: 'relay/small' }))
    expect(other).not.toHaveProperty('service_tier')
    expect(other).not.toHaveProperty('system_fingerprint')
  })

  test.each([
    ['gpt-5.5', 'flex', 'flex', 'flex', 0.5],
    ['gpt-5.5', 'flex', 'flex', 'default', 1],
    ['gpt-5.5', 'priority', undefined, 'default', 1],
    ['gpt-4.1', 'flex', undefined, 'default', 1],
  ])('%s with tier %s: sends %s, and bills the answered tier %s at %d times the usual price', async (...row) => {
    const [model, asked, tierSent, answered, factor] = row
    const costIn = async (service_tier: string | undefined, served: string) => {
      script = () => jsonAnswer(completion('Hello', { service_tier: served }))
      const answer = await compatible({ model, service_tier })
      await answer.text()
      return Number(answer.headers.get('x-gateway-cost-usd'))
    }
    const usual = await costIn(undefined, 'default')
    expect(usual).toBeGreaterThan(0)
    expect(await costIn(asked, answered)).toBeCloseTo(factor * usual, 8)
    expect(sent().service_tier).toBe(tierSent)
  })

  test('chat completions stream: has tier and fingerprint on every chunk', async () => {
    const chunk = (delta: Json, finish_reason: string | null) => ({
      id: 'c1',
      object: 'chat.completion.chunk',
      model: 'm',
      service_tier: 'priority',
      system_fingerprint: 'fp_8',
      choices: [{ index: 0, delta, finish_reason }],
    })
    const frames = [
      chunk({ role: 'assistant', content: 'Hel' }, null),
      chunk({ content: 'lo' }, null),
      chunk({}, 'stop'),
    ]
    const pieces = [...frames.map(frame => `data: ${JSON.stringify(frame)}\n\n`), 'data: [DONE]\n\n']
    script = () => ({ headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces })
    const sse = await getFrames(await compatible({ model: 'gpt-4.1', stream: true }))
    expect(sse.length).toBeGreaterThan(1)
    for (const frame of sse) expect(frame).toMatchObject({ service_tier: 'priority', system_fingerprint: 'fp_8' })
  })

  test('Responses of a chat model: has the tier that OpenAI reports', async () => {
    script = () => jsonAnswer(completion('Hello', { service_tier: 'flex' }))
    const body = { model: 'relay/small', input: 'Hello', store: false, fallback: false, web: 'off' }
    expect(await getBody(await gateway.post('/v1/responses', body))).toMatchObject({ service_tier: 'flex' })
    script = polite
    expect(await getBody(await gateway.post('/v1/responses', body))).toMatchObject({ service_tier: 'default' })
  })
})

describe('custom tools of chat completions', () => {
  const grammar = { syntax: 'regex', definition: 'a+' }
  const custom = { name: 'patch', description: 'Applies it.', format: { type: 'grammar', grammar } }
  const input = 'line 1\n"quoted" \u{1f600}'
  const tools = [
    { type: 'custom', custom },
    { type: 'function', function: { name: 'clock' } },
  ]
  const called = (id: string, name: string, json: string) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
  })
  const calls = [called('c1', 'patch', JSON.stringify({ input })), called('c2', 'clock', '{}')]
  const shown = [{ id: 'c1', type: 'custom', custom: { name: 'patch', input } }, calls[1]]
  const turn = (tool_calls: readonly Json[]) => ({
    choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls }, finish_reason: 'tool_calls' }],
  })

  test('JSON: declares a function with a text, and returns the text as the input of a custom call', async () => {
    script = () => jsonAnswer(completion('', turn(calls)))
    const choice = { type: 'custom', custom: { name: 'patch' } }
    const answer = await getBody(await compatible({ model: 'relay/small', tools, tool_choice: choice }))
    expect(answer).toMatchObject({ choices: [{ message: { tool_calls: shown }, finish_reason: 'tool_calls' }] })
    const declared = { name: 'patch', description: expect.stringContaining('a+'), parameters: { required: ['input'] } }
    expect(sent()).toMatchObject({
      tools: [{ type: 'function', function: declared }, { function: { name: 'clock' } }],
      tool_choice: { type: 'function', function: { name: 'patch' } },
    })
  })

  test.each([1, 7, 1000])('stream in parts of %d characters: joins to the same input', async size => {
    const json = JSON.stringify({ input })
    const parts = Array.from({ length: Math.ceil(json.length / size) }, (_, at) =>
      json.slice(at * size, (at + 1) * size),
    )
    const chunk = (delta: Json, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    const pieces = [
      chunk({ role: 'assistant', tool_calls: [{ index: 0, ...called('c1', 'patch', '') }] }),
      ...parts.map(part => chunk({ tool_calls: [{ index: 0, function: { arguments: part } }] })),
      chunk({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ]
    script = () => ({ headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces })
    const lines = (await (await compatible({ model: 'relay/small', tools, stream: true })).text()).split('\n')
    const deltas = lines.flatMap(line => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    const wire = deltas.flatMap(frame => frame.choices[0]?.delta.tool_calls ?? [])
    expect(wire[0]).toEqual({ index: 0, id: 'c1', type: 'custom', custom: { name: 'patch', input: '' } })
    expect(wire.map(({ custom: { input: text } }) => text).join('')).toBe(input)
  })

  test('history: returns a custom call to the provider as the function call that it was', async () => {
    const results = [
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
      { role: 'tool', tool_call_id: 'c2', content: 'noon' },
    ]
    const messages = [...hello, { role: 'assistant', content: null, tool_calls: shown }, ...results]
    const allowed = { mode: 'auto', tools: [{ type: 'custom', custom: { name: 'patch' } }] }
    const choice = { type: 'allowed_tools', allowed_tools: allowed }
    const answer = await compatible({ model: 'relay/small', messages, tools, tool_choice: choice })
    expect(answer.status).toBe(200)
    expect(sent()).toMatchObject({ messages: [{}, { tool_calls: calls }, {}, {}], tools: [{ type: 'function' }] })
  })

  test.each([
    [{ tools: [{ type: 'custom', custom: {} }] }, 'tools.0.custom.name'],
    [{ tools, tool_choice: { type: 'custom' } }, 'tool_choice.custom'],
    [{ tools: [{ type: 'web_search' }] }, 'tools.0.type'],
  ])('invalid %j: names `%s`', async (fields, param) => {
    const answer = await compatible({ model: 'relay/small', ...fields })
    expect(answer.status).toBe(400)
    expect((await getBody(answer)).error.param).toBe(param)
  })
})

describe('incomplete call of an Anthropic stream', () => {
  const events = [
    { type: 'message_start', message: { id: 'a', model: 'claude', content: [], usage: { input_tokens: 5 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't1', name: 'pay', input: {} } },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"amount": 1' } },
    { type: 'message_start', message: { id: 'b', model: 'claude', content: [], usage: { input_tokens: 5 } } },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
  const pieces = events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  const tools = [{ type: 'function', function: { name: 'pay', parameters: { type: 'object' } } }]

  test('compatible stream: ends with an error, without a finish reason', async () => {
    script = () => ({ headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces })
    const text = await (await compatible({ model: 'claude-haiku-4-5', stream: true, tools })).text()
    expect(text).toContain('"code":"upstream_failed"')
    expect(text).not.toContain('"finish_reason":"')
    expect(text).not.toContain('[DONE]')
  })

  test('JSON response: reports an error', async () => {
    script = () => ({ headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces })
    const answer = await native({ model: 'claude-haiku-4-5', tools })
    expect(answer.status).toBe(502)
    expect((await getBody(answer)).error.code).toBe('upstream_failed')
  })
})

describe('errors that client libraries recognize', () => {
  const perplexity = {
    error: { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens' },
  }

  test('context overflow: tries a candidate with a larger window', async () => {
    script = request => (request.path.startsWith('/relay') ? jsonAnswer(perplexity, 400) : polite(request))
    const answer = await native({ model: 'relay/small', fallback: true })
    expect(answer.status).toBe(200)
    const { routing } = await getBody(answer)
    expect(routing).toMatchObject({
      attempts: [{ model: 'relay/small', outcome: 'context_overflow' }, { outcome: 'served' }],
    })
  })

  test('context overflow: names the maximum context length', async () => {
    script = () => jsonAnswer(perplexity, 400)
    const answer = await compatible({ model: 'relay/small' })
    expect(answer.status).toBe(400)
    expect((await getBody(answer)).error).toMatchObject({
      code: 'context_length_exceeded',
      message:
        "The conversation exceeds the 8000-token context window of relay/small. Shorten it or choose a larger model. This model's maximum context length is 8000 tokens.",
    })
  })

  test('context overflow: is a ContextOverflowError of LangChain', async () => {
    script = () => jsonAnswer(perplexity, 400)
    const model = new ChatOpenAI({
      model: 'relay/small',
      apiKey: gateway.key,
      maxRetries: 0,
      configuration: {
        baseURL: `${gateway.url}/v1`,
        logLevel: 'off',
        defaultHeaders: { 'x-gateway-no-fallback': 'true' },
      },
    })
    const thrown = await model.invoke('Hello').then(
      () => null,
      (cause: unknown) => cause,
    )
    expect(thrown instanceof Error ? thrown.name : thrown).toBe('ContextOverflowError')
  })

  test('content filter of a provider: names the content policy', async () => {
    script = () => jsonAnswer({ error: { code: 'content_policy_violation', message: 'x' } }, 400)
    const answer = await compatible({ model: 'gpt-4.1' })
    expect(answer.status).toBe(400)
    const { error } = await getBody(answer)
    expect(error.type).toBe('content_policy_violation')
    expect(error.message).toContain('content_policy_violation')
    expect(error.message.toLowerCase()).toContain('request was rejected as a result of the safety system')
  })
})

describe('unrequested choices', () => {
  const two = [0, 1].map(index => ({
    index,
    message: { role: 'assistant', content: index === 0 ? 'First.' : 'Second.' },
    finish_reason: 'stop',
  }))
  const chunk = (index: number, delta: Json, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c1', model: 'm', choices: [{ index, delta, finish_reason }] })}\n\n`
  const pieces = [
    chunk(0, { role: 'assistant', content: 'First' }),
    chunk(1, { role: 'assistant', content: 'Second.' }),
    chunk(0, { content: '.' }),
    chunk(1, {}, 'stop'),
    chunk(0, {}, 'stop'),
    'data: [DONE]\n\n',
  ]

  test('native response: has the first choice only, as JSON and as a stream', async () => {
    script = () => jsonAnswer(completion('', { choices: two }))
    expect((await getBody(await native({ model: 'gpt-4.1', max_output_tokens: 50 }))).output).toBe('First.')
    script = () => ({ headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces })
    const text = await (await native({ model: 'gpt-4.1', stream: true, stream_mode: 'realtime' })).text()
    expect(text).toContain('"First')
    expect(text).not.toContain('Second')
  })

  test('compatible response: has as many choices as `n`', async () => {
    script = () => jsonAnswer(completion('', { choices: two }))
    expect((await getBody(await compatible({ model: 'gpt-4.1', max_tokens: 50 }))).choices).toHaveLength(1)
    expect((await getBody(await compatible({ model: 'gpt-4.1', max_tokens: 50, n: 2 }))).choices).toHaveLength(2)
  })
})

describe('file parts', () => {
  const data = Buffer.from('%PDF-1.4 a document').toString('base64')
  const file_data = `data:application/pdf;base64,${data}`
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Sum it up' },
        { type: 'file', file: { file_data, filename: 'a.pdf' } },
      ],
    },
  ]
  const shapes = [
    ['gpt-4.1', { type: 'file', file: { filename: 'a.pdf', file_data } }],
    [
      'claude-haiku-4-5',
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data }, title: 'a.pdf' },
    ],
    ['gemini-2.5-flash', { inlineData: { mimeType: 'application/pdf', data } }],
  ] as const

  test.each(shapes)('reach %s in its own format, from both endpoints', async (model, part) => {
    for (const send of [native, compatible]) {
      expect((await send({ model, messages })).status).toBe(200)
      expect(JSON.stringify(sent())).toContain(JSON.stringify(part))
    }
  })

  test('a model without file support: answers 400, and is no candidate of automatic routing', async () => {
    const answer = await native({ model: 'relay/small', messages })
    expect(answer.status).toBe(400)
    expect((await getBody(answer)).error).toMatchObject({ code: 'unsupported_parameter', param: 'messages' })
    const preview = await gateway.post('/api/v1/route', { messages, web: 'off' })
    expect((await getBody(preview)).dropped).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ model: 'relay/small' }),
        expect.objectContaining({ model: 'roomy/large' }),
      ]),
    )
  })

  test('a document over 2 MB: is accepted like an image', async () => {
    const large = `data:application/pdf;base64,${'A'.repeat(3 * 1_048_576)}`
    const content = [{ type: 'file', file: { file_data: large } }]
    expect((await native({ model: 'gpt-4.1', messages: [{ role: 'user', content }] })).status).toBe(200)
  })
})

describe('a history call without `type`', () => {
  test.each(['gpt-4.1', 'claude-haiku-4-5', 'gemini-2.5-flash'])('request to %s: means a function', async model => {
    const call = { id: 'call_1', function: { name: 'look', arguments: '{"at":"sea"}' } }
    const messages = [
      ...hello,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'blue' },
    ]
    for (const send of [native, compatible]) {
      expect((await send({ model, messages })).status).toBe(200)
      expect(JSON.stringify(sent())).toContain('look')
    }
  })
})
