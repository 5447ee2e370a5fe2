import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { completeTextLength } from '../../../src/core/chat/stream-pacing.ts'

const shown = (text: string, patient = true) => text.slice(0, completeTextLength(text, patient))

describe('completeTextLength', () => {
  test.each([
    ['Hello there. How are', 'Hello there. '],
    ['One. Two! Three? Fo', 'One. Two! Three? '],
    ['She said "stop." Then', 'She said "stop." '],
    ['**Done.** Next', '**Done.** '],
    ['你好。我是', '你好。'],
    ['const a = 1\nconst b', 'const a = 1\n'],
  ])('returns whole sentences and lines of %j', (text, whole) => {
    expect(shown(text)).toBe(whole)
  })

  test.each(['Pi is 3.', 'Pi is 3.14 and', 'no end yet', '', 'a, b, c'])('waits for the sentence in %j', text => {
    expect(shown(text)).toBe('')
  })

  test('returns the last clause, else the last word, when no longer patient', () => {
    expect(shown('When all of it is said, some', false)).toBe('When all of it is said, ')
    expect(shown('a few words unfin', false)).toBe('a few words ')
    expect(shown('unbroken', false)).toBe('unbroken')
  })

  test('returns text longer than the limit without a sentence end, with or without spaces', () => {
    expect(shown(`${'word '.repeat(40)}wo`)).toBe('word '.repeat(40))
    expect(shown('漢'.repeat(200))).toBe('漢'.repeat(200))
  })

  test('never splits a surrogate pair', () => {
    expect(shown(`${'😀'.repeat(100)}\ud83d`)).toBe('😀'.repeat(100))
  })

  test('returns a length within the text, and above 0 when no longer patient', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 400 }), fc.boolean(), (text, patient) => {
        const length = completeTextLength(text, patient)
        expect(length).toBeLessThanOrEqual(text.length)
        expect(length).toBeGreaterThanOrEqual(patient ? 0 : 1)
      }),
    )
  })
})
