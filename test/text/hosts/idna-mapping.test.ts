import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { fromPunycode, mapIdna, toPunycode } from '../../../src/text/hosts/hostname.ts'

setDefaultTimeout(240_000)

test.each([
  ['Straße ÉTÉ', 'straße été'],
  ['e\u0301 \u1100\u1161', 'é 가'],
  ['ｅｖｉｌ。com', 'evil.com'],
  ['e\u200dv\u00adi\ufe0fl', 'evil'],
  ['“a”—b…', ' a  b...'],
  ['𝐄𝐯𝐢𝐥', 'evil'],
  ['ΣΑΣ', 'σασ'],
  ['ﬁ ㌀', 'fi アパート'],
  ['💩 👍🏽', '💩 👍🏽'],
])('mapIdna: maps %j to %j', (text, letters) => {
  expect(mapIdna(text)).toBe(letters)
})

test('mapIdna: maps any text independent of block boundaries', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.constantFrom(0, 8_180, 8_190), (text, before) => {
      const once = mapIdna('a'.repeat(before) + text)
      expect(mapIdna(once)).toBe(once)
    }),
    { numRuns: 300 },
  )
})

test('fromPunycode: reverses toPunycode', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'aé字я-9💩ß한'), minLength: 1, maxLength: 14 }), label => {
      fc.pre(/[^\0-\x7f]/.test(label))
      const ascii = toPunycode(label)
      if (ascii !== null) expect(fromPunycode(ascii)).toBe(label)
    }),
  )
  expect(['xn--', 'abc', 'xn--99999999', 'xn--é', `xn--${'a'.repeat(60)}`].map(fromPunycode)).toEqual([
    null,
    null,
    null,
    null,
    null,
  ])
})
