/** Entries of `GET /api/v1/models`. */
import type { EmbeddingModel } from '../../core/models/embedding-models.ts'
import { type Deprecation, fullName, type Model } from '../../core/models/models.ts'
import { pricingFields } from '../../core/models/pricing.ts'
import { attributions } from '../../models/catalog.ts'
import type { EmbeddingModelResponse, ShownModel } from './schemas.ts'

/** Returns a model with its prices and capabilities. */
export function toShownModel(model: Model, status: Deprecation, simulated: boolean): ShownModel {
  const { capabilities, evidence, figures } = model
  const speed = evidence?.speed ?? null
  return {
    id: model.id,
    name: fullName(model),
    provider: model.provider,
    display_name: model.displayName,
    tier: model.tier,
    pricing: { currency: 'USD', ...pricingFields(model.pricing) },
    context_window: model.contextWindow,
    max_input_tokens: model.maxInputTokens,
    max_output_tokens: model.maxOutputTokens,
    capabilities: {
      vision: capabilities.vision,
      files: capabilities.files,
      tools: capabilities.tools,
      json_schema: capabilities.jsonSchema,
      reasoning: capabilities.reasoning,
      streaming: capabilities.streaming,
      web_search: capabilities.webSearch,
    },
    reasoning_efforts: [...model.parameters.efforts],
    aliases: [...model.aliases],
    deprecated: model.deprecated,
    deprecation_date: model.deprecationDate,
    status,
    successor: model.successor,
    release_date: model.releaseDate,
    quality_scores: model.qualityScores.map(score => ({ ...score, attribution: attributions[score.metric] })),
    speed: speed && {
      output_tokens_per_second: speed.tokensPerSecond,
      time_to_first_token_seconds: speed.firstTokenSeconds,
      variant: speed.variant,
      source: speed.source,
      date: speed.date,
      attribution: attributions.artificial_analysis_intelligence_index,
    },
    routing: {
      quality: Number(figures.quality.toFixed(4)),
      output_tokens_per_second: figures.tokensPerSecond,
      time_to_first_token_seconds: figures.firstTokenMs / 1000,
      estimated: figures.estimated || speed === null,
    },
    ...(simulated ? { simulated } : {}),
  }
}

export function toEmbeddingModelResponse(model: EmbeddingModel, simulated: boolean): EmbeddingModelResponse {
  const { dimensions, dimensionRange } = model.embedding
  return {
    id: model.id,
    name: fullName(model),
    provider: model.provider,
    display_name: model.displayName,
    pricing: { currency: 'USD', input_per_mtok: model.pricing.input },
    max_input_tokens: model.contextWindow,
    dimensions,
    minimum_dimensions: dimensionRange?.minimum ?? null,
    capabilities: { embeddings: true, dimensions: dimensionRange !== null },
    aliases: [...model.aliases],
    release_date: model.releaseDate,
    ...(simulated ? { simulated: true } : {}),
  }
}
