/**
 * Embedding models: the published ones and those that the operator configures. Separate from the chat models, so that
 * chat routing never includes them. Vectors of different models are incompatible: only entries with the same
 * `vectorSpace` are fallbacks of each other.
 */
import { type Static, Type } from '@sinclair/typebox'
import { modelNameSchema as name } from './configured-models.ts'
import { buildCatalog, type Catalog, fullName } from './models.ts'
import type { Rates } from './pricing.ts'

export type EmbeddingModel = {
  /** The model's name in the provider's API. */
  readonly id: string
  /** `openai`, `google`, or the ID of a configured provider. */
  readonly provider: string
  readonly displayName: string
  /** Only input has a price. */
  readonly pricing: Rates
  readonly pricingSource: string
  /** Full name of the model that computes the vectors: the same for all hosts of one model. */
  readonly vectorSpace: string
  /** Default length of a vector; null = not configured. */
  readonly dimensions: number | null
  /** Allowed values of `dimensions`; null = the model has only one length. */
  readonly dimensionRange: { readonly minimum: number; readonly maximum: number } | null
  /** Tokens of one input. */
  readonly maximumInputTokens: number
  /** Limits of one upstream call; a larger request is split. */
  readonly batch: { readonly inputs: number; readonly tokens: number }
  /** `as_is`: its API accepts token IDs of cl100k_base. `decoded`: it receives the text that they stand for. */
  readonly tokenIds: 'as_is' | 'decoded'
  readonly aliases: readonly string[]
  readonly marketplaceAliases: readonly string[]
  readonly releaseDate: string | null
}

/** Maximum inputs per request, as at OpenAI. */
export const maximumInputs = 2_048

/** The published embedding models. Sources and dates: docs/embeddings.md. */
export const publishedEmbeddingModels: readonly EmbeddingModel[] = [
  published('openai', 'text-embedding-3-small', 'Text Embedding 3 Small', 0.02, {
    dimensions: 1_536,
    dimensionRange: { minimum: 1, maximum: 1_536 },
    releaseDate: '2024-01-25',
  }),
  published('openai', 'text-embedding-3-large', 'Text Embedding 3 Large', 0.13, {
    dimensions: 3_072,
    dimensionRange: { minimum: 1, maximum: 3_072 },
    releaseDate: '2024-01-25',
  }),
  published('openai', 'text-embedding-ada-002', 'Text Embedding Ada 002', 0.1, {
    dimensions: 1_536,
    dimensionRange: null,
    releaseDate: '2022-12-15',
  }),
  published('google', 'gemini-embedding-2', 'Gemini Embedding 2', 0.2, {
    dimensions: 3_072,
    dimensionRange: { minimum: 128, maximum: 3_072 },
    releaseDate: '2026-04-22',
  }),
  published('google', 'gemini-embedding-001', 'Gemini Embedding 001', 0.15, {
    dimensions: 3_072,
    dimensionRange: { minimum: 128, maximum: 3_072 },
    maximumInputTokens: 2_048,
    releaseDate: '2025-05-20',
  }),
]

function published(
  provider: 'openai' | 'google',
  id: string,
  displayName: string,
  inputPrice: number,
  facts: Pick<EmbeddingModel, 'dimensions' | 'dimensionRange' | 'releaseDate'> & {
    readonly maximumInputTokens?: number
  },
): EmbeddingModel {
  return {
    id,
    provider,
    displayName,
    pricing: inputPricing(inputPrice),
    pricingSource: 'docs/embeddings.md',
    vectorSpace: fullName({ id, provider }),
    maximumInputTokens: 8_192,
    // OpenAI: 300,000 tokens per request. Google: 100 requests per batch, and no published sum.
    batch: provider === 'openai' ? { inputs: maximumInputs, tokens: 300_000 } : { inputs: 100, tokens: 300_000 },
    tokenIds: provider === 'openai' ? 'as_is' : 'decoded',
    aliases: [],
    marketplaceAliases: [],
    ...facts,
  }
}

const strict = { additionalProperties: false } as const
const length = Type.Integer({ minimum: 1, maximum: 65_536 })

/**
 * An embedding model of a configured provider (`GATEWAY_CONFIG`, `providers[].embedding_models[]`). A price of 0 is
 * allowed.
 */
export const configuredEmbeddingModelSchema = Type.Object(
  {
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
  },
  strict,
)

export type ConfiguredEmbeddingModel = Static<typeof configuredEmbeddingModelSchema>

/** Fits the servers with the smallest default (text-embeddings-inference accepts 32 inputs per call). */
const usualBatch = { inputs: 32, tokens: 300_000 }
const usualInputTokens = 8_192

/** Returns a configured row as a model. Missing values come from the published model named by `same_as`. */
export function toEmbeddingModel(provider: string, row: ConfiguredEmbeddingModel): EmbeddingModel {
  const { id, minimum_dimensions: minimum } = row
  const same = publishedEmbeddingModels.find(model => fullName(model) === row.same_as) ?? null
  const dimensions = row.dimensions ?? same?.dimensions ?? null
  const range = dimensions === null || minimum === undefined ? null : { minimum, maximum: dimensions }
  return {
    id,
    provider,
    displayName: row.display_name ?? id,
    pricing: inputPricing(row.input_per_mtok),
    pricingSource: 'config',
    vectorSpace: row.same_as ?? fullName({ id, provider }),
    dimensions,
    dimensionRange: range ?? same?.dimensionRange ?? null,
    maximumInputTokens: row.max_input_tokens ?? same?.maximumInputTokens ?? usualInputTokens,
    batch: {
      inputs: row.batch_inputs ?? usualBatch.inputs,
      tokens: row.batch_tokens ?? usualBatch.tokens,
    },
    tokenIds: row.token_ids === true ? 'as_is' : 'decoded',
    aliases: row.aliases ?? [],
    marketplaceAliases: [],
    releaseDate: null,
  }
}

/** Returns the problems of a configured row, one line each. */
export function embeddingModelProblems({ id, dimensions, minimum_dimensions: minimum }: ConfiguredEmbeddingModel) {
  if (minimum === undefined) return []
  if (dimensions === undefined)
    return [`embedding model "${id}" has \`minimum_dimensions\` and no \`dimensions\`; add it`]
  return minimum <= dimensions ? [] : [`embedding model "${id}": \`minimum_dimensions\` is above \`dimensions\``]
}

function inputPricing(input: number): Rates {
  return { input, output: 0, cachedInput: null, cacheWrite: null, longContext: null }
}

export type EmbeddingCatalog = Catalog<EmbeddingModel> & {
  /** Returns the model and its other hosts, the model itself first. */
  hostsOf(model: EmbeddingModel): readonly EmbeddingModel[]
}

/** Builds the catalog of these models. Names resolve like those of chat models. */
export function buildEmbeddingCatalog(models: readonly EmbeddingModel[]): EmbeddingCatalog {
  const catalog = buildCatalog(models)
  return {
    ...catalog,
    hostsOf: model => [model, ...models.filter(other => other !== model && isSameModel(other, model))],
  }
}

function isSameModel(one: EmbeddingModel, other: EmbeddingModel): boolean {
  return one.vectorSpace.toLowerCase() === other.vectorSpace.toLowerCase() && one.dimensions === other.dimensions
}
