import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { queryTypes } from '../../src/core/chat/chat.ts'
import { inferQuality, type QualitySignals, ratedQuality } from '../../src/learning/response-quality.ts'

const plain: QualitySignals = {
  finish: 'stop',
  text: 'The sky is blue because air scatters short waves more than long ones.',
  hasContent: true,
  refused: false,
  isCapped: false,
  wantsJson: false,
  queryType: 'other',
  ratio: 0,
  usualRatio: null,
}
const of = (changes: Partial<QualitySignals>) => inferQuality({ ...plain, ...changes })

test('inferQuality: returns four stars without signals', () => {
  expect(of({})).toBe(ratedQuality(4, null))
})

const worse: readonly (readonly [string, Partial<QualitySignals>, number])[] = [
  ['empty', { hasContent: false, text: '' }, 0],
  ['refused by the upstream', { refused: true }, 0.1],
  ['stopped by its filter', { finish: 'content_filter' }, 0.1],
  ['a refusal in words', { text: "I'm sorry, but I can't help with that." }, 0.1],
  ['a refusal in Spanish', { text: 'Lo siento, no puedo ayudar con eso.' }, 0.1],
  ['a refusal in German', { text: 'Es tut mir leid, dabei kann ich nicht helfen.' }, 0.1],
  ['no JSON where JSON was asked for', { wantsJson: true, text: '{"a":' }, 0.2],
  ['cut off', { finish: 'length' }, 0.45],
  ['cut off where the caller said so', { finish: 'length', isCapped: true }, 0.65],
  ['a block of code left open', { text: 'Here:\n```js\nconst a = 1' }, 0.6],
]
for (const [title, signs, quality] of worse)
  test(`inferQuality: returns less for ${title}`, () => {
    expect(of(signs)).toBeCloseTo(quality, 9)
  })

test('inferQuality: ignores text that only resembles a refusal', () => {
  for (const text of [
    'I can see two ways to do this.',
    'Sorry about the long list; here it is: one, two, three.',
    `I'm sorry, but I can't say it shorter. ${'It is a long story. '.repeat(40)}`,
    'She said: "I cannot come", and left.',
  ])
    expect(of({ text })).toBe(of({}))
})

test('inferQuality: increases for valid JSON and code in a fence', () => {
  expect(of({ wantsJson: true, text: '{"a":1}' })).toBe(of({}))
  const text = 'Use this:\n```ts\nconst a = 1\n```'
  expect(of({ queryType: 'code', text })).toBeGreaterThan(of({ queryType: 'other', text }))
})

test('inferQuality: deducts at most 0.1 for unusual length and never adds', () => {
  const usualRatio = { mean: 1, deviation: 0.5 }
  const base = of({})
  for (const ratio of [0.1, 1, 1.9]) expect(of({ ratio, usualRatio })).toBe(base)
  expect(of({ ratio: 2.5, usualRatio })).toBeCloseTo(base - 0.05, 9)
  for (const ratio of [-40, 40]) expect(of({ ratio, usualRatio })).toBeCloseTo(base - 0.1, 9)
  expect(of({ ratio: 9, usualRatio: { mean: 0, deviation: 0 } })).toBe(base)
})

test('inferQuality: stays within 0–1 for any response', () => {
  const signs = fc.record({
    finish: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter', null),
    text: fc.oneof(fc.string(), fc.constantFrom('```', '{', "I can't ", '抱歉，我无法帮助')),
    hasContent: fc.boolean(),
    refused: fc.boolean(),
    isCapped: fc.boolean(),
    wantsJson: fc.boolean(),
    queryType: fc.constantFrom(...queryTypes),
    ratio: fc.double({ noNaN: true, min: -20, max: 20 }),
    usualRatio: fc.option(
      fc.record({
        mean: fc.double({ min: -9, max: 9, noNaN: true }),
        deviation: fc.double({ min: 0, max: 9, noNaN: true }),
      }),
    ),
  })
  fc.assert(
    fc.property(signs, given => {
      const quality = inferQuality(given)
      expect(quality >= 0 && quality <= 1).toBe(true)
    }),
  )
})

test('ratedQuality: converts stars and helpfulness', () => {
  expect([1, 2, 3, 4, 5].map(stars => ratedQuality(stars, null))).toEqual([0, 0.25, 0.5, 0.75, 1])
  expect([ratedQuality(5, true), ratedQuality(5, false), ratedQuality(1, true)]).toEqual([1, 0.75, 0.25])
})
