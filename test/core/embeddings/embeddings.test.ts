import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { splitIntoBatches } from '../../../src/core/embeddings/batches.ts'
import { parseInputs } from '../../../src/core/embeddings/embeddings-request.ts'
import { decodeVector, encodeVector, normalizeVector, parseVector } from '../../../src/core/embeddings/vectors.ts'
import {
  buildEmbeddingCatalog,
  publishedEmbeddingModels,
  toEmbeddingModel,
} from '../../../src/core/models/embedding-models.ts'
import { fullName } from '../../../src/core/models/models.ts'

describe('parseInputs', () => {
  test.each([
    ['a text', 'hello', { inputs: ['hello'], isSingle: true }],
    ['a list of texts', ['a', 'b'], { inputs: ['a', 'b'], isSingle: false }],
    ['token IDs', [1, 2, 3], { inputs: [[1, 2, 3]], isSingle: true }],
    ['lists of token IDs', [[1], [2, 3]], { inputs: [[1], [2, 3]], isSingle: false }],
    ['2,048 texts', Array(2_048).fill('a'), { inputs: Array(2_048).fill('a'), isSingle: false }],
    ['3,000 token IDs of one text', Array(3_000).fill(7), { inputs: [Array(3_000).fill(7)], isSingle: true }],
  ])('returns the inputs of %s', (_, input, expected) => {
    expect(parseInputs(input)).toEqual(expected)
  })

  test.each([
    ['nothing', undefined, 'input', 'is missing'],
    ['null', null, 'input', 'is missing'],
    ['an empty text', '', 'input', 'must not be an empty string'],
    ['an empty list', [], 'input', 'must not be an empty list'],
    ['an object', { text: 'a' }, 'input', 'must be a string'],
    ['an object in a list', [{ text: 'a' }], 'input', 'must be a string'],
    ['an empty text in a list', ['a', ''], 'input.1', 'must not be an empty string'],
    ['a number among texts', ['a', 1], 'input.1', 'must be a string like'],
    ['a text among token IDs', [1, 'a'], 'input', 'must hold token IDs only'],
    ['a fraction', [1.5], 'input', 'must hold token IDs only'],
    ['a negative ID', [[1], [-1]], 'input.1', 'must hold token IDs only'],
    ['an empty list of IDs', [[1], []], 'input.1', 'must not be an empty list of token IDs'],
    ['a text among lists of IDs', [[1], 'a'], 'input.1', 'must be a list of token IDs like'],
    ['2,049 texts', Array(2_049).fill('a'), 'input', 'at most 2048 inputs and holds 2049'],
  ])('rejects %s', (_, input, param, message) => {
    expect(() => parseInputs(input)).toThrow(
      expect.objectContaining({ code: 'invalid_request', param, message: expect.stringContaining(message) }),
    )
  })
})

describe('vectors', () => {
  test("base64: contains little-endian float32 values like OpenAI's", () => {
    expect(encodeVector([1, -2, 0.5])).toBe('AACAPwAAAMAAAAA/')
    expect([...(decodeVector('AACAPwAAAMAAAAA/') ?? [])]).toEqual([1, -2, 0.5])
  })

  test('base64: returns every float32 vector unchanged', () => {
    const values = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 })
    fc.assert(
      fc.property(values, numbers => {
        expect([...(decodeVector(encodeVector(numbers)) ?? [])]).toEqual(numbers)
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
  ])('decodeVector: returns null for %s', (_, text) => {
    expect(decodeVector(text)).toBeNull()
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

describe('splitIntoBatches', () => {
  test.each([
    ['nothing', [], []],
    ['what fits', [1, 1, 1], [[0, 3]]],
    [
      'by inputs',
      [1, 1, 1, 1],
      [
        [0, 3],
        [3, 4],
      ],
    ],
    [
      'by tokens',
      [6, 6, 3],
      [
        [0, 1],
        [1, 3],
      ],
    ],
    [
      'a long input by itself',
      [1, 50, 1],
      [
        [0, 1],
        [1, 2],
        [2, 3],
      ],
    ],
  ])('splits %s', (_, tokens, expected) => {
    const batches = splitIntoBatches(tokens, { inputs: 3, tokens: 10 })
    expect(batches.map(({ from, to }) => [from, to])).toEqual(expected)
  })

  test('returns every input once, in order, within the limits', () => {
    const tokens = fc.array(fc.nat(20), { maxLength: 50 })
    fc.assert(
      fc.property(tokens, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 30 }), (counts, inputs, most) => {
        const batches = splitIntoBatches(counts, { inputs, tokens: most })
        expect(batches.flatMap(({ from, to }) => counts.slice(from, to))).toEqual(counts)
        for (const { from, to, tokens: sum } of batches) {
          expect(to - from).toBeWithin(1, inputs + 1)
          if (to - from > 1) expect(sum).toBeLessThanOrEqual(most)
        }
      }),
    )
  })
})

describe('embedding catalog', () => {
  const row = { id: 'small', input_per_mtok: 0.03, same_as: 'openai/text-embedding-3-small' }

  test('hostsOf: returns only hosts of the same model and length', () => {
    const mirror = toEmbeddingModel('azure', row)
    const shorter = toEmbeddingModel('cut', { ...row, dimensions: 256 })
    const other = toEmbeddingModel('local', { id: 'bge', input_per_mtok: 0, dimensions: 1_536 })
    const catalog = buildEmbeddingCatalog([...publishedEmbeddingModels, mirror, shorter, other])
    const hosts = (name: string) => {
      const model = catalog.resolve(name)
      return model === null ? [] : catalog.hostsOf(model).map(fullName)
    }
    expect(hosts('text-embedding-3-small')).toEqual(['openai/text-embedding-3-small', 'azure/small'])
    expect(hosts('azure/small')).toEqual(['azure/small', 'openai/text-embedding-3-small'])
    expect(hosts('text-embedding-3-large')).toEqual(['openai/text-embedding-3-large'])
    expect(hosts('cut/small')).toEqual(['cut/small'])
    expect(hosts('bge')).toEqual(['local/bge'])
  })

  test('toEmbeddingModel: takes missing values from the published model in `same_as`', () => {
    expect(toEmbeddingModel('azure', row)).toMatchObject({
      dimensions: 1_536,
      dimensionRange: { minimum: 1, maximum: 1_536 },
      maximumInputTokens: 8_192,
      tokenIds: 'decoded',
      batch: { inputs: 32 },
    })
    expect(toEmbeddingModel('x', { id: 'y', input_per_mtok: 1 })).toMatchObject({
      dimensions: null,
      dimensionRange: null,
    })
  })
})
