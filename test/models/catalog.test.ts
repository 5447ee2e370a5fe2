import { describe, expect, test } from 'bun:test'
import { blendedPrice, fullName, getTier, type Model, type ReasoningControl } from '../../src/core/models/models.ts'
import type { Prices } from '../../src/core/models/pricing.ts'
import { attributions, catalog, sources } from '../../src/models/catalog.ts'
import { testNeeding } from '../harness/needs.ts'

const shared = Bun.file(new URL('../../../shared/catalog.json', import.meta.url))

describe('catalog', () => {
  testNeeding('catalog', 'equals the shared table in every field', async () => {
    const table = await shared.json()
    expect(JSON.parse(JSON.stringify(sources))).toEqual(table.sources)
    expect(catalog.map(asRow)).toEqual(table.models.map(getRow))
  })

  test('contains 23 models with distinct names: 8, 8 and 7 of three providers', () => {
    expect(new Set(catalog.map(fullName)).size).toBe(23)
    const count = (provider: string) => catalog.filter(model => model.provider === provider).length
    expect([count('openai'), count('anthropic'), count('google')]).toEqual([8, 8, 7])
  })

  test('has tiers that follow from the price', () => {
    for (const model of catalog) expect([model.id, model.tier]).toEqual([model.id, getTier(model.pricing)])
  })

  test('names a current successor of the same provider, not more expensive, for every deprecated model', () => {
    for (const model of catalog) {
      const successor = catalog.find(other => fullName(other) === model.successor)
      expect(model.successor !== null).toBe(model.deprecated)
      if (successor === undefined) continue
      expect([successor.provider, successor.deprecated]).toEqual([model.provider, false])
      expect(blendedPrice(successor.pricing)).toBeLessThanOrEqual(blendedPrice(model.pricing))
    }
  })

  test('has prices that never decrease with length, and cache reads that cost at most the input price', () => {
    for (const { pricing } of catalog) {
      expect(pricing.cachedInput ?? pricing.input).toBeLessThanOrEqual(pricing.input)
      expect(pricing.longContext?.input ?? Infinity).toBeGreaterThan(pricing.input)
    }
  })

  test('has quality from 0 to 1 in the order of the index, and of LiveBench for models with both', () => {
    for (const { figures } of catalog) {
      expect(figures.quality).toBeGreaterThan(0)
      expect(figures.quality).toBeLessThanOrEqual(1)
    }
    expectSameOrder('artificial_analysis_intelligence_index', () => true)
    expectSameOrder(
      'livebench_global_average',
      model => findScore(model, 'artificial_analysis_intelligence_index') === null,
    )
  })

  test('marks quality as estimated exactly when the model has no score of its own', () => {
    for (const model of catalog) expect(model.figures.estimated).toBe(model.qualityScores.length === 0)
  })

  test('uses a metric that routing reads for every model', () => {
    for (const { qualityScores } of catalog) {
      const metrics = qualityScores.map(score => score.metric)
      expect(metrics.length === 0 || metrics.some(metric => metric !== 'arena_text_score')).toBe(true)
    }
  })

  test('expects models without reasoning to start earlier than all others', () => {
    const plain = catalog.filter(model => !model.capabilities.reasoning)
    const others = catalog.filter(model => model.capabilities.reasoning)
    for (const model of plain)
      for (const other of others) expect(model.figures.firstTokenMs).toBeLessThan(other.figures.firstTokenMs)
  })

  test('credits Artificial Analysis by name', () => {
    expect(attributions.artificial_analysis_intelligence_index).toContain('Artificial Analysis')
  })
})

function expectSameOrder(metric: Model['qualityScores'][number]['metric'], among: (model: Model) => boolean): void {
  const scored = catalog.filter(among).flatMap(model => {
    const score = findScore(model, metric)
    return score === null ? [] : [{ score, quality: model.figures.quality }]
  })
  expect(scored.length).toBeGreaterThan(1)
  const byScore = scored.toSorted((item, other) => item.score - other.score)
  expect(byScore).toEqual(scored.toSorted((item, other) => item.quality - other.quality))
}

function findScore(model: Model, metric: string): number | null {
  const values = model.qualityScores.filter(score => score.metric === metric).map(score => score.value)
  return values.length === 0 ? null : Math.max(...values)
}

/** Converts a model to the shared table's format, as far as the two overlap. */
function asRow(model: Model) {
  const { evidence } = model
  return {
    id: model.id,
    provider: model.provider,
    display_name: model.displayName,
    tier: model.tier,
    prices: pricesRow(model.pricing),
    long_context: model.pricing.longContext && {
      above_input_tokens: model.pricing.longContext.aboveInputTokens,
      ...pricesRow(model.pricing.longContext),
    },
    pricing_source: model.pricingSource.split(', ')[0],
    context_window: model.contextWindow,
    max_input_tokens: model.maxInputTokens,
    max_output_tokens: model.maxOutputTokens,
    limits_source: evidence?.limitsSource,
    capabilities: {
      vision: model.capabilities.vision,
      tools: model.capabilities.tools,
      json_schema: model.capabilities.jsonSchema,
      reasoning: model.capabilities.reasoning,
      streaming: model.capabilities.streaming,
      web_search: model.capabilities.webSearch,
    },
    capability_notes: evidence?.notes,
    reasoning_efforts: [...model.parameters.efforts],
    reasoning: model.parameters.reasoning as ReasoningControl,
    forced_tool_choice_rejected: model.parameters.forcedToolChoice === 'rejected',
    sampling: model.parameters.sampling,
    aliases: [...model.aliases],
    marketplace_aliases: [...model.marketplaceAliases],
    deprecated: model.deprecated,
    deprecation_date: model.deprecationDate,
    deprecation_source: evidence?.deprecationSource,
    release_date: model.releaseDate,
    release_date_basis: evidence?.releaseDateBasis,
    quality_scores: model.qualityScores.map(score => ({ ...score })),
    speed: evidence?.speed ? speedRow(evidence.speed) : null,
    nearest_scored_relative: evidence?.nearestRelative
      ? {
          ...evidence.nearestRelative,
          speed: evidence.nearestRelative.speed ? speedRow(evidence.nearestRelative.speed) : null,
        }
      : null,
  }
}

type SharedPrices = Readonly<Record<keyof ReturnType<typeof pricesRow>, number | null>>
/** Fields that the comparison inspects; the rest is compared directly. */
type SharedRow = Readonly<Record<string, unknown>> & {
  readonly provider: string
  readonly pricing: SharedPrices & {
    readonly source: string
    readonly long_context: (SharedPrices & { readonly above_input_tokens: number }) | null
  }
  readonly max_output_tokens: number
  readonly reasoning_efforts: readonly string[] | null
  readonly thinking_control: string | null
  readonly nearest_scored_relative: Readonly<Record<string, unknown>> | null
}

function getRow(row: SharedRow): { readonly [field in keyof ReturnType<typeof asRow>]: unknown } {
  const { pricing } = row
  const prices = ({ input_per_mtok, output_per_mtok, cached_input_per_mtok, cache_write_per_mtok }: SharedPrices) => ({
    input_per_mtok,
    output_per_mtok,
    cached_input_per_mtok,
    cache_write_per_mtok,
  })
  return {
    id: row.id,
    provider: row.provider,
    display_name: row.display_name,
    tier: row.tier,
    prices: prices(pricing),
    long_context: pricing.long_context && {
      above_input_tokens: pricing.long_context.above_input_tokens,
      ...prices(pricing.long_context),
    },
    pricing_source: pricing.source,
    context_window: row.context_window,
    max_input_tokens: row.max_input_tokens,
    max_output_tokens: row.max_output_tokens,
    limits_source: row.limits_source,
    capabilities: row.capabilities,
    capability_notes: row.capability_notes,
    // Older models of Anthropic and Google have a token budget instead of levels; gpt-4.1 has neither.
    reasoning_efforts: row.reasoning_efforts ?? [],
    reasoning: getReasoning(row),
    forced_tool_choice_rejected: String(row.capability_notes).startsWith('forced tool_choice'),
    sampling: row.sampling_parameters === 'unknown' ? 'rejected' : row.sampling_parameters,
    aliases: row.aliases,
    marketplace_aliases: row.marketplace_aliases,
    deprecated: row.deprecated,
    deprecation_date: row.deprecation_date,
    deprecation_source: row.deprecation_source,
    release_date: row.release_date,
    release_date_basis: row.release_date_basis,
    quality_scores: row.quality_scores,
    speed: row.speed,
    nearest_scored_relative: row.nearest_scored_relative && {
      ...row.nearest_scored_relative,
      speed: row.nearest_scored_relative.speed ?? null,
    },
  }
}

/** Converts the rules that the table describes in text. */
function getReasoning(row: SharedRow): ReasoningControl {
  const words = row.thinking_control ?? ''
  if (row.provider === 'openai') return { kind: row.reasoning_efforts === null ? 'none' : 'effort' }
  const budget = /^thinkingBudget (\d+)\.\.(\d+); (0 disables|cannot be disabled)$/.exec(words)
  if (budget !== null) {
    const canDisable = budget[3] === '0 disables'
    return { kind: 'token_budget', minimum: Number(budget[1]), maximum: Number(budget[2]), canDisable }
  }
  if (words.startsWith('thinkingLevel')) return { kind: 'level' }
  if (words.startsWith('off by default'))
    return { kind: 'budget', minimum: 1_024, maximum: row.max_output_tokens - 1, canDisable: true }
  if (words.startsWith('adaptive or between_tools')) return { kind: 'adaptive', off: 'between_tools' }
  return { kind: 'adaptive', off: words.startsWith('always') ? 'lowest_effort' : 'disabled' }
}

function pricesRow(prices: Prices) {
  return {
    input_per_mtok: prices.input,
    output_per_mtok: prices.output,
    cached_input_per_mtok: prices.cachedInput,
    cache_write_per_mtok: prices.cacheWrite,
  }
}

function speedRow(speed: {
  tokensPerSecond: number
  firstTokenSeconds: number
  variant: string
  source: string
  date: string
}) {
  return {
    output_tokens_per_second: speed.tokensPerSecond,
    time_to_first_token_seconds: speed.firstTokenSeconds,
    variant: speed.variant,
    source: speed.source,
    date: speed.date,
  }
}
