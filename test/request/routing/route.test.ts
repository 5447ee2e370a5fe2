import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ChatRequest, type Strategy, strategies } from '../../../src/core/chat/chat.ts'
import { type Caller, plans } from '../../../src/core/limits/plans.ts'
import {
  blendedPrice,
  buildCatalog,
  fitsWindow,
  fullName,
  getNeeds,
  type Model,
  unmet,
} from '../../../src/core/models/models.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import type { LearnedBias } from '../../../src/learning/apply-bias.ts'
import { maximumBias } from '../../../src/learning/learning-cell.ts'
import type { CacheAffinity } from '../../../src/models/cache-affinity.ts'
import { defaultLevelShares, type LevelShares } from '../../../src/models/capability-levels.ts'
import { catalog } from '../../../src/models/catalog.ts'
import type { ConversationState } from '../../../src/models/conversation.ts'
import { type Figures, score, withoutFailures } from '../../../src/models/scoring.ts'
import { baseCost, usualOutputTokens } from '../../../src/request/cost-estimate.ts'
import type { AccountLearning, Candidate } from '../../../src/request/routing/candidate.ts'
import { type Route, type RouteDeps, route } from '../../../src/request/routing/route.ts'
import { nearEqualPrice } from '../../../src/request/routing/score-candidates.ts'
import type { PromptAnalysis } from '../../../src/text/analysis/prompt-analysis.ts'
import { noWeb } from '../../../src/web/web-plan.ts'
import { askWith } from '../../harness/ask.ts'
import { getRefusal } from '../../harness/refusal.ts'
import { analysis, getProvider } from '../support.ts'

const today = Date.parse('2026-11-20T12:00:00Z')
const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plans.usage }

type World = {
  readonly providers?: readonly string[]
  readonly models?: readonly Model[]
  readonly unhealthy?: readonly string[]
  readonly cooling?: readonly string[]
  readonly degraded?: readonly string[]
  /** Remaining microcents today. */
  readonly left?: number
  readonly now?: number
  /** Learning of `caller`: biases and entries by model, for the query type `other`; null = not loaded yet. */
  readonly learnt?: ReadonlyMap<string, LearnedBias> | null
  readonly random?: number
  readonly reservations?: number
  readonly figures?: ReadonlyMap<string, Partial<Figures>>
  readonly tie?: CacheAffinity
  readonly state?: ConversationState
  readonly shares?: LevelShares
}

function findLearning(learnt: ReadonlyMap<string, LearnedBias> | null | undefined): AccountLearning | null {
  if (learnt === undefined || learnt === null) return null
  return {
    epoch: 3,
    findLeaning: type => (type === 'other' && learnt.size > 0 ? name => learnt.get(name) ?? null : null),
  }
}

/** Learning of all other accounts: the opposite values. */
const strangeLearning: AccountLearning = {
  epoch: 9,
  findLeaning: () => name => ({ bias: name.length % 2 === 0 ? 0.2 : -0.2, entries: 99 }),
}

function world(given: World = {}): RouteDeps {
  const providers = given.providers ?? ['openai', 'anthropic', 'google']
  return {
    catalog: buildCatalog(given.models ?? catalog),
    endpoints: new Map(providers.map(id => [id, getProvider(id)])),
    health: {
      getStanding: key => ({
        mayTry: !given.cooling?.includes(key),
        state: given.unhealthy?.includes(key) ? 'unhealthy' : given.degraded?.includes(key) ? 'degraded' : 'healthy',
      }),
      findFigures: (key, published) => ({ ...withoutFailures(published), ...given.figures?.get(key) }),
    },
    meter: {
      quotaStatus: () =>
        given.left === undefined
          ? null
          : {
              requests: { limit: 30, remaining: 30, resetMs: 0 },
              tokens: { limit: 500_000, remaining: 500_000, resetMs: 0 },
              costMicrocents: { limit: 167_000_000, remaining: given.left },
              reservations: { limit: 5, remaining: given.reservations ?? 5 },
            },
    },
    clock: { now: () => given.now ?? today },
    learning: { of: accountId => (accountId === caller.accountId ? findLearning(given.learnt) : strangeLearning) },
    random: () => given.random ?? 1,
    ties: { of: () => given.tie ?? null, find: () => given.state ?? null, digest: (_account, text) => text },
    shares: given.shares ?? defaultLevelShares,
  }
}

const routed = (
  request: Partial<ChatRequest> = {},
  given: World = {},
  inputTokens = 100,
  read: Partial<PromptAnalysis> = {},
): Route => route(world(given), { caller, request: askWith(request), analysis: { ...analysis, ...read }, inputTokens })
const names = (plan: Route) => plan.candidates.map(({ model }) => fullName(model))

const refused = (...given: Parameters<typeof routed>) => getRefusal(() => routed(...given))

describe('named model', () => {
  test('comes first, with fallbacks from other providers after it', () => {
    const plan = routed({ model: 'claude-opus-5-5' })
    expect([plan.mode, names(plan)[0]]).toEqual(['manual', 'anthropic/claude-opus-5-5'])
    expect(plan.candidates[1]?.model.provider).not.toBe('anthropic')
    expect(new Set(names(plan)).size).toBe(plan.candidates.length)
    expect(plan.candidates.length).toBeWithin(3, 7)
  })

  test('has no fallbacks when the client allows none', () => {
    expect(names(routed({ model: 'openai/gpt-5.5', fallback: 'same_model' }))).toEqual(['openai/gpt-5.5'])
  })

  test('comes first even when unhealthy, deprecated, premium in test mode, or apparently too small', () => {
    expect(
      names(routed({ model: 'openai/gpt-5.5', testMode: true }, { unhealthy: ['openai/gpt-5.5'] }, 5_000_000))[0],
    ).toBe('openai/gpt-5.5')
    expect(names(routed({ model: 'claude-sonnet-4-5' }))[0]).toBe('anthropic/claude-sonnet-4-5')
  })

  test('includes the web or goes without it, and follows the client’s own text either way', () => {
    const web = { ...noWeb, urls: ['https://a.example/'], tokens: 5_000, microcents: 50_000 }
    const [given] = buildCatalog(catalog).list.filter(({ id }) => id === 'gpt-5.5')
    const window = given?.contextWindow ?? 0
    const plan = (inputTokens: number) =>
      route(world({}), { caller, request: askWith({ model: 'gpt-5.5' }), analysis, inputTokens, web })
    expect(plan(100)).toMatchObject({ inputTokens: 5_100, web })
    expect(plan(window - 4_000)).toMatchObject({ inputTokens: window - 4_000, web: noWeb })
    expect(plan(100).withoutWeb()).toMatchObject({ inputTokens: 100, web: noWeb })
    expect(names(plan(100).withoutWeb())).toEqual(names(plan(100)))
  })

  test('gets 404 with similar names and without its own name when unknown', () => {
    const error = refused({ model: 'gpt-5.55-canary' })
    expect([error.code, error.status, error.param]).toEqual(['model_not_found', 404, 'model'])
    expect(error.message).toContain('openai/gpt-5.5')
    expect(error.message).not.toContain('canary')
    const { message } = refused({ model: '?' })
    expect(message).not.toContain('Did you mean')
    expect(message).toContain('`gateway-ai` for automatic routing')
    expect(refused({ model: 'x'.repeat(100_000) }).code).toBe('model_not_found')
  })

  test('gets 404 with the reason when its provider is not configured', () => {
    const error = refused({ model: 'openai/gpt-5.5' }, { providers: ['google'] })
    expect([error.code, error.param]).toEqual(['model_not_found', 'model'])
    expect(error.message).toContain('not configured')
  })

  test('gets 400 with the successor when retired; still serves on the day before', () => {
    const old = catalog.find(model => model.id === 'gemini-2.5-flash')
    if (old?.deprecationDate == null) throw new Error('the catalogue has changed')
    const day = Date.parse(old.deprecationDate)
    const error = refused({ model: fullName(old) }, { now: day })
    expect([error.code, error.status, error.param]).toEqual(['model_deprecated', 400, 'model'])
    if (old.successor !== null) expect(error.message).toContain(old.successor)
    expect(names(routed({ model: fullName(old) }, { now: day - 1 }))[0]).toBe(fullName(old))
  })

  test('gets 400 with the parameter that it does not support', () => {
    const error = refused({ model: 'claude-opus-5-5', choices: 3 })
    expect([error.code, error.status, error.param]).toEqual(['unsupported_parameter', 400, 'n'])
  })
})

describe('fallbacks of a named model', () => {
  const dayMs = 86_400_000

  test('never retire within the notice period of seven days', () => {
    for (const leaving of catalog.filter(({ deprecationDate }) => deprecationDate !== null))
      for (const days of [1, 4, 7]) {
        const now = Date.parse(leaving.deprecationDate ?? '') - days * dayMs
        for (const model of catalog) {
          if (model === leaving || (model.deprecationDate ?? '9999') <= new Date(now).toISOString().slice(0, 10))
            continue
          const plan = routed({ model: fullName(model), fallbackMaxCostFactor: 1_000 }, { now })
          expect(names(plan)).not.toContain(fullName(leaving))
          expect(plan.dropped).toContainEqual(expect.objectContaining({ model: fullName(leaving) }))
        }
      }
  })

  test('cost at most three times as much, by list price and by expected cost; others have the reason', () => {
    const getCost = (model: Model, tokens: number) =>
      baseCost(model.pricing, tokens, usualOutputTokens(model, analysis))
    for (const model of catalog)
      for (const tokens of [100, 60_000]) {
        const plan = routed({ model: fullName(model) }, { now: Date.parse('2026-06-01') }, tokens)
        for (const { model: other } of plan.candidates.slice(1)) {
          expect(blendedPrice(other.pricing)).toBeLessThanOrEqual(3 * blendedPrice(model.pricing) * (1 + 1e-9))
          expect(getCost(other, tokens)).toBeLessThanOrEqual(3 * getCost(model, tokens))
        }
      }
    const plan = routed({ model: 'openai/gpt-6-luna' })
    expect(plan.dropped).toContainEqual({
      model: 'anthropic/claude-opus-5-5',
      reason: 'expected to cost more than 3 times as much as openai/gpt-6-luna',
    })
    expect(plan.candidates.length).toBeGreaterThan(1)
  })

  test('cost more, or no more than the named model, when the client requests it', () => {
    const priciest = (fallbackMaxCostFactor: number) =>
      Math.max(
        ...routed({ model: 'openai/gpt-6-luna', fallbackMaxCostFactor }).candidates.map(({ model }) =>
          blendedPrice(model.pricing),
        ),
      )
    expect([priciest(1), priciest(3) <= 0.6, priciest(100) > 0.6]).toEqual([0.2, true, true])
  })
})

const forced = {
  tools: [{ name: 'look', description: null, parameters: null, strict: null }],
  toolChoice: 'required',
} as const satisfies Partial<ChatRequest>
const mayBeForced = ({ model }: Candidate) => model.parameters.forcedToolChoice !== 'rejected'

describe('forced tool call', () => {
  test('keeps a named model without support; its fallbacks support it', () => {
    for (const model of ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5-2']) {
      const [first, ...others] = routed({ model, ...forced, reasoningEffort: 'high' }).candidates
      expect(first?.model.id).toBe(model)
      expect(others.length > 0 && others.every(mayBeForced)).toBe(true)
    }
  })

  test('selects models with support in automatic routing, and others only if there are none', () => {
    const plan = routed({ ...forced, strategy: 'quality' })
    expect(plan.candidates.every(mayBeForced)).toBe(true)
    expect(plan.dropped).toContainEqual(
      expect.objectContaining({
        model: 'anthropic/claude-opus-5-5',
        param: 'tool_choice',
        reason: 'does not support being made to call a tool',
      }),
    )
    const models = catalog.filter(model => model.parameters.forcedToolChoice === 'rejected')
    expect(routed(forced, { models }).candidates).toHaveLength(models.length)
  })
})

describe('automatic routing', () => {
  test('selects a cheap model for a simple prompt and a capable one for a complex prompt', () => {
    const simple = routed({}, {}, 100, { strongGain: 0 }).candidates[0]
    const complex = routed({}, {}, 100, { strongGain: 1 }).candidates[0]
    expect(simple?.model.tier).toBe('economy')
    expect(complex?.model.figures.quality ?? 0).toBeGreaterThan(simple?.model.figures.quality ?? 1)
  })

  test('selects the same model for every prompt with balanced', () => {
    const first = routed({ strategy: 'balanced' }, {}, 100, { strongGain: 0 })
    expect(names(routed({ strategy: 'balanced' }, {}, 100, { strongGain: 1 }))).toEqual(names(first))
  })

  test('puts an unhealthy model or one in cooldown last, and keeps it when all of them are', () => {
    const [best] = names(routed())
    for (const sick of [{ unhealthy: [best ?? ''] }, { cooling: [best ?? ''] }])
      expect(names(routed({}, sick))[0]).not.toBe(best)
    expect(names(routed({}, { unhealthy: catalog.map(fullName) })).length).toBeGreaterThan(0)
    const only = catalog.filter(model => fullName(model) === best)
    expect(names(routed({}, { models: only, unhealthy: [best ?? ''], cooling: [best ?? ''] }))).toEqual([best ?? ''])
  })

  test('drops models that the account cannot pay for, but never all: the meter rejects', () => {
    const plan = routed({ strategy: 'quality' }, { left: 200_000 }, 1000)
    expect(names(plan)).not.toContain('anthropic/claude-fable-5-2')
    expect(plan.dropped.some(({ reason }) => reason.includes('remaining daily cost limit'))).toBe(true)
    expect(routed({}, { left: 0 }).candidates.length).toBeGreaterThan(0)
  })

  test('drops a model whose usual output exceeds the share of the remaining limit per free concurrent request', () => {
    const opus = 'anthropic/claude-opus-5-5'
    const plan = (left: number, reservations: number, maxOutputTokens: number | null = null) =>
      names(routed({ strategy: 'quality', maxOutputTokens }, { left, reservations }))[0]
    expect(plan(20_000_000, 5)).toBe(opus)
    expect(plan(4_000_000, 5)).not.toBe(opus)
    expect(plan(4_000_000, 1)).toBe(opus)
    expect(plan(4_000_000, 5, 100)).toBe(opus)
  })

  test('follows the operator’s target shares, and the plan has the level', () => {
    const strong = routed({}, { shares: { strong: 0.7, middle: 0 } })
    const light = routed({}, { shares: { strong: 0, middle: 0 } }, 100, { strongGain: 1 })
    expect([strong.level, light.level]).toEqual(['strong', 'light'])
    expect(strong.first.model.figures.quality).toBeGreaterThan(light.first.model.figures.quality)
  })

  test('uses measured speed for speed: the fastest model is first, and a failing one is not', () => {
    const [usual = ''] = names(routed({ strategy: 'speed' }))
    const quick = { firstTokenMs: 200, tokensPerSecond: 400, tries: 50 }
    const figures = new Map([['openai/gpt-6-luna', quick]])
    expect(names(routed({ strategy: 'speed' }, { figures }))[0]).toBe('openai/gpt-6-luna')
    const failing = new Map([[usual, { errorRate: 0.4, tries: 50 }]])
    expect(names(routed({ strategy: 'speed' }, { figures: failing }))[0]).not.toBe(usual)
  })

  test('gives every candidate components that add up to its score, with a reason', () => {
    for (const strategy of [null, ...strategies])
      for (const candidate of routed({ strategy }, { degraded: ['google/gemini-3.8-flash'] }).candidates) {
        const parts = candidate.parts()
        if (parts === null) throw new Error('auto mode scores')
        expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(candidate.score, 9)
        expect(candidate.reason()).toStartWith('quality ')
      }
  })

  test('lists every catalog model as a candidate or dropped with a reason', () => {
    for (const request of [{}, { testMode: true }, { model: 'gpt-5.5' }]) {
      const plan = routed(request)
      const told = [...names(plan), ...plan.dropped.map(({ model }) => model)]
      expect(told.toSorted()).toEqual(catalog.map(fullName).toSorted())
    }
  })

  test('throws context_length_exceeded when the input is too long for all, and otherwise drops some', () => {
    const error = refused({}, {}, 50_000_000)
    expect([error.code, error.status]).toEqual(['context_length_exceeded', 400])
    for (const { model } of routed({}, {}, 500_000).candidates) expect(fitsWindow(model, 500_000, 1)).toBe(true)
  })

  test('puts models with a lower output limit than requested last', () => {
    const able = (plan: Route, tokens: number) => plan.candidates.map(({ model }) => model.maxOutputTokens >= tokens)
    expect(able(routed({ maxOutputTokens: 100_000 }), 100_000)).toEqual(Array(6).fill(true))
    const few = catalog.filter(({ id }) => ['gpt-4.1', 'gemini-4-argon', 'gpt-5.5'].includes(id))
    expect(able(routed({ maxOutputTokens: 100_000, strategy: 'cost' }, { models: few }), 100_000)).toEqual([
      true,
      false,
      false,
    ])
    expect(routed({ maxOutputTokens: 5_000_000 }).candidates).toHaveLength(6)
  })

  test('throws unsupported_parameter with its name when no model supports it', () => {
    const error = refused({ choices: 500 })
    expect([error.code, error.param]).toEqual(['unsupported_parameter', 'n'])
  })

  test('throws 503 no_model_available with a retry time when no provider is configured', () => {
    const error = refused({}, { providers: [] })
    expect([error.code, error.status]).toEqual(['no_model_available', 503])
    expect(error.retryAfterMs).toBeGreaterThan(0)
  })
})

describe('route under `cost`', () => {
  const [luna = '', haiku = ''] = ['openai/gpt-6-luna', 'anthropic/claude-haiku-5-5']
  const failing = (errorRate: number, ...models: string[]) =>
    new Map(models.map(name => [name, { errorRate, tries: 30 }]))

  test('keeps the cheapest models first when a few of their attempts failed', () => {
    for (const errorRate of [0.1, 0.3, 0.6]) {
      const plan = routed({ strategy: 'cost' }, { figures: failing(errorRate, luna, haiku), degraded: [luna, haiku] })
      expect(names(plan).slice(0, 2).toSorted()).toEqual([haiku, luna])
      expect(plan.first.parts()?.reliability).toBeCloseTo(0, 12)
      expect(plan.first.reason()).not.toContain('lost to failures')
    }
  })

  test('lets health decide when prices are near-equal', () => {
    for (const [sick, well] of [
      [luna, haiku],
      [haiku, luna],
    ] as const) {
      expect(names(routed({ strategy: 'cost' }, { degraded: [sick] }))[0]).toBe(well)
      expect(names(routed({ strategy: 'cost' }, { cooling: [sick] }))[0]).toBe(well)
    }
    const alike = catalog.filter(model => fullName(model) === luna).flatMap(model => [model, { ...model, id: 'twin' }])
    const plan = (sick: string) => routed({ strategy: 'cost' }, { models: alike, figures: failing(0.2, sick) })
    expect([names(plan(luna))[0], names(plan('openai/twin'))[0]]).toEqual(['openai/twin', luna])
  })

  test('uses the price of the long-context tier when the input reaches it', () => {
    const [base] = catalog.filter(model => fullName(model) === 'openai/gpt-6.1-terra')
    if (base === undefined) throw new Error('the catalogue has changed')
    const longContext = { ...base.pricing, input: 9, output: 9, aboveInputTokens: 1_000 }
    const models = [
      { ...base, id: 'tiered', pricing: { ...base.pricing, input: 1, output: 1, longContext } },
      { ...base, id: 'flat', pricing: { ...base.pricing, input: 3, output: 3, longContext: null } },
    ]
    expect(routed({ strategy: 'cost' }, { models }, 900).first.model.id).toBe('tiered')
    expect(routed({ strategy: 'cost' }, { models }, 1_100).first.model.id).toBe('flat')
  })

  test('never chooses above the near-equal band of the cheapest callable model, in any state', () => {
    const [pattern] = catalog.filter(model => fullName(model) === luna)
    if (pattern === undefined) throw new Error('the catalogue has changed')
    const cents = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 9_000 }))
    const rows = fc.array(
      fc.record({
        provider: fc.constantFrom('openai', 'anthropic', 'google'),
        input: cents,
        output: cents,
        quality: fc.double({ min: 0, max: 1, noNaN: true }),
        errorRate: fc.double({ min: 0, max: 1, noNaN: true }),
        health: fc.constantFrom('healthy', 'healthy', 'degraded', 'unhealthy', 'cooling'),
      }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(rows, fc.nat({ max: 50_000 }), fc.option(fc.nat({ max: 1_000_000 })), (drawn, tokens, left) => {
        const models = drawn.map(({ provider, input, output, quality }, at) => ({
          ...pattern,
          id: `m${at}`,
          aliases: [],
          provider,
          pricing: { ...pattern.pricing, input: input / 100, output: output / 100, longContext: null },
          figures: { ...pattern.figures, quality },
        }))
        const named = (health: string) =>
          models.filter((_, at) => drawn[at]?.health === health).map(model => fullName(model))
        const given: World = {
          models,
          degraded: named('degraded'),
          unhealthy: named('unhealthy'),
          cooling: named('cooling'),
          figures: new Map(models.map((model, at) => [fullName(model), { errorRate: drawn[at]?.errorRate ?? 0 }])),
          ...(left === null ? {} : { left }),
        }
        const plan = routed({ strategy: 'cost' }, given, tokens)
        const dropped = new Set(
          plan.dropped.filter(({ reason }) => reason.includes('remaining daily cost limit')).map(item => item.model),
        )
        const eligible = models.filter(model => !dropped.has(fullName(model)))
        const isOpen = (model: Model) => [...named('unhealthy'), ...named('cooling')].includes(fullName(model))
        const mayBeAsked = eligible.filter(model => !isOpen(model))
        const prices = (mayBeAsked.length > 0 ? mayBeAsked : eligible).map(({ pricing }) => blendedPrice(pricing))
        expect(mayBeAsked.length > 0 && isOpen(plan.first.model)).toBe(false)
        expect(blendedPrice(plan.first.model.pricing)).toBeLessThanOrEqual(
          Math.min(...prices) * nearEqualPrice * (1 + 1e-9),
        )
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('long conversation', () => {
  const pair = catalog.filter(({ id }) => ['gpt-6.1-sol', 'gemini-4-argon'].includes(id))
  const at = (request: Partial<ChatRequest>, given: World) =>
    routed(request, { models: pair, ...given }, 20_000, { strongGain: 0.6 })
  const [leader, other] = at({}, {}).candidates
  if (leader === undefined || other === undefined) throw new Error('both can answer')
  const tie = { model: fullName(other.model), tokens: 19_000 }

  test('stays with a near-equal model that has its beginning in the cache, and reports it', () => {
    expect(leader.score - other.score).toBeLessThan(0.05)
    const plan = at({}, { tie })
    expect([plan.isKept, plan.first.model.id]).toEqual([true, other.model.id])
    expect(plan.first.reason()).toContain('19000 tokens of this conversation')
    expect(names(plan)).toEqual([fullName(other.model), fullName(leader.model)])
  })

  test('leaves a model that is unhealthy or incapable, or when the strategy ignores cost', () => {
    const kept = (request: Partial<ChatRequest>, given: World) => at(request, { tie, ...given }).isKept
    expect(kept({}, { degraded: [tie.model] })).toBe(false)
    expect(kept({}, { cooling: [tie.model] })).toBe(false)
    const lower = { ...other.model, maxOutputTokens: 50_000 }
    expect(kept({}, { models: [leader.model, lower] })).toBe(true)
    expect(kept({ maxOutputTokens: 60_000 }, { models: [leader.model, lower] })).toBe(false)
    expect(kept({ strategy: 'quality' }, {})).toBe(false)
    expect(kept({ strategy: 'speed' }, {})).toBe(false)
    expect(at({}, { tie: { ...tie, model: 'openai/unknown' } }).isKept).toBe(false)
  })
})

describe('fallback with a cached conversation', () => {
  const at = (tie: CacheAffinity | null, request: Partial<ChatRequest> = {}, given: World = {}) =>
    names(
      routed({ model: 'openai/gpt-5.5', ...request }, { ...given, ...(tie === null ? {} : { tie }) }, 40_000, {
        strongGain: 0.6,
      }),
    )
  const [named, ...others] = at(null)
  // The cheapest fallback that is not the next one anyway: a price that a cache can make the best.
  const prices = new Map(catalog.map(model => [fullName(model), model.pricing]))
  const cached = others
    .slice(1)
    .toSorted((text, other) => (prices.get(text)?.input ?? 0) - (prices.get(other)?.input ?? 0))[0]
  if (cached === undefined) throw new Error('the catalog has other fallbacks')
  const tie = { model: cached, tokens: 39_000 }

  test('calls the model with the cache earlier, and changes nothing else', () => {
    const order = at(tie)
    expect(order[0]).toBe(named ?? '')
    expect(order.indexOf(cached)).toBeLessThan(1 + others.indexOf(cached))
    expect(order.filter(name => name !== cached)).toEqual([named ?? '', ...others.filter(name => name !== cached)])
  })

  test('keeps the order when nothing worth keeping is cached, the strategy ignores cost, or the model is degraded', () => {
    expect(at({ ...tie, tokens: 100 })).toEqual(at(null))
    expect(at(tie, { strategy: 'speed' })).toEqual(at(null, { strategy: 'speed' }))
    expect(at(tie, {}, { degraded: [cached] })).toEqual(at(null, {}, { degraded: [cached] }))
  })

  test('applies to automatic routing behind the first model', () => {
    const auto = (given: World) => names(routed({}, given, 40_000, { strongGain: 0.1 }))
    const plain = auto({})
    for (const name of plain.slice(2)) {
      const moved = auto({ tie: { model: name, tokens: 39_000 } })
      expect(moved.indexOf(name)).toBeLessThanOrEqual(plain.indexOf(name))
      expect(moved.toSorted()).toEqual(plain.toSorted())
    }
  })
})

test('routing: never violates capability, window, test mode, budget, health, retirement or configuration, and is deterministic', () => {
  const asks = fc.record({
    strategy: fc.constantFrom<Strategy | null>(null, ...strategies),
    testMode: fc.boolean(),
    choices: fc.constantFrom(1, 2, 9),
    logprobs: fc.boolean(),
    stream: fc.constantFrom(null, 'buffered' as const),
    model: fc.constantFrom(null, 'gpt-5.5', 'gemini-3.8-flash'),
  })
  const worlds = fc.record({
    providers: fc.subarray(['openai', 'anthropic', 'google']),
    unhealthy: fc.subarray(catalog.map(fullName)),
    left: fc.nat({ max: 3_000_000 }),
    reservations: fc.integer({ min: 0, max: 5 }),
    tie: fc.record({ model: fc.constantFrom(...catalog.map(fullName)), tokens: fc.nat({ max: 200_000 }) }),
    figures: fc.constantFrom(new Map([['openai/gpt-6-luna', { errorRate: 0.5, firstTokenMs: 90 }]])),
    now: fc.constantFrom(today, Date.parse('2026-12-15'), Date.parse('2027-06-01')),
  })
  fc.assert(
    fc.property(
      asks,
      worlds,
      fc.nat({ max: 1_200_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (request, given, tokens, complexity) => {
        let plan: Route
        try {
          plan = routed(request, given, tokens, { strongGain: complexity })
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(GatewayError)
          return
        }
        const day = new Date(given.now).toISOString().slice(0, 10)
        expect(plan.candidates.length).toBeWithin(1, 7)
        for (const { model, endpoint, score } of plan.candidates.slice(request.model === null ? 0 : 1)) {
          expect(unmet(model, getNeeds(askWith(request)))).toBeNull()
          expect(fitsWindow(model, tokens, 1)).toBe(true)
          expect(request.testMode && model.tier === 'premium').toBe(false)
          expect(model.deprecationDate === null || model.deprecationDate > day).toBe(true)
          expect(given.providers).toContain(endpoint.id)
          expect(score).toBeWithin(0, 1.000001)
        }
        if (request.model === null) {
          const least = (model: Model) => baseCost(model.pricing, tokens, 1)
          const payable = plan.candidates.filter(({ model }) => least(model) <= given.left)
          if (payable.length > 0) expect(payable).toHaveLength(plan.candidates.length)
          const sick = plan.candidates.map(({ model }) => given.unhealthy.includes(fullName(model)))
          expect(sick).toEqual(sick.toSorted((left, right) => Number(left) - Number(right)))
        }
        expect(names(routed(request, given, tokens, { strongGain: complexity }))).toEqual(names(plan))
      },
    ),
    { numRuns: 150 },
  )
})

describe('routing with learning', () => {
  const lean = fc
    .integer({ min: 0, max: 120 })
    .chain(entries =>
      fc
        .double({ min: -maximumBias(entries), max: maximumBias(entries), noNaN: true })
        .map(bias => ({ bias, entries })),
    )
  const learnt = fc
    .array(fc.tuple(fc.constantFrom(...catalog.map(fullName)), lean), { maxLength: 40 })
    .map(pairs => new Map(pairs))
  const asks = fc.record({
    strategy: fc.constantFrom<Strategy | null>(null, ...strategies),
    testMode: fc.boolean(),
    logprobs: fc.boolean(),
    choices: fc.constantFrom(1, 2),
  })
  const worlds = fc.record({
    providers: fc.subarray(['openai', 'anthropic', 'google'], { minLength: 1 }),
    unhealthy: fc.subarray(catalog.map(fullName)),
    random: fc.constantFrom(0, 1),
  })
  const complexity = fc.double({ min: 0, max: 1, noNaN: true })

  test('never crosses a margin above the bound, and never chooses an excluded model', () => {
    fc.assert(
      fc.property(asks, worlds, learnt, complexity, (request, given, map, complex) => {
        const able = (of: ReadonlyMap<string, LearnedBias>) =>
          routed(request, { ...given, learnt: of }, 100, { strongGain: complex })
        let plain: Route
        try {
          plain = able(new Map())
        } catch {
          expect(() => able(map)).toThrow(GatewayError)
          return
        }
        const plan = able(map)
        const { model } = plan.first
        const choice = { strategy: request.strategy, level: plan.level, terms: plan.terms }
        const base = new Map(score(catalog, choice).map(item => [fullName(item.model), item.score]))
        const margin = (base.get(fullName(plain.first.model)) ?? 0) - (base.get(fullName(model)) ?? 0)
        expect(margin).toBeLessThanOrEqual(0.2 + 1e-9)
        expect(request.testMode && model.tier === 'premium').toBe(false)
        expect(unmet(model, getNeeds(askWith(request)))).toBeNull()
        expect(given.providers).toContain(model.provider)
        if (given.unhealthy.includes(fullName(model))) expect(given.unhealthy).toContain(fullName(plain.first.model))
        expect(plan.learning.influenced).toBe(model !== plain.first.model)
        expect(plan.learning.epoch).toBe(3)
        expect(plan.learning.probability > 0 && plan.learning.probability <= 1).toBe(true)
        if (request.strategy === 'cost' || request.strategy === 'speed') expect(model).toBe(plain.first.model)
      }),
      { numRuns: 300 },
    )
  })

  test('treats an erased or unloaded account exactly like a new one, whatever others have learned', () => {
    const decided = ({ candidates, first, dropped, learning: { epoch: _, ...learning } }: Route) =>
      JSON.stringify([
        candidates.map(candidate => [fullName(candidate.model), candidate.score, candidate.reason()]),
        first.score,
        dropped,
        learning,
      ])
    fc.assert(
      fc.property(asks, worlds, complexity, (request, given, complex) => {
        const said = [null, undefined, new Map<string, LearnedBias>()].map(of => {
          try {
            return decided(
              routed(request, { ...given, ...(of === undefined ? {} : { learnt: of }) }, 100, { strongGain: complex }),
            )
          } catch (thrown) {
            return thrown instanceof GatewayError ? thrown.code : thrown
          }
        })
        expect(new Set(said).size).toBe(1)
      }),
      { numRuns: 100 },
    )
  })

  test('swaps near-equal models when the usual one performed badly', () => {
    const usual = names(routed())[0] ?? ''
    const map = new Map([[usual, { bias: -0.2, entries: 60 }]])
    const plan = routed({}, { learnt: map })
    expect(names(plan)[0]).not.toBe(usual)
    expect(plan.learning).toEqual({ epoch: 3, influenced: true, probability: 1 })
    expect(plan.candidates.find(({ model }) => fullName(model) === usual)?.reason() ?? ', learnt −20.0').toContain(
      ', learnt −20.0',
    )
    expect(plan.first.reason()).not.toContain('learnt')
    // No learning for another query type.
    expect(names(routed({}, { learnt: map }, 100, { queryType: 'math' }))).toEqual(
      names(routed({}, {}, 100, { queryType: 'math' })),
    )
    expect(routed({ model: usual }, { learnt: map }).learning).toEqual({ epoch: 3, influenced: false, probability: 1 })
  })
})
