import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import Ajv from 'ajv'
import fc from 'fast-check'
import OpenAI from 'openai'
import { directives, readDirectives } from '../../src/simulator/directives.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { eventually } from '../harness/eventually.ts'
import { jsonAnswer, replay, silence, startUpstream } from '../harness/upstream.ts'

const now = Date.UTC(2026, 0, 31)
let simulator: Simulator
let client: OpenAI

beforeAll(async () => {
  simulator = await startSimulator({ clock: { now: () => now }, random: Math.random })
  client = new OpenAI({ baseURL: simulator.urls.openai, apiKey: 'any', maxRetries: 0 })
})
afterAll(() => simulator.stop())

type Provider = 'openai' | 'anthropic' | 'google'
const providers = ['openai', 'anthropic', 'google'] as const
const models = { openai: 'gpt-4.1', anthropic: 'claude-haiku-4-5', google: 'gemini-2.5-pro' } as const
type Fields = Record<string, unknown>

/** Returns the same prompt on each wire: URL, headers and body. */
function wireRequest(provider: Provider, prompt: string, stream: boolean, extra: Fields = {}) {
  const messages = [{ role: 'user', content: prompt }]
  const model = models[provider]
  switch (provider) {
    case 'openai': {
      const options = stream ? { stream, stream_options: { include_usage: true } } : {}
      return {
        url: `${simulator.urls.openai}/chat/completions`,
        headers: { authorization: 'Bearer any' },
        body: { model, messages, ...options, ...extra },
      }
    }
    case 'anthropic':
      return {
        url: `${simulator.urls.anthropic}/v1/messages`,
        headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01' },
        body: { model, max_tokens: 100_000, messages, stream, ...extra },
      }
    case 'google':
      return {
        url: `${simulator.urls.google}/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        headers: { 'x-goog-api-key': 'any' },
        body: { contents: [{ role: 'user', parts: [{ text: prompt }] }], ...extra },
      }
  }
}

async function send(provider: Provider, prompt: string, stream = false, extra: Fields = {}) {
  const { url, headers, body } = wireRequest(provider, prompt, stream, extra)
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

type Ending = 'fin' | 'rst' | 'open'

/** Returns true if a response has all of its body, by its length or its last chunk. */
function isWhole(bytes: Buffer): boolean {
  const at = bytes.indexOf('\r\n\r\n') + 4
  const length = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, Math.max(at, 0)))?.[1]
  return (
    at > 3 &&
    (length === undefined ? bytes.toString('latin1').endsWith('\r\n0\r\n\r\n') : bytes.length - at >= Number(length))
  )
}

/**
 * Sends one request over a plain socket, which shows each byte and how the connection ended. `patienceMs` ends the wait for
 * a response that hangs.
 */
function rawAsk(url: string, headers: Record<string, string>, body: unknown, patienceMs = 10_000) {
  const { port, pathname, search } = new URL(url)
  const text = JSON.stringify(body)
  const head = Object.entries({ host: 'x', 'content-length': String(Buffer.byteLength(text)), ...headers })
  const { promise, resolve } = Promise.withResolvers<{ bytes: Buffer; reads: number; ended: Ending }>()
  const chunks: Buffer[] = []
  let ended: Ending = 'open'
  const socket = connect(Number(port), '127.0.0.1')
  let timer = setTimeout(finish, patienceMs)
  function finish(): void {
    clearTimeout(timer)
    socket.destroy()
    resolve({ bytes: Buffer.concat(chunks), reads: chunks.length, ended })
  }
  socket.on('data', (bytes: Buffer) => {
    chunks.push(bytes)
    clearTimeout(timer)
    timer = setTimeout(finish, patienceMs)
    // A kept-alive connection stays open after the response. A broken one reports its end.
    if (isWhole(Buffer.concat(chunks))) finish()
  })
  socket.on('end', () => {
    ended = 'fin'
  })
  socket.on('error', () => {
    ended = 'rst'
  })
  socket.on('close', finish)
  socket.write(
    `POST ${pathname}${search} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`,
  )
  return promise
}

async function raw(provider: Provider, prompt: string, stream = true) {
  const { url, headers, body } = wireRequest(provider, prompt, stream)
  const { bytes, ...rest } = await rawAsk(url, headers, body, prompt.includes('hang') ? 500 : 10_000)
  const at = bytes.indexOf('\r\n\r\n')
  return { head: bytes.toString('latin1', 0, Math.max(at, 0)), body: at < 0 ? bytes : bytes.subarray(at + 4), ...rest }
}

/** Returns a chunked body without its chunk lines; the last chunk may be truncated. */
function unchunked(body: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0, end = body.indexOf('\r\n'); end >= 0; end = body.indexOf('\r\n', at)) {
    const size = Number.parseInt(body.toString('latin1', at, end), 16)
    pieces.push(body.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
  return Buffer.concat(pieces)
}

function events(text: string): { name: string; data: string }[] {
  return text
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map(block => block.split(/\r\n|\n|\r/))
    .flatMap(lines => {
      const data = lines.filter(line => line.startsWith('data: ')).map(line => line.slice(6))
      const name = lines.find(line => line.startsWith('event: '))?.slice(7) ?? ''
      return data.length === 0 ? [] : [{ name, data: data.join('\n') }]
    })
}

type Read = {
  text: string
  reasoning: string
  calls: { name: string; arguments: unknown }[]
  finish: unknown
  usage: Fields | null
  ended: boolean
}
const at = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Fields | undefined | null)?.[key as string], value)
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Reads a stream as the provider documents it, and throws on everything else. */
const readers: Record<Provider, (text: string) => Read> = {
  openai(text) {
    const read: Read = { text: '', reasoning: '', calls: [], finish: null, usage: null, ended: false }
    const pieces: string[] = []
    for (const { data } of events(text)) {
      if (data === '[DONE]') return { ...read, calls: withArguments(read.calls, pieces), ended: true }
      const chunk: unknown = JSON.parse(data)
      if (at(chunk, 'error')) throw new Error('error frame')
      read.text += at(chunk, 'choices', 0, 'delta', 'content') ?? ''
      for (const call of list(at(chunk, 'choices', 0, 'delta', 'tool_calls'))) {
        const index = Number(at(call, 'index'))
        if (at(call, 'id')) read.calls[index] = { name: String(at(call, 'function', 'name')), arguments: null }
        pieces[index] = (pieces[index] ?? '') + at(call, 'function', 'arguments')
      }
      read.finish = at(chunk, 'choices', 0, 'finish_reason') ?? read.finish
      read.usage = (at(chunk, 'usage') as Fields | null) ?? read.usage
    }
    return read
  },
  anthropic(text) {
    const read: Read = { text: '', reasoning: '', calls: [], finish: null, usage: null, ended: false }
    const pieces: string[] = []
    for (const { name, data } of events(text)) {
      const event: unknown = JSON.parse(data)
      if (name !== at(event, 'type')) throw new Error('event line and type differ')
      if (name === 'error') throw new Error('error frame')
      if (name === 'message_start') read.usage = at(event, 'message', 'usage') as Fields
      if (name === 'content_block_start' && at(event, 'content_block', 'type') === 'tool_use') {
        read.calls.push({ name: String(at(event, 'content_block', 'name')), arguments: null })
        pieces.push('')
      }
      read.text += at(event, 'delta', 'text') ?? ''
      read.reasoning += at(event, 'delta', 'thinking') ?? ''
      const json = at(event, 'delta', 'partial_json')
      if (typeof json === 'string') pieces.push((pieces.pop() ?? '') + json)
      if (name === 'message_delta') {
        read.finish = at(event, 'delta', 'stop_reason')
        read.usage = (at(event, 'usage') as Fields | undefined) ?? null
      }
      if (name === 'message_stop') read.ended = true
    }
    return { ...read, calls: withArguments(read.calls, pieces) }
  },
  google(text) {
    const read: Read = { text: '', reasoning: '', calls: [], finish: null, usage: null, ended: false }
    for (const { data } of events(text)) {
      const event: unknown = JSON.parse(data)
      if (at(event, 'error')) throw new Error('error frame')
      for (const part of list(at(event, 'candidates', 0, 'content', 'parts'))) {
        const call = at(part, 'functionCall')
        if (call) read.calls.push({ name: String(at(call, 'name')), arguments: at(call, 'args') })
        else if (at(part, 'thought')) read.reasoning += at(part, 'text')
        else read.text += at(part, 'text') ?? ''
      }
      read.finish = at(event, 'candidates', 0, 'finishReason') ?? read.finish
      read.ended ||= read.finish !== null
      read.usage = (at(event, 'usageMetadata') as Fields | undefined) ?? null
    }
    return read
  },
}

function withArguments(calls: Read['calls'], pieces: readonly string[]): Read['calls'] {
  return calls.map((call, index) => ({ ...call, arguments: JSON.parse(pieces[index] ?? 'null') }))
}

const weather = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer', minimum: 1, maximum: 7 },
    unit: { enum: ['C', 'F'] },
  },
  required: ['city', 'days', 'unit'],
  additionalProperties: false,
}
const isWeather = new Ajv({ strict: false }).compile(weather)
const tool = (name: string) => ({ type: 'function' as const, function: { name, parameters: weather } })

describe('official OpenAI client', () => {
  const user = (content: string) => [{ role: 'user' as const, content }]

  test('reads a labeled, repeatable output with consistent usage', async () => {
    const question = { model: 'gpt-5.5', messages: user('What is the capital of France?') }
    const [item, two] = await Promise.all([
      client.chat.completions.create(question),
      client.chat.completions.create(question),
    ])
    const text = item.choices[0]?.message.content ?? ''
    expect(text).toStartWith('[simulated gpt-5.5] You asked: “What is the capital of France?”')
    expect(text.split('. ').length).toBeGreaterThan(3)
    expect(two.choices[0]?.message.content).toBe(text)
    expect(two.id).not.toBe(item.id)
    expect(item.created).toBe(now / 1_000)
    expect(item._request_id).toStartWith('req_')
    expect(item.usage?.completion_tokens).toBe(Math.ceil(text.length / 4))
    expect(item.usage?.total_tokens).toBe((item.usage?.prompt_tokens ?? 0) + (item.usage?.completion_tokens ?? 0))
  })

  test('receives usage in a stream only when requested', async () => {
    const withUsage = await getChunks({ include_usage: true })
    const without = await getChunks(null)
    expect(withUsage.filter(chunk => chunk.usage != null)).toHaveLength(1)
    expect(withUsage.at(-1)?.choices).toEqual([])
    expect(without.some(chunk => 'usage' in chunk)).toBe(false)

    async function getChunks(stream_options: { include_usage: boolean } | null) {
      const stream = await client.chat.completions.create({
        model: 'gpt-4.1',
        messages: user('Hi'),
        stream: true as const,
        ...(stream_options === null ? {} : { stream_options }),
      })
      return Array.fromAsync(stream)
    }
  })

  test('receives one plausible value for each part of a schema', async () => {
    const value = async (schema: object) => {
      const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema: { $defs, ...schema } } }
      const { choices } = await client.chat.completions.create({
        model: 'gpt-4.1',
        messages: user('Hi'),
        response_format,
      })
      const made: unknown = JSON.parse(choices[0]?.message.content ?? '')
      expect([schema, new Ajv({ strict: false, formats }).validate({ $defs, ...schema }, made)]).toEqual([schema, true])
      return made
    }
    const formats = { date: true, uuid: true, email: true } as const
    const node = { $ref: '#/$defs/node' }
    const $defs = {
      node: {
        type: 'object',
        properties: { name: { type: 'string' }, next: { anyOf: [node, { type: 'null' }] } },
        required: ['name', 'next'],
      },
      tree: {
        type: 'object',
        properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/$defs/tree' } } },
      },
      left: { oneOf: [{ $ref: '#/$defs/right' }, { type: 'integer' }] },
      right: { type: 'object', properties: { left: { $ref: '#/$defs/left' } }, required: ['left'] },
    }
    const text = { type: 'string' }
    for (const [schema, expected] of [
      [node, { name: 'simulated name', next: null }],
      [{ $ref: '#/$defs/tree' }, { value: 1 }],
      [{ $ref: '#/$defs/left' }, { left: 1 }],
      [{ type: ['null', 'string'], maxLength: 4 }, 'simu'],
      [{ type: 'string', minLength: 17 }, 'simulated value..'],
      [{ enum: ['b', 'a'] }, 'b'],
      [{ const: { a: [1] } }, { a: [1] }],
      [{ type: 'boolean' }, true],
      [{ type: 'string', format: 'date' }, '2026-01-31'],
      [{ type: 'integer', minimum: -9, maximum: -3 }, -6],
      [{ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 }, 0.5],
      [{ type: 'number', exclusiveMinimum: 1 }, 2],
      [{ type: 'integer', minimum: 5, multipleOf: 7 }, 7],
      [{ type: 'array', items: text, minItems: 2 }, ['simulated value', 'simulated value']],
      [{ properties: { a: text, b: text }, required: ['b'] }, { b: 'simulated b' }],
      [
        {
          allOf: [
            { type: 'object', properties: { a: text }, required: ['a'] },
            { properties: { b: node }, required: ['b'] },
          ],
        },
        { a: 'simulated a', b: { name: 'simulated name', next: null } },
      ],
    ] as const)
      expect(await value(schema)).toEqual(expected)
  })

  test('receives a bounded value for a schema without an end', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
    const endless = { required: names, properties: Object.fromEntries(names.map(name => [name, { $ref: '#' }])) }
    const nested = (depth: number): object =>
      depth === 0 ? { type: 'string' } : { type: 'array', minItems: 100, items: nested(depth - 1) }
    for (const schema of [
      endless,
      nested(10),
      { allOf: names.map(() => ({ $ref: '#' })) },
      { $ref: '#' },
      { $ref: '#/constructor' },
    ]) {
      const tools = [{ type: 'function' as const, function: { name: 'f', parameters: { ...schema } } }]
      const { choices } = await client.chat.completions.create({
        model: 'gpt-4.1',
        messages: user('Hi'),
        tools,
        tool_choice: 'required',
        max_tokens: 100_000,
      })
      expect(choices[0]?.finish_reason).toBe('tool_calls')
    }
  })

  test('receives the requested choices and log probabilities', async () => {
    const create = (extra: object) =>
      client.chat.completions.create({ model: 'gpt-4.1', messages: user('Hi, say END'), ...extra })
    const several = await create({ n: 3 })
    expect(several.choices.map(choice => choice.index)).toEqual([0, 1, 2])
    expect(new Set(several.choices.map(choice => choice.message.content)).size).toBe(3)

    const withLogprobs = await create({ logprobs: true, top_logprobs: 2 })
    const tokens = withLogprobs.choices[0]?.logprobs?.content ?? []
    expect(tokens.map(token => token.token).join('')).toBe(withLogprobs.choices[0]?.message.content ?? '')
    expect(tokens[0]?.top_logprobs).toHaveLength(2)
  })
})

describe.each(providers)('simulated format %s', provider => {
  const textIn: Record<Provider, (body: unknown) => unknown> = {
    openai: body => at(body, 'choices', 0, 'message', 'content'),
    anthropic: body => at(body, 'content', 0, 'text'),
    google: body => at(body, 'candidates', 0, 'content', 'parts', 0, 'text'),
  }
  const finishes: Record<Provider, Record<'stop' | 'length' | 'tool_calls' | 'content_filter', string>> = {
    openai: { stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'content_filter' },
    anthropic: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' },
    google: { stop: 'STOP', length: 'MAX_TOKENS', tool_calls: 'STOP', content_filter: 'SAFETY' },
  }
  const usageKey = { openai: 'usage', anthropic: 'usage', google: 'usageMetadata' }[provider]
  const outputKey = { openai: 'completion_tokens', anthropic: 'output_tokens', google: 'candidatesTokenCount' }[
    provider
  ]
  const read = readers[provider]

  test('streams text and usage of its JSON response', async () => {
    const whole: unknown = JSON.parse((await send(provider, 'Good morning')).text)
    const streamed = read((await send(provider, 'Good morning', true)).text)
    expect(streamed.text).toBe(String(textIn[provider](whole)))
    expect(streamed.text).toStartWith(`[simulated ${models[provider]}] `)
    expect(streamed).toMatchObject({ finish: finishes[provider].stop, ended: true, usage: at(whole, usageKey) })
    expect(streamed.usage?.[outputKey]).toBe(Math.ceil(streamed.text.length / 4))
  })

  test('calls one or several tools and answers with their results', async () => {
    const extra: Record<Provider, Fields> = {
      openai: { tools: [tool('weather')], tool_choice: 'required' },
      anthropic: { tools: [{ name: 'weather', input_schema: weather }], tool_choice: { type: 'any' } },
      google: {
        tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: weather }] }],
        toolConfig: { functionCallingConfig: { mode: 'ANY' } },
      },
    }
    for (const [prompt, count] of [
      ['Weather?', 1],
      ['Weather? [[sim:parallel=3, preamble]]', 3],
    ] as const) {
      const { calls, finish, text } = read((await send(provider, prompt, true, extra[provider])).text)
      expect(calls).toHaveLength(count)
      expect(calls.every(call => call.name === 'weather' && isWeather(call.arguments))).toBe(true)
      expect(finish).toBe(finishes[provider].tool_calls)
      expect(text === '').toBe(count === 1)
    }
    const withResult: Record<Provider, Fields> = {
      openai: {
        messages: [
          { role: 'user', content: 'Weather?' },
          {
            role: 'assistant',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
        ],
      },
      anthropic: {
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sunny' }] },
        ],
      },
      google: {
        contents: [
          { role: 'user', parts: [{ text: 'Weather?' }] },
          { role: 'model', parts: [{ functionCall: { name: 'weather', args: {} } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { output: 'sunny' } } }] },
        ],
      },
    }
    const after = read((await send(provider, '', true, { ...extra[provider], ...withResult[provider] })).text)
    expect(after.text).toContain('The tool answered: “sunny”')
    expect(after.calls).toEqual([])
  })

  test('applies cap, stop sequences and schema, and accepts images', async () => {
    const settings: Record<Provider, (fields: { cap?: number; stop?: string; schema?: unknown }) => Fields> = {
      openai: ({ cap, stop, schema }) => ({
        max_completion_tokens: cap,
        stop,
        response_format: schema && { type: 'json_schema', json_schema: { name: 'x', schema } },
      }),
      anthropic: ({ cap = 1_000, stop, schema }) => ({
        max_tokens: cap,
        stop_sequences: stop && [stop],
        output_config: schema && { format: { type: 'json_schema', schema } },
      }),
      google: ({ cap, stop, schema }) => ({
        generationConfig: {
          maxOutputTokens: cap,
          stopSequences: stop && [stop],
          ...(schema ? { responseMimeType: 'application/json', responseJsonSchema: schema } : {}),
        },
      }),
    }
    const capped = read((await send(provider, 'Hi', true, settings[provider]({ cap: 9 }))).text)
    expect(capped).toMatchObject({ finish: finishes[provider].length, usage: { [outputKey]: 9 } })
    expect(capped.text).toHaveLength(36)
    const stopped = read((await send(provider, 'Hi', true, settings[provider]({ stop: 'You' }))).text)
    expect(stopped.text).toBe(`[simulated ${models[provider]}] `)
    expect(stopped.finish).toBe(provider === 'anthropic' ? 'stop_sequence' : finishes[provider].stop)
    const structured = read((await send(provider, 'Hi', true, settings[provider]({ schema: weather }))).text)
    expect(isWeather(JSON.parse(structured.text))).toBe(true)

    const pixel = 'iVBORw0KGgo='
    const image: Record<Provider, Fields> = {
      openai: {
        messages: [
          { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }] },
        ],
      },
      anthropic: {
        messages: [
          {
            role: 'user',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }],
          },
        ],
      },
      google: { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: pixel } }] }] },
    }
    expect(read((await send(provider, '', true, image[provider])).text).text).toContain('an image')
  })

  test('writes reasoning in its own form', async () => {
    const effort: Record<Provider, Fields> = {
      openai: { model: 'gpt-5.5', reasoning_effort: 'medium' },
      anthropic: { thinking: { type: 'enabled', budget_tokens: 1_024 } },
      google: { generationConfig: { thinkingConfig: { thinkingBudget: 64, includeThoughts: true } } },
    }
    const { reasoning, usage } = read((await send(provider, 'Hi', true, effort[provider])).text)
    expect(reasoning === '').toBe(provider === 'openai')
    const counts: Record<Provider, unknown> = {
      openai: at(usage, 'completion_tokens_details', 'reasoning_tokens'),
      anthropic: at(usage, 'output_tokens_details', 'thinking_tokens'),
      google: at(usage, 'thoughtsTokenCount'),
    }
    expect(counts[provider]).toBeGreaterThan(0)
  })

  test('rejects what the real API rejects, with its messages', async () => {
    const { url, headers, body } = wireRequest(provider, 'Hi', false)
    const post = async (sent: Fields, sentHeaders: Record<string, string> = headers) => {
      const response = await fetch(url, { method: 'POST', headers: sentHeaders, body: JSON.stringify(sent) })
      const answer: unknown = await response.json()
      expect(typeof at(answer, 'error', 'message')).toBe('string')
      return response.status
    }
    expect(await post(body, { 'anthropic-version': '2023-06-01' })).toBe(provider === 'google' ? 403 : 401)
    expect(await post({ ...body, unheard_of: 1 })).toBe(400)
    expect(await post({ ...body, [provider === 'google' ? 'contents' : 'messages']: [] })).toBe(400)
    if (provider !== 'google') expect(await post({ ...body, model: undefined })).toBe(400)
    if (provider === 'openai') {
      expect(await post({ ...body, model: 'gpt-5.5', max_tokens: 5 })).toBe(400)
      expect(await post({ ...body, model: 'gpt-6-astra', temperature: 0.5 })).toBe(400)
      expect(await post({ ...body, stream_options: {} })).toBe(400)
    }
    if (provider === 'anthropic') {
      expect(await post(body, { 'x-api-key': 'any' })).toBe(400)
      expect(await post({ ...body, max_tokens: undefined })).toBe(400)
      expect(await post({ ...body, temperature: 1.5 })).toBe(400)
      expect(await post({ ...body, model: 'claude-opus-5-5', temperature: 1 })).toBe(400)
    }
    const wrong = await fetch(url, { method: 'POST', headers, body: '{' })
    expect(wrong.status).toBe(400)
  })

  test('fails with the requested status, body and wait time', async () => {
    const limited = await send(provider, '[[sim:status=429, retry_after=7]]', true)
    expect(limited.status).toBe(429)
    expect(JSON.stringify([...limited.headers]) + limited.text).toContain('7')
    const overloaded = await send(provider, '[[sim:status=529]]')
    expect(overloaded.status).toBe(529)
    const words: Record<Provider, string> = {
      openai: 'context_length_exceeded',
      anthropic: 'prompt is too long',
      google: 'input token count',
    }
    const overflow = await send(provider, '[[sim:context_overflow]]')
    expect([overflow.status, overflow.text.includes(words[provider])]).toEqual([400, true])
    expect((await send(provider, '[[sim:model_missing]]')).status).toBe(404)
    expect((await send(provider, '[[sim:quota]]')).text).toMatch(/quota|credit/)
    const blocked = await send(provider, '[[sim:content_block]]', true)
    expect(provider === 'google' ? blocked.text : blocked.status).toEqual(
      provider === 'google' ? expect.stringContaining('blockReason') : 400,
    )
    expect(await send(provider, '[[sim:html]]', true)).toMatchObject({
      status: 200,
      text: expect.stringContaining('<html'),
    })
  })

  test('breaks in every way before the headers', async () => {
    expect(await raw(provider, '[[sim:hang]]')).toMatchObject({ head: '', ended: 'open' })
    expect(await raw(provider, '[[sim:cut]]')).toMatchObject({ head: '', ended: 'fin' })
    expect(await raw(provider, '[[sim:reset]]')).toMatchObject({ head: '', ended: 'rst' })
  })

  test('breaks in every way and framing after a number of deltas, and never sends an end', async () => {
    const ends = { cut_after: 'fin', reset_after: 'rst', hang_after: 'open' } as const
    for (const [name, ended] of Object.entries(ends)) {
      for (const framing of ['chunked', 'length', 'close']) {
        const broken = await raw(provider, `[[sim:${name}=3, framing=${framing}, chunk=4]]`)
        expect(broken.ended).toBe(ended)
        const got = read((framing === 'chunked' ? unchunked(broken.body) : broken.body).toString())
        expect([got.text, got.ended]).toEqual([`[simulated ${models[provider]}`.slice(0, 12), false])
      }
    }
    expect((await raw(provider, '[[sim:cut_after=0]]')).body.toString()).not.toContain('[simu')
    expect(await raw(provider, '[[sim:reset_after=1]]', false)).toMatchObject({ ended: 'rst' })
  })

  test('sends invalid frames, and streams with invalid ends', async () => {
    const streamed = async (prompt: string) => (await send(provider, prompt, true)).text
    await expect(streamed('[[sim:malformed_after=2]]').then(read)).rejects.toBeInstanceOf(SyntaxError)
    await expect(streamed('[[sim:error_after=2]]').then(read)).rejects.toThrow('error frame')
    const unended = read(await streamed('[[sim:no_terminal]]'))
    expect(unended).toMatchObject({ finish: null, ended: false })
    expect(unended.text).toStartWith('[simulated')
  })

  test('finishes and counts as directed', async () => {
    for (const [finish, name] of Object.entries(finishes[provider])) {
      expect(read((await send(provider, `[[sim:finish=${finish}]]`, true)).text).finish).toBe(name)
    }
    expect(read((await send(provider, '[[sim:content_filter]]', true)).text).finish).toBe(
      finishes[provider].content_filter,
    )
    expect(read((await send(provider, '[[sim:empty]]', true)).text)).toMatchObject({ text: '', ended: true })
    expect((await send(provider, '[[sim:refusal]]')).text).toMatch(/refusal|SAFETY/)
    const output = async (prompt: string) => read((await send(provider, prompt, true)).text).usage
    expect(await output('[[sim:no_usage]]')).toBeNull()
    expect((await output('[[sim:usage_absurd]]'))?.[outputKey]).toBe(1e12)
    expect((await output('[[sim:usage_negative]]'))?.[outputKey]).toBe(-5)
    expect((await output('[[sim:usage_nan]]'))?.[outputKey]).toBeNull()
    expect((await output('[[sim:usage_zero]]'))?.[outputKey] ?? 0).toBe(0)
    expect((await output('[[sim:tokens=200]]'))?.[outputKey]).toBe(200)
    expect(JSON.stringify(await output('[[sim:cached=3]] a longer prompt'))).toMatch(/cache\w*":3/i)
    expect((await send(provider, '[[sim:served=another-model]]')).text).toContain('another-model')
    expect((await send(provider, '[[sim:reasoning=20]]')).text).toMatch(
      /(reasoning_tokens|thinking_tokens|thoughtsTokenCount)":20/,
    )
  })

  test('keeps its text with compression, slicing and any framing', async () => {
    const plain = read((await send(provider, 'Hi', true)).text)
    for (const variant of ['gzip', 'slice=1', 'slice=7, gzip', 'framing=close', 'framing=length']) {
      const { text, headers } = await send(provider, `Hi [[sim:${variant}]]`, true)
      expect([variant, read(text).text, read(text).ended]).toEqual([variant, plain.text, true])
      if (variant.includes('gzip')) expect(headers.get('content-encoding')).toBe('gzip')
    }
    const zipped = await raw(provider, '[[sim:gzip, framing=length]]', false)
    expect(gunzipSync(zipped.body).toString()).toContain('[simulated')
  })

  test('delays as directed', async () => {
    const time = async (prompt: string, stream: boolean) => {
      const start = performance.now()
      await send(provider, prompt, stream)
      return performance.now() - start
    }
    expect(await time('[[sim:slow_headers_ms=60]]', true)).toBeGreaterThan(55)
    expect(await time('[[sim:first_ms=60]]', true)).toBeGreaterThan(55)
    expect(await time('[[sim:tokens=40, chunk=40, pace_ms=20]]', true)).toBeGreaterThan(55)
    expect(await time('[[sim:tokens=40, chunk=40, pace_ms=20]]', false)).toBeGreaterThan(55)
  })
})

describe('directives', () => {
  test('apply to the provider or model that they name', async () => {
    const prompt = '[[sim:status=503, only=openai|claude-haiku-4-5]]'
    const statuses = await Promise.all(providers.map(async provider => (await send(provider, prompt)).status))
    expect(statuses).toEqual([503, 503, 200])
  })

  test('apply to the first requests with the same key', async () => {
    const prompt = `[[sim:status=503, times=2, key=${crypto.randomUUID()}]]`
    const statuses = []
    for (const provider of ['openai', 'google', 'openai', 'openai'] as const)
      statuses.push((await send(provider, prompt)).status)
    expect(statuses).toEqual([503, 503, 200, 200])
  })

  test('apply from every user message and disappear from it', async () => {
    const completion = await client.chat.completions.create({
      model: 'gpt-4.1',
      messages: [
        { role: 'user', content: '[[sim:finish=length]]' },
        { role: 'assistant', content: '[[sim:status=500]]' },
        { role: 'user', content: 'Hello [[sim:served=x]]' },
      ],
    })
    expect(completion.choices[0]?.finish_reason).toBe('length')
    expect(completion.model).toBe('x')
    expect(completion.choices[0]?.message.content).not.toContain('sim:')
  })

  test('cause an error with their name when unknown or invalid', async () => {
    for (const wrong of [
      'statsu=503',
      'status',
      'status=many',
      'tokens=1000001',
      'hang=1',
      'framing=none',
      'framing',
    ]) {
      const { status, text } = await send('openai', `[[sim:${wrong}]]`)
      expect([status, text.includes(wrong)]).toEqual([400, true])
    }
  })

  test('match their own documentation', () => {
    const samples: Record<string, string> = { flag: '', number: '=1', text: '=some-text' }
    for (const { name, value, meaning } of directives) {
      const read = readDirectives([`[[sim:${name}${samples[value] ?? `=${value.split('|')[0]}`}]]`])
      expect([name, read.kind, meaning.length > 10]).toEqual([name, 'read', true])
    }
    expect(new Set(directives.map(({ name }) => name)).size).toBe(directives.length)
  })

  test('never make the parser fail or stall on any text', () => {
    expect(readDirectives(['[[sim:'.repeat(500_000)])).toEqual({ kind: 'read', groups: [] })
    fc.assert(fc.property(fc.string({ unit: 'binary' }), text => void readDirectives([`[[sim:${text}]]`, text])))
  })
})

describe('simulator server', () => {
  test('serves many requests per connection, pipelined and chunked', async () => {
    const before = simulator.stats()
    const body = JSON.stringify({ model: 'gpt-4.1', messages: [{ role: 'user', content: 'Hi' }] })
    const { port } = new URL(simulator.urls.openai)
    const common = 'POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n'
    const sized = `${common}content-length: ${body.length}\r\n\r\n${body}`
    const chunked = `${common}transfer-encoding: chunked\r\n\r\n5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`
    const socket = connect(Number(port), '127.0.0.1')
    let text = ''
    socket.on('data', bytes => {
      text += bytes.toString()
    })
    for (const character of sized) socket.write(character)
    socket.write(sized + chunked + sized)
    await eventually(() => text.split('HTTP/1.1 200').length === 5)
    socket.destroy()
    const after = simulator.stats()
    expect([after.connections - before.connections, after.requests - before.requests]).toEqual([1, 4])
  })

  test('serves 200 concurrent requests with their own texts', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const provider = providers[index % 3] ?? 'openai'
        return readers[provider]((await send(provider, `Number ${index}.`, true)).text)
      }),
    )
    answers.forEach((answer, index) => {
      expect(answer.text).toContain(`“Number ${index}.”`)
      expect(answer.ended).toBe(true)
    })
  })

  test('detects a client disconnect while writing, pacing or waiting', async () => {
    const delays: number[] = []
    for (const prompt of [
      '[[sim:hang]]',
      '[[sim:hang_after=2]]',
      '[[sim:pace_ms=20, tokens=5000]]',
      '[[sim:tokens=1000000, ignore_cap]]',
    ]) {
      const { url, headers, body } = wireRequest('openai', prompt, true)
      const before = simulator.stats().requests
      const leaving = new AbortController()
      const response = fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: leaving.signal })
      response.catch(() => {})
      await eventually(() => simulator.stats().requests > before)
      const seen = () => simulator.stats().exchanges.at(-1)
      if (prompt !== '[[sim:hang]]') await eventually(() => (seen()?.bytesSent ?? 0) > 0)
      const left = performance.now()
      leaving.abort()
      await eventually(() => seen()?.outcome !== 'open')
      expect(seen()?.outcome).toBe('aborted')
      delays.push((seen()?.endedAt ?? Number.POSITIVE_INFINITY) - left)
    }
    process.stdout.write(`disconnects seen after ${delays.map(delay => delay.toFixed(0)).join(', ')} ms\n`)
  })

  test('waits for a client that does not read', async () => {
    const { url, headers, body } = wireRequest('openai', '[[sim:tokens=1000000, ignore_cap]]', true)
    const text = JSON.stringify(body)
    const socket = connect(Number(new URL(url).port), '127.0.0.1').pause()
    socket.write(
      `POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${headers.authorization}\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    )
    const sent = () => simulator.stats().exchanges.at(-1)?.bytesSent ?? 0
    let last = -1
    while (sent() === 0 || sent() !== last) {
      last = sent()
      await Bun.sleep(100)
    }
    expect(last).toBeLessThan(50_000_000)
    socket.destroy()
  })
})

describe('scripted upstream', () => {
  const bytes = Buffer.from('data: {"text":"größer"}\n\n'.repeat(3))

  test('truncates a recording at every byte in every framing, by FIN and RST', async () => {
    const cases = (['length', 'chunked', 'close'] as const).flatMap(framing =>
      (['fin', 'rst'] as const).flatMap(end =>
        Array.from({ length: bytes.length }, (_, cutAt) => ({ framing, end, cutAt })),
      ),
    )
    const upstream = startUpstream(({ body }) => {
      const { cutAt, ...rest } = cases[Number(body)] ?? { framing: 'length' as const, end: 'fin' as const, cutAt: 0 }
      return replay(bytes, { contentType: 'text/event-stream', cutAt, ...rest })
    })
    await Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let index = lane; index < cases.length; index += 8) {
          const { framing = '', end, cutAt } = cases[index] ?? {}
          const got = await rawAsk(upstream.url, {}, index)
          const at = got.bytes.indexOf('\r\n\r\n') + 4
          const sent = got.bytes.subarray(at)
          const body = framing === 'chunked' ? unchunked(sent) : sent
          expect([framing, cutAt, body.toString('latin1'), got.ended]).toEqual([
            framing,
            cutAt,
            bytes.subarray(0, cutAt).toString('latin1'),
            end,
          ])
        }
      }),
    )
    upstream.stop()
  })

  test('records requests, sent bytes and disconnects', async () => {
    const leaving = new AbortController()
    const upstream = startUpstream(({ index }) => {
      if (index === 0) return jsonAnswer({ ok: true }, 201)
      leaving.abort()
      return silence
    })
    const first = await fetch(`${upstream.url}/v1/x?y=1`, { method: 'POST', headers: { 'x-one': '1' }, body: 'hello' })
    expect([first.status, await first.json()]).toEqual([201, { ok: true }])
    await expect(fetch(upstream.url, { method: 'POST', body: 'two', signal: leaving.signal })).rejects.toThrow()
    await upstream.until(ledger => ledger[1]?.outcome === 'aborted')
    const [item, two] = upstream.ledger()
    expect(item).toMatchObject({
      method: 'POST',
      path: '/v1/x?y=1',
      body: 'hello',
      headers: { 'x-one': '1' },
      outcome: 'answered',
      abortedAt: null,
    })
    expect(item?.bytesSent).toBeGreaterThan(10)
    expect(two).toMatchObject({ bytesSent: 0, outcome: 'aborted' })
    expect(two?.abortedAt).toBeGreaterThanOrEqual(two?.startedAt ?? Number.POSITIVE_INFINITY)
    expect(upstream.openConnections()).toBe(0)
    upstream.stop()
  })

  test('writes compressed and invalid responses as scripted', async () => {
    const upstream = startUpstream(({ index }) =>
      index === 0
        ? replay(bytes, { contentType: 'text/event-stream', framing: 'chunked', gzip: true, pieceBytes: 3 })
        : { framing: 'none', pieces: ['not HTTP\r\n\r\n'] },
    )
    expect(await (await fetch(upstream.url, { method: 'POST' })).text()).toBe(bytes.toString())
    expect(await rawAsk(upstream.url, {}, 0)).toMatchObject({ bytes: Buffer.from('not HTTP\r\n\r\n'), ended: 'fin' })
    upstream.stop()
  })
})
