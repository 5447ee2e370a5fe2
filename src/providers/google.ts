/**
 * Gemini's own API, `generateContent` and `streamGenerateContent`: its compatible endpoint loses thought signatures,
 * exact finish reasons and exact token counts.
 */

import type { Vector } from '../core/chat/chat.ts'
import { normalizeVector, parseVector } from '../core/chat/embeddings.ts'
import { badAnswer } from './failure.ts'
import { googleBodyFailure, readGoogleFailure } from './google/failure.ts'
import { googleCall, toGoogleList, toGoogleRequest } from './google/request.ts'
import { GoogleReader } from './google/response.ts'
import { encoded, isRecord, record, records, tokenCount } from './json.ts'
import type { Access, AdapterRequest, Provider, ProviderFailure, ProviderRequest, Vectors } from './provider.ts'

/**
 * Gemini's `:embedContent` for one input and `:batchEmbedContents` for several. Each input is a separate request in the
 * batch, since several parts of one content would become one vector.
 */

/** Fields of the compatible API with an equivalent here. */
const fieldNames: ReadonlyMap<string, string> = new Map([
  ['task_type', 'taskType'],
  ['taskType', 'taskType'],
  ['title', 'title'],
])

function toRequest({ request, model, inputs = [] }: AdapterRequest, access: Access): ProviderRequest {
  const { embedding, endUser, extras } = request
  const dimensions = embedding?.dimensions ?? null
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
  const method = requests.length === 1 ? 'embedContent' : 'batchEmbedContents'
  return {
    ...googleCall(access, model, method),
    body: encoded(requests.length === 1 ? requests[0] : { requests }),
    droppedParameters: dropped,
  }
}

function readVectors(body: unknown, { request, model, inputs = [] }: AdapterRequest): Vectors | ProviderFailure {
  if (!isRecord(body)) return badAnswer('no JSON object')
  const sent = isRecord(body.embedding) ? [body.embedding] : records(body.embeddings)
  if (sent.length === 0 && body.error !== undefined) return googleBodyFailure(body)
  if (sent.length !== inputs.length) return badAnswer(`${sent.length} vectors for ${inputs.length} inputs`)
  // Only vectors of full length are normalized.
  const dimensions = request.embedding?.dimensions ?? null
  const isShort = dimensions !== null && dimensions !== model.embedding?.dimensions
  const vectors: Vector[] = []
  for (const { values } of sent) {
    const vector = parseVector(values)
    if (vector === null) return badAnswer('bad vector')
    vectors.push(isShort ? normalizeVector(vector) : vector)
  }
  const inputTokens = tokenCount(record(body.usageMetadata).promptTokenCount) || null
  return { vectors, inputTokens }
}

/** The adapter for the `v1beta` API. */
export const google: Provider = {
  toRequest: toGoogleRequest,
  readResponse: (body, sink) => new GoogleReader().whole(body, sink),
  streamReader: choices => new GoogleReader(choices),
  readFailure: readGoogleFailure,
  takesSource: () => ['gemini'],
  listModels: toGoogleList,
  embeddings: { toRequest, readVectors },
  toolNames: { accepted: /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, longest: 64 },
}
