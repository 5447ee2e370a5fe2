/** Frames that only differ in their text are parsed in part; the result must equal a complete parse. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseUntrustedJson } from '../../src/core/validation/untrusted-json.ts'
import { frameParser, type TextSlot } from '../../src/providers/frames.ts'
import { isRecord, record } from '../../src/providers/json.ts'

function findPlace(value: unknown): TextSlot | null {
  const { delta } = record(value)
  return isRecord(delta) && typeof delta.content === 'string' && delta.content !== ''
    ? { holder: delta, key: 'content' }
    : null
}

/** Returns each frame as read by the parser and by `parsed`. */
function both(frames: readonly string[]): [unknown[], unknown[]] {
  const parse = frameParser(findPlace)
  return [frames.map(frame => structuredClone(parse(frame))), frames.map(parseUntrustedJson)]
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

test('frameParser: reads any frames like a complete parse of each', () => {
  fc.assert(
    fc.property(fc.array(frames, { maxLength: 20 }), sequence => {
      const [seen, whole] = both(sequence)
      expect(seen).toEqual(whole)
    }),
    { numRuns: 500 },
  )
})

test('frameParser: reads frames correctly when each has other padding', () => {
  const padded = Array.from({ length: 30 }, (_, index) => getFrame('a', { padding: 'x'.repeat(index) }))
  const [seen, whole] = both([...padded, getFrame('b'), getFrame('c')])
  expect(seen).toEqual(whole)
})
