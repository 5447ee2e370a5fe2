/** Ways of routing that the simulation compares. */
import { type Caller, plans } from '../../../src/core/limits/plans.ts'
import { buildCatalog, fullName, leavingSoon, type Model } from '../../../src/core/models/models.ts'
import { type PriceTerms, ratesAt } from '../../../src/core/models/pricing.ts'
import { getCost } from '../../../src/core/usage/money.ts'
import { createCacheAffinity } from '../../../src/learning/cache-affinity.ts'
import { defaultLevelShares, getLevel } from '../../../src/models/capability-levels.ts'
import { catalog } from '../../../src/models/catalog.ts'
import type { ConversationState } from '../../../src/models/conversation.ts'
import { type ChosenEffort, supportedEfforts } from '../../../src/models/effort.ts'
import { alternateProviders } from '../../../src/models/insert-sorted.ts'
import { discountScore, getWeights, score } from '../../../src/models/scoring.ts'
import { expectedOutput, unknownLength } from '../../../src/request/cost-estimate.ts'
import { type RouteDeps, route } from '../../../src/request/routing/route.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { getProvider } from '../../request/support.ts'
import type { Call, Choice, Routing } from './simulation.ts'

const { read } = openPromptAnalyzer()
const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plans.usage }
/** The day of the simulation, on which some models of the catalog retire soon. */
const today = '2026-11-24'
const models = catalog.filter(model => !leavingSoon(model, today))
const names = buildCatalog(catalog)
const endpoints = new Map(['openai', 'anthropic', 'google'].map(id => [id, getProvider(id)]))

const routeDeps: Omit<RouteDeps, 'clock'> = {
  catalog: names,
  endpoints,
  health: { getStanding: () => ({ state: 'healthy', mayTry: true }) },
  meter: { quotaStatus: () => null },
}

/** Uses one model for all calls; null = at its default effort. */
export function always(model: Model, effort: ChosenEffort = null): Routing {
  return { choose: () => ({ model, effort }) }
}

/** Returns every model at each of its efforts. */
export function listSingles(): readonly Choice[] {
  return models.flatMap(model => [null, ...supportedEfforts(model)].map(effort => ({ model, effort })))
}

/** The model that the strategy `quality` puts first. */
export function strongestModel(): Model {
  const [first] = score(models, { strategy: 'quality', level: 'strong', terms: { at: 0, tier: null } })
  if (first === undefined) throw new Error('The catalog is empty.')
  return first.model
}

/** The service's own routing, with its memory of one session. */
export function service(): Routing {
  let at = 0
  const clock = { now: () => at, monotonic: () => at }
  const ties = createCacheAffinity(clock, 'secret')
  let turn: ConversationState | null = null
  let estimatedTokens = 0
  const deps = { ...routeDeps, clock, ties }
  return {
    choose({ request, inputTokens, ...call }) {
      at = call.at
      const plan = route(deps, { caller, request, analysis: read(request.messages), inputTokens })
      const { model, effort = null } = plan.first
      ;[turn, estimatedTokens] = [plan.turn?.next ?? null, inputTokens]
      return { model, effort }
    },
    answered({ request }, { model, effort }, { inputTokens, cachedInputTokens, cacheWriteTokens }) {
      const isCached = cachedInputTokens + cacheWriteTokens > 0 ? true : null
      const place = { host: model.provider, account: null }
      ties.answered(caller.accountId, request, {
        model: fullName(model),
        inputTokens,
        isCached,
        place,
        turn,
        effort,
        estimatedTokens,
        microcents: 0,
      })
    },
  }
}

/** The rule of commit ac0e5d7c: a model per prompt, kept for its prompt cache within a margin; no effort, no other memory. */
export function perPrompt(): Routing {
  let kept: {
    readonly model: Model
    readonly tokens: number
    readonly until: number
    readonly missed: boolean
  } | null = null
  return {
    choose({ request, inputTokens, at }) {
      const analysis = read(request.messages)
      const level = getLevel(analysis.strongGain, defaultLevelShares)
      const terms = { at, tier: null }
      const mode = { strategy: null, level, terms }
      const ranked = alternateProviders(
        score(models, mode).filter(({ model }) => fits(model, inputTokens)),
        6,
      )
      const [leader] = ranked
      if (leader === undefined) throw new Error('No model fits.')
      const known = kept !== null && kept.until >= at && !kept.missed ? kept : null
      const cached = ranked.find(({ model }) => model === known?.model)
      if (known === null || cached === undefined || cached === leader) return { model: leader.model, effort: null }
      const outputTokens = expectedOutput(leader.model, analysis, null, unknownLength).tokens
      const cost = (model: Model, cachedInputTokens: number) =>
        getPrice(model, { inputTokens, outputTokens, cachedInputTokens }, terms)
      const [fresh, saved] = [cost(cached.model, 0), cost(cached.model, Math.min(known.tokens, inputTokens))]
      const isCheaper = saved <= 0.85 * fresh && saved <= cost(leader.model, 0)
      const margin = 0.05 + getWeights(mode).cost * discountScore(saved / fresh)
      return { model: isCheaper && leader.score - cached.score <= margin ? cached.model : leader.model, effort: null }
    },
    answered({ inputTokens, at }: Call, { model }, { cachedInputTokens, cacheWriteTokens }) {
      const isRepeat = kept !== null && kept.until >= at && kept.model === model
      const missed = cachedInputTokens + cacheWriteTokens === 0 && isRepeat
      if (inputTokens >= 1_024) kept = { model, tokens: inputTokens, until: at + 300_000, missed }
    },
  }
}

function fits({ contextWindow, maxInputTokens }: Model, inputTokens: number): boolean {
  return inputTokens < Math.min(contextWindow, maxInputTokens ?? contextWindow)
}

type Tokens = { readonly inputTokens: number; readonly outputTokens: number; readonly cachedInputTokens: number }

function getPrice({ pricing }: Model, tokens: Tokens, terms: PriceTerms): number {
  return getCost(ratesAt(pricing, terms), { ...tokens, cacheWriteTokens: 0, reasoningTokens: 0 })
}

/**
 * Returns how long the service takes to choose for analyzed requests of known conversations, in microseconds: the fastest of
 * eight rounds each.
 */
export function measureChoice(calls: readonly Call[]): { readonly p50: number; readonly p99: number } {
  const clock = { now: () => Date.parse(today), monotonic: () => 0 }
  const ties = createCacheAffinity(clock, 'secret')
  const deps = { ...routeDeps, clock, ties }
  const inputs = calls.map(({ request, inputTokens }) => ({
    ...{ caller, request, inputTokens },
    analysis: read(request.messages),
  }))
  for (const input of inputs) {
    const { first, turn } = route(deps, input)
    const { model, effort = null } = first
    const { inputTokens } = input
    const usage = { inputTokens, estimatedTokens: inputTokens, isCached: true, microcents: 0 }
    const place = { host: model.provider, account: null }
    ties.answered(caller.accountId, input.request, {
      ...{ ...usage, model: fullName(model), place, effort, turn: turn?.next ?? null },
    })
  }
  const fastest = inputs.map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < 8; round++)
    for (const [at, input] of inputs.entries()) {
      const startedAt = Bun.nanoseconds()
      route(deps, input)
      fastest[at] = Math.min(fastest[at] ?? 0, (Bun.nanoseconds() - startedAt) / 1_000)
    }
  const sorted = fastest.toSorted((value, other) => value - other)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
