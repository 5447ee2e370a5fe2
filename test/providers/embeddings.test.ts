/** Tests of the embedding adapters: requests on each wire, and results of responses. */
import { describe, expect, test } from 'bun:test'
import { encodeVector } from '../../src/core/chat/embeddings.ts'
import {
  type EmbeddingModel,
  publishedEmbeddingModels,
  toEmbeddingModel,
} from '../../src/core/models/embedding-models.ts'
import { google } from '../../src/providers/google.ts'
import { openaiEmbeddings } from '../../src/providers/openai/embeddings.ts'
import type { AdapterRequest, ProviderFailure, Vectors } from '../../src/providers/provider.ts'
import { askWith } from '../harness/ask.ts'

const local = toEmbeddingModel('local', { id: 'bge-m3', input_per_mtok: 0, dimensions: 4, minimum_dimensions: 2 })
const published = (id: string): EmbeddingModel => publishedEmbeddingModels.find(model => model.id === id) ?? local
const small = published('text-embedding-3-small')
const gemini = published('gemini-embedding-001')

type Fields = {
  readonly inputs?: readonly (string | number[])[]
  readonly dimensions?: number | null
  readonly endUser?: string
  readonly extras?: Readonly<Record<string, unknown>>
}

function send(
  model: EmbeddingModel,
  { inputs = ['one', 'two'], dimensions = null, ...fields }: Fields = {},
): AdapterRequest {
  const embedding = { inputs, texts: [], tokens: [], isSingle: false, dimensions }
  return { request: askWith({ ...fields, embedding }), model, inputs, outputCap: 1, stream: false }
}

/** The vectors of a response as lists, or the kind of its failure. */
function findResult(read: Vectors | ProviderFailure) {
  if (!('vectors' in read)) return read.kind
  return { vectors: read.vectors.map(vector => [...vector]), inputTokens: read.inputTokens }
}

const access = (baseUrl: string) => ({ baseUrl, apiKey: 'secret' })

describe('OpenAI embeddings', () => {
  test('request base64 from OpenAI and pass token IDs and the end user', () => {
    const fields = { inputs: [[1, 2]], dimensions: 256, endUser: 'ada', extras: { task: 'x' } }
    const sent = openaiEmbeddings(true).toRequest(send(small, fields), access('https://api.openai.com/v1'))
    expect(sent.url).toBe('https://api.openai.com/v1/embeddings')
    expect(sent.headers.authorization).toBe('Bearer secret')
    expect(sent.droppedParameters).toEqual(['task'])
    expect(JSON.parse(sent.body)).toEqual({
      model: 'text-embedding-3-small',
      input: [[1, 2]],
      dimensions: 256,
      encoding_format: 'base64',
      user: 'ada',
    })
  })

  test.each([
    ['http://localhost:11434', 'http://localhost:11434/v1/embeddings', 'dimensions'],
    ['http://localhost:8000/v1/', 'http://localhost:8000/v1/embeddings', 'dimensions'],
    [
      'https://x.openai.azure.com/openai/deployments/e?api-version=1',
      'https://x.openai.azure.com/openai/deployments/e/embeddings?api-version=1',
      'dimensions',
    ],
    ['https://api.voyageai.com/v1', 'https://api.voyageai.com/v1/embeddings', 'output_dimension'],
  ])('add nothing that a server at %s may reject', (base, url, field) => {
    const fields = {
      dimensions: 2,
      endUser: 'ada',
      extras: { input_type: 'query', output_dtype: 'int8', model: 'other' },
    }
    const sent = openaiEmbeddings(false).toRequest(send(local, fields), access(base))
    expect(sent.url).toBe(url)
    expect(JSON.parse(sent.body)).toEqual({ input_type: 'query', model: 'bge-m3', input: ['one', 'two'], [field]: 2 })
    expect(sent.droppedParameters).toEqual(['output_dtype', 'model', 'user'])
  })

  const read = (body: unknown) => findResult(openaiEmbeddings(false).readVectors(body, send(local)))
  const item = (index: unknown, embedding: unknown) => ({ object: 'embedding', index, embedding })

  test.each([
    ['in order', [item(0, [1]), item(1, [2])]],
    ['in another order', [item(1, [2]), item(0, [1])]],
    ['without indices', [item(undefined, [1]), item(null, [2])]],
    ['within a list', [item(0, [[1]]), item(1, [[2]])]],
    ['as base64', [item(0, encodeVector([1])), item(1, encodeVector([2]))]],
  ])('return the vectors in the order of the inputs when they arrive %s', (_, data) => {
    expect(read({ data, usage: { prompt_tokens: 7 } })).toEqual({ vectors: [[1], [2]], inputTokens: 7 })
  })

  test.each([
    ['no usage', undefined, null],
    ['a usage of 0', { prompt_tokens: 0, total_tokens: 0 }, null],
    ['a total only', { total_tokens: 9 }, 9],
    ['an absurd usage', { prompt_tokens: 1e12 }, null],
    ['a negative usage', { prompt_tokens: -5 }, null],
  ])('count tokens of %s', (_, usage, inputTokens) => {
    expect(read({ data: [item(0, [1]), item(1, [2])], usage })).toMatchObject({ inputTokens })
  })

  test.each([
    ['no JSON', undefined, 'bad_answer'],
    ['too few vectors', { data: [item(0, [1])] }, 'bad_answer'],
    ['one index twice', { data: [item(0, [1]), item(0, [2])] }, 'bad_answer'],
    ['an index past the end', { data: [item(0, [1]), item(2, [2])] }, 'bad_answer'],
    ['a vector with null', { data: [item(0, [1]), item(1, [null])] }, 'bad_answer'],
    ['one vector per token', { data: [item(0, [[1], [2]]), item(1, [[1], [2]])] }, 'bad_answer'],
    ['an error', { error: { message: 'busy', type: 'rate_limit_error' } }, 'rate_limited'],
  ])('fail on %s', (_, body, kind) => {
    expect<unknown>(read(body)).toBe(kind)
  })
})

describe('Gemini embeddings', () => {
  const { embeddings: googleEmbeddings } = google
  if (googleEmbeddings === undefined) throw new Error('the adapter has no embeddings')
  const base = access('https://generativelanguage.googleapis.com/')
  const content = (text: string) => ({ model: 'models/gemini-embedding-001', content: { parts: [{ text }] } })

  test('send one input by embedContent and several by batchEmbedContents as separate requests', () => {
    const request = googleEmbeddings.toRequest(send(gemini, { inputs: ['one'] }), base)
    expect(request.url).toBe(
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent',
    )
    expect(request.headers['x-goog-api-key']).toBe('secret')
    expect(JSON.parse(request.body)).toEqual(content('one'))
    const fields = { dimensions: 768, extras: { task_type: 'RETRIEVAL_QUERY', title: 'T', other: 1 }, endUser: 'ada' }
    const two = googleEmbeddings.toRequest(send(gemini, fields), base)
    expect(two.url).toEndWith('models/gemini-embedding-001:batchEmbedContents')
    const settings = { outputDimensionality: 768, taskType: 'RETRIEVAL_QUERY', title: 'T' }
    expect(JSON.parse(two.body)).toEqual({
      requests: [
        { ...content('one'), ...settings },
        { ...content('two'), ...settings },
      ],
    })
    expect(two.droppedParameters).toEqual(['user', 'other'])
  })

  const findVectors = (body: unknown, fields: Fields) =>
    findResult(googleEmbeddings.readVectors(body, send(gemini, fields)))

  test('normalize only vectors below full length', () => {
    const body = { embeddings: [{ values: [3, 4] }, { values: [0, 2] }], usageMetadata: { promptTokenCount: 5 } }
    expect(findVectors(body, { dimensions: 2 })).toEqual({
      vectors: [
        [0.6, 0.8],
        [0, 1],
      ],
      inputTokens: 5,
    })
    expect(findVectors(body, { dimensions: null })).toEqual({
      vectors: [
        [3, 4],
        [0, 2],
      ],
      inputTokens: 5,
    })
    expect(findVectors({ embedding: { values: [1] } }, { inputs: ['one'] })).toEqual({
      vectors: [[1]],
      inputTokens: null,
    })
  })

  test.each([
    ['too few vectors', { embeddings: [{ values: [1] }] }, 'bad_answer'],
    ['no values', { embeddings: [{ values: [1] }, {}] }, 'bad_answer'],
    ['no JSON', undefined, 'bad_answer'],
    ['an error', { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'slow down' } }, 'rate_limited'],
  ])('fails on %s', (_, body, kind) => {
    expect<unknown>(findVectors(body, {})).toBe(kind)
  })
})
