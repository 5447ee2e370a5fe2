/**
 * Third step of routing: the order in which scored models are called. Health, learning, the monthly soft cap and prompt
 * caches move a model up or down; none of them removes one.
 */

import { prefersCheaper } from '../../core/billing/billing.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { fullName, type Model } from '../../core/models/models.ts'
import { applyLearnedBias, explore, type LearnedBiasLookup } from '../../learning/apply-bias.ts'
import type { CacheAffinityTracker } from '../../learning/cache-affinity.ts'
import { type CacheAffinity, hasAffinity, shouldKeepModel } from '../../models/cache-affinity.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import { alternateProviders } from '../../models/insert-sorted.ts'
import {
  byScore,
  type FigureLookup,
  getWeights,
  placed,
  preferCheaper,
  type Scored,
  type ScoringMode,
} from '../../models/scoring.ts'
import type { RouteRequest } from './candidate.ts'
import { routingHealth } from './hosts.ts'
import {
  allowsOutputLength,
  cheapestFirst,
  expectedCost,
  getScoringMode,
  likelyOutputTokens,
  listPrice,
  type OutputForecast,
  type PricedModel,
  type ScoreContext,
  type ScoreDeps,
  type ScoredModels,
  scoreCandidates,
} from './score-candidates.ts'
import { rankConversation, type TurnDeps, type TurnRanking } from './turn.ts'

/** Maximum candidates: three are attempted, the others replace skipped ones. */
export const maximumCandidates = 6

/** Health of a candidate, by its key. */
type RankHealth = Pick<HealthTracker, 'getStanding'>

export type RankDeps = OutputForecast &
  ScoreDeps &
  TurnDeps & {
    readonly health: RankHealth
    /** Used share of an account's monthly soft cap, 1 = all. Absent = no account has one. */
    readonly budget?: { getShare(caller: Caller): number }
    /** Random number, 0 ≤ x < 1, for exploration. Absent = no exploration. */
    readonly random?: () => number
    /** Returns the model that answered the conversation before. Absent = unknown. */
    readonly ties?: Pick<CacheAffinityTracker, 'of' | 'find' | 'digest'>
  }

/** Effect of learning on a choice. */
export type RouteLearning = {
  /** Erasure count of the account's learning at that time; null = not loaded yet. */
  readonly epoch: number | null
  /** Without learning another model would be the first. */
  readonly influenced: boolean
  /** Effects on the position of the first model. */
  readonly probability: number
}

type RankedModels = {
  readonly ordered: readonly Scored[]
  readonly learning: RouteLearning
  /** The turn of the conversation, with the state that it leaves. */
  readonly turn: TurnRanking<Ranking>
  readonly context: ScoreContext
}

/** Ranking in progress: its request, the scores, and the account's data. */
type Ranking = {
  readonly deps: RankDeps
  readonly request: RouteRequest
  readonly scores: ScoredModels
  readonly learned: LearnedBiasLookup | null
  /** Used share of the soft cap. */
  readonly capShare: number
}

/**
 * Ranks the eligible models: at most `maximumCandidates` of them, with the model of the conversation first where it stays. The
 * request of the result has the level and the efforts of the choice.
 */
export function rankCandidates(deps: RankDeps, request: RouteRequest, able: readonly Model[]): RankedModels {
  const { request: question, caller, analysis: scan } = request
  const weights = getWeights(getScoringMode(request))
  // If quality has no weight, its learned bias has none either.
  const learned = weights.quality === 0 ? null : (request.learning?.findLeaning(scan.queryType) ?? null)
  const capShare = deps.budget?.getShare(caller) ?? 0
  const rank = (wanted: RouteRequest) => {
    const ranking: Ranking = { deps, request: wanted, scores: scoreCandidates(deps, wanted, able), learned, capShare }
    return { request: wanted, scores: ranking, ordered: order(ranking, learned, maximumCandidates) }
  }
  const turn = rankConversation(deps, request, rank)
  const { scores: ranking, ordered: ranked, reason } = turn
  // If cost has no weight, a prompt cache has none either.
  const affinity = weights.cost === 0 ? null : (deps.ties?.of(caller.accountId, question) ?? null)
  const kept = affinity === null || reason !== 'first' ? null : withCachedFirst(ranking, ranked, affinity)
  const { ordered, learning } =
    kept === null && learned !== null && reason === 'first'
      ? withLearning(ranking, ranked, learned)
      : { ordered: kept ?? ranked, learning: withoutLearning(request) }
  const { mode } = ranking.scores
  return {
    ordered,
    learning,
    turn,
    context: {
      mode,
      learned,
      keptFor: kept !== null || ordered[0]?.place === 'cached' ? affinity : null,
      reason,
      savesMoney: question.strategy !== 'cost' && prefersCheaper(capShare),
    },
  }
}

export function withoutLearning({ learning }: RouteRequest): RouteLearning {
  return { epoch: learning?.epoch ?? null, influenced: false, probability: 1 }
}

/** Returns the first `count`; models with a lower output limit than requested only if no other remains. */
function order(ranking: Ranking, learned: LearnedBiasLookup | null, count: number): readonly Scored[] {
  const { long, short } = ranking.scores
  const first = getOrder(ranking, long, learned, count)
  if (short.length === 0) return first
  const last = getOrder(ranking, short, learned, count - first.length)
  return first.length === 0 ? last : [...first, ...placed(last, 'output_limit')]
}

function getOrder(
  ranking: Ranking,
  entries: readonly Scored[],
  learned: LearnedBiasLookup | null,
  count: number,
): readonly Scored[] {
  const { deps, request, scores, capShare } = ranking
  if (request.request.strategy === 'cost') return cheapestModels(deps, request, { entries, ...scores }, count)
  const biased = learned === null ? entries : applyLearnedBias(entries, ({ model }) => learned(fullName(model)))
  return unhealthyLast(deps, preferCheaper(biased, capShare, request.terms), count)
}

/** Returns whether a model may become the first for a reason other than its rank. */
function mayLead({ deps: { health }, request }: Ranking, { model }: Scored): boolean {
  if (!allowsOutputLength(request, model)) return false
  const { state, mayTry } = routingHealth(health, model)
  return state === 'healthy' && mayTry
}

/** Returns the ranking, sometimes with a near tie first, and whether learning changed the first model. */
function withLearning(
  ranking: Ranking,
  ranked: readonly Scored[],
  learned: LearnedBiasLookup,
): { readonly ordered: readonly Scored[]; readonly learning: RouteLearning } {
  const findBias = ({ model }: Scored) => learned(fullName(model))
  const random = ranking.deps.random ?? (() => 1)
  const { ordered, probability } = explore(ranked, findBias, entry => mayLead(ranking, entry), random)
  const influenced = ordered[0]?.model !== order(ranking, null, 1)[0]?.model
  return {
    ordered: ordered === ranked ? ranked : withFirst(ordered, 'explored'),
    learning: { ...withoutLearning(ranking.request), influenced, probability },
  }
}

/**
 * Returns the ranking with the model first that has the conversation's beginning in its cache; null = there is none, or
 * it would not save cost.
 */
function withCachedFirst(
  ranking: Ranking,
  ranked: readonly Scored[],
  affinity: CacheAffinity,
): readonly Scored[] | null {
  const { deps, request } = ranking
  const leader = ranked[0]
  const cached = ranked.find(({ model }) => hasAffinity(model, affinity))
  if (leader === undefined || cached === undefined || cached === leader || !mayLead(ranking, cached)) return null
  const outputTokens = likelyOutputTokens(deps, request)(leader.model, leader.effort)
  const costWeight = getWeights(ranking.scores.mode).cost
  if (!shouldKeepModel(cached, leader, affinity, { ...request, outputTokens, costWeight })) return null
  return withFirst([cached, ...ranked.filter(entry => entry !== cached)], 'cached')
}

function withFirst([first, ...others]: readonly Scored[], place: 'cached' | 'explored'): readonly Scored[] {
  return first === undefined ? others : [{ ...first, place }, ...others]
}

export const degradedPenalty = 0.1

/**
 * Returns the first `count`. Unhealthy models go last; ranking never removes them, so the last one can still be
 * attempted.
 */
export function unhealthyLast(
  { health }: Pick<RankDeps, 'health'>,
  scored: readonly Scored[],
  count: number,
): readonly Scored[] {
  const well: Scored[] = []
  const resting: Scored[] = []
  let isPenalized = false
  for (const entry of scored) {
    const { state, mayTry } = routingHealth(health, entry.model)
    if (state === 'unhealthy' || !mayTry) resting.push({ ...entry, health: state })
    else if (state === 'healthy') well.push(entry)
    else {
      well.push({ ...entry, score: Math.max(0, entry.score - degradedPenalty), health: state })
      isPenalized = true
    }
  }
  // The scores descend unless a penalty has changed one.
  if (isPenalized) well.sort(byScore)
  return withRestingLast(well, resting, count)
}

/** Returns the first `count` of two lists with alternating providers in each. The reason of the second is its health. */
function withRestingLast(well: readonly Scored[], resting: readonly Scored[], count: number): readonly Scored[] {
  const first = alternateProviders(well, count)
  if (first.length === count || resting.length === 0) return first
  const last = alternateProviders(resting, count - first.length)
  return first.length === 0 ? last : [...first, ...placed(last, 'unhealthy')]
}

/** Returns the first `count` under `cost`, cheapest first; models that must not be called now go last. */
function cheapestModels(
  deps: RankDeps,
  request: RouteRequest,
  { entries, getFigures }: { readonly entries: readonly Scored[]; readonly getFigures: FigureLookup },
  count: number,
): readonly Scored[] {
  const { health } = deps
  const outputTokens = likelyOutputTokens(deps, request)
  const open: Priced[] = []
  const resting: Priced[] = []
  for (const entry of entries) {
    const { model, effort = null } = entry
    const { state, mayTry } = routingHealth(health, model)
    const success = Math.max(leastSuccess, 1 - getFigures(model).errorRate)
    const list = state === 'unhealthy' || !mayTry ? resting : open
    list.push({
      ...entry,
      health: state,
      price: listPrice(model, request),
      isHealthy: state === 'healthy',
      expectedCost: expectedCost(model, request, outputTokens(model, effort)) / success,
    })
  }
  return withRestingLast(descending(cheapestFirst(open)), descending(cheapestFirst(resting)), count)
}

type Priced = Scored & PricedModel

/** Keeps the expected cost finite for a model that always fails. */
const leastSuccess = 0.01

/** Scores that decrease along the list, because near-equal prices may be ordered against their scores. */
function descending(ordered: readonly Scored[]): Scored[] {
  let lowest = 1
  return ordered.map(entry => {
    lowest = Math.min(lowest, entry.score)
    return { ...entry, score: lowest, place: 'price' }
  })
}

/**
 * Returns the fallbacks with the one that has the conversation cached before the first of those that it beats at its
 * price with the cache, by the rule by which a conversation keeps its model. Unhealthy models stay in their place.
 */
export function withCachedEarlier(
  deps: Pick<RankDeps, 'calibration' | 'health'> & { readonly ties?: Pick<CacheAffinityTracker, 'of'> },
  request: RouteRequest,
  mode: ScoringMode,
  fallbacks: readonly Scored[],
): readonly Scored[] {
  const { cost: costWeight } = getWeights(mode)
  const affinity = costWeight === 0 ? null : (deps.ties?.of(request.caller.accountId, request.request) ?? null)
  if (affinity === null) return fallbacks
  const from = fallbacks.findIndex(({ model }) => hasAffinity(model, affinity))
  const cached = fallbacks[from]
  const { health } = deps
  if (cached === undefined || routingHealth(health, cached.model).state !== 'healthy') return fallbacks
  const outputTokens = likelyOutputTokens(deps, request)(cached.model)
  const to = fallbacks
    .slice(0, from)
    .findIndex(other => shouldKeepModel(cached, other, affinity, { ...request, outputTokens, costWeight }))
  if (to === -1) return fallbacks
  return [
    ...fallbacks.slice(0, to),
    { ...cached, place: 'cached' },
    ...fallbacks.slice(to, from),
    ...fallbacks.slice(from + 1),
  ]
}
