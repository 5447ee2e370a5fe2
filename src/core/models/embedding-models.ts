/**
 * Embedding models: the published ones (sources and dates: docs/embeddings.md) and those that the operator configures. They have a
 * catalog of their own, so that chat routing never includes them. Vectors of different models are incompatible: only
 * models with the same `space` and length are hosts of each other.
 */

import { type Static, Type } from '@sinclair/typebox'
import { maximumInputs } from '../chat/embeddings.ts'
import { strictObject } from '../validation/validate.ts'
import { modelNameSchema as name, toModel } from './configured-models.ts'
import publishedRows from './embedding-models.json' with { type: 'json' }
import { type Catalog, fullName, type Model } from './models.ts'

/** A model that embeds. `contextWindow` is the maximum of tokens per input; only input has a price. */
export type EmbeddingModel = Model & { readonly embedding: NonNullable<Model['embedding']> }

export type EmbeddingCatalog = Catalog<EmbeddingModel>

const length = Type.Integer({ minimum: 1, maximum: 65_536 })

/**
 * An embedding model of a configured provider (`GATEWAY_CONFIG`, `providers[].embedding_models[]`). A price of 0 is
 * allowed.
 */
export const configuredEmbeddingModelSchema = strictObject({
  id: name,
  display_name: Type.Optional(name),
  input_per_mtok: Type.Number({ minimum: 0, maximum: 1_000_000 }),
  dimensions: Type.Optional(length),
  /** Minimum value of `dimensions` in a request; absent = not supported. */
  minimum_dimensions: Type.Optional(length),
  max_input_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000_000 })),
  batch_inputs: Type.Optional(Type.Integer({ minimum: 1, maximum: maximumInputs })),
  batch_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
  /** True: it accepts token IDs of cl100k_base, as OpenAI's models on other hosts do. */
  token_ids: Type.Optional(Type.Boolean()),
  /** `provider/model` of the same model on another host. */
  same_as: Type.Optional(name),
  aliases: Type.Optional(Type.Array(name, { maxItems: 32 })),
})

export type ConfiguredEmbeddingModel = Static<typeof configuredEmbeddingModelSchema>

export const publishedEmbeddingModels: readonly EmbeddingModel[] = publishedRows.map(
  ({ provider, release_date: releaseDate, ...row }) => ({
    ...toEmbeddingModel(provider, row),
    pricingSource: 'docs/embeddings.md',
    releaseDate,
  }),
)

/** Returns a configured row as a model. Missing values come from the published model named by `same_as`. */
export function toEmbeddingModel(provider: string, row: ConfiguredEmbeddingModel): EmbeddingModel {
  const { id, minimum_dimensions: minimum, input_per_mtok, same_as: sameAs, aliases } = row
  const same =
    sameAs === undefined ? null : (publishedEmbeddingModels.find(model => fullName(model) === sameAs) ?? null)
  const dimensions = row.dimensions ?? same?.embedding.dimensions ?? null
  const range = dimensions === null || minimum === undefined ? null : { minimum, maximum: dimensions }
  const model = toModel(provider, {
    id,
    display_name: row.display_name ?? id,
    pricing: { input_per_mtok, output_per_mtok: 0 },
    context_window: row.max_input_tokens ?? same?.contextWindow ?? 8_192,
    // The meter's minimum; an embedding has no output, and none is billed.
    max_output_tokens: 1,
    capabilities: { streaming: false },
    aliases: aliases ?? [],
  })
  return {
    ...model,
    embedding: {
      space: sameAs ?? fullName({ id, provider }),
      dimensions,
      dimensionRange: range ?? same?.embedding.dimensionRange ?? null,
      // Fits the servers with the smallest default: text-embeddings-inference accepts 32 inputs per call.
      batch: { inputs: row.batch_inputs ?? 32, tokens: row.batch_tokens ?? 300_000 },
      tokenIds: row.token_ids === true ? 'as_is' : 'decoded',
    },
  }
}

/** Returns the problems of a configured row, one line each. */
export function embeddingModelProblems({ id, dimensions, minimum_dimensions: minimum }: ConfiguredEmbeddingModel) {
  if (minimum === undefined) return []
  if (dimensions === undefined)
    return [`embedding model "${id}" has \`minimum_dimensions\` and no \`dimensions\`; add it`]
  return minimum <= dimensions ? [] : [`embedding model "${id}": \`minimum_dimensions\` is above \`dimensions\``]
}
