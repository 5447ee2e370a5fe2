import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Vector } from '../../core/chat/chat.ts'
import { encodeVector } from '../../core/chat/embeddings.ts'
import type { EmbeddingCatalog } from '../../core/models/embedding-models.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { bodyLimits } from '../../http/body.ts'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { idempotencyHeaders, onceErrors } from '../../http/idempotency.ts'
import { timeoutHeader } from '../../http/request-timeout.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { count, namedSchema, text } from '../../http/schemas.ts'
import { type EmbeddingsRequest, embeddingsSchema, readEmbeddingsRequest } from './request.ts'

/** Writes responses of `POST /v1/embeddings` in chunks: 6 million numbers in one text would block the process for seconds. */

/** Numbers to write per turn of the event loop. */
const numbersPerPiece = 32_768

/** Yields the text of the body in chunks, each created on demand. */
export function* embeddingsBody(
  { model, encoding }: Pick<EmbeddingsRequest, 'model' | 'encoding'>,
  vectors: readonly Vector[],
  inputTokens: number,
): Generator<string, void, void> {
  let piece = '{"object":"list","data":['
  let numbers = 0
  for (const [index, vector] of vectors.entries()) {
    const embedding = encoding === 'base64' ? `"${encodeVector(vector)}"` : JSON.stringify(Array.from(vector))
    piece += `${index === 0 ? '' : ','}{"object":"embedding","index":${index},"embedding":${embedding}}`
    numbers += vector.length
    if (numbers < numbersPerPiece) continue
    yield piece
    piece = ''
    numbers = 0
  }
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens }
  yield `${piece}],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`
}

/**
 * Returns the chunks as a body: a text if there is one chunk, else a stream that creates chunks as the client reads. `over` is
 * called when all chunks are created, or the client has disconnected.
 */
export function toResponseBody(
  pieces: Iterator<string, void, void>,
  over: () => void,
): string | ReadableStream<Uint8Array> {
  const first = pieces.next()
  const second = first.done === true ? first : pieces.next()
  if (second.done === true) {
    over()
    return first.done === true ? '' : first.value
  }
  const started = [first, second].values()
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const begun = started.next()
      const piece = begun.done === true ? pieces.next() : begun.value
      if (piece.done === true) {
        controller.close()
        over()
      } else controller.enqueue(encoder.encode(piece.value))
    },
    cancel: over,
  })
}

/** Maximum JSON values of a body. One upstream call accepts 300,000 token IDs. */
const maximumValues = 524_288
/** Bytes of one number of a vector in memory. */
const numberBytes = 8
/** Numbers of a vector whose length is not configured. */
const usualLength = 1_024
/**
 * Bytes that vectors count for at most. The largest have 50 MB, more than an account may hold, and still must be served: two such
 * responses at a time.
 */
const mostVectorBytes = 16 * 1_048_576

function createEndpoint({ embeddingCatalog }: { readonly embeddingCatalog: EmbeddingCatalog }): ChatEndpoint {
  return {
    dialect: 'embeddings',
    limits: { bytes: bodyLimits.embeddings, values: maximumValues },
    parse(body, { headers }) {
      const request = readEmbeddingsRequest(body, headers)
      const { inputs, dimensions } = request.embedding
      const length = dimensions ?? embeddingCatalog.resolve(request.model)?.embedding.dimensions ?? usualLength
      return {
        request: request.request,
        spelling: {},
        heldBytes: Math.min(inputs.length * length * numberBytes, mostVectorBytes),
        body(_answer, { vectors }, { usage }, over) {
          if (vectors === undefined) throw new Error('a response to embeddings without vectors')
          return toResponseBody(embeddingsBody(request, vectors, usage.inputTokens), over)
        },
      }
    },
  }
}

const embedding = namedSchema('Embedding', {
  object: Type.Literal('embedding'),
  index: count,
  embedding: Type.Union([
    Type.Array(Type.Number(), { examples: [[0.0123, -0.0456]] }),
    Type.String({ description: 'base64 of little-endian float32 values, if `encoding_format` is `base64`' }),
  ]),
})

const embeddingsResponseSchema = namedSchema('EmbeddingsResponse', {
  object: Type.Literal('list'),
  data: Type.Array(embedding),
  model: text('text-embedding-3-small', 'the model as the request named it'),
  usage: strictObject({ prompt_tokens: count, total_tokens: count }),
})

/** `POST /v1/embeddings`: OpenAI's wire format, for every embedding model. */
export function embeddings(deps: ChatRouteDeps & Parameters<typeof createEndpoint>[0]) {
  const endpoint = createEndpoint(deps)
  return new Elysia({ name: 'embeddings' }).post(
    '/v1/embeddings',
    ({ request }) => handleChat(deps, endpoint, request),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Embeddings',
        description:
          "OpenAI's wire format for every embedding model. Only the named model serves, possibly from another host: vectors of two " +
          'models cannot be compared. Long lists are split into several upstream calls.',
        body: embeddingsSchema,
        examples: {
          'one text': { model: 'text-embedding-3-small', input: 'A cat sat on a mat.' },
          'several texts, as base64': {
            model: 'gemini-embedding-001',
            input: ['A cat sat on a mat.', 'Ein Hund lag vor der Tür.'],
            encoding_format: 'base64',
            dimensions: 768,
          },
          'token IDs of cl100k_base': { model: 'text-embedding-3-large', input: [[32, 8415, 7731], [15339]] },
        },
        requestHeaders: { ...timeoutHeader, ...idempotencyHeaders },
        answer: embeddingsResponseSchema,
        answerHeaders: ['served', 'cost', 'estimated', 'quotaStatus'],
        errors: [
          'context_length_exceeded',
          'unsupported_parameter',
          'content_blocked',
          'payment_required',
          'account_paused',
          'model_not_found',
          'requests_per_minute_exceeded',
          'concurrent_requests_exceeded',
          'daily_tokens_exceeded',
          'daily_cost_exceeded',
          'monthly_cost_exceeded',
          'upstream_rate_limited',
          'upstream_failed',
          'no_model_available',
          'upstream_timeout',
          ...onceErrors,
        ],
      }),
    },
  )
}
