/**
 * Presets: providers that need only a key, and servers that need only an address. What differs between them is data:
 * the base URL, the parameters that they take, and their models with published prices.
 */
import type { ConfiguredModel } from '../core/models/configured-models.ts'

type Parameters = NonNullable<ConfiguredModel['parameters']>

export type Preset = {
  readonly id: string
  /** Variable of the key. */
  readonly key: string
  /** Variable of the base URL. */
  readonly base: string
  /** Usual base URL; null = it must be set. */
  readonly url: string | null
  /** Name of its wire-format deviations, which apply under any base URL; absent = found by its host name. */
  readonly dialect?: 'mistral' | 'openrouter' | 'groq' | 'cerebras' | 'ollama' | 'vllm'
  /** Parameters that all of its models take. */
  readonly parameters: Parameters
  /** Empty = its models are discovered. */
  readonly models: readonly ConfiguredModel[]
  /** Where the prices come from, and the day on which they were read. */
  readonly source: string
}

/** USD per million tokens: input, output, cached input. */
function priced(input: number, output: number, cached?: number): ConfiguredModel['pricing'] {
  return {
    input_per_mtok: input,
    output_per_mtok: output,
    ...(cached !== undefined && { cached_input_per_mtok: cached }),
  }
}

/** Twice the prices in the peak hours of DeepSeek; its public holidays without a peak are not in the table. */
function withPeak(input: number, output: number, cached: number): ConfiguredModel['pricing'] {
  return {
    ...priced(input, output, cached),
    variants: [
      {
        hours_utc: ['01:00-04:00', '06:00-10:00'],
        days: ['mon', 'tue', 'wed', 'thu', 'fri'],
        ...priced(2 * input, 2 * output, 2 * cached),
      },
    ],
  }
}

const counted = { stream_options: true } as const
const million = 1_048_576
const schema = { response_format: 'json_schema' } as const
const levels = ['low', 'medium', 'high'] as const

export const presets: readonly Preset[] = [
  {
    id: 'mistral',
    key: 'MISTRAL_API_KEY',
    base: 'MISTRAL_BASE_URL',
    url: 'https://api.mistral.ai/v1',
    dialect: 'mistral',
    // It answers 422 to unknown fields, and counts tokens of streams without being asked.
    parameters: { ...schema, seed: true, pass_extras: false, parallel_tool_calls: true, prefill: false },
    source: 'docs.mistral.ai/models, 2026-10-06; list prices',
    models: [
      {
        id: 'mistral-large-4',
        pricing: priced(1.36, 4.18, 0.14),
        context_window: million,
        ...seeing(['none', 'high']),
      },
      { id: 'mistral-medium-3-5', pricing: priced(1.5, 7.5), context_window: 262_144, ...seeing(['none', 'high']) },
      { id: 'codestral-latest', pricing: priced(0.3, 0.9), context_window: 256_000 },
    ],
  },
  {
    id: 'deepseek',
    key: 'DEEPSEEK_API_KEY',
    base: 'DEEPSEEK_BASE_URL',
    url: 'https://api.deepseek.com/v1',
    parameters: { ...counted, response_format: 'json_object', prefill: false, efforts: ['low', 'high', 'max'] },
    source: 'api-docs.deepseek.com/quick_start/pricing, 2026-10-27',
    models: [
      {
        id: 'deepseek-flash',
        pricing: withPeak(0.15, 0.6, 0.003),
        context_window: 1_000_000,
        max_output_tokens: 384_000,
        capabilities: { vision: true },
      },
      {
        id: 'deepseek-v4-pro',
        pricing: withPeak(0.66, 1.98, 0.022),
        context_window: 1_000_000,
        max_output_tokens: 384_000,
      },
    ],
  },
  {
    id: 'xai',
    key: 'XAI_API_KEY',
    base: 'XAI_BASE_URL',
    url: 'https://api.x.ai/v1',
    // Its reasoning models refuse `stop` and penalties.
    parameters: { ...counted, ...schema, maximum_stops: 0, parallel_tool_calls: true, prefill: false },
    source: 'docs.x.ai/developers/pricing, 2026-09-21',
    models: [
      {
        id: 'grok-4.7',
        pricing: { ...priced(2, 6, 0.5), long_context: { above_input_tokens: 200_000, ...priced(4, 12, 1) } },
        context_window: 500_000,
        ...seeing(['low', 'medium', 'high', 'xhigh']),
      },
      {
        id: 'grok-4.3',
        pricing: { ...priced(1.25, 2.5, 0.2), long_context: { above_input_tokens: 200_000, ...priced(2.5, 5, 0.4) } },
        context_window: 1_000_000,
        max_output_tokens: 30_000,
        capabilities: { vision: true },
      },
    ],
  },
  {
    id: 'groq',
    key: 'GROQ_API_KEY',
    base: 'GROQ_BASE_URL',
    url: 'https://api.groq.com/openai/v1',
    dialect: 'groq',
    // It refuses names of messages, and a schema beside tools or in a stream.
    parameters: {
      ...counted,
      output_cap_field: 'max_completion_tokens',
      pass_extras: false,
      parallel_tool_calls: true,
    },
    source: 'groq.com/pricing, 2026-08-29',
    models: [
      gptOss('openai/gpt-oss-120b', priced(0.15, 0.6, 0.075), 65_536),
      gptOss('openai/gpt-oss-20b', priced(0.075, 0.3, 0.0375), 65_536),
      {
        id: 'qwen/qwen3.8-27b',
        pricing: priced(0.8, 4, 0.4),
        context_window: 131_042,
        max_output_tokens: 16_384,
        capabilities: { vision: true },
      },
    ],
  },
  {
    id: 'openrouter',
    key: 'OPENROUTER_API_KEY',
    base: 'OPENROUTER_BASE_URL',
    url: 'https://openrouter.ai/api/v1',
    dialect: 'openrouter',
    parameters: { ...counted, parallel_tool_calls: true },
    source: 'openrouter.ai/models, 2026-09-23',
    models: [
      {
        id: 'moonshotai/kimi-k3',
        pricing: priced(3, 15, 0.3),
        context_window: million,
        ...seeing(['low', 'high', 'max']),
      },
      {
        id: 'deepseek/deepseek-v4.1-flash',
        pricing: priced(0.3, 1.2, 0.006),
        context_window: million,
        ...seeing(['low', 'high', 'max']),
      },
    ],
  },
  {
    id: 'together',
    key: 'TOGETHER_API_KEY',
    base: 'TOGETHER_BASE_URL',
    url: 'https://api.together.xyz/v1',
    parameters: { ...counted, ...schema },
    source: 'together.ai/pricing, 2026-09-26',
    models: [
      {
        id: 'deepseek-ai/DeepSeek-V4.1-Flash',
        pricing: priced(0.3, 1.2, 0.006),
        context_window: 1_000_000,
        ...seeing(['low', 'high', 'max']),
      },
      {
        id: 'moonshotai/Kimi-K3',
        pricing: priced(3, 15, 0.3),
        context_window: million,
        ...seeing(['low', 'medium', 'high', 'max']),
      },
      {
        id: 'zai-org/GLM-5.3',
        pricing: priced(1.4, 4.4, 0.26),
        context_window: 1_048_575,
        max_output_tokens: 262_144,
        parameters: { efforts: ['low', 'high', 'max'] },
      },
    ],
  },
  {
    id: 'fireworks',
    key: 'FIREWORKS_API_KEY',
    base: 'FIREWORKS_BASE_URL',
    url: 'https://api.fireworks.ai/inference/v1',
    parameters: { ...counted, ...schema },
    source: 'docs.fireworks.ai/serverless/pricing, 2026-09-26',
    models: [
      {
        id: 'accounts/fireworks/models/glm-5p3',
        pricing: priced(1.4, 4.4, 0.26),
        context_window: 1_048_573,
        max_output_tokens: 262_144,
        parameters: { efforts: ['low', 'high', 'max'] },
      },
      {
        id: 'accounts/fireworks/models/deepseek-v4-pro-0813',
        pricing: priced(1.32, 3.96, 0.044),
        context_window: million,
        parameters: { efforts: ['low', 'high', 'max'] },
      },
      gptOss('accounts/fireworks/models/gpt-oss-120b', priced(0.15, 0.6, 0.01), 32_768),
    ],
  },
  {
    id: 'cerebras',
    key: 'CEREBRAS_API_KEY',
    base: 'CEREBRAS_BASE_URL',
    url: 'https://api.cerebras.ai/v1',
    dialect: 'cerebras',
    // It answers 400 to fields that it does not know.
    parameters: { ...counted, ...schema, output_cap_field: 'max_completion_tokens', pass_extras: false },
    source: 'inference-docs.cerebras.ai, 2026-09-03',
    models: [
      {
        id: 'qwen-3.8-27b',
        pricing: priced(0.99, 1.49),
        context_window: 65_536,
        max_output_tokens: 32_768,
        ...seeing(['none', 'low', 'medium', 'high']),
      },
    ],
  },
  { ...local('ollama', 'OLLAMA'), dialect: 'ollama' },
  { ...local('vllm', 'VLLM'), dialect: 'vllm' },
  local('lm-studio', 'LM_STUDIO'),
]

/** Returns the preset of a local server, whose models cost nothing and are discovered. */
function local(id: string, prefix: string): Preset {
  return {
    id,
    key: `${prefix}_API_KEY`,
    base: `${prefix}_BASE_URL`,
    url: null,
    parameters: { ...counted, ...schema, seed: true, penalties: true },
    source: 'the operator’s own server: no price',
    models: [],
  }
}

function seeing(efforts: NonNullable<Parameters['efforts']>): Pick<ConfiguredModel, 'capabilities' | 'parameters'> {
  return { capabilities: { vision: true }, parameters: { efforts } }
}

function gptOss(id: string, pricing: ConfiguredModel['pricing'], max_output_tokens: number): ConfiguredModel {
  return { id, pricing, context_window: 131_072, max_output_tokens, parameters: { efforts: [...levels] } }
}

/** Returns the models of a preset, with its parameters. */
export function presetModels({ models, parameters }: Preset): readonly ConfiguredModel[] {
  return models.map(row => ({ ...row, parameters: { ...parameters, ...row.parameters } }))
}

/** Returns a model that a server lists. `contextWindow` in tokens; null = it does not say. */
export function discoveredModel({ parameters }: Preset, id: string, contextWindow: number | null): ConfiguredModel {
  return {
    id,
    pricing: priced(0, 0),
    ...(contextWindow !== null && { context_window: contextWindow }),
    // A server in the operator's network would fetch image URLs from there.
    capabilities: { image_urls: false },
    parameters,
  }
}
