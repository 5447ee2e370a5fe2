import { describe, expect, test } from 'bun:test'
import { hashStep, vocabulary } from '../../../src/text/tokens/vocabulary.ts'

const { scratch, count } = vocabulary()

/** Returns both counts of a piece; `hash` defaults to its own. */
function counted(piece: string, hash?: number) {
  const bytes = new TextEncoder().encode(piece)
  scratch.set(bytes)
  const into = { own: 0, elsewhere: 0 }
  count(bytes.length, hash ?? bytes.reduce(hashStep, 0), into)
  return into
}

describe('vocabulary: count', () => {
  test.each([
    ' the',
    ' gateway',
    'xqzvkjwpt',
    '2026',
    '。',
    ' Bundesverfassungsgericht',
    'x'.repeat(29),
    'x'.repeat(30),
  ])('returns the same counts for %j in any order of calls', piece => {
    const first = counted(piece)
    for (let other = 0; other < 10_000; other++) counted(` word${other}`)
    expect([counted(piece), counted(piece)]).toEqual([first, first])
  })

  test('distinguishes pieces with equal hashes', () => {
    // No two pieces of letters are known to share a hash, so both get the same one.
    const hash = 12_345
    const [short, long] = [counted('xqzvkjwpt'), counted('xqzvkjwptxqzvkjwpt')]
    expect([counted('xqzvkjwpt', hash).own, counted('xqzvkjwptxqzvkjwpt', hash).own]).toEqual([short.own, long.own])
    const sameLength = counted('zzqzzqzzq')
    expect(sameLength).not.toEqual(short)
    expect(counted('xqzvkjwpt', hash)).toEqual(short)
    expect(counted('zzqzzqzzq', hash)).toEqual(sameLength)
  })
})
