/**
 * Streams of every upstream family through every API form, as the official clients read them: the whole stream, any split of its
 * bytes, and a cut at any byte. The streams are made up after the providers' documentation.
 */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import OpenAI from 'openai'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { ChunkWriter } from '../../src/dialects/chat-completions/reply.ts'
import { MessageFrames } from '../../src/dialects/messages/writers.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { ResponseStream } from '../../src/dialects/responses/stream.ts'
import type { StreamFormat } from '../../src/http/sse-response.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { ReceivedAnswer } from '../../src/providers/received-answer.ts'
import { SseSplitter } from '../../src/providers/sse.ts'
import { sendFinishes } from '../../src/request/attempt-run.ts'
import { askWith } from '../harness/ask.ts'
import { type ChatEvent, EventLog, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const named = (value: { readonly type: string }) => `event: ${value.type}\n${data(value)}`

type Call = { readonly name: string; readonly args: object }
type Expected = {
  readonly text: string
  readonly calls: readonly Call[]
  readonly stop: 'stop' | 'tool_calls' | 'length'
}
type Made = Expected & { readonly provider: Provider; readonly stream: string }

const said = 'Grüße 🙂, I look.'
const twoCalls = [
  { name: 'weather', args: { city: 'Oslo "N"' } },
  { name: 'weather', args: { city: 'Köln' } },
]

const chunk = (delta: object, finish_reason: string | null = null) =>
  data({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason }],
  })
const called = (index: number, fields: object) => chunk({ tool_calls: [{ index, ...fields }] })
const chatUsage = data({ id: 'c', choices: [], usage: { prompt_tokens: 9, completion_tokens: 5 } })

const item = (type: string, fields: object) => named({ type: `response.${type}`, ...fields })
const responseEnd = (type: 'completed' | 'incomplete', fields: object = {}) =>
  item(type, {
    response: { id: 'resp', status: type, ...fields, usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 } },
  })

const block = (index: number, content_block: object, ...deltas: readonly object[]) =>
  [
    named({ type: 'content_block_start', ...{ index, content_block } }),
    ...deltas.map(delta => named({ type: 'content_block_delta', ...{ index, delta } })),
    named({ type: 'content_block_stop', ...{ index } }),
  ].join('')
const messageStart = named({
  type: 'message_start',
  ...{
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'c',
      content: [],
      usage: { input_tokens: 9, output_tokens: 1 },
    },
  },
})
const messageEnd = (stop_reason: string) =>
  named({ type: 'message_delta', ...{ delta: { stop_reason }, usage: { output_tokens: 5 } } }) +
  named({ type: 'message_stop' })

const parts = (list: readonly object[], finishReason?: string) =>
  data({
    candidates: [{ index: 0, content: { role: 'model', parts: list }, finishReason }],
    modelVersion: 'g',
    responseId: 'r',
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5 },
  })

const streams: Readonly<Record<string, Made>> = {
  'chat completions: reasoning, text, calls that interleave': {
    provider: openai({ official: false }),
    text: said,
    calls: twoCalls,
    stop: 'tool_calls',
    stream: [
      chunk({ role: 'assistant', content: null, reasoning_content: 'Hm' }),
      chunk({ content: said.slice(0, 7) }),
      chunk({ content: said.slice(7) }),
      called(0, { id: 'a', type: 'function', function: { name: 'weather', arguments: '' } }),
      called(1, { id: 'b', type: 'function', function: { name: 'weather', arguments: '{"city":' } }),
      called(0, { function: { arguments: '{"city":"Oslo ' } }),
      called(1, { function: { arguments: '"Köln"}' } }),
      called(0, { function: { arguments: '\\"N\\""}' } }),
      chunk({}, 'tool_calls'),
      chatUsage,
      'data: [DONE]\n\n',
    ].join(''),
  },
  'chat completions: a call without arguments, and a finish reason that denies it': {
    provider: openai({ official: true }),
    text: '',
    calls: [{ name: 'now', args: {} }],
    stop: 'tool_calls',
    stream: [
      called(0, { id: 'a', type: 'function', function: { name: 'now', arguments: '' } }),
      chunk({}, 'stop'),
      chatUsage,
      'data: [DONE]\n\n',
    ].join(''),
  },
  'chat completions: cut by the cap within a call': {
    provider: openai({ official: true }),
    text: said,
    calls: [],
    stop: 'length',
    stream: [
      chunk({ content: said }),
      called(0, { id: 'a', type: 'function', function: { name: 'weather', arguments: '{"ci' } }),
      chunk({}, 'length'),
      chatUsage,
      'data: [DONE]\n\n',
    ].join(''),
  },
  'Responses: reasoning, commentary, two calls': {
    provider: openaiResponses,
    text: said,
    calls: twoCalls,
    stop: 'tool_calls',
    stream: [
      item('created', { response: { id: 'resp', model: 'm', status: 'in_progress' } }),
      item('output_item.added', { output_index: 0, item: { id: 'rs', type: 'reasoning', summary: [] } }),
      item('reasoning_summary_part.added', { output_index: 0, summary_index: 0, part: {} }),
      item('reasoning_summary_text.delta', { output_index: 0, summary_index: 0, delta: 'Hm' }),
      item('output_item.done', {
        output_index: 0,
        item: { id: 'rs', type: 'reasoning', summary: [], encrypted_content: 'enc' },
      }),
      item('output_item.added', {
        output_index: 1,
        item: { id: 'msg', type: 'message', phase: 'commentary', role: 'assistant', content: [] },
      }),
      item('output_text.delta', { output_index: 1, content_index: 0, delta: said.slice(0, 9) }),
      item('output_text.delta', { output_index: 1, content_index: 0, delta: said.slice(9) }),
      item('output_item.done', {
        output_index: 1,
        item: { id: 'msg', type: 'message', content: [{ type: 'output_text', text: said }] },
      }),
      item('output_item.added', {
        output_index: 2,
        item: { id: 'fa', type: 'function_call', call_id: 'a', name: 'weather', arguments: '' },
      }),
      item('output_item.added', {
        output_index: 3,
        item: { id: 'fb', type: 'function_call', call_id: 'b', name: 'weather', arguments: '' },
      }),
      item('function_call_arguments.delta', { output_index: 3, delta: '{"city":"Köln"}' }),
      item('function_call_arguments.delta', { output_index: 2, delta: '{"city":"Oslo \\"N\\""}' }),
      item('output_item.done', {
        output_index: 2,
        item: { id: 'fa', type: 'function_call', call_id: 'a', name: 'weather', arguments: '{"city":"Oslo \\"N\\""}' },
      }),
      item('output_item.done', {
        output_index: 3,
        item: { id: 'fb', type: 'function_call', call_id: 'b', name: 'weather', arguments: '{"city":"Köln"}' },
      }),
      responseEnd('completed'),
    ].join(''),
  },
  'Responses: cut by the cap': {
    provider: openaiResponses,
    text: said,
    calls: [],
    stop: 'length',
    stream: [
      item('created', { response: { id: 'resp', model: 'm' } }),
      item('output_item.added', { output_index: 0, item: { id: 'msg', type: 'message', content: [] } }),
      item('output_text.delta', { output_index: 0, content_index: 0, delta: said }),
      responseEnd('incomplete', { incomplete_details: { reason: 'max_output_tokens' } }),
    ].join(''),
  },
  'Responses: an item without a type, which is no item': {
    provider: openaiResponses,
    text: said,
    calls: [],
    stop: 'stop',
    stream: [
      item('created', { response: { id: 'resp', model: 'm' } }),
      item('output_item.done', { output_index: 0, item: { id: 'x' } }),
      item('output_item.added', { output_index: 1, item: { id: 'msg', type: 'message', content: [] } }),
      item('output_text.delta', { output_index: 1, content_index: 0, delta: said }),
      responseEnd('completed'),
    ].join(''),
  },
  'Anthropic: thinking between calls, a search of its own': {
    provider: anthropic,
    text: said,
    calls: [...twoCalls, { name: 'now', args: {} }],
    stop: 'tool_calls',
    stream: [
      messageStart,
      named({ type: 'ping' }),
      block(
        0,
        { type: 'thinking', thinking: '' },
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'signature_delta', signature: 'sig1' },
      ),
      block(
        1,
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        { type: 'input_json_delta', partial_json: '{"query":"x"}' },
      ),
      block(2, {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [{ type: 'web_search_result', url: 'https://a.test' }],
      }),
      block(
        3,
        { type: 'text', text: '' },
        { type: 'text_delta', text: said.slice(0, 4) },
        { type: 'text_delta', text: said.slice(4) },
      ),
      block(
        4,
        { type: 'tool_use', id: 'a', name: 'weather', input: {} },
        { type: 'input_json_delta', partial_json: '' },
        { type: 'input_json_delta', partial_json: '{"city":"Oslo \\"' },
        { type: 'input_json_delta', partial_json: 'N\\""}' },
      ),
      block(5, { type: 'redacted_thinking', data: 'red' }),
      block(
        6,
        { type: 'tool_use', id: 'b', name: 'weather', input: {} },
        { type: 'input_json_delta', partial_json: '{"city":"Köln"}' },
      ),
      block(7, { type: 'tool_use', id: 'd', name: 'now', input: {} }),
      messageEnd('tool_use'),
    ].join(''),
  },
  'Anthropic: cut by the cap within a call': {
    provider: anthropic,
    text: said,
    calls: [],
    stop: 'length',
    stream: [
      messageStart,
      block(0, { type: 'text', text: said }),
      named({
        type: 'content_block_start',
        ...{ index: 1, content_block: { type: 'tool_use', id: 'a', name: 'weather', input: {} } },
      }),
      named({
        type: 'content_block_delta',
        ...{ index: 1, delta: { type: 'input_json_delta', partial_json: '{"ci' } },
      }),
      messageEnd('max_tokens'),
    ].join(''),
  },
  'Gemini: thoughts, text, calls in one chunk': {
    provider: google,
    text: said,
    calls: twoCalls,
    stop: 'tool_calls',
    stream: [
      parts([{ text: 'Hm', thought: true }]),
      parts([{ text: said.slice(0, 5) }]),
      parts([{ text: said.slice(5) }]),
      parts([
        { functionCall: { name: 'weather', args: twoCalls[0]?.args }, thoughtSignature: 'c2ln' },
        { functionCall: { name: 'weather', args: twoCalls[1]?.args } },
      ]),
      parts([{ text: '' }], 'STOP'),
    ].join(''),
  },
}

const [model] = catalog
if (model === undefined) throw new Error('the catalog is empty')

const opening = startWith({
  model: 'p/m',
  provider: 'p',
  inputUsage: { inputTokens: 9, cachedInputTokens: 0, cacheWriteTokens: 0 },
})
const receipt = summaryWith({
  record: { provider: 'p', model: 'm' },
  usage: { inputTokens: 9, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 5, reasoningTokens: 0 },
})

/** Returns the batches of a response whose body ends after `bytes`, split at `splits`; null as the last one = it failed. */
function getBatches(provider: Provider, bytes: Uint8Array, splits: readonly number[]): (readonly ChatEvent[] | null)[] {
  const response = new ReceivedAnswer(askWith({}))
  const splitter = new SseSplitter()
  const reader = provider.streamReader(1)
  const batches: (readonly ChatEvent[] | null)[] = []
  const log = new EventLog()
  const take = () => {
    response.release(log)
    const content = log.taken()
    const first: ChatEvent = { type: 'opened', opening }
    if (content.length > 0) batches.push(batches.length === 0 ? [first, ...content] : content)
  }
  const places = [...new Set(splits.map(split => split % (bytes.length + 1)))].sort((value, other) => value - other)
  let from = 0
  for (const to of [...places, bytes.length]) {
    splitter.push(bytes.subarray(from, to), reader, response)
    take()
    from = to
  }
  splitter.finish(reader, response)
  reader.finish(response)
  take()
  if (response.failure !== null || !response.ended) return [...batches, null]
  sendFinishes(response, log)
  return [...batches, log.taken(), [{ type: 'done', receipt }]]
}

const seal = createReasoningSeal('a secret of the tests', null)
const formats: Readonly<Record<'chat' | 'responses' | 'messages', () => StreamFormat>> = {
  chat: () => new ChunkWriter({ includeUsage: true, legacyFunctions: false, customTools: new Set() }, 'req_1'),
  responses() {
    const read = readResponses(
      { model: 'm', input: 'Hi' },
      { headers: new Headers(), text: '' },
      { seal, accountId: 'a' },
    )
    return new ResponseStream({ ...read, seal: entry => seal.seal('a', entry) }, 'req_1', () => 1)
  },
  messages: () => new MessageFrames({ wantsThinking: true, seal: entry => seal.seal('a', entry) }, 'req_1'),
}
type Form = keyof typeof formats

function framed(form: Form, batches: readonly (readonly ChatEvent[] | null)[]): string {
  const format = formats[form]()
  const failure = new GatewayError('upstream_failed', 'It broke.')
  return batches.map(batch => (batch === null ? format.failure(failure) : writeFrames(format, batch))).join('')
}

const getFetch = (stream: string) =>
  Object.assign(() => Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } })), {
    preconnect: () => {},
  })

/** Reads a whole stream by the official client. */
const readers: Readonly<Record<Form, (stream: string) => Promise<Expected>>> = {
  async chat(stream) {
    const client = new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch: getFetch(stream), maxRetries: 0 })
    const calls = new Map<number, { name: string; args: string }>()
    let text = ''
    let stop = ''
    for await (const { choices } of await client.chat.completions.create({ model: 'm', messages: [], stream: true }))
      for (const { delta, finish_reason } of choices) {
        text += delta.content ?? ''
        stop = finish_reason ?? stop
        for (const { index, function: f } of delta.tool_calls ?? []) {
          const call = calls.get(index) ?? { name: '', args: '' }
          calls.set(index, { name: call.name + (f?.name ?? ''), args: call.args + (f?.arguments ?? '') })
        }
      }
    expect(stream.split('data: [DONE]')).toHaveLength(2)
    const isCut = stop === 'length'
    return { text, calls: isCut ? [] : [...calls.values()].map(parsedCall), stop: getStop(stop) }
  },
  async responses(stream) {
    const client = new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch: getFetch(stream), maxRetries: 0 })
    const { output, output_text, status } = await client.responses.stream({ model: 'm', input: 'Hi' }).finalResponse()
    const calls = output.flatMap(entry =>
      entry.type === 'function_call' && entry.status === 'completed'
        ? [parsedCall({ name: entry.name, args: entry.arguments })]
        : [],
    )
    return {
      text: output_text,
      calls,
      stop: status === 'incomplete' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
    }
  },
  async messages(stream) {
    const client = new Anthropic({ apiKey: 'k', fetch: getFetch(stream), maxRetries: 0 })
    const { content, stop_reason } = await client.messages
      .stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
      .finalMessage()
    const isCut = stop_reason === 'max_tokens'
    const calls = content.flatMap(entry =>
      entry.type === 'tool_use' && !isCut ? [{ name: entry.name, args: Object(entry.input) }] : [],
    )
    const text = content.map(entry => (entry.type === 'text' ? entry.text : '')).join('')
    return { text, calls, stop: isCut ? 'length' : stop_reason === 'tool_use' ? 'tool_calls' : 'stop' }
  },
}

function parsedCall({ name, args }: { readonly name: string; readonly args: string }): Call {
  return { name, args: Object(JSON.parse(args)) }
}

function getStop(reason: string): Expected['stop'] {
  if (reason === 'length' || reason === 'tool_calls') return reason
  return 'stop'
}

/** Whether a stream reports a success, and how many failures it reports. */
const ends: Readonly<Record<Form, { readonly success: RegExp; readonly failure: RegExp; readonly text: RegExp }>> = {
  chat: {
    success: /"finish_reason":"|\[DONE\]/,
    failure: /^data: \{"error"/gm,
    text: /"delta":\{"content":("(?:[^"\\]|\\.)*")/g,
  },
  responses: {
    success: /"type":"response\.(?:completed|incomplete)"/,
    failure: /"type":"response\.failed"/g,
    text: /"type":"response\.output_text\.delta".*?"delta":("(?:[^"\\]|\\.)*")/g,
  },
  messages: {
    success: /"type":"message_stop"/,
    failure: /^event: error$/gm,
    text: /"type":"text_delta","text":("(?:[^"\\]|\\.)*")/g,
  },
}

const forms: readonly Form[] = ['chat', 'responses', 'messages']

describe.each(Object.entries(streams))('%s', (_name, { provider, stream, ...expected }) => {
  const bytes = new TextEncoder().encode(stream)

  test.each([...forms])('arrives whole through %s, wherever its bytes are split', async form => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async splits => {
        expect(await readers[form](framed(form, getBatches(provider, bytes, splits)))).toEqual(expected)
      }),
      { numRuns: 6 },
    )
  })

  test.each([...forms])('fails through %s after a cut at any byte', async form => {
    const { success, failure, text } = ends[form]
    const whole = getBatches(provider, bytes, [])
    expect(whole.at(-1)).not.toBeNull()
    for (let cut = 0; cut < bytes.length; cut += 13) {
      const batches = getBatches(provider, bytes.subarray(0, cut), [cut >> 1])
      // The terminal event has arrived: nothing is missing.
      if (batches.at(-1) !== null) {
        expect(await readers[form](framed(form, batches))).toEqual(expected)
        continue
      }
      const sent = framed(form, batches)
      expect(sent).not.toMatch(success)
      expect(sent.match(failure)).toHaveLength(1)
      const shown = [...sent.matchAll(text)].map(([, json = '""']) => String(JSON.parse(json))).join('')
      expect(expected.text).toStartWith(shown)
    }
  })
})
