import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { replaceConfusables } from '../../../src/text/disguises/confusables.ts'
import { normalizeLeetspeak } from '../../../src/text/disguises/leetspeak.ts'

/** Reference implementation with regular expressions: plain, and too slow for every request. */
function respeltPlainly(text: string): string | null {
  const letters: Record<string, string> = { 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', '@': 'a', $: 's', '!': 'i' }
  const spelt = text
    .replace(/(?<![a-z])[a-z]([ .\-_])[a-z](?:\1[a-z]){3,62}(?![a-z])/gi, spaced => spaced.replace(/[ .\-_]/g, ''))
    .replace(/(?<![a-z])[a-z]{0,24}[@$013457][a-z@$!013457]{1,40}/gi, word =>
      /[a-z]/i.test(word) ? word.replace(/[@$013457]|!(?=.)/g, sign => letters[sign] ?? sign) : word,
    )
  return spelt === text ? null : spelt
}

function plainLettersPlainly(text: string): string {
  return text
    .replace(/(\p{M}{8})\p{M}+/gu, '$1')
    .normalize('NFKC')
    .replace(/[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\u034f|[\u{e0000}-\u{e007f}]/gu, sign => {
      const code = (sign.codePointAt(0) ?? 0) - 0xe0000
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ''
    })
    .replaceAll('е', 'e')
    .replaceAll('Α', 'A')
}

const texts = (...pieces: readonly string[]) =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 90 }).map(parts => parts.join(''))

test('normalizeLeetspeak: matches the reference expressions for any text', () => {
  const spaced = texts('a', 'B', 'i', 'g ', 'n.', 'o-', 'r_', ' ', '.', 'x y z ', 'é', '1')
  const signs = texts(
    'a',
    'T',
    '0',
    '1',
    '3',
    '@',
    '$',
    '!',
    ' ',
    'word',
    'longerthantwentyfourletters',
    '1234567',
    '字',
  )
  fc.assert(
    fc.property(fc.oneof(spaced, signs), text => {
      expect([text, normalizeLeetspeak(text)]).toEqual([text, respeltPlainly(text)])
    }),
    { numRuns: 3_000 },
  )
})

test('replaceConfusables: matches the reference expressions for any text, whole or in parts', () => {
  const marks = ['\u0301', '\u0315', '\u0345', '\u3099', '\u05b0', '\u034f', '\ufe0f'] as const
  const other = [
    'a',
    'é',
    'е',
    'Α',
    'ﬁ',
    'Ａ',
    '？',
    '字',
    '각',
    'ᄀ',
    'ᅡ',
    'ᆨ',
    '\u200b',
    '\u00ad',
    '\0',
    '\uffff',
  ] as const
  const pairs = ['𝐚', '🚀', '👩‍💻', '🇩🇪', '\u{e0041}', '\u{e0001}', '\ud800', '\udc41', '\udb40'] as const
  fc.assert(
    fc.property(texts(...marks, ...other, ...pairs), text => {
      expect([text, replaceConfusables(text)]).toEqual([text, plainLettersPlainly(text)])
    }),
    { numRuns: 2_000 },
  )
  for (const unit of ['ab', 'a\u{e0041}', '字\u200b']) {
    const text = unit.repeat(9_000)
    expect(replaceConfusables(text)).toBe(plainLettersPlainly(text))
  }
})
