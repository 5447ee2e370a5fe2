/**
 * Gemini's `:embedContent` for one input and `:batchEmbedContents` for several. Each input is a separate request in the
 * batch, since several parts of one content would become one vector.
 */
import { normalizeVector, parseVector, type Vector } from '../../core/embeddings/vectors.ts'
import type { EmbeddingsAdapter, EmbeddingsCall, EmbeddingsResult } from '../embeddings.ts'
import { providerFailure } from '../failure.ts'
import { encoded, isRecord, record, records, tokenCount } from '../json.ts'
import type { Access, ProviderRequest } from '../provider.ts'
import { googleBodyFailure } from './failure.ts'

export const googleEmbeddings: EmbeddingsAdapter = { toEmbeddingsRequest, readEmbeddings }

/** Fields of the compatible API with an equivalent here. */
const fieldNames: ReadonlyMap<string, string> = new Map([
  ['task_type', 'taskType'],
  ['taskType', 'taskType'],
  ['title', 'title'],
])

function toEmbeddingsRequest(call: EmbeddingsCall, access: Access): ProviderRequest {
  const { model, inputs, dimensions, endUser, extras } = call
  const dropped = endUser === null ? [] : ['user']
  const settings: Record<string, unknown> = dimensions === null ? {} : { outputDimensionality: dimensions }
  for (const [name, value] of Object.entries(extras)) {
    const own = fieldNames.get(name)
    if (own !== undefined && typeof value === 'string') settings[own] = value
    else dropped.push(name)
  }
  const requests = inputs.map(input => ({
    model: `models/${model.id}`,
    content: { parts: [{ text: input }] },
    ...settings,
  }))
  const base = access.baseUrl.replace(/\/+$/, '').replace(/\/v1beta$/, '')
  const method = requests.length === 1 ? 'embedContent' : 'batchEmbedContents'
  return {
    url: `${base}/v1beta/models/${encodeURIComponent(model.id)}:${method}`,
    headers: {
      'content-type': 'application/json',
      ...(access.apiKey !== null && { 'x-goog-api-key': access.apiKey }),
    },
    body: encoded(requests.length === 1 ? requests[0] : { requests }),
    droppedParameters: dropped,
  }
}

function readEmbeddings(body: unknown, { model, inputs, dimensions }: EmbeddingsCall): EmbeddingsResult {
  if (!isRecord(body)) return bad('no JSON object')
  const sent = isRecord(body.embedding) ? [body.embedding] : records(body.embeddings)
  if (sent.length === 0 && body.error !== undefined) return { kind: 'failure', failure: googleBodyFailure(body) }
  if (sent.length !== inputs.length) return bad(`${sent.length} vectors for ${inputs.length} inputs`)
  // Only vectors of full length are normalized.
  const isShort = dimensions !== null && dimensions !== model.dimensions
  const vectors: Vector[] = []
  for (const { values } of sent) {
    const vector = parseVector(values)
    if (vector === null) return bad('bad vector')
    vectors.push(isShort ? normalizeVector(vector) : vector)
  }
  return { kind: 'vectors', vectors, inputTokens: tokenCount(record(body.usageMetadata).promptTokenCount) || null }
}

function bad(how: string): EmbeddingsResult {
  return { kind: 'failure', failure: providerFailure('bad_answer', `200 ${how}`) }
}
