/** Models that the operator configures: models of configured providers, and changes to the catalog. */
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { type ReasoningEffort, reasoningEfforts } from '../chat/chat.ts'
import { policySchema } from '../policy/constraints.ts'
import { storableName } from '../text/safe-name.ts'
import { oneOf, strictObject } from '../validation/validate.ts'
import { fullName, getTier, type Model, maximumNameCharacters, type ParameterRules, tiers } from './models.ts'
import { type Prices, type Pricing, priceVariant, type Rates, scaledRates, weekdays } from './pricing.ts'

/** Name of the key of a provider's variable. No stored key may have it: a name finds one key of a provider. */
export const environmentKey = 'environment'

const price = Type.Number({ minimum: 0, maximum: 1_000_000 })
const optional = <S extends TSchema>(schema: S) => Type.Optional(schema)
const flag = Type.Optional(Type.Boolean())
/** A configured model name. */
export const modelNameSchema = Type.String({
  minLength: 1,
  maxLength: maximumNameCharacters,
  pattern: storableName,
  description: `a name of at most ${maximumNameCharacters} characters without control characters`,
})
const name = modelNameSchema
const day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', maxLength: 10, description: 'a date: YYYY-MM-DD' })
const tokens = Type.Integer({ minimum: 1, maximum: 100_000_000 })

const priceFields = {
  input_per_mtok: price,
  output_per_mtok: price,
  cached_input_per_mtok: optional(price),
  cache_write_per_mtok: optional(price),
}

const rateFields = {
  ...priceFields,
  long_context: optional(
    strictObject({ above_input_tokens: Type.Integer({ minimum: 0, maximum: 100_000_000 }), ...priceFields }),
  ),
}
const time = '([01]\\d|2[0-3]):[0-5]\\d'
const hours = Type.String({
  pattern: `^${time}-${time}$`,
  maxLength: 11,
  description: 'hours of a day in UTC: HH:MM-HH:MM',
})
const variant = strictObject({
  service_tier: optional(Type.String({ minLength: 1, maxLength: 64 })),
  hours_utc: optional(Type.Array(hours, { minItems: 1, maxItems: 24 })),
  days: optional(Type.Array(oneOf(weekdays), { minItems: 1, maxItems: 7 })),
  ...rateFields,
})

/** Parameters that a configured model takes. */
export const modelParametersSchema = strictObject({
  sampling: optional(oneOf(['accepted', 'rejected', 'only_with_effort_none'])),
  maximum_temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  temperature_with_top_p: flag,
  penalties: flag,
  seed: flag,
  logit_bias: flag,
  logprobs: flag,
  maximum_top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
  maximum_stops: optional(Type.Integer({ minimum: 0, maximum: 64 })),
  maximum_choices: optional(Type.Integer({ minimum: 1, maximum: 128 })),
  output_cap_field: optional(oneOf(['max_completion_tokens', 'max_tokens'])),
  system_role: optional(oneOf(['system', 'developer'])),
  forced_tool_choice: optional(oneOf(['accepted', 'rejected', 'rejected_when_thinking'])),
  tools_need_effort_none: flag,
  responses_only: flag,
  prefill: flag,
  efforts: optional(Type.Array(oneOf(reasoningEfforts), { maxItems: reasoningEfforts.length })),
  stream_options: flag,
  parallel_tool_calls: flag,
  response_format: optional(oneOf(['json_schema', 'json_object', 'none'])),
  pass_extras: flag,
})

/**
 * A model of a configured provider (`GATEWAY_CONFIG`, `providers[].models[]`). Prices are USD per million tokens and
 * required, since a model without a known price is not routable; 0 is allowed.
 */
export const configuredModelSchema = strictObject({
  id: name,
  display_name: optional(name),
  tier: optional(oneOf(tiers)),
  pricing: strictObject({ ...rateFields, variants: optional(Type.Array(variant, { maxItems: 16 })) }),
  context_window: optional(tokens),
  max_input_tokens: optional(tokens),
  max_output_tokens: optional(tokens),
  capabilities: optional(
    strictObject({
      vision: flag,
      image_urls: flag,
      files: flag,
      tools: flag,
      json_schema: flag,
      reasoning: flag,
      streaming: flag,
      web_search: flag,
    }),
  ),
  parameters: optional(modelParametersSchema),
  aliases: optional(Type.Array(name, { maxItems: 32 })),
  policy: optional(policySchema),
  deprecated: flag,
  deprecation_date: optional(day),
  successor: optional(name),
  release_date: optional(day),
  quality: optional(Type.Number({ minimum: 0, maximum: 1 })),
  tokens_per_second: optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
  first_token_ms: optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
})

export type ConfiguredModel = Static<typeof configuredModelSchema>

/**
 * A change to a built-in provider's models (`GATEWAY_CONFIG`, `models[]`): other figures for a catalog model, or a new
 * model with its prices and the catalog model that it is `like`, whose parameters it takes.
 */
export const modelChangeSchema = strictObject({
  ...Type.Partial(configuredModelSchema).properties,
  provider: oneOf(['openai', 'anthropic', 'google']),
  id: name,
  like: optional(name),
})

export type ModelChange = Static<typeof modelChangeSchema>

/** Parameters that every OpenAI-compatible server accepts. Others are sent only if the operator enables them. */
const safeCore: ParameterRules = {
  sampling: 'accepted',
  maximumTemperature: 2,
  temperatureWithTopP: true,
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumTopLogprobs: 0,
  maximumStops: 4,
  maximumChoices: 1,
  outputCapField: 'max_tokens',
  systemRole: 'system',
  forcedToolChoice: 'accepted',
  toolsNeedEffortNone: false,
  prefill: true,
  efforts: [],
  reasoning: { kind: 'none' },
  streamOptions: false,
  parallelToolCalls: false,
  responseFormat: 'none',
  passExtras: true,
}

/** Assumed figures of a configured model without details: it works, and is chosen with caution. */
const unknownModel = {
  contextWindow: 128_000,
  maxOutputTokens: 16_384,
  quality: 0.3,
  tokensPerSecond: 50,
  firstTokenMs: 1_000,
}

/**
 * Returns a configured row as a model with defaults filled in. Only the schema has validated the row. `pricingSource` names the
 * origin of its prices.
 */
export function toModel(providerId: string, row: ConfiguredModel, pricingSource = 'config'): Model {
  const { efforts = safeCore.efforts, ...rules } = camelKeys(row.parameters ?? {})
  // A model that supports output by a JSON schema also accepts the parameter for it.
  const responseFormat =
    rules.responseFormat ?? (row.capabilities?.json_schema === true ? 'json_schema' : safeCore.responseFormat)
  const contextWindow = row.context_window ?? unknownModel.contextWindow
  return {
    id: row.id,
    provider: providerId,
    displayName: row.display_name ?? row.id,
    tier: row.tier ?? getTier(getPrices(row.pricing)),
    pricing: getPricing(row.pricing),
    pricingSource,
    contextWindow,
    maxInputTokens: row.max_input_tokens ?? null,
    maxOutputTokens: row.max_output_tokens ?? Math.min(unknownModel.maxOutputTokens, contextWindow),
    capabilities: {
      vision: false,
      imageUrls: true,
      files: false,
      tools: true,
      jsonSchema: responseFormat === 'json_schema',
      reasoning: efforts.length > 0,
      streaming: true,
      webSearch: false,
      ...camelKeys(row.capabilities ?? {}),
    },
    parameters: {
      ...safeCore,
      ...rules,
      responseFormat,
      efforts: inOrder(efforts),
      reasoning: { kind: efforts.length > 0 ? 'effort' : 'none' },
    },
    aliases: row.aliases ?? [],
    ...(row.policy === undefined ? {} : { policy: row.policy }),
    marketplaceAliases: [],
    deprecated: row.deprecated ?? row.deprecation_date !== undefined,
    deprecationDate: row.deprecation_date ?? null,
    successor: row.successor ?? null,
    releaseDate: row.release_date ?? null,
    qualityScores: [],
    figures: {
      quality: row.quality ?? unknownModel.quality,
      tokensPerSecond: row.tokens_per_second ?? unknownModel.tokensPerSecond,
      firstTokenMs: row.first_token_ms ?? unknownModel.firstTokenMs,
      estimated: row.quality === undefined,
    },
  }
}

/** Returns the problems of changes to these models, one line each with its position in the list. */
export function changeProblems(models: readonly Model[], changes: readonly ModelChange[]): readonly string[] {
  const told = new Set<string>()
  return changes.flatMap((change, at) => {
    const { provider, id, like, pricing } = change
    const say = (problem: string) => [`models.${at}: ${provider}/${id} ${problem}`]
    if (told.has(fullName(change))) return say('is there twice; make one of the two')
    told.add(fullName(change))
    if (find(models, provider, id) !== null) {
      return like === undefined ? [] : say('is in the catalog: `like` is only for new models; remove it')
    }
    return [
      ...(pricing === undefined
        ? say('is new and has no `pricing`: a model without a known price is not routable')
        : []),
      ...(like === undefined || find(models, provider, like) === null
        ? say(`is new: \`like\` must name a model of ${provider} in the catalog, whose parameters it supports`)
        : []),
    ]
  })
}

/**
 * Returns the models with the changes applied, new models last. Omits new models without a price or a `like` model.
 * `pricingSource` names the origin of changed prices.
 */
export function withChanges(
  models: readonly Model[],
  changes: readonly ModelChange[],
  pricingSource = 'config',
): readonly Model[] {
  const changed = models.map(model => {
    const change = changes.find(({ provider, id }) => find([model], provider, id) !== null)
    return change === undefined ? model : changedModel(model, change, pricingSource)
  })
  const added = changes.flatMap(change => {
    const { provider, id, like, pricing } = change
    if (find(models, provider, id) !== null || like === undefined || pricing === undefined) return []
    const relative = find(models, provider, like)
    return relative === null
      ? []
      : [changedModel(namesake(relative, id), { tier: getTier(getPrices(pricing)), ...change }, pricingSource)]
  })
  return [...changed, ...added]
}

function find(models: readonly Model[], provider: string, id: string): Model | null {
  return models.find(model => model.provider === provider && model.id === id) ?? null
}

/** Returns a copy under another name. Published evidence belongs to the original only. */
function namesake({ evidence, ...model }: Model, id: string): Model {
  return {
    ...model,
    id,
    displayName: id,
    aliases: [],
    marketplaceAliases: [],
    deprecated: false,
    deprecationDate: null,
    successor: null,
    releaseDate: null,
    qualityScores: [],
    figures: { ...model.figures, estimated: true },
  }
}

function changedModel(model: Model, change: ModelChange, pricingSource: string): Model {
  const { efforts, ...rules } = camelKeys(change.parameters ?? {})
  const { figures } = model
  return {
    ...model,
    displayName: change.display_name ?? model.displayName,
    tier: change.tier ?? model.tier,
    ...(change.pricing !== undefined && {
      pricing: mergedPricing(model, change.pricing, change.like !== undefined),
      pricingSource,
    }),
    contextWindow: change.context_window ?? model.contextWindow,
    maxInputTokens: change.max_input_tokens ?? model.maxInputTokens,
    maxOutputTokens: change.max_output_tokens ?? model.maxOutputTokens,
    capabilities: { ...model.capabilities, ...camelKeys(change.capabilities ?? {}) },
    parameters: { ...model.parameters, ...rules, ...(efforts !== undefined && { efforts: inOrder(efforts) }) },
    aliases: [...new Set([...model.aliases, ...(change.aliases ?? [])])],
    ...(change.policy === undefined ? {} : { policy: { ...model.policy, ...change.policy } }),
    deprecated: change.deprecated ?? (change.deprecation_date !== undefined || model.deprecated),
    deprecationDate: change.deprecation_date ?? model.deprecationDate,
    successor: change.successor ?? model.successor,
    releaseDate: change.release_date ?? model.releaseDate,
    figures: {
      quality: change.quality ?? figures.quality,
      tokensPerSecond: change.tokens_per_second ?? figures.tokensPerSecond,
      firstTokenMs: change.first_token_ms ?? figures.firstTokenMs,
      estimated: change.quality === undefined && figures.estimated,
    },
  }
}

/**
 * Returns the changed prices of a model. Prices that the change does not name keep their ratio to the input or output
 * price, as providers state them: a figure from before could make a cached token more expensive than a new one. Variants
 * are never kept: the changed price may be a flat one, and a variant of before would bill more or less than it. A new model has no
 * prices to keep, because those of its relative are not its own.
 */
function mergedPricing({ pricing: own }: Model, pricing: ConfiguredModel['pricing'], isNew: boolean): Pricing {
  const named = getPricing(pricing)
  if (isNew) return named
  const kept = scaledRates(own, scaledBy(own.input, named.input), scaledBy(own.output, named.output))
  return {
    input: named.input,
    output: named.output,
    cachedInput: named.cachedInput ?? kept.cachedInput,
    cacheWrite: named.cacheWrite ?? kept.cacheWrite,
    longContext: named.longContext ?? kept.longContext,
    ...(named.variants === undefined ? {} : { variants: named.variants }),
  }
}

/** Returns a price in the ratio of `to` to `from`, to 1e-8 USD. */
function scaledBy(from: number, to: number): (price: number) => number {
  return price => (from === 0 || from === to ? price : Math.round((price * to * 1e8) / from) / 1e8)
}

/** Returns configured prices as those of a model. */
export function getPricing({ variants, ...row }: ConfiguredModel['pricing']): Pricing {
  if (variants === undefined) return getRates(row)
  const withConditions = ({ service_tier, hours_utc, days, ...rates }: Static<typeof variant>) =>
    priceVariant(
      { serviceTier: service_tier ?? null, hoursUtc: hours_utc ?? null, days: days ?? null },
      getRates(rates),
    )
  return { ...getRates(row), variants: variants.map(withConditions) }
}

function getRates({ long_context: longContext, ...row }: Omit<ConfiguredModel['pricing'], 'variants'>): Rates {
  return {
    ...getPrices(row),
    longContext: longContext ? { aboveInputTokens: longContext.above_input_tokens, ...getPrices(longContext) } : null,
  }
}

function inOrder(efforts: readonly ReasoningEffort[]): readonly ReasoningEffort[] {
  return reasoningEfforts.filter(effort => efforts.includes(effort))
}

function getPrices(row: Static<ReturnType<typeof Type.Object<typeof priceFields>>>): Prices {
  return {
    input: row.input_per_mtok,
    output: row.output_per_mtok,
    cachedInput: row.cached_input_per_mtok ?? null,
    cacheWrite: row.cache_write_per_mtok ?? null,
  }
}

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : never]: T[K] }

/** Converts the configuration's `snake_case` fields to camel case. */
function camelKeys<T extends object>(row: T): CamelKeys<T> {
  const renamed = Object.entries(row).map(([key, value]) => [
    key.replace(/_(.)/g, (_, letter) => letter.toUpperCase()),
    value,
  ])
  return Object.fromEntries(renamed) as CamelKeys<T>
}
