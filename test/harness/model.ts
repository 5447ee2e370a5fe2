import { reasoningEfforts } from '../../src/core/chat/chat.ts'
import type { Model, ParameterRules } from '../../src/core/models/models.ts'
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

/** Rules of a Claude model that reasons within a budget. */
export const budgetRules: ParameterRules = {
  sampling: 'accepted_when_thinking_disabled',
  maximumTemperature: 1,
  temperatureWithTopP: false,
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumTopLogprobs: 0,
  maximumStops: 8,
  maximumChoices: 1,
  outputCapField: 'max_tokens',
  systemRole: 'system',
  forcedToolChoice: 'rejected_when_thinking',
  toolsNeedEffortNone: false,
  prefill: true,
  efforts: [],
  reasoning: { kind: 'budget', minimum: 1_024, maximum: 63_999, canDisable: true },
  streamOptions: false,
  parallelToolCalls: true,
  responseFormat: 'json_schema',
  passExtras: false,
}

/** Rules of a model of OpenAI that accepts every parameter. */
export const generousRules: ParameterRules = {
  sampling: 'accepted',
  maximumTemperature: 2,
  temperatureWithTopP: true,
  penalties: true,
  seed: true,
  logitBias: true,
  logprobs: true,
  maximumTopLogprobs: 20,
  maximumStops: 4,
  maximumChoices: 8,
  outputCapField: 'max_completion_tokens',
  systemRole: 'system',
  forcedToolChoice: 'accepted',
  toolsNeedEffortNone: false,
  prefill: true,
  efforts: reasoningEfforts,
  reasoning: { kind: 'effort' },
  streamOptions: true,
  parallelToolCalls: true,
  responseFormat: 'json_schema',
  passExtras: true,
}
