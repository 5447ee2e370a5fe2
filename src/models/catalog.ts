/**
 * The model catalog, read from `catalog.json`. Facts and figures come from public sources, each named by its key in
 * `sources`; null = no public figure exists. The project decides only the choice of models, the tiers, the successors and
 * the stand-ins. Where scores of Artificial Analysis are displayed, the license requires the credit in `attributions`.
 */

import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { reasoningEfforts } from '../core/chat/chat.ts'
import {
  blendedPrice,
  type MeasuredSpeed,
  type Model,
  type ParameterRules,
  type QualityScore,
  type RoutingFigures,
  tiers,
} from '../core/models/models.ts'
import { type Pricing, priceVariant, scaledRates } from '../core/models/pricing.ts'
import { policySchema } from '../core/policy/constraints.ts'
import { oneOf, strictObject } from '../core/validation/validate.ts'
import file from './catalog.json'

const text = Type.String()
const flag = Type.Boolean()
const number = Type.Number()
const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])
const object = <P extends TProperties>(properties: P) => strictObject(properties)

/** Why a row departs from the rule. For readers of the file only. */
const why = Type.Optional(text)
const prices = { input: number, output: number, cachedInput: orNull(number), cacheWrite: orNull(number) }
const budget = { minimum: number, maximum: number, canDisable: flag }

const parameterRules = {
  sampling: oneOf(['accepted', 'rejected', 'only_with_effort_none', 'accepted_when_thinking_disabled']),
  maximumTemperature: number,
  temperatureWithTopP: flag,
  penalties: flag,
  seed: flag,
  logitBias: flag,
  logprobs: flag,
  maximumTopLogprobs: number,
  maximumStops: number,
  maximumChoices: number,
  outputCapField: oneOf(['max_completion_tokens', 'max_tokens']),
  systemRole: oneOf(['system', 'developer']),
  forcedToolChoice: oneOf(['accepted', 'rejected', 'rejected_when_thinking']),
  toolsNeedEffortNone: flag,
  prefill: flag,
  efforts: Type.Array(oneOf(reasoningEfforts)),
  reasoning: Type.Union([
    object({ kind: oneOf(['none', 'effort', 'level']) }),
    object({ kind: Type.Literal('adaptive'), off: oneOf(['disabled', 'between_tools', 'lowest_effort']) }),
    object({ kind: oneOf(['budget', 'token_budget']), ...budget }),
  ]),
  streamOptions: flag,
  parallelToolCalls: flag,
  responseFormat: oneOf(['json_schema', 'json_object', 'none']),
  passExtras: flag,
}

const metric = oneOf(['artificial_analysis_intelligence_index', 'livebench_global_average', 'arena_text_score'])
const sourced = { variant: text, source: text, date: text }
const score = { metric, value: number, ...sourced }
const speed = orNull(object({ tokensPerSecond: number, firstTokenSeconds: number, ...sourced }))

const rowSchema = object({
  id: text,
  why,
  provider: text,
  displayName: text,
  tier: oneOf(tiers),
  pricing: object({ ...prices, longContext: orNull(object({ aboveInputTokens: number, ...prices })) }),
  pricingSource: text,
  contextWindow: number,
  maxInputTokens: orNull(number),
  maxOutputTokens: number,
  /**
   * All models accept images, and PDFs as text and page images: OpenAI "File inputs", Anthropic "PDF support", Gemini
   * "Document understanding".
   */
  capabilities: object({
    vision: flag,
    imageUrls: flag,
    files: flag,
    tools: flag,
    jsonSchema: flag,
    reasoning: flag,
    streaming: flag,
    webSearch: flag,
  }),
  /** The set of rules that `parameters` changes. */
  rules: text,
  parameters: Type.Partial(object(parameterRules)),
  aliases: Type.Array(text),
  marketplaceAliases: Type.Array(text),
  /** Exceptions from the guarantees of its provider, with their source. */
  policy: Type.Optional(policySchema),
  policySource: Type.Optional(text),
  deprecated: flag,
  deprecationDate: orNull(text),
  successor: orNull(text),
  releaseDate: text,
  qualityScores: Type.Array(object(score)),
  /** The model whose figures are used if neither this one nor its relative has a public score, chosen by the project. */
  standIn: orNull(text),
  evidence: object({
    limitsSource: text,
    deprecationSource: orNull(text),
    releaseDateBasis: text,
    notes: orNull(text),
    speed,
    nearestRelative: orNull(object({ id: text, ...score, speed })),
  }),
})

const promptCache = object({
  why: text,
  /** Shorter prompts are not cached, and a cached beginning is a multiple of the step. */
  leastTokens: number,
  stepTokens: number,
  /** After the last use. */
  keptMinutes: number,
  /** Only marked input is cached. */
  isMarked: flag,
})

const fileSchema = object({
  /** The date (UTC) of this catalog's data. */
  date: text,
  /** Names of the sources by key. */
  sources: Type.Record(text, object({ what: text, date: text })),
  /** Credits to display beside a score, by metric. The first is a condition of that source's license. */
  attributions: object({
    artificial_analysis_intelligence_index: text,
    livebench_global_average: text,
    arena_text_score: text,
  }),
  /** How a provider caches prompts. Other providers are taken to cache like OpenAI. */
  promptCaches: object({ openai: promptCache, anthropic: promptCache, google: promptCache }),
  rules: Type.Record(text, object({ why, ...parameterRules })),
  models: Type.Array(rowSchema),
})

type CatalogRow = Static<typeof rowSchema>

const { date, sources, attributions, promptCaches, rules, models: rows } = checked(file)

function checked(value: unknown): Static<typeof fileSchema> {
  if (Value.Check(fileSchema, value)) return value
  const problem = Value.Errors(fileSchema, value).First()
  throw new Error(`catalog.json: ${problem?.path}: ${problem?.message}`)
}

export { attributions, date as catalogueDate, sources }

/** Returns how a provider caches prompts. */
export function getPromptCache(provider: string): Static<typeof promptCache> {
  return provider === 'anthropic' || provider === 'google' ? promptCaches[provider] : promptCaches.openai
}

/** The intelligence index that counts as quality 1: slightly above the best published one, 57.6. */
const bestIndex = 60

/**
 * Assumption: a model without reasoning starts to answer at once, but no source publishes its time to the first token.
 */
const firstTokenMsWithoutReasoning = 1_000

const toIndex = indexByLiveBench(rows)

/** The 23 models in display order: by provider, most expensive line first. */
export const catalog: readonly Model[] = rows.map(row => {
  const { why: _why, rules: _rules, standIn: _standIn, policySource: _policySource, policy, ...model } = row
  const parameters = getParameters(row)
  return {
    ...model,
    ...(policy === undefined ? {} : { policy }),
    parameters,
    pricing: pricingWithTiers(row, parameters),
    pricingSource: `${row.pricingSource}, ${date}`,
    figures: getFigures(row),
  }
})

function getParameters({ id, rules: name, parameters }: CatalogRow): ParameterRules {
  const set = rules[name]
  if (set === undefined) throw new Error(`catalog: ${id} names unknown rules: ${name}`)
  const { why: _why, ...shared } = set
  return { ...shared, ...parameters }
}

/** OpenAI serves its reasoning models in the tier `flex` at half the usual prices. Source: its pricing page, "Flex". */
function pricingWithTiers({ provider, pricing }: CatalogRow, { reasoning }: ParameterRules): Pricing {
  if (provider !== 'openai' || reasoning.kind !== 'effort') return pricing
  const flex = scaledRates(pricing, price => price / 2)
  return { ...pricing, variants: [priceVariant({ serviceTier: 'flex' }, flex)] }
}

/**
 * Returns routing figures on one scale from metrics that are not comparable directly. Quality is the Artificial
 * Analysis index over `bestIndex` at the highest published effort; without one, the best LiveBench average mapped by
 * the regression line over models with both. Arena's Elo is older and measures preference, so it is displayed but not
 * used. Quality and time to first token thus describe the highest published effort; measurements of live traffic
 * replace them.
 */
function getFigures(row: CatalogRow): RoutingFigures {
  const own = indexOf(row.qualityScores)
  const index = own ?? relativeIndex(row)
  const speed = row.evidence.speed ?? nearestSpeed(row)
  return {
    quality: Math.min(1, Math.max(0, index / bestIndex)),
    tokensPerSecond: speed.tokensPerSecond,
    firstTokenMs: row.capabilities.reasoning ? speed.firstTokenSeconds * 1000 : firstTokenMsWithoutReasoning,
    estimated: own === null,
  }
}

function relativeIndex(row: CatalogRow): number {
  const relative = row.evidence.nearestRelative
  const published = relative === null ? null : indexOf([relative])
  if (published !== null) return published
  const standIn = rows.find(({ id }) => id === row.standIn)
  if (standIn === undefined) throw new Error(`catalog: ${row.id} has no score, no scored relative and no stand-in`)
  return indexOf(standIn.qualityScores) ?? relativeIndex(standIn)
}

/**
 * Returns the speed of the model's predecessor, else of the model of its provider with the nearest price ratio and a
 * known speed.
 */
function nearestSpeed(row: CatalogRow): MeasuredSpeed {
  const own = row.evidence.nearestRelative?.speed
  if (own) return own
  const distance = (other: CatalogRow) => Math.abs(Math.log(blendedPrice(other.pricing) / blendedPrice(row.pricing)))
  const known = rows
    .filter(other => other.provider === row.provider)
    .flatMap(other => {
      const speed = other.evidence.speed ?? other.evidence.nearestRelative?.speed
      return speed ? [{ speed, distance: distance(other) }] : []
    })
    .sort((item, other) => item.distance - other.distance)
  const nearest = known[0]
  if (nearest === undefined) throw new Error(`catalog: no speed is known of any model of ${row.provider}`)
  return nearest.speed
}

/** Returns the best score on the index scale; null = neither metric has one. */
function indexOf(scores: readonly QualityScore[]): number | null {
  const published = best(scores, 'artificial_analysis_intelligence_index')
  if (published !== null) return published
  const average = best(scores, 'livebench_global_average')
  return average === null ? null : toIndex(average)
}

/** Returns a least-squares line over the models with both metrics. It rises, so the order within LiveBench is kept. */
function indexByLiveBench(scored: readonly Pick<Model, 'qualityScores'>[]): (average: number) => number {
  const pairs = scored.flatMap(({ qualityScores }) => {
    const index = best(qualityScores, 'artificial_analysis_intelligence_index')
    const average = best(qualityScores, 'livebench_global_average')
    return index === null || average === null ? [] : [{ index, average }]
  })
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const averageMean = mean(pairs.map(pair => pair.average))
  const indexMean = mean(pairs.map(pair => pair.index))
  const together = mean(pairs.map(pair => (pair.average - averageMean) * (pair.index - indexMean)))
  const slope = together / mean(pairs.map(pair => (pair.average - averageMean) ** 2))
  return average => indexMean + slope * (average - averageMean)
}

/**
 * Returns the best score of a metric. A score applies to one reasoning effort; the highest effort is the one that all
 * sources publish.
 */
function best(scores: readonly QualityScore[], metric: QualityScore['metric']): number | null {
  const values = scores.filter(score => score.metric === metric).map(score => score.value)
  return values.length === 0 ? null : Math.max(...values)
}
