/**
 * The port of embedding upstreams: pure translation of one upstream call. The input fits the upstream's limits;
 * `pipeline/embeddings` splits, calls, checks and combines the vectors.
 */
import type { EmbeddingInput } from '../core/embeddings/embeddings-request.ts'
import type { Vector } from '../core/embeddings/vectors.ts'
import type { EmbeddingModel } from '../core/models/embedding-models.ts'
import type { Access, ProviderFailure, ProviderRequest } from './provider.ts'

/** One upstream call. `inputs` contains token IDs only if the model's `tokenIds` are `as_is`. */
export type EmbeddingsCall = {
  readonly model: EmbeddingModel
  readonly inputs: readonly EmbeddingInput[]
  /** null = the model's own length. */
  readonly dimensions: number | null
  readonly endUser: string | null
  readonly extras: Readonly<Record<string, unknown>>
}

/** The vectors in the order of the inputs, or the failure. */
export type EmbeddingsResult =
  | {
      readonly kind: 'vectors'
      readonly vectors: readonly Vector[]
      /** null = not reported. */
      readonly inputTokens: number | null
    }
  | { readonly kind: 'failure'; readonly failure: ProviderFailure }

export type EmbeddingsAdapter = {
  toEmbeddingsRequest(call: EmbeddingsCall, access: Access): ProviderRequest
  /** Reads a parsed body of status 200; `undefined` = it was not JSON. Never throws. */
  readEmbeddings(body: unknown, call: EmbeddingsCall): EmbeddingsResult
}
