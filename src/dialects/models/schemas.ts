/** Schemas of the lists of models, in the gateway's own form and in the compatible one. */
import { type Static, Type } from '@sinclair/typebox'
import { attemptFailures, healthStates } from '../../core/chat/attempts.ts'
import { reasoningEfforts } from '../../core/chat/chat.ts'
import { tiers } from '../../core/models/models.ts'
import { weekdays } from '../../core/models/pricing.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, list, modelName, namedSchema, orNull, share, text, time } from '../../http/schemas.ts'

const pricePerMillion = Type.Number({ minimum: 0, description: 'US dollars per million tokens', examples: [1.25] })
const prices = {
  input_per_mtok: pricePerMillion,
  output_per_mtok: pricePerMillion,
  cached_input_per_mtok: orNull(pricePerMillion),
  cache_write_per_mtok: orNull(pricePerMillion),
}
const rates = { ...prices, long_context: orNull(strictObject({ above_input_tokens: count, ...prices })) }
const date = Type.String({ description: 'a UTC day, or a month if the day is unknown', examples: ['2026-05-05'] })
const measured = Type.Number({ minimum: 0, examples: [61.4] })

const modelShape = namedSchema('Model', {
  id: text('gpt-5.5'),
  name: modelName,
  provider: text('openai'),
  display_name: text('GPT-5.5'),
  tier: oneOf(tiers),
  pricing: strictObject({
    currency: Type.Literal('USD'),
    ...rates,
    variants: Type.Array(
      strictObject({
        service_tier: orNull(text('flex', 'as the provider names it; null = each')),
        hours_utc: orNull(Type.Array(text('01:00-04:00'), { description: 'null = all' })),
        days: orNull(Type.Array(oneOf(weekdays), { description: 'UTC days on which the hours begin; null = all' })),
        ...rates,
      }),
      { description: 'the first one whose conditions all hold replaces the other prices' },
    ),
  }),
  context_window: count,
  max_input_tokens: orNull(count),
  max_output_tokens: count,
  capabilities: strictObject({
    vision: Type.Boolean(),
    files: Type.Boolean(),
    tools: Type.Boolean(),
    json_schema: Type.Boolean(),
    reasoning: Type.Boolean(),
    streaming: Type.Boolean(),
    web_search: Type.Boolean(),
  }),
  reasoning_efforts: Type.Array(oneOf(reasoningEfforts)),
  aliases: Type.Array(text('gpt-5.5-2026-03-05')),
  deprecated: Type.Boolean(),
  deprecation_date: orNull(date),
  status: oneOf(['current', 'deprecated', 'retired']),
  successor: orNull(modelName),
  release_date: orNull(date),
  quality_scores: Type.Array(
    strictObject({
      metric: oneOf(['artificial_analysis_intelligence_index', 'livebench_global_average', 'arena_text_score']),
      value: measured,
      variant: Type.String(),
      source: Type.String(),
      date,
      attribution: Type.String(),
    }),
  ),
  speed: orNull(
    strictObject({
      output_tokens_per_second: measured,
      time_to_first_token_seconds: measured,
      variant: Type.String(),
      source: Type.String(),
      date,
      attribution: Type.String(),
    }),
  ),
  routing: strictObject(
    {
      quality: share,
      output_tokens_per_second: measured,
      time_to_first_token_seconds: measured,
      estimated: Type.Boolean({ description: 'estimated from a related model, without a public figure of its own' }),
    },
    { description: 'figures that automatic routing uses' },
  ),
  simulated: Type.Optional(Type.Boolean({ description: 'the provider is simulated here' })),
})
export type ShownModel = Static<typeof modelShape>

const embeddingModelSchema = namedSchema('EmbeddingModel', {
  id: text('text-embedding-3-small'),
  name: Type.String({ description: '`provider/model`', examples: ['openai/text-embedding-3-small'] }),
  provider: text('openai'),
  display_name: text('Text Embedding 3 Small'),
  pricing: strictObject({ currency: Type.Literal('USD'), input_per_mtok: pricePerMillion }),
  max_input_tokens: count,
  dimensions: orNull(Type.Integer({ minimum: 1, description: 'length of a vector; null = unknown', examples: [1536] })),
  minimum_dimensions: orNull(
    Type.Integer({ minimum: 1, description: 'minimum of `dimensions`; null = the length is fixed' }),
  ),
  capabilities: strictObject({ embeddings: Type.Literal(true), dimensions: Type.Boolean() }),
  aliases: Type.Array(Type.String()),
  release_date: orNull(date),
  simulated: Type.Optional(Type.Boolean({ description: 'the provider is simulated here' })),
})
export type EmbeddingModelResponse = Static<typeof embeddingModelSchema>

export const modelListShape = namedSchema('ModelList', {
  data: Type.Array(modelShape),
  embedding_models: Type.Array(embeddingModelSchema, {
    description: 'models for `POST /v1/embeddings` only',
  }),
  attributions: Type.Record(Type.String(), Type.String(), { description: 'source of a score, by its metric' }),
})

const modelHealthShape = namedSchema('ModelHealth', {
  model: modelName,
  state: oneOf(healthStates),
  since: {
    ...orNull(time),
    description: 'when the model entered this state; null = unchanged since the gateway started',
  },
  cause: { ...orNull(oneOf(attemptFailures)), description: 'cause of its last failure; null = healthy, or unknown' },
  retry_at: {
    ...orNull(time),
    description: 'when requests may call it again, of which the first is a probe; null = now',
  },
})
export const modelHealthListShape = list(modelHealthShape)
export type ModelHealth = Static<typeof modelHealthShape>

const compatibleFields = {
  id: text('gpt-5.5'),
  object: Type.Literal('model'),
  created: Type.Integer({ minimum: 0, description: 'Unix seconds; 0 = not published', examples: [1_772_668_800] }),
  owned_by: text('openai'),
  shutdown_date: orNull(date),
}
/** Keys of Anthropic's form, in addition to those of OpenAI's. */
const anthropicFields = {
  type: Type.Literal('model'),
  display_name: text('GPT-5.5'),
  created_at: Type.String({ format: 'date-time', examples: ['2026-03-05T00:00:00Z'] }),
  max_input_tokens: orNull(count),
  max_tokens: orNull(count),
  capabilities: Type.Null(),
}
const forAnthropic = { description: "in Anthropic's form" } as const

export type CompatibleModel = Static<ReturnType<typeof strictObject<typeof compatibleFields>>>
export type AnthropicModel = CompatibleModel & Static<ReturnType<typeof strictObject<typeof anthropicFields>>>

export const geminiModelSchema = namedSchema('GeminiModel', {
  name: text('models/gpt-5.5'),
  baseModelId: text('gpt-5.5'),
  version: text('2026-03-05'),
  displayName: text('GPT-5.5'),
  description: Type.String(),
  inputTokenLimit: count,
  outputTokenLimit: count,
  supportedGenerationMethods: Type.Array(text('generateContent')),
})
export type GeminiModel = Static<typeof geminiModelSchema>

export const compatibleModelShape = namedSchema('CompatibleModel', {
  ...compatibleFields,
  ...Type.Partial(Type.Object(anthropicFields)).properties,
})
/** Values of one entry of Codex's catalog: those that a model of the gateway can have. */
const codexModelSchema = namedSchema('CodexModel', {
  slug: Type.String({ description: 'model name to send', examples: ['anthropic/claude-sonnet-5-5'] }),
  display_name: text('GPT-5.5'),
  description: Type.String(),
  default_reasoning_level: orNull(oneOf(reasoningEfforts)),
  supported_reasoning_levels: Type.Array(strictObject({ effort: oneOf(reasoningEfforts), description: Type.String() })),
  shell_type: Type.Literal('unified_exec'),
  visibility: Type.Literal('list'),
  supported_in_api: Type.Literal(true),
  priority: Type.Integer({ minimum: 0, description: 'place in the list' }),
  availability_nux: Type.Null(),
  upgrade: Type.Null(),
  base_instructions: Type.String({ description: 'system prompt of the agent' }),
  supports_reasoning_summaries: Type.Boolean(),
  supports_reasoning_summary_parameter: Type.Boolean(),
  default_reasoning_summary: Type.Literal('none'),
  support_verbosity: Type.Literal(false),
  default_verbosity: Type.Null(),
  apply_patch_tool_type: Type.Literal('freeform'),
  web_search_tool_type: Type.Literal('text'),
  truncation_policy: strictObject({ mode: Type.Literal('tokens'), limit: count }),
  supports_parallel_tool_calls: Type.Literal(true),
  supports_image_detail_original: Type.Literal(false),
  context_window: count,
  max_context_window: count,
  effective_context_window_percent: count,
  experimental_supported_tools: Type.Array(Type.String()),
  input_modalities: Type.Array(oneOf(['text', 'image'])),
  supports_search_tool: Type.Literal(false),
})
export type CodexModel = Static<typeof codexModelSchema>

export const compatibleModelListShape = namedSchema('CompatibleModelList', {
  object: Type.Literal('list'),
  data: Type.Array(compatibleModelShape),
  has_more: Type.Optional(Type.Boolean(forAnthropic)),
  first_id: Type.Optional(Type.Union([Type.String(), Type.Null()], forAnthropic)),
  last_id: Type.Optional(Type.Union([Type.String(), Type.Null()], forAnthropic)),
  models: Type.Optional(
    Type.Array(codexModelSchema, { description: "in Codex's form: `gateway-ai` and the models that can call tools" }),
  ),
})

export const modelListQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, ...forAnthropic })),
  after_id: Type.Optional(Type.String(forAnthropic)),
  before_id: Type.Optional(Type.String(forAnthropic)),
  client_version: Type.Optional(Type.String({ description: 'sent by Codex' })),
})

export const geminiModelListShape = namedSchema('GeminiModelList', {
  models: Type.Array(geminiModelSchema),
  nextPageToken: Type.Optional(text('50')),
})
export const geminiModelListQuery = Type.Object({
  pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  pageToken: Type.Optional(Type.String()),
})
