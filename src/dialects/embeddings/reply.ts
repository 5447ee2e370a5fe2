/** Writes responses of `POST /v1/embeddings` in chunks: 6 million numbers in one text would block the process for seconds. */
import type { Vector } from '../../core/chat/chat.ts'
import { encodeVector } from '../../core/chat/embeddings.ts'
import type { EmbeddingsRequest } from './request.ts'

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
