/** Every way in which upstreams deliver the arguments of a call: clients receive the ones that were sent, or a failure. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { CallArguments } from '../../src/providers/tool-names.ts'
import { type AnswerPart, recorded } from '../harness/answer-parts.ts'
import { askWith } from '../harness/ask.ts'

/** Cuts a text at the given places. */
const cut = (text: string, places: readonly number[]) =>
  [...places.map(place => place % (text.length + 1)), text.length]
    .sort((value, other) => value - other)
    .map((to, at, all) => text.slice(all[at - 1] ?? 0, to))
const joined = (pieces: readonly string[], isCut = false) => {
  const call = new CallArguments()
  const passed = pieces.map(piece => call.add(piece)).join('')
  const rest = call.end(isCut)
  return rest === null ? null : passed + rest
}
const places = fc.array(fc.nat(), { maxLength: 6 })
const blank = fc.constantFrom('', ' ', '\n', '{}', '{ }', ' {}\n', 'null', '{}{}')
const object = fc
  .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ depthSize: 'small' }), { minKeys: 1, maxKeys: 3 })
  .map(value => JSON.stringify(value))

describe('CallArguments', () => {
  test('passes on exactly the object when empty arguments precede or follow it, in any parts', () => {
    fc.assert(
      fc.property(blank, object, blank, places, (before, text, after, at) => {
        const all = joined(cut(before + text + after, at))
        expect(all?.trim()).toBe(text)
      }),
    )
  })

  test('passes on the object once when the upstream repeats it', () => {
    fc.assert(
      fc.property(object, places, (text, at) => expect(joined([...cut(text, at), ...cut(text, at)])).toBe(text)),
    )
  })

  test('fails when a second object follows', () => {
    fc.assert(
      fc.property(object, object, places, (text, other, at) => {
        fc.pre(text !== other)
        expect(joined([text, ...cut(other, at)])).toBeNull()
      }),
    )
  })

  test('ends with an empty object when nothing else arrived, but not when the response was cut before', () => {
    fc.assert(
      fc.property(blank, places, (text, at) => {
        expect(joined(cut(text, at))).toBe('{}')
        expect(joined(cut(text, at), true)).toBe(text.includes('{') ? '{}' : '')
      }),
    )
  })

  test('passes on invalid text unchanged when the model made the mistake', () => {
    for (const text of ['{"x":1}}', 'nothing', 'nul', '[1]', '"a"', '{x}', '{}}']) expect(joined([...text])).toBe(text)
    for (const text of ['{', '{"x']) expect(joined([...text])).toBe(text)
  })
})

type Json = Readonly<Record<string, unknown>>
type Read = { readonly calls: readonly string[]; readonly failure: string | null }
const read = (provider: Provider, frames: readonly (readonly [string, string])[]): Read => {
  const reader = recorded(provider.streamReader())
  return callsIn([...frames.flatMap(([name, data]) => reader.read({ name, data })), ...reader.finish()])
}
const callsIn = (parts: readonly AnswerPart[]): Read => {
  const calls: string[] = []
  let failure: string | null = null
  for (const part of parts) {
    if (part.type === 'tool_call') calls[part.index] = `${part.name} `
    if (part.type === 'tool_arguments') calls[part.index] += part.text
    if (part.type === 'failure') failure = part.failure.kind
  }
  return { calls, failure }
}

const unnamed = (events: readonly (Json | string)[]) =>
  events.map(event => ['', typeof event === 'string' ? event : JSON.stringify(event)] as const)
const compatible = (...deltas: readonly Json[]) =>
  read(
    openai({ official: false }),
    unnamed([
      ...deltas.map(call => ({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      '[DONE]',
    ]),
  )
const gemini = (...calls: readonly Json[]) =>
  read(
    google,
    unnamed([
      { candidates: [{ content: { parts: calls.map(functionCall => ({ functionCall })) }, finishReason: 'STOP' }] },
    ]),
  )
const claude = (input: unknown, ...pieces: readonly string[]) =>
  read(
    anthropic,
    unnamed([
      { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'a', name: 'f', input } },
      ...pieces.map(partial_json => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]),
  )
const converse = (...pieces: readonly string[]) =>
  read(
    bedrock,
    [
      ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 'a', name: 'f' } } }],
      ...pieces.map(input => ['contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input } } }] as const),
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['messageStop', { stopReason: 'tool_use' }],
      ['metadata', { usage: { inputTokens: 1, outputTokens: 1 } }],
    ].map(([name, event]) => [String(name), JSON.stringify(event)] as const),
  )
const item = { type: 'function_call', id: 'fc', call_id: 'a', name: 'f' }
const responses = (whole: unknown, ...deltas: readonly string[]) =>
  read(
    openaiResponses,
    unnamed([
      { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
      ...deltas.map(delta => ({ type: 'response.function_call_arguments.delta', output_index: 0, delta })),
      { type: 'response.output_item.done', output_index: 0, item: { ...item, arguments: whole } },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } },
    ]),
  )
const part = (args: unknown, more: Json = {}) => ({ index: 0, ...more, function: { arguments: args } })
const first = (args: unknown, more: Json = {}) => ({
  index: 0,
  id: 'a',
  ...more,
  function: { name: 'f', arguments: args },
})
const entry = { calls: ['f {"x":1}'], failure: null }
const none = { calls: ['f {}'], failure: null }
const two = { calls: ['f {"x":1}', 'f {"y":2}'], failure: null }

describe('a call', () => {
  test.each([
    ['compatible: empty first', () => compatible(first('{}'), part('{"x":'), part('1}')), entry],
    ['compatible: empty first, then named again', () => compatible(first('{}'), first('{"x":1}')), entry],
    ['compatible: an empty object first, then text', () => compatible(first({}), part('{"x":1}')), entry],
    ['compatible: blank first', () => compatible(first(' '), part('{"x":1}')), entry],
    ['compatible: null first', () => compatible(first(null), part('{"x":1}')), entry],
    ['compatible: an object', () => compatible(first({ x: 1 })), entry],
    ['compatible: empty last', () => compatible(first('{"x":1}'), part('{}')), entry],
    ['compatible: the name later', () => compatible(part('{}', { id: 'a' }), part('{"x":1}'), first('')), entry],
    [
      'compatible: without index',
      () => compatible(first('{}', { index: undefined }), part('{"x":1}', { index: undefined })),
      entry,
    ],
    ['compatible: without ID', () => compatible(first('{}', { id: undefined }), part('{"x":1}')), entry],
    [
      'compatible: interleaved, empty first',
      () => compatible(first('{}'), first('{}', { index: 1, id: 'b' }), part('{"x":1}'), part('{"y":2}', { index: 1 })),
      two,
    ],
    ['compatible: two under one index', () => compatible(first('{"x":1}'), first('{"y":2}', { id: 'b' })), two],
    ['compatible: none', () => compatible(first('')), none],
    ['compatible: an empty list', () => compatible(first([])), none],
    ['Gemini: an object', () => gemini({ name: 'f', args: { x: 1 } }), entry],
    ['Gemini: a text', () => gemini({ name: 'f', args: '{"x":1}' }), entry],
    ['Gemini: none', () => gemini({ name: 'f' }), none],
    ['Claude: parts', () => claude({}, '', '{"x"', ':1}'), entry],
    ['Claude: in the opening event', () => claude({ x: 1 }), entry],
    ['Claude: a text in the opening event', () => claude('{"x":1}'), entry],
    ['Claude: in the opening event, then an empty delta', () => claude({ x: 1 }, '{}'), entry],
    ['Claude: an empty delta first', () => claude({}, '{}', '{"x":1}'), entry],
    ['Claude: none', () => claude({}), none],
    ['Bedrock: empty first', () => converse('{}', '{"x":1}'), entry],
    ['Bedrock: none', () => converse(), none],
    ['Responses: empty first', () => responses('{"x":1}', '{}', '{"x":1}'), entry],
    ['Responses: only at the end', () => responses('{"x":1}'), entry],
    ['Responses: an object at the end', () => responses({ x: 1 }), entry],
    ['Responses: none', () => responses(''), none],
  ] satisfies [string, () => Read, Read][])(
    'has the arguments that were sent when they arrive as %s',
    (_, answer, expected) => {
      expect(answer()).toEqual(expected)
    },
  )

  test.each([
    ['two objects for one call', () => compatible(first('{"x":1}'), part('{"y":2}'))],
    ['a number from Gemini', () => gemini({ name: 'f', args: 7 })],
    ['a list from Gemini', () => gemini({ name: 'f', args: [1] })],
    ['broken JSON from Gemini', () => gemini({ name: 'f', args: '{"x"' })],
    ['a cut text from Bedrock', () => converse('{"x"')],
    ['two objects from Claude', () => claude({}, '{"x":1}', '{"y":2}')],
  ] satisfies [string, () => Read][])('fails when the upstream sends %s', (_, answer) => {
    expect(answer().failure).not.toBeNull()
  })
})

describe('exact numbers', () => {
  const id = '1234567890123456789'
  const text = `{"id":${id},"ratio":1.0,"huge":1e400}`
  test.each([
    [
      'compatible',
      openai({ official: false }),
      `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":${text}}}]},"finish_reason":"tool_calls"}]}`,
    ],
    [
      'Gemini',
      google,
      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${text}}}]},"finishReason":"STOP"}]}`,
    ],
    [
      'Claude',
      anthropic,
      `{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":${text}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
    ],
  ] satisfies [string, Provider, string][])(
    'keep their text in arguments when %s sends an object',
    (_, provider, data) => {
      const reader = recorded(provider.streamReader())
      expect(callsIn([...reader.read({ name: '', data }), ...reader.finish()]).calls).toEqual([`f ${text}`])
    },
  )

  test.each([
    ['Gemini', google],
    ['Claude', anthropic],
    ['Bedrock', bedrock],
  ] satisfies [string, Provider][])('keep their text in the history when %s gets an object', (_, provider) => {
    const messages = [
      {
        role: 'assistant',
        text: null,
        reasoning: null,
        name: null,
        toolCalls: [{ id: 'a', name: 'f', arguments: text, signature: null }],
      },
      { role: 'tool', callId: 'a', text: 'r' },
    ] as const
    const access = { baseUrl: 'https://upstream.test', apiKey: 'k' }
    const model = catalog.find(known => known.provider === (provider === google ? 'google' : 'anthropic'))
    if (model === undefined) throw new Error('the catalog has no such model')
    const { body } = provider.toRequest({ request: askWith({ messages }), model, outputCap: 9, stream: true }, access)
    expect(body).toContain(text)
  })
})
