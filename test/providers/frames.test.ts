/** Events that only differ in their text are not parsed; the result must equal that of the parser. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseUntrustedJson } from '../../src/core/validation/untrusted-json.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import type { TextSlot } from '../../src/providers/frames.ts'
import { isRecord, record } from '../../src/providers/json.ts'
import { openai } from '../../src/providers/openai.ts'
import { type EventReader, SseSplitter } from '../../src/providers/sse.ts'
import { everyByte, readRecording } from './recordings.ts'

function findPlace(value: unknown): TextSlot | null {
  const { delta } = record(value)
  return isRecord(delta) && typeof delta.content === 'string' && delta.content !== ''
    ? { holder: delta, key: 'content' }
    : null
}

/** Returns the values that a reader sees of a stream, and how many of them by a template. */
function seenIn(text: string, cuts: readonly number[], knowsText: boolean) {
  const seen: unknown[] = []
  let repeats = 0
  let last: { readonly value: unknown; readonly slot: TextSlot } | null = null
  const reader: EventReader<null> = {
    read({ name, data }) {
      const value = parseUntrustedJson(data)
      const slot = knowsText ? findPlace(value) : null
      if (slot !== null) last = { value, slot }
      seen.push([name, structuredClone(value)])
      return slot
    },
    repeat(piece) {
      if (last === null) throw new Error('no event has a text')
      repeats++
      last.slot.holder[last.slot.key] = piece
      seen.push(['', structuredClone(last.value)])
    },
  }
  const splitter = new SseSplitter()
  const bytes = new TextEncoder().encode(text)
  const offsets = [0, ...cuts.filter(cut => cut <= bytes.length).sort((cut, other) => cut - other), bytes.length]
  for (const [position, to] of offsets.slice(1).entries())
    splitter.push(bytes.subarray(offsets[position], to), reader, null)
  splitter.finish(reader, null)
  return { seen, repeats }
}

const getFrame = (content: string, rest: object = {}) =>
  JSON.stringify({ id: 'a', delta: { content }, last: null, ...rest })

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', ' ', '"', '\\', '\n', '"}', '","last":1,"x":"', '\ud83d', '😀', '"content":"'),
)
const frames = fc.oneof(
  { weight: 6, arbitrary: texts.map(text => getFrame(text)) },
  { weight: 1, arbitrary: texts.map(text => getFrame(text).replaceAll('":', '": ')) },
  // Unescaped text, and truncated or continued frames.
  { weight: 2, arbitrary: texts.map(text => `{"id":"a","delta":{"content":"${text}"},"last":null}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(texts, fc.nat(40)).map(([text, length]) => getFrame(text).slice(0, -length || undefined)),
  },
  { weight: 1, arbitrary: texts.map(text => getFrame(text, { content: 'elsewhere' })) },
  { weight: 1, arbitrary: texts.map(text => getFrame('x', { other: text })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '{}',
      '[]',
      'null',
      '',
      '{"delta":{"content":1}}',
      '{"delta":{"content":"a","content":"b"}}',
    ),
  },
)

const framing = fc.constantFrom(
  ['data: ', '\n\n'],
  ['data: ', '\r\n\r\n'],
  ['data:', '\n\n'],
  ['data: ', '\r\r'],
  ['id: 7\ndata: ', '\n\n'],
  [': {"id":"a","delta":{"content":"comment"},"last":null}\ndata: ', '\n\n'],
  ['data: ', '\nid: 7\n\n'],
)

test('SseSplitter: reads any events by a template as without one', () => {
  fc.assert(
    fc.property(
      fc.array(frames, { maxLength: 20 }),
      framing,
      fc.array(fc.nat(900), { maxLength: 3 }),
      (sequence, [before = '', after = ''], cuts) => {
        const text = sequence.map(frame => before + frame + after).join('')
        expect(seenIn(text, cuts, true).seen).toEqual(seenIn(text, [], false).seen)
      },
    ),
    { numRuns: 1_000 },
  )
})

const many = (made: (index: number) => string) => Array.from({ length: 30 }, (_, index) => made(index)).join('')

test.each([
  ['a plain event', (index: number) => `data: ${getFrame(`t\n${index}`)}\n\n`, 29],
  ['CRLF', (index: number) => `data:${getFrame(`😀"${index}`)}\r\n\r\n`, 29],
  [
    'spaces before the last brace',
    (index: number) => `data: ${getFrame('x').slice(0, -1)}${' '.repeat(index)}}\n\n`,
    29,
  ],
  ['other padding in each', (index: number) => `data: ${getFrame('a', { padding: 'x'.repeat(index) })}\n\n`, 0],
  ['an ID', (index: number) => `id: ${index}\ndata: ${getFrame('a')}\n\n`, 0],
  ['only CR', (index: number) => `data: ${getFrame(`${index}`)}\r\r`, 0],
  ['a second line of data', (index: number) => `data: ${getFrame(`${index}`)}\ndata: \n\n`, 0],
  ['two texts', (index: number) => `data: ${getFrame(`${index}`, { other: { content: 'b' } })}\n\n`, 0],
])('SseSplitter: knows the expected number of 30 events with %s by a template', (_, made, repeats) => {
  const text = many(made)
  const read = seenIn(text, [], true)
  expect(read.seen).toEqual(seenIn(text, [], false).seen)
  expect(read.repeats).toBe(repeats)
})

test('SseSplitter: forgets the template of a text when another one follows in an event that it cannot learn', () => {
  const plain = (text: string) => `data: ${getFrame(text)}\n\n`
  const text = `${plain('a')}${plain('b')}id: 1\ndata: {"delta":{"content":"c"}}\n\n${plain('d')}${plain('e')}`
  expect(seenIn(text, [], true).seen).toEqual(seenIn(text, [], false).seen)
  expect(seenIn(text, [], true).repeats).toBe(2)
})

const said = fc.constantFrom(' a', 'b', '', '\n', '"\\', '😀', '\ud83d', '\ude00', '<think>', '</think>', '{}', '[1]')
/** Events with a text, of which several in a row differ only in it. */
type Kind = (text: string) => object
const chunk = (delta: object, rest: object = {}) => ({ id: 'x', model: 'm', choices: [{ index: 0, delta, ...rest }] })
const called = (index: number, fields: object) => chunk({ tool_calls: [{ index, function: fields }] })
const plain: Kind = content => chunk({ content }, { finish_reason: null })
const details = [{ type: 'reasoning.text', index: 0, text: 't', data: 'd' }]
const annotations = [{ url: 'https://a.test/', title: 'A' }]
const openaiKinds: readonly Kind[] = [
  plain,
  reasoning => chunk({ reasoning }),
  text => chunk({ content: text, reasoning_content: text }),
  content => chunk({ content, reasoning: 'r' }),
  content => chunk({ content, reasoning_details: details }),
  content => chunk({ content, annotations }),
  content => chunk({ content, refusal: 'no' }),
  content => chunk({ content, ...called(0, { name: 'g', arguments: '{}' }).choices[0]?.delta }),
  content => chunk({ content }, { logprobs: { content: [{ token: 'a', logprob: -1 }] } }),
  content => chunk({ content }, { finish_reason: 'stop' }),
  () => chunk({}, { finish_reason: 'stop' }),
  content => ({ ...plain(content), usage: { prompt_tokens: 1, completion_tokens: 2 } }),
  content => ({ ...plain(content), citations: ['https://a.test/'] }),
  content => ({ ...plain(content), id: 'y' }),
  content => ({ ...plain(content), choices: [{ index: 1, delta: { content } }] }),
  text => called(0, { name: 'f', arguments: text }),
  text => called(1, { arguments: text }),
  () => ({ ...called(0, { name: 'f', arguments: '{}' }), id: 'y' }),
  () => ({ usage: { prompt_tokens: 1, completion_tokens: 9 }, choices: [] }),
]
const blockDelta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
const anthropicKinds: readonly Kind[] = [
  text => blockDelta(0, { type: 'text_delta', text }),
  thinking => blockDelta(1, { type: 'thinking_delta', thinking }),
  partial_json => blockDelta(2, { type: 'input_json_delta', partial_json }),
  partial_json => blockDelta(3, { type: 'input_json_delta', partial_json }),
  text => blockDelta(0, { type: 'text_delta', text, partial_json: text }),
  () => ({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  () => ({ type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} } }),
  () => ({ type: 'content_block_start', index: 3, content_block: { type: 'server_tool_use', id: 's', name: 'w' } }),
  () => ({ type: 'content_block_stop', index: 2 }),
  () => ({ type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } } }),
  () => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } }),
  () => ({ type: 'message_stop' }),
]

test.each([
  ['openai', openai({ official: true }), openaiKinds],
  ['a compatible server', openai({ official: false }), openaiKinds],
  ['anthropic', anthropic, anthropicKinds],
])('%s: reads any events whole as byte by byte, where no template fits', (_, provider, kinds) => {
  const run = fc.tuple(fc.constantFrom(...kinds), fc.array(said, { minLength: 1, maxLength: 4 }))
  fc.assert(
    fc.property(fc.array(run, { maxLength: 5 }), runs => {
      // Most events follow one that the template of the first kind knows, and precede another.
      const [usual = plain] = kinds
      const sequence = runs.flatMap(([kind, texts]) => [usual('a'), ...texts.map(kind), usual('b')])
      const bytes = new TextEncoder().encode(sequence.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''))
      const [whole, single] = [[], everyByte(bytes)].map(cuts => readRecording(provider.streamReader(), bytes, cuts))
      expect(whole).toEqual(single ?? [])
    }),
    { numRuns: 800 },
  )
})
