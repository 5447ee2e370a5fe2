/** Adapter for `/embeddings` at OpenAI and all compatible servers. */
import type { Vector } from '../../core/chat/chat.ts'
import { parseVector } from '../../core/chat/embeddings.ts'
import { ownFields } from '../../core/chat/provider-features.ts'
import { badAnswer } from '../failure.ts'
import { encoded, isRecord, record, records, tokenCount, wholeNumber } from '../json.ts'
import type { Access, AdapterRequest, Provider, ProviderFailure, ProviderRequest, Vectors } from '../provider.ts'
import { failureInAnswer, getError } from './failure.ts'
import { endpointAt } from './request.ts'

/**
 * Creates the adapter. `official` = api.openai.com, which is asked for base64: a fifth of the size of numbers, without
 * rounding.
 */
export function openaiEmbeddings(official: boolean): NonNullable<Provider['embeddings']> {
  return { toRequest: (request, access) => toRequest(request, access, official), readVectors }
}

/**
 * Fields that some compatible servers support. Others are not added, since some servers answer 400 to unknown fields.
 */
const compatibleFields: ReadonlySet<string> = new Set(
  'input_type task task_type prompt_name truncate truncation truncate_prompt_tokens normalize'.split(' '),
)

function toRequest({ request, model, inputs }: AdapterRequest, access: Access, official: boolean): ProviderRequest {
  const { embedding, endUser, extras } = request
  const dimensions = embedding?.dimensions ?? null
  const sent: [string, unknown][] = []
  const dropped: string[] = []
  for (const [name, value] of Object.entries(extras)) {
    const isTaken = !official && (compatibleFields.has(name) || access.extraFields?.includes(name) === true)
    if (isTaken && !ownFields.has(name)) sent.push([name, value])
    else dropped.push(name)
  }
  if (endUser !== null && !official) dropped.push('user')
  const body = {
    ...Object.fromEntries(sent),
    model: model.id,
    input: inputs,
    ...(dimensions !== null && { [dimensionsField(new URL(access.baseUrl).hostname, official)]: dimensions }),
    // Older Ollama, llama.cpp and Voyage reject or ignore it: they send numbers, which are converted here.
    ...(official && { encoding_format: 'base64' }),
    ...(official && endUser !== null && { user: endUser }),
  }
  return {
    ...endpointAt(access, official, { path: 'embeddings' }),
    body: encoded(body),
    droppedParameters: dropped,
  }
}

function dimensionsField(hostname: string, official: boolean): 'dimensions' | 'output_dimension' {
  return !official && /(?:^|\.)(?:voyageai\.com|mistral\.ai)$/.test(hostname) ? 'output_dimension' : 'dimensions'
}

function readVectors(body: unknown, { inputs = [] }: AdapterRequest): Vectors | ProviderFailure {
  if (!isRecord(body)) return badAnswer('no JSON object')
  const data = records(body.data)
  if (data.length === 0) {
    const error = getError(body)
    return error === null ? badAnswer('no data') : failureInAnswer(error)
  }
  if (data.length !== inputs.length) return badAnswer(`${data.length} vectors for ${inputs.length} inputs`)
  const vectors = new Array<Vector | null>(data.length).fill(null)
  for (const [place, item] of data.entries()) {
    // A server without indexes keeps the order.
    const index = item.index === undefined || item.index === null ? place : wholeNumber(item.index)
    const vector = parseVector(item.embedding)
    if (index === null || index >= vectors.length || vectors[index] !== null) return badAnswer('bad index')
    if (vector === null) return badAnswer('bad vector')
    vectors[index] = vector
  }
  const usage = record(body.usage)
  // Servers that do not count send 0, which no input has.
  const inputTokens = tokenCount(usage.prompt_tokens) || tokenCount(usage.total_tokens) || null
  return { vectors: vectors.filter(vector => vector !== null), inputTokens }
}
