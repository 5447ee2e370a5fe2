import type { Model } from '../../src/core/models/models.ts'
import { catalog } from '../../src/models/catalog.ts'

/** Returns a model with all capabilities and the given `fields`. */
export function modelWith(fields: Pick<Model, 'id' | 'provider' | 'parameters'> & Partial<Model>): Model {
  return {
    displayName: fields.id,
    tier: 'standard',
    pricing: { input: 1, output: 2, cachedInput: null, cacheWrite: null, longContext: null },
    pricingSource: 'test',
    contextWindow: 200_000,
    maxInputTokens: null,
    maxOutputTokens: 64_000,
    capabilities: {
      vision: true,
      imageUrls: true,
      files: true,
      tools: true,
      jsonSchema: true,
      reasoning: true,
      streaming: true,
      webSearch: false,
    },
    aliases: [],
    marketplaceAliases: [],
    deprecated: false,
    deprecationDate: null,
    successor: null,
    releaseDate: null,
    qualityScores: [],
    figures: { quality: 0.5, tokensPerSecond: 50, firstTokenMs: 500, estimated: true },
    ...fields,
  }
}

/** Returns a model of the published catalog; throws without one. */
export function modelNamed(id: string): Model {
  const model = catalog.find(item => item.id === id)
  if (model === undefined) throw new Error(`${id} is in the catalog`)
  return model
}
