/** Bodies of `POST /v1/embeddings` and of its responses. */
import { describe, expect, test } from 'bun:test'
import { encodeVector } from '../../src/core/chat/embeddings.ts'
import { toResponseBody } from '../../src/dialects/embeddings/endpoint.ts'
import { embeddingsBody, readEmbeddingsRequest } from '../../src/dialects/embeddings/routes.ts'

describe('readEmbeddingsRequest', () => {
  test.each([
    ['a text', 'hello', { inputs: ['hello'], isSingle: true }],
    ['a list of texts', ['a', 'b'], { inputs: ['a', 'b'], isSingle: false }],
    ['token IDs', [1, 2, 3], { inputs: [[1, 2, 3]], isSingle: true }],
    ['lists of token IDs', [[1], [2, 3]], { inputs: [[1], [2, 3]], isSingle: false }],
    ['2,048 texts', Array(2_048).fill('a'), { inputs: Array(2_048).fill('a'), isSingle: false }],
    ['3,000 token IDs of one text', Array(3_000).fill(7), { inputs: [Array(3_000).fill(7)], isSingle: true }],
  ])('returns the inputs of %s', (_, input, expected) => {
    expect(readEmbeddingsRequest({ model: 'm', input }, new Headers()).embedding).toMatchObject(expected)
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
    expect(() => readEmbeddingsRequest({ model: 'm', input }, new Headers())).toThrow(
      expect.objectContaining({ code: 'invalid_request', param, message: expect.stringContaining(message) }),
    )
  })
})

describe('embeddingsBody', () => {
  const asked = { model: 'm "quoted"', encoding: 'float' } as const
  const getText = async (body: string | ReadableStream<Uint8Array>) => new Response(body).text()

  test.each([1, 40])('writes the same JSON whole and in parts: %d vectors of 2,000 numbers', async count => {
    const vectors = Array.from({ length: count }, (_, index) =>
      Float32Array.from({ length: 2_000 }, (_, at) => index + at / 8),
    )
    const events: string[] = []
    const body = toResponseBody(embeddingsBody(asked, vectors, 7), () => events.push('over'))
    expect(events).toEqual(count === 1 ? ['over'] : [])
    expect(typeof body).toBe(count === 1 ? 'string' : 'object')
    expect(JSON.parse(await getText(body))).toEqual({
      object: 'list',
      data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: [...vector] })),
      model: asked.model,
      usage: { prompt_tokens: 7, total_tokens: 7 },
    })
    expect(events).toEqual(['over'])
  })

  test('ends when the client disconnects before it has read all', async () => {
    const vectors = Array.from({ length: 40 }, () => new Float32Array(2_000))
    let isOver = false
    const body = toResponseBody(embeddingsBody(asked, vectors, 7), () => {
      isOver = true
    })
    if (typeof body === 'string') throw new Error('the body is no stream')
    const reader = body.getReader()
    await reader.read()
    expect(isOver).toBe(false)
    await reader.cancel()
    expect(isOver).toBe(true)
  })

  test('writes base64 when the client requests it', async () => {
    const body = toResponseBody(embeddingsBody({ model: 'm', encoding: 'base64' }, [[1, 2]], 1), () => {})
    expect(JSON.parse(await getText(body)).data[0].embedding).toBe(encodeVector([1, 2]))
  })
})
