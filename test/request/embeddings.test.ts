/** Steps of a request for embeddings that need no process. */
import { describe, expect, test } from 'bun:test'
import { encodeVector } from '../../src/core/embeddings/vectors.ts'
import type { PlanName } from '../../src/core/limits/plans.ts'
import { publishedEmbeddingModels, toEmbeddingModel } from '../../src/core/models/embedding-models.ts'
import { embeddingsBody, toResponseBody } from '../../src/dialects/embeddings/reply.ts'
import { openaiEmbeddings } from '../../src/providers/openai/embeddings.ts'
import { openai } from '../../src/providers/openai.ts'
import { moderateInputs } from '../../src/request/embeddings/moderate-inputs.ts'
import { computeEmbeddingsBill } from '../../src/request/embeddings/settle-embeddings.ts'
import { detectSecrets } from '../../src/text/moderation/secret-detection.ts'
import { allowVerdict, blockVerdict } from '../../src/text/moderation/text-moderator.ts'

const model = publishedEmbeddingModels[0] ?? toEmbeddingModel('local', { id: 'x', input_per_mtok: 1 })
const adapter = openaiEmbeddings(true)
const endpoint = {
  id: 'openai',
  provider: openai({ official: true }),
  access: { baseUrl: 'https://example.com', apiKey: null },
  simulated: false,
  embeddings: adapter,
}
const prepared = (texts: readonly string[], inputs: readonly (string | readonly number[])[] = texts) =>
  ({
    request: { model: 'm', inputs, isSingle: false, encoding: 'float', dimensions: null, endUser: null, extras: {} },
    hosts: [{ model, endpoint, adapter }],
    texts,
    tokens: texts.map(() => 10),
    mostTokens: 10 * texts.length,
  }) as const

describe('moderateInputs', () => {
  const secret = `key AKIA${'ABCD'.repeat(4)} end`
  const moderate = (
    secrets: 'warn' | 'mask' | 'block',
    texts: readonly string[],
    inputs?: readonly (string | number[])[],
  ) => {
    const logged: unknown[] = []
    const safety = {
      secrets,
      leaksIn: detectSecrets,
      *embeddedSteps(text: string) {
        yield text.length
        return text.includes('bad') ? blockVerdict('patterns', 'prompt_injection', 0) : allowVerdict
      },
    }
    const log = { warn: (event: string, fields: object) => void logged.push([event, fields]) }
    return moderateInputs({ safety, log }, prepared(texts, inputs), 'req_1').then(result => ({ ...result, logged }))
  }

  test('keeps token IDs and texts that hold nothing', async () => {
    expect(await moderate('mask', ['one', 'two'], [[1], 'two'])).toEqual({
      inputs: [[1], 'two'],
      texts: ['one', 'two'],
      secrets: [],
      logged: [],
    })
  })

  test('warn: sends a secret and names its kind', async () => {
    const { inputs, secrets, logged } = await moderate('warn', [secret])
    expect([inputs, secrets]).toEqual([[secret], ['aws_key']])
    expect(logged).toEqual([['secrets_in_prompt', { request_id: 'req_1', kinds: 'aws_key', masked: 'false' }]])
  })

  test('mask: sends the masked text instead of its token IDs', async () => {
    const { inputs, texts } = await moderate('mask', ['one', secret], [[1], [2]])
    expect(inputs[0]).toEqual([1])
    expect(inputs[1]).toBe(texts[1] ?? '')
    expect(texts[1]).not.toContain('AKIA')
  })

  test.each([
    ['block', [secret], 'secrets', 'input.0'],
    ['warn', ['one', 'bad'], 'prompt_injection', 'input.1'],
  ] as const)('%s: rejects with the index of the input', async (secrets, texts, category, param) => {
    expect(await moderate(secrets, texts).catch((cause: unknown) => cause)).toMatchObject({
      code: 'content_blocked',
      layer: 'patterns',
      category,
      param,
    })
  })
})

describe('computeEmbeddingsBill', () => {
  const seat = { requestId: 'r', accountId: 'a', outputCap: 1, reservedTokens: 21, reservedMicrocents: 40, day: 1 }
  const bill = (inputTokens: number, { isOwed = true, plan: name = 'evaluation' as PlanName } = {}) => {
    const plan = prepared(['a', 'b'])
    const progress = {
      seat,
      host: plan.hosts[0],
      inputTokens,
      estimated: false,
    }
    const {
      owed,
      billed,
      inputTokens: counted,
    } = computeEmbeddingsBill(plan, progress, {
      isOwed,
      caller: { plan: name },
    })
    return { owed, billed, counted }
  }

  test.each([
    ['what was used', bill(20), { owed: 40, billed: 40, counted: 20 }],
    ['at most what was reserved on evaluation', bill(30), { owed: 60, billed: 40, counted: 30 }],
    ['all that was used on usage', bill(30, { plan: 'usage' }), { owed: 60, billed: 60, counted: 30 }],
    ['nothing of a failed request', bill(20, { isOwed: false, plan: 'usage' }), { owed: 0, billed: 0, counted: 0 }],
    ['an absurd count cut to what the inputs can hold', bill(10 ** 9), { owed: 32_768, billed: 40, counted: 16_384 }],
  ])('bills %s', (_, actual, expected) => {
    expect(actual).toEqual(expected)
  })
})

describe('embeddingsBody', () => {
  const asked = { model: 'm "quoted"', encoding: 'float' } as const
  const textOf = async (body: string | ReadableStream<Uint8Array>) => new Response(body).text()

  test.each([1, 40])('writes the same JSON whole and in parts: %d vectors of 2,000 numbers', async count => {
    const vectors = Array.from({ length: count }, (_, index) =>
      Float32Array.from({ length: 2_000 }, (_, at) => index + at / 8),
    )
    const events: string[] = []
    const body = toResponseBody(embeddingsBody(asked, vectors, 7), () => events.push('over'))
    expect(events).toEqual(count === 1 ? ['over'] : [])
    expect(typeof body).toBe(count === 1 ? 'string' : 'object')
    expect(JSON.parse(await textOf(body))).toEqual({
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
    expect(JSON.parse(await textOf(body)).data[0].embedding).toBe(encodeVector([1, 2]))
  })
})
