import { describe, expect, test } from 'bun:test'
import type { TokenUsage } from '../../src/core/chat/chat-events.ts'
import { buildCatalog, getNeeds, type Model, unknownPrices } from '../../src/core/models/models.ts'
import { priceVariant, scaledRates } from '../../src/core/models/pricing.ts'
import { getCost } from '../../src/core/usage/money.ts'
import { createCacheAffinity } from '../../src/learning/cache-affinity.ts'
import { catalog } from '../../src/models/catalog.ts'
import { type BaselineDeps, compareWithBaseline, findBaseline } from '../../src/request/baseline.ts'
import { movableClock } from '../database/support.ts'
import { askWith, user } from '../harness/ask.ts'
import { getCandidate } from './support.ts'

const find = (id: string): Model => {
  const model = catalog.find(item => item.id === id)
  if (model === undefined) throw new Error(`no model ${id}`)
  return model
}
/** 1 USD per million input tokens, 10 of output, 0.1 cached, 1.25 written; double above 200,000 input tokens. */
const priced = (id: string, provider: string, factor = 1): Model => ({
  ...find('claude-sonnet-5-5'),
  id,
  provider,
  pricingSource: 'test',
  contextWindow: 400_000,
  maxInputTokens: null,
  deprecated: false,
  pricing: scaledRates(
    {
      ...{ input: 1, output: 10, cachedInput: 0.1, cacheWrite: 1.25 },
      longContext: { aboveInputTokens: 200_000, input: 2, output: 20, cachedInput: 0.2, cacheWrite: 2.5 },
    },
    price => price * factor,
  ),
})
const small = priced('small', 'google', 0.1)
const ranked = (model: Model, quality: number) => ({ ...model, figures: { ...model.figures, quality } })
const strong = ranked(priced('strong', 'openai'), 0.99)
const marked = ranked(priced('marked', 'anthropic'), 0.98)

const toUsage = (usage: Partial<TokenUsage>): TokenUsage => ({
  ...{ inputTokens: 1_000, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 100, reasoningTokens: 0 },
  ...usage,
})

function rig(models: readonly Model[] = [small, strong, marked], baselineModel: string | null = null) {
  const clock = movableClock()
  const ties = createCacheAffinity(clock, 'secret')
  const endpoints = new Map(models.map(model => [model.provider, getCandidate(model).endpoint]))
  const deps: BaselineDeps = { catalog: buildCatalog(models), endpoints, config: { routing: { baselineModel } }, ties }
  return { deps, clock, ties }
}

const short = askWith({ messages: [user('Hi')], bodyCharacters: 10 })
const caller = { accountId: 'acc_1' }
const planFor = (request = short) => ({
  mode: 'auto' as const,
  needs: getNeeds(request),
  terms: { at: 0, tier: null as string | null },
})
type Paid = Parameters<typeof compareWithBaseline>[2]
const paidBy = (model: Model, usage: TokenUsage): Paid => ({
  ...{ model, rates: model.pricing, usage, parts: [] },
  ...{ billed: getCost(model.pricing, usage), ownKey: null },
})

describe('findBaseline', () => {
  test('returns the strongest configured model, else the one of the operator, else that of the account', () => {
    const { deps } = rig()
    expect(findBaseline(deps, {})).toBe(strong)
    expect(findBaseline({ ...deps, endpoints: new Map([...deps.endpoints].slice(0, 1)) }, {})).toBe(small)
    expect(findBaseline({ ...deps, config: { routing: { baselineModel: 'google/small' } } }, {})).toBe(small)
    expect(findBaseline(rig(undefined, 'google/small').deps, { baseline: 'anthropic/marked' })).toBe(marked)
  })

  test('returns null for a model without prices, an unknown one, and without any model', () => {
    const free = { ...strong, pricingSource: unknownPrices }
    expect(findBaseline(rig([small, free]).deps, {})).toBe(small)
    expect(findBaseline(rig([small, free], 'openai/strong').deps, {})).toBeNull()
    expect(findBaseline(rig().deps, { baseline: 'openai/retired' })).toBeNull()
    expect(findBaseline(rig([]).deps, {})).toBeNull()
  })

  test('follows a change of the catalog', () => {
    const { deps } = rig()
    expect(findBaseline(deps, {})).toBe(strong)
    expect(findBaseline({ ...deps, catalog: buildCatalog([small]) }, {})).toBe(small)
  })
})

describe('compareWithBaseline', () => {
  const compare = (usage: TokenUsage, paid: Partial<Paid> = {}, { deps } = rig(), request = short) =>
    compareWithBaseline(deps, { plan: planFor(request), caller, request }, { ...paidBy(small, usage), ...paid })

  /** Units of 1e-8 USD: a million tokens at 1 USD are 1e8. */
  test.each([
    // 1,000 in and 100 out: 100,000 + 100,000 at the baseline, a tenth of it paid.
    ['plain tokens', toUsage({}), 0, 200_000 - 20_000],
    // Above 200,000 input tokens the whole request costs double at both; OpenAI writes the prompt into its cache.
    ['the long-context step', toUsage({ inputTokens: 250_000 }), 0, 62_500_000 + 200_000 - 5_000_000 - 20_000],
    ['a hedge that was billed too', toUsage({}), 5_000, 200_000 - 20_000 - 5_000],
    ['a search that costs more than routing saves', toUsage({}), 500_000, 200_000 - 20_000 - 500_000],
  ])('counts %s', (_, usage, overhead, saved) => {
    const billed = getCost(small.pricing, usage) + overhead
    expect(compare(usage, { billed })?.saved).toBe(saved)
  })

  test('counts the parts of a continued text as one text of the baseline', () => {
    const part = toUsage({ outputTokens: 40 })
    const cost = getCost(small.pricing, part)
    const parts = [{ rates: small.pricing, usage: part, estimated: false, cost, ownKey: null, unpriced: null }]
    const last = toUsage({ inputTokens: 1_050, outputTokens: 60 })
    const billed = getCost(small.pricing, last) + cost
    const found = compare(last, { parts, billed })
    expect(found).toMatchObject({ microcents: 200_000, saved: 200_000 - billed })
  })

  test('counts calls with own keys at catalog prices as paid', () => {
    expect(compare(toUsage({}), { billed: 0, ownKey: 20_000 })?.saved).toBe(180_000)
  })

  test('saves nothing when the baseline served, whatever its cache did, and shows overheads as negative', () => {
    const usage = toUsage({ inputTokens: 5_000, cachedInputTokens: 2_000, cacheWriteTokens: 1_000 })
    const cost = getCost(strong.pricing, usage)
    const served = { model: strong, rates: strong.pricing, billed: cost }
    expect(compare(usage, served)).toMatchObject({ microcents: cost, cached: 2_000, written: 1_000, saved: 0 })
    expect(compare(usage, { ...served, billed: cost + 7 })?.saved).toBe(-7)
  })

  test('reads the price of the tier and the time of the request', () => {
    const flex = scaledRates(strong.pricing, price => price / 2)
    const tiered = {
      ...strong,
      pricing: { ...strong.pricing, variants: [priceVariant({ serviceTier: 'flex' }, flex)] },
    }
    const { deps } = rig([small, tiered])
    const plan = { ...planFor(), terms: { at: 0, tier: 'flex' } }
    const found = compareWithBaseline(deps, { plan, caller, request: short }, paidBy(small, toUsage({})))
    expect(found?.microcents).toBe(100_000)
  })

  test('returns null when the client named its model, nothing was used, or the baseline cannot take the request', () => {
    const usage = toUsage({})
    const manual = { plan: { ...planFor(), mode: 'manual' as const }, caller, request: short }
    expect(compareWithBaseline(rig().deps, manual, paidBy(small, usage))).toBeNull()
    expect(compare(toUsage({ inputTokens: 0, outputTokens: 0 }))).toBeNull()
    expect(compare(toUsage({ inputTokens: 400_001 }))).toBeNull()
    expect(compare(usage, { model: null, rates: null })).toBeNull()
    const blind = { ...strong, capabilities: { ...strong.capabilities, vision: false } }
    const image = { type: 'image', url: 'https://a.example/b.png', detail: null, mediaType: null } as const
    const seeing = askWith({ messages: [{ role: 'user', name: null, content: [image] }], bodyCharacters: 10 })
    expect(compare(usage, {}, rig([small, blind]), seeing)).toBeNull()
  })
})

describe('compareWithBaseline: prompt cache of the baseline', () => {
  const story = 'Once upon a time there was a river. '.repeat(200)
  const first = askWith({ messages: [user(story)], bodyCharacters: 8_000 })
  const reply = { role: 'assistant', text: 'I see.', reasoning: null, toolCalls: [], name: null } as const
  const second = askWith({ messages: [user(story), reply, user('And then?')], bodyCharacters: 8_000 })
  const place = { host: 'google', account: null }
  const noTurn = { turn: null, effort: null, estimatedTokens: 0, microcents: 0 }

  function converse(baseline: Model, minutes: number, usage: Partial<TokenUsage> = {}, before = 3_000) {
    const { deps, clock, ties } = rig([small, baseline])
    ties.answered('acc_1', first, { model: 'google/small', inputTokens: before, isCached: false, place, ...noTurn })
    clock.move(minutes * 60_000)
    const used = toUsage({ inputTokens: 3_500, ...usage })
    return compareWithBaseline(deps, { plan: planFor(second), caller, request: second }, paidBy(small, used))
  }

  test.each([
    // In steps of 128 at OpenAI, which writes what it has not read.
    ['within the lifetime', strong, 4, {}, 3_000, [2_944, 556]],
    ['after the lifetime', strong, 6, {}, 3_000, [0, 3_500]],
    [
      'after the lifetime, but cached where it was served',
      strong,
      6,
      { cachedInputTokens: 2_560 },
      3_000,
      [2_560, 940],
    ],
    ['with a first request below the minimum', strong, 4, {}, 1_000, [0, 3_500]],
    ['that needs marks, of which none is known', marked, 4, {}, 3_000, [3_000, 0]],
    ['that needs marks, with written tokens', marked, 4, { cacheWriteTokens: 400 }, 3_000, [3_000, 500]],
  ])('reads the request before: %s', (_, baseline, minutes, usage, before, expected) => {
    const found = converse(baseline, minutes, usage, before)
    expect([found?.cached, found?.written]).toEqual(expected)
  })

  test('counts the cached beginning at its price, so that routing away from it can cost more', () => {
    const found = converse(strong, 4)
    // 2,944 read at 0.1, 556 written at 1.25, 100 out at 10 USD per million.
    expect(found?.microcents).toBe(29_440 + 69_500 + 100_000)
    const expensive = priced('other', 'google', 2)
    const { deps, ties } = rig([expensive, strong])
    ties.answered('acc_1', first, { model: 'google/other', inputTokens: 3_000, isCached: false, place, ...noTurn })
    const paid = paidBy(expensive, toUsage({ inputTokens: 3_500 }))
    const plan = planFor(second)
    const lost = compareWithBaseline(deps, { plan, caller, request: second }, paid)
    expect(lost?.saved).toBe(198_940 - 900_000)
  })

  test('keeps accounts apart', () => {
    const { deps, ties } = rig([small, strong])
    ties.answered('acc_2', first, { model: 'google/small', inputTokens: 3_000, isCached: false, place, ...noTurn })
    const paid = paidBy(small, toUsage({ inputTokens: 3_500 }))
    expect(compareWithBaseline(deps, { plan: planFor(second), caller, request: second }, paid)?.cached).toBe(0)
  })
})
