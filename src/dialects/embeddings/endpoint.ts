/** The endpoint that all API forms of embeddings share: the request that carries the inputs, and a body that is written in chunks. */

import type { ChatRequest, EmbeddingInputs, Vector } from '../../core/chat/chat.ts'
import { collectedBody } from '../../core/chat/response-collector.ts'
import type { EmbeddingCatalog } from '../../core/models/embedding-models.ts'
import { type ConstraintsRow, readConstraintsHeader, requestDemands } from '../../core/policy/constraints.ts'
import { chatRequestWithDefaults } from '../../core/request/chat-request.ts'
import { tagsOfHeaders } from '../../core/request/tags.ts'
import { bodyLimits } from '../../http/body.ts'
import type { ChatEndpoint, RequestSource } from '../../http/chat-handler.ts'

/** Returns the chat request that carries inputs to embed. */
export function embeddingsRequest(
  embedding: EmbeddingInputs,
  fields: Pick<ChatRequest, 'model' | 'endUser' | 'extras'>,
  headers: Headers,
  constraints?: ConstraintsRow | null,
): ChatRequest {
  return chatRequestWithDefaults([], {
    dialect: 'embeddings',
    embedding,
    // A vector is no output: the meter reserves its minimum, and nothing of it streams.
    maxOutputTokens: 1,
    hedge: false,
    fallback: 'any',
    ...fields,
    tags: tagsOfHeaders(headers),
    ...requestDemands(constraints, readConstraintsHeader(headers)),
  })
}

/** Responses are written in chunks: 6 million numbers in one text would block the process for seconds. */
/** Numbers to write per turn of the event loop. */
const numbersPerPiece = 32_768

/** The text around vectors and between them. */
type VectorList = {
  readonly begin: string
  readonly each: (vector: Vector, index: number) => string
  readonly end: string
}

/** Yields the text of a body in chunks, each created on demand. */
export function* vectorPieces({ begin, each, end }: VectorList, vectors: readonly Vector[]) {
  let piece = begin
  let numbers = 0
  for (const [index, vector] of vectors.entries()) {
    piece += (index === 0 ? '' : ',') + each(vector, index)
    numbers += vector.length
    if (numbers < numbersPerPiece) continue
    yield piece
    piece = ''
    numbers = 0
  }
  yield piece + end
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

/** One form in which embeddings are served. */
export type EmbeddingsForm = Pick<ChatEndpoint, 'refusal'> & {
  readonly read: (
    body: unknown,
    source: RequestSource,
    url: string,
  ) => {
    readonly request: ChatRequest
    readonly embedding: EmbeddingInputs
    /** As the client named it. */
    readonly model: string
    /** Names of shared fields in this form. */
    readonly spelling?: Readonly<Record<string, string>>
    readonly write: (vectors: readonly Vector[], inputTokens: number) => Iterator<string, void, void>
  }
}

export type EmbeddingsDeps = { readonly embeddingCatalog: EmbeddingCatalog }

/** Returns the endpoint of one form. */
export function embeddingsEndpoint(
  { embeddingCatalog }: EmbeddingsDeps,
  { read, ...form }: EmbeddingsForm,
): ChatEndpoint {
  return {
    dialect: 'embeddings',
    limits: { bytes: bodyLimits.embeddings, values: maximumValues },
    ...form,
    parse(body, source, url) {
      const { request, embedding, model, spelling = {}, write } = read(body, source, url)
      const { inputs, dimensions } = embedding
      const length = dimensions ?? embeddingCatalog.resolve(model)?.embedding.dimensions ?? usualLength
      return {
        request,
        spelling,
        heldBytes: Math.min(inputs.length * length * numberBytes, mostVectorBytes),
        whole: collectedBody((_answer, { vectors }, { usage }, over) => {
          if (vectors === undefined) throw new Error('a response to embeddings without vectors')
          return toResponseBody(write(vectors, usage.inputTokens), over)
        }),
      }
    },
  }
}
