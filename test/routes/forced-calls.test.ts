/**
 * A tool call that the client requires: it is delivered, repeated once, or an error. Frameworks read the arguments of the call
 * without looking at the text, so a text in its place is never a success. Real sockets; the official clients read the errors.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import OpenAI from 'openai'
import { eventually, untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { startUpstream, type Upstream, type UpstreamRequest } from '../harness/upstream.ts'

setDefaultTimeout(60_000)

let upstream: Upstream
let gateway: Gateway
/** What the upstream answers, one per call; the last one repeats. */
let script: readonly Answer[] = ['text']
let seen: UpstreamRequest[] = []

type Answer =
  | 'text'
  | 'call'
  | 'text and call'
  | 'other call'
  | 'made-up call'
  | 'cut'
  | 'refusal'
  | 'filtered'
  | 'long text'
  | 'status 500'

const words = { text: 'I would rather talk.', long: 'Word by word. '.repeat(6_000) }

/** Returns the response of a compatible server. */
function compatible(kind: Answer, stream: boolean) {
  const isCall = kind === 'call' || kind === 'text and call' || kind === 'other call' || kind === 'made-up call'
  const name = kind === 'other call' ? 'other' : kind === 'made-up call' ? 'invented' : 'look'
  const content = kind === 'call' || kind === 'refusal' ? null : kind === 'long text' ? words.long : words.text
  const refusal = kind === 'refusal' ? { refusal: 'I cannot.' } : {}
  const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '{"at":"sea"}' } }
  const finish_reason = isCall
    ? 'tool_calls'
    : kind === 'cut'
      ? 'length'
      : kind === 'filtered'
        ? 'content_filter'
        : 'stop'
  const usage = { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 }
  const id = `c_${seen.length}`
  if (!stream) {
    const message = { role: 'assistant', content, ...refusal, ...(isCall ? { tool_calls: [call] } : {}) }
    return JSON.stringify({ id, model: 'm', choices: [{ index: 0, message, finish_reason }], usage })
  }
  const chunk = (delta: object, reason: string | null = null) =>
    `data: ${JSON.stringify({ id, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
  return [
    ...(content === null ? [] : [chunk({ content: content.slice(0, 8) }), chunk({ content: content.slice(8) })]),
    ...(kind === 'refusal' ? [chunk(refusal)] : []),
    ...(isCall ? [chunk({ tool_calls: [call] })] : []),
    chunk({}, finish_reason),
    `data: ${JSON.stringify({ id, choices: [], usage })}\n\ndata: [DONE]\n\n`,
  ].join('')
}

/** Returns the response of Anthropic. */
function claude(kind: Answer, stream: boolean) {
  const isCall = kind === 'call' || kind === 'text and call'
  const content = [
    ...(kind === 'call' ? [] : [{ type: 'text', text: words.text }]),
    ...(isCall ? [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'sea' } }] : []),
  ]
  const message = {
    ...{
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      stop_reason: isCall ? 'tool_use' : 'end_turn',
    },
    usage: { input_tokens: 50, output_tokens: 10 },
  }
  if (!stream) return JSON.stringify({ ...message, content })
  const events = [
    { type: 'message_start', message: { ...message, stop_reason: null, content: [] } },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: message.stop_reason }, usage: { output_tokens: 10 } },
    { type: 'message_stop' },
  ]
  return events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

beforeAll(async () => {
  upstream = startUpstream(request => {
    const kind = script[Math.min(seen.length, script.length - 1)] ?? 'text'
    seen.push(request)
    if (kind === 'status 500') return { status: 500, pieces: ['{}'], headers: { 'content-type': 'application/json' } }
    const stream = JSON.parse(request.body).stream === true
    const body = request.path.includes('/messages') ? claude(kind, stream) : compatible(kind, stream)
    return { headers: { 'content-type': stream ? 'text/event-stream' : 'application/json' }, pieces: [body] }
  })
  const model = (id: string, forced_tool_choice: string) => ({
    id,
    pricing: { input_per_mtok: 1, output_per_mtok: 10 },
    max_output_tokens: 32_000,
    capabilities: { tools: true, streaming: true },
    parameters: { forced_tool_choice, stream_options: true },
  })
  const at = (id: string) => `${upstream.url}/${id}/v1`
  const providers = [
    // Their requests do not share the state of a circuit.
    { id: 'shy', base_url: at('shy'), models: [model('picky', 'rejected'), model('spare', 'rejected')] },
    { id: 'able', base_url: at('able'), models: [model('willing', 'accepted')] },
  ]
  gateway = await startGateway(
    {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: `${upstream.url}/anthropic`,
    },
    { file: { providers } },
  )
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const parameters = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }
const hello = [{ role: 'user' as const, content: 'Look at the sea.' }]
const rules = { fallback: 'same_model', web: 'off' }
const fn = { name: 'look', parameters }
const second = { name: 'other', parameters }
const long = { max_tokens: 20_000 }

/** A forced call of `look` in each API form. */
const forms = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      ...{ messages: hello, ...long },
      tools: [fn, second].map(item => ({ type: 'function', function: item })),
      tool_choice: { type: 'function', function: { name: 'look' } },
    },
    end: '[DONE]',
  },
  'legacy functions': {
    path: '/v1/chat/completions',
    body: { messages: hello, ...long, functions: [fn, second], function_call: { name: 'look' } },
    end: '[DONE]',
  },
  native: {
    path: '/api/v1/chat',
    body: {
      ...{ messages: hello, max_output_tokens: 20_000 },
      tools: [fn, second].map(item => ({ type: 'function', function: item })),
      tool_choice: { type: 'function', function: { name: 'look' } },
    },
    end: '"type":"done"',
  },
  responses: {
    path: '/v1/responses',
    body: {
      ...{ input: 'Look at the sea.', max_output_tokens: 20_000 },
      tools: [fn, second].map(item => ({ type: 'function', ...item })),
      tool_choice: { type: 'function', name: 'look' },
    },
    end: '"type":"response.completed"',
  },
  messages: {
    path: '/v1/messages',
    body: {
      ...{ messages: hello, ...long },
      tools: [fn, second].map(({ name }) => ({ name, input_schema: parameters })),
      tool_choice: { type: 'tool', name: 'look' },
    },
    end: 'event: message_stop',
  },
}
type Form = keyof typeof forms
const all = Object.keys(forms) as Form[]
const modes = [false, true] as const
const cases = all.flatMap(form => modes.map(stream => [form, stream ? 'stream' : 'JSON', stream] as const))

async function send(form: Form, answers: readonly Answer[], fields: object = {}) {
  script = answers
  seen = []
  const { path, body } = forms[form]
  const response = await gateway.post(path, { model: 'shy/picky', ...rules, ...body, ...fields })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Microcents that the account has spent today. */
function spent(): number {
  const wide = { requestsPerMinute: 1, concurrentRequests: 1, dailyTokens: 1, dailyCostMicrocents: 1e15 }
  return 1e15 - (gateway.deps.meter.quotaStatus(gateway.accountId, wide)?.costMicrocents.remaining ?? 1e15)
}
/** Returns the record of a request in the ledger. */
function getRecord(headers: Headers) {
  const id = headers.get('x-request-id')
  return untilFound(async () => {
    const [row] = await gateway.deps.database.run(
      ({ sql }) => sql<Row[]>`
        select status, input_tokens::float8 as input, output_tokens::float8 as output, billed_microcents::float8 as billed,
          shortfall_microcents::float8 as shortfall, tried from usage_records where request_id = ${id}`,
    )
    return row
  })
}
type Row = {
  status: string
  input: number
  output: number
  billed: number
  shortfall: number
  tried: [string, string][]
}

/** 50 input tokens at $1 and 10 output tokens at $10 per million, in units of 1e-8 USD. */
const priceOfOne = 50 * 100 + 10 * 1_000

describe.each(cases)('forced call, %s as %s', (form, _mode, stream) => {
  test('delivers the call of the repeated attempt, without the text of the first, and bills one', async () => {
    const before = spent()
    const { status, text, headers } = await send(form, ['text', 'call'], { stream })
    expect([status, seen.length]).toEqual([200, 2])
    expect(text.replaceAll('\\', '')).toContain('{"at":"sea"}')
    expect(text).not.toContain('rather')
    expect(headers.get('x-gateway-dropped-params')).toStartWith('tool_choice')
    await eventually(() => spent() - before === priceOfOne)
  })

  test('delivers text before a call', async () => {
    const { status, text } = await send(form, ['text and call'], { stream })
    expect([status, seen.length]).toEqual([200, 1])
    expect(text).toContain('rather')
    expect(text.replaceAll('\\', '')).toContain('{"at":"sea"}')
  })

  test.each([
    ['text', 'text'],
    ['other call', 'text'],
    ['text', 'other call'],
  ] as const)('becomes an error after %s and %s, and costs nothing', async (first, last) => {
    const before = spent()
    const { status, text, headers } = await send(form, [first, last], { stream })
    expect([status, seen.length]).toEqual([400, 2])
    expect(text).toContain('requires a tool call, and shy/picky answered without it.')
    expect(text).toContain('"invalid_request_error"')
    expect(text).not.toContain('rather')
    expect(headers.get('x-should-retry')).not.toBe('true')
    await eventually(
      () => (gateway.deps.meter.quotaStatus(gateway.accountId, unbounded)?.reservations.remaining ?? 0) === 1_000,
    )
    expect(spent()).toBe(before)
  })

  test.each(['cut', 'refusal', 'filtered'] as const)('lets an answer pass that is explained: %s', async kind => {
    const { status, text } = await send(form, [kind], { stream })
    expect([status, seen.length]).toEqual([200, 1])
    expect(text).toContain(kind === 'refusal' ? 'I cannot.' : 'rather')
  })

  test('becomes an error of a model that accepts a forced call and ignores it', async () => {
    const { status, text } = await send(form, ['text'], { stream, model: 'able/willing' })
    // A stream of such a model is not held back: its text was sent.
    expect([status, seen.length]).toEqual(stream ? [200, 1] : [400, 2])
    expect(text).toContain('requires a tool call')
    expect(text).not.toContain(forms[form].end)
  })
})

const unbounded = {
  requestsPerMinute: 1_000,
  concurrentRequests: 1_000,
  dailyTokens: 1_000_000,
  dailyCostMicrocents: 1e15,
}

describe('forced call', () => {
  test('asks for the call in the prompt of a model that cannot be forced', async () => {
    await send('chat', ['call'])
    const { messages, tool_choice } = JSON.parse(seen[0]?.body ?? '{}')
    expect(tool_choice).toBe('auto')
    expect(messages[0]).toEqual({ role: 'system', content: 'Answer by calling the tool `look`.' })
    await send('chat', ['call'], { tool_choice: 'required' })
    expect(seen[0]?.body).toContain('Answer by calling one of the tools.')
  })

  test('accepts any tool where any is required', async () => {
    const { status } = await send('chat', ['other call'], { tool_choice: 'required' })
    expect([status, seen.length]).toEqual([200, 1])
  })

  test.each([
    ['required', 'required'],
    [
      'allowed_tools',
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'look' } }] },
      },
    ],
  ] as const)('rejects a call of a tool that %s does not offer', async (mode, tool_choice) => {
    const call = mode === 'required' ? 'made-up call' : 'other call'
    const { status } = await send('chat', [call], { tool_choice })
    expect([status, seen.length]).toEqual([400, 2])
  })

  test('draws its repetition from the retry budget', async () => {
    const { health } = gateway.deps
    const { beginRetry } = health
    const asked: string[] = []
    health.beginRetry = key => {
      asked.push(key)
      return null
    }
    try {
      const { status } = await send('chat', ['text', 'call'])
      expect([status, seen.length, asked]).toEqual([400, 1, ['shy/picky']])
    } finally {
      health.beginRetry = beginRetry
    }
  })

  test('lets a request pass that only fills the prompt cache', async () => {
    const { status } = await send('messages', ['text'], { model: 'claude-fable-5-2', max_tokens: 0 })
    expect([status, seen.length]).toEqual([200, 1])
  })

  test('asks in the prompt of a Claude model that a client of Messages names', async () => {
    const model = 'claude-fable-5-2'
    const { status, headers } = await send('messages', ['text', 'call'], { model, system: 'Be kind.' })
    expect([status, seen.length]).toEqual([200, 2])
    expect(headers.get('x-gateway-dropped-params')).toStartWith('tool_choice')
    const { tool_choice, system } = JSON.parse(seen[0]?.body ?? '{}')
    expect([tool_choice, system]).toEqual([{ type: 'auto' }, 'Be kind.\n\nAnswer by calling the tool `look`.'])
  })

  test('ends a stream with an error where more text was sent than can be held back', async () => {
    const { status, text } = await send('chat', ['long text'], { stream: true })
    expect([status, seen.length]).toEqual([200, 1])
    expect(text).toContain('Word by word.')
    expect(text).toContain('requires a tool call')
    expect(text).not.toContain('[DONE]')
  })

  test('falls back to another model after the repeated attempt', async () => {
    const fallback = { fallback: 'any', fallback_max_cost_factor: 1000, stream: true }
    const { status, text, headers } = await send('chat', ['text', 'text', 'call'], fallback)
    expect([status, seen.length]).toEqual([200, 3])
    expect(headers.get('x-gateway-model')).not.toBe('shy/picky')
    expect(text).not.toContain('rather')
  })

  test('becomes an error without a repetition under the policy of one call', async () => {
    const { status } = await send('chat', ['text', 'call'], { fallback: 'none' })
    expect([status, seen.length]).toEqual([400, 1])
  })

  test('leaves the health of the model unchanged', async () => {
    for (let count = 0; count < 4; count++) await send('chat', ['text'])
    const { status } = await send('chat', ['call'])
    expect([status, seen.length]).toEqual([200, 1])
  })

  test('reports the failure of the repeated attempt', async () => {
    const { status } = await send('chat', ['text', 'status 500'])
    expect([status, seen.length]).toEqual([502, 2])
  })

  test.each(modes)('of Claude that cannot be forced: repeats and delivers or fails (stream %p)', async stream => {
    const model = 'anthropic/claude-fable-5-2'
    const delivered = await send('chat', ['text', 'call'], { model, stream })
    expect([delivered.status, seen.length]).toEqual([200, 2])
    expect(delivered.text).not.toContain('rather')
    const failed = await send('chat', ['text'], { model, stream })
    expect([failed.status, seen.length]).toEqual([400, 2])
  })
})

describe('cost of answers without the forced call', () => {
  test('counts their tokens against the day, and their cost as the shortfall', async () => {
    const failed = await send('chat', ['text'])
    expect(await getRecord(failed.headers)).toMatchObject({
      ...{ status: 'failed', input: 100, output: 20, billed: 0, shortfall: 2 * priceOfOne },
    })
    const delivered = await send('chat', ['text', 'call'], { stream: true })
    const record = await getRecord(delivered.headers)
    expect(record).toMatchObject({ input: 100, output: 20, billed: priceOfOne, shortfall: priceOfOne })
    expect(record.tried.map(([, outcome]) => outcome)).toEqual(['no_tool_call', 'served'])
  })

  test('uses up the daily tokens of an account that only causes them', async () => {
    const tokens = () => gateway.deps.meter.quotaStatus(gateway.accountId, unbounded)?.tokens.remaining ?? 0
    const before = tokens()
    await send('chat', ['text'])
    await eventually(() => before - tokens() === 120)
  })

  test('names the end without the call in the record of a stream whose text was sent', async () => {
    const { headers } = await send('chat', ['long text'], { stream: true })
    const record = await getRecord(headers)
    expect(record.tried.map(([, outcome]) => outcome)).toEqual(['no_tool_call'])
    expect([record.status, record.billed, record.shortfall]).toEqual(['failed', priceOfOne, 0])
  })
})

describe('clients of a forced call', () => {
  const defaultHeaders = { 'x-gateway-fallback': 'same_model' }
  const baseURL = () => `${gateway.url}/v1`

  test('OpenAI throws an error that names the field, after one request', async () => {
    script = ['text']
    seen = []
    const client = new OpenAI({ apiKey: gateway.key, baseURL: baseURL(), defaultHeaders })
    const { tools } = forms.chat.body
    const body = {
      ...{ model: 'shy/picky', messages: hello, tool_choice: 'required' as const },
      tools: tools.map(tool => ({ type: 'function' as const, function: tool.function })),
    }
    for (const stream of modes)
      expect(await client.chat.completions.create({ ...body, stream }).catch((error: unknown) => error)).toMatchObject({
        status: 400,
        param: 'tool_choice',
        code: 'unsupported_parameter',
      })
    expect(seen.length).toBe(4)
  })

  test('Anthropic throws an error, after one request', async () => {
    script = ['text']
    seen = []
    const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.url, defaultHeaders })
    const body = {
      ...{ model: 'shy/picky', max_tokens: 2_000, messages: hello, tool_choice: { type: 'any' as const } },
      tools: [{ name: 'look', input_schema: { type: 'object' as const } }],
    }
    const expected = { status: 400, type: 'invalid_request_error' }
    expect(await client.messages.create(body).catch((error: unknown) => error)).toMatchObject(expected)
    const streamed = client.messages.stream(body).finalMessage()
    expect(await streamed.catch((error: unknown) => error)).toMatchObject(expected)
    expect(seen.length).toBe(4)
  })

  test('LangChain receives the structure of the repeated attempt, and an error instead of undefined', async () => {
    const model = new ChatOpenAI({
      ...{ model: 'shy/picky', apiKey: gateway.key, maxTokens: 2_000, maxRetries: 2 },
      configuration: { baseURL: baseURL(), defaultHeaders },
    }).withStructuredOutput(parameters, { name: 'look', method: 'functionCalling' })
    script = ['text', 'call']
    seen = []
    expect(await model.invoke('Look at the sea.')).toEqual({ at: 'sea' })
    script = ['text']
    seen = []
    expect(String(await model.invoke('Look at the sea.').catch((error: unknown) => error))).toContain('tool_choice')
    expect(seen.length).toBe(2)
  })
})
