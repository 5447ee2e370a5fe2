/**
 * Presets: providers that need only a key, and servers that need only an address. What differs between them is data in
 * `presets.json`.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type ConfiguredModel, configuredModelSchema, modelParametersSchema } from '../core/models/configured-models.ts'
import { checkedData, oneOf, strictObject } from '../core/validation/validate.ts'
import file from './presets.json'

const presetSchema = strictObject({
  id: Type.String(),
  /** Variable of the key. */
  key: Type.String(),
  /** Variable of the base URL. */
  base: Type.String(),
  /** Usual base URL; null = it must be set. */
  url: Type.Union([Type.String(), Type.Null()]),
  /** Name of its wire-format deviations, which apply under any base URL; absent = found by its host name. */
  dialect: Type.Optional(oneOf(['mistral', 'openrouter', 'groq', 'cerebras', 'ollama', 'vllm'])),
  /** Why its parameters and prices are so. */
  notes: Type.Optional(Type.String()),
  /** Parameters that all of its models take. */
  parameters: modelParametersSchema,
  /** Where the prices come from, and the day on which they were read. */
  source: Type.String(),
  /** Empty = its models are discovered. */
  models: Type.Array(configuredModelSchema),
})
export type Preset = Static<typeof presetSchema>

export const presets: readonly Preset[] = checkedData('presets.json', Type.Array(presetSchema), file)

/** Returns the models of a preset, with its parameters. */
export function presetModels({ models, parameters }: Preset): readonly ConfiguredModel[] {
  return models.map(row => ({ ...row, parameters: { ...parameters, ...row.parameters } }))
}

/** Returns a model that a server lists. `contextWindow` in tokens; null = it does not say. */
export function discoveredModel({ parameters }: Preset, id: string, contextWindow: number | null): ConfiguredModel {
  return {
    id,
    pricing: { input_per_mtok: 0, output_per_mtok: 0 },
    ...(contextWindow !== null && { context_window: contextWindow }),
    // A server in the operator's network would fetch image URLs from there.
    capabilities: { image_urls: false },
    parameters,
  }
}
