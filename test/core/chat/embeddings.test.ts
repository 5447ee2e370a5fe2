import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { encodeVector, normalizeVector, parseVector } from '../../../src/core/chat/embeddings.ts'

describe('vectors', () => {
  test("base64: contains little-endian float32 values like OpenAI's", () => {
    expect(encodeVector([1, -2, 0.5])).toBe('AACAPwAAAMAAAAA/')
    expect([...(parseVector('AACAPwAAAMAAAAA/') ?? [])]).toEqual([1, -2, 0.5])
  })

  test('base64: returns every float32 vector unchanged', () => {
    const values = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 })
    fc.assert(
      fc.property(values, numbers => {
        expect([...(parseVector(encodeVector(numbers)) ?? [])]).toEqual(numbers)
      }),
    )
  })

  test.each([
    ['an empty text', ''],
    ['three bytes', 'AAAA'],
    ['no base64', '%%%%%%%%'],
    ['base64 with a foreign character', 'AACA PwAA'],
    ['NaN', Buffer.from(Float32Array.from([1, Number.NaN]).buffer).toString('base64')],
    ['infinity', Buffer.from(Float32Array.from([Number.POSITIVE_INFINITY]).buffer).toString('base64')],
  ])('parseVector: returns null for %s', (_, text) => {
    expect(parseVector(text)).toBeNull()
  })

  test.each([
    ['numbers', [0.5, 1], [0.5, 1]],
    ['a list that holds the vector', [[0.5, 1]], [0.5, 1]],
    ['vectors of tokens', [[0.5], [1]], null],
    ['no numbers', [0.5, null], null],
    ['a number that float32 does not hold', [1e39], null],
    ['nothing', [], null],
    ['an object', { 0: 1 }, null],
  ])('parseVector: reads %s', (_, sent, expected) => {
    expect(parseVector(sent)).toEqual(expected)
  })

  test('normalizeVector: scales a vector to length 1 and keeps zeros', () => {
    expect(normalizeVector([3, 4])).toEqual([0.6, 0.8])
    expect(normalizeVector([0, 0])).toEqual([0, 0])
  })
})
