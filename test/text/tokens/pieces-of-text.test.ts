import { describe, expect, test } from 'bun:test'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { createDraws, measureText } from '../../../src/text/tokens/pieces-of-text.ts'

const draw = createDraws(1)
const measured = (text: string) => measureText(text, 32_768, draw)

describe('measureText: pieces that are remembered', () => {
  test.each([
    ' the',
    ' gateway',
    'xqzvkjwpt',
    '2026',
    '。',
    ' Bundesverfassungsgericht',
    'Größenverhältnis',
    'x'.repeat(14),
    'x'.repeat(15),
  ])('returns the same counts for %j in any order of calls', piece => {
    const first = measured(piece)
    for (let other = 0; other < 20_000; other++) measured(` word${other}`)
    expect([measured(piece), measured(piece)]).toEqual([first, first])
    expect(first.own).toBe(countTokens(piece))
  })

  test('distinguishes pieces with equal hashes', () => {
    // Of the same length too: only their letters differ.
    for (const piece of ['日本語', '攝峞数', '日本語']) expect(measured(piece).own).toBe(countTokens(piece))
  })
})
