import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { wellFormedJson } from '../../../src/core/validation/untrusted-json.ts'

test.each([
  ['an unpaired high one', String.raw`"a\ud83d"`, 'a\ufffd'],
  ['an unpaired low one', String.raw`"\uDE00b"`, '\ufffdb'],
  ['two high ones', String.raw`"\ud83d\ud83d"`, '\ufffd\ufffd'],
  ['a high one before a pair', String.raw`"\ud83d\uD83D\uDe00"`, '\ufffd\u{1f600}'],
  ['none in a pair', String.raw`"\ud83d\ude00"`, '\u{1f600}'],
  ['none in a text that spells an escape', String.raw`"\\ud83d"`, String.raw`\ud83d`],
  ['one after a backslash', String.raw`"\\\ud83d"`, '\\\ufffd'],
])('wellFormedJson: replaces %s', (_, json, value) => {
  expect(JSON.parse(wellFormedJson(json))).toBe(value)
})

test('wellFormedJson: makes any value well-formed, and changes nothing else', () => {
  const unit = fc.constantFrom('a', '\\', '"', '\ud83d', '\ude00', 'ud83d', '\n')
  const text = fc.array(unit).map(units => units.join(''))
  // Each code unit as an escape, as some clients write it.
  const escaped = (value: string) =>
    `"${Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
  fc.assert(
    fc.property(text, value => {
      expect(JSON.parse(wellFormedJson(JSON.stringify(value)))).toBe(value.toWellFormed())
      expect(JSON.parse(wellFormedJson(escaped(value)))).toBe(value.toWellFormed())
      if (value.isWellFormed()) expect(wellFormedJson(escaped(value))).toBe(escaped(value))
    }),
    { numRuns: 2_000 },
  )
})
