/** In which order those who can take a request are asked, and why. */
import { preferCheaper } from '../../core/billing/billing.ts'
import { applyLearnedBias, explore, getBias, type LearnedBiasLookup } from '../../core/learning/apply-bias.ts'
import { fullName, type Model } from '../../core/models/models.ts'
import {
  type CacheAffinity,
  describeAffinity,
  hasAffinity,
  shouldKeepModel,
} from '../../core/routing/cache-affinity.ts'
import { cheapestFirst, type PricedModel } from '../../core/routing/cheapest.ts'
import { insertSorted } from '../../core/routing/insert-sorted.ts'
import {
  type ScoringMode as Aim,
  alternateProviders,
  byScore,
  describeScore,
  type FiguresOf,
  publishedFigures,
  type Scored,
  score,
  scoreComponents,
  weightsOf,
} from '../../core/routing/scoring.ts'
import { baseCost } from '../../core/usage/cost-estimate.ts'
import type { ConfiguredProvider } from '../../providers/provider.ts'
import type { Candidate, ScoreParts } from './candidate.ts'
import { allowsOutputLength, likelyOutputTokens, listPrice } from './filter-candidates.ts'
import { healthKey } from './health-key.ts'
import type { RouteDeps, RouteRequest } from './route-request.ts'

/** At most this many candidates are handed on: three are attempted, the others stand by for those that are skipped. */
export const maximumCandidates = 6

/** What learning had to do with a choice. */
export type RouteLearning = {
  /** Erasures of the account's learning at the time; null = it was not known yet. */
  readonly epoch: number | null
  /** Without it another model would be the first. */
  readonly influenced: boolean
  /** Of the first model having become the first. */
  readonly probability: number
}

export type Ranked = {
  readonly candidates: readonly Candidate[]
  readonly learning: RouteLearning
  /** The first is the first because it has the conversation's beginning in its cache. */
  readonly isKept: boolean
}

/** Ranks `able` by the strategy, or without one by the prompt's level. */
export function rankByStrategy(deps: RouteDeps, request: RouteRequest, able: readonly Model[]): Ranked {
  const { ask, caller, reading, level } = request
  const aim: Aim = { strategy: ask.strategy, level }
  const weights = weightsOf(aim)
  const figuresOf = figuresBy(deps)
  const spent = deps.budget?.shareOf(caller) ?? 0
  // Who would break the answer off before the caller's own cap does is better than nobody, but only than nobody.
  const long: Scored[] = []
  const short: Scored[] = []
  for (const entry of score(able, aim, figuresOf)) (allowsOutputLength(request, entry.model) ? long : short).push(entry)
  const orderOf = (entries: readonly Scored[], leaning: LearnedBiasLookup | null, count: number) =>
    ask.strategy === 'cost'
      ? byPrice(deps, request, entries, figuresOf, count)
      : unhealthyLast(deps, preferCheaper(nudged(entries, leaning), spent), count)
  const rank = (leaning: LearnedBiasLookup | null, count: number) => {
    const first = orderOf(long, leaning, count)
    return short.length === 0 ? first : [...first, ...orderOf(short, leaning, count - first.length)]
  }
  const mayLead = ({ model }: Scored) => allowsOutputLength(request, model) && isHealthy(deps, model)
  // Where quality has no weight, what was learnt of it has none either.
  const account = weights.quality === 0 ? null : (deps.learning?.of(caller.accountId) ?? null)
  const leaning = account?.leaningOf(reading.queryType) ?? null
  // Nor does a cache count where nothing that is paid does.
  const tie = weights.cost === 0 ? null : (deps.ties?.of(caller.accountId, ask) ?? null)
  const ranked = rank(leaning, maximumCandidates)
  const kept = tie === null ? null : withTied(deps, request, ranked, tie, mayLead)
  const { ordered, learning } =
    kept === null && leaning !== null
      ? learned(deps, request, ranked, leaning, mayLead, () => rank(null, 1))
      : { ordered: kept ?? ranked, learning: withoutLearning(request) }
  const basis = { aim, figuresOf, leaning, keptFor: kept === null ? null : tie }
  const candidates = candidatesOf(deps, ordered, (entry, endpoint) => new RankedCandidate(entry, endpoint, basis))
  return { candidates, learning, isKept: kept !== null }
}

/** What the scores of a ranking rest on, for whoever asks. */
type ScoreContext = {
  readonly aim: Aim
  readonly figuresOf: FiguresOf
  readonly leaning: LearnedBiasLookup | null
  /** What the first was kept for; null = it was not. */
  readonly keptFor: CacheAffinity | null
}

/** A class, since hardly anybody asks a candidate how it came about. */
class RankedCandidate implements Candidate {
  readonly model: Model
  readonly endpoint: ConfiguredProvider
  readonly score: number
  private readonly basis: ScoreContext

  constructor({ model, score }: Scored, endpoint: ConfiguredProvider, basis: ScoreContext) {
    this.model = model
    this.endpoint = endpoint
    this.score = score
    this.basis = basis
  }

  reason(): string {
    const { model } = this
    const { aim, figuresOf, leaning, keptFor } = this.basis
    const kept = keptFor !== null && hasAffinity(model, keptFor) ? `, ${describeAffinity(keptFor)}` : ''
    return describeScore(model, aim, figuresOf(model)) + learntOf(leaning, model) + kept
  }

  parts(): ScoreParts {
    const { aim, figuresOf } = this.basis
    const parts = scoreComponents(this.model, aim, figuresOf(this.model))
    return { ...parts, adjustment: this.score - (parts.quality + parts.cost + parts.speed + parts.reliability) }
  }
}

export function withoutLearning({ epoch }: RouteRequest): RouteLearning {
  return { epoch, influenced: false, probability: 1 }
}

/** Figures as measured here, once for each model of a request. */
function figuresBy({ health }: RouteDeps): FiguresOf {
  if (health.figuresOf === undefined) return publishedFigures
  return model => health.figuresOf?.(healthKey({ model }), model.figures) ?? publishedFigures(model)
}

function isHealthy({ health }: RouteDeps, model: Model): boolean {
  const key = healthKey({ model })
  return health.stateOf(key) === 'healthy' && health.mayTry(key)
}

function nudged(scored: readonly Scored[], leaning: LearnedBiasLookup | null): readonly Scored[] {
  return leaning === null ? scored : applyLearnedBias(scored, ({ model }) => leaning(fullName(model)))
}

/** The ranking, now and then with a near-tie first, and whether it begins with another model for what was learnt. */
function learned(
  deps: RouteDeps,
  { epoch }: RouteRequest,
  ranked: readonly Scored[],
  leaning: LearnedBiasLookup,
  mayLead: (entry: Scored) => boolean,
  unlearned: () => readonly Scored[],
): { readonly ordered: readonly Scored[]; readonly learning: RouteLearning } {
  const leanOf = ({ model }: Scored) => leaning(fullName(model))
  const { ordered, probability } = explore(ranked, leanOf, mayLead, deps.random ?? (() => 1))
  const influenced = ordered[0]?.model !== unlearned()[0]?.model
  return { ordered, learning: { epoch, influenced, probability } }
}

/** The ranking with the model first that has the conversation's beginning in its cache; null = it has not, or it would not pay. */
function withTied(
  deps: RouteDeps,
  request: RouteRequest,
  ranked: readonly Scored[],
  tie: CacheAffinity,
  mayLead: (entry: Scored) => boolean,
): readonly Scored[] | null {
  const leader = ranked[0]
  const tied = ranked.find(({ model }) => hasAffinity(model, tie))
  if (leader === undefined || tied === undefined || tied === leader || !mayLead(tied)) return null
  const outputTokens = likelyOutputTokens(deps, request)(leader.model)
  if (!shouldKeepModel(tied, leader, tie, { inputTokens: request.inputTokens, outputTokens })) return null
  return [tied, ...ranked.filter(entry => entry !== tied)]
}

/** For whoever asks how a score came about; nothing where nothing was learnt. */
function learntOf(leaning: LearnedBiasLookup | null, model: Model): string {
  const bias = getBias(leaning, fullName(model))
  return bias === 0 ? '' : `, learnt ${bias > 0 ? '+' : '−'}${Math.abs(bias * 100).toFixed(1)}`
}

const degradedPenalty = 0.1

/** The first `count`. Models that are not well go behind all others, never away: the last one left is still worth a try. */
export function unhealthyLast({ health }: RouteDeps, scored: readonly Scored[], count: number): readonly Scored[] {
  const well: Scored[] = []
  const resting: Scored[] = []
  for (const entry of scored) {
    const key = healthKey(entry)
    const state = health.stateOf(key)
    if (state === 'unhealthy' || !health.mayTry(key)) resting.push(entry)
    else if (state === 'healthy') insertSorted(well, entry, byScore)
    else insertSorted(well, { model: entry.model, score: Math.max(0, entry.score - degradedPenalty) }, byScore)
  }
  const first = alternateProviders(well, count)
  return first.length === count ? first : [...first, ...alternateProviders(resting, count - first.length)]
}

/** The first `count` under `cost`, cheapest first; those that must not be asked now go behind all others. */
function byPrice(
  deps: RouteDeps,
  request: RouteRequest,
  scored: readonly Scored[],
  figuresOf: FiguresOf,
  count: number,
): readonly Scored[] {
  const { health } = deps
  const { inputTokens } = request
  const outputTokens = likelyOutputTokens(deps, request)
  const open: Priced[] = []
  const resting: Priced[] = []
  for (const entry of scored) {
    const { model } = entry
    const key = healthKey({ model })
    const state = health.stateOf(key)
    const success = Math.max(leastSuccess, 1 - figuresOf(model).errorRate)
    const expectedCost = baseCost(model, inputTokens, outputTokens(model)) / success
    const list = state === 'unhealthy' || !health.mayTry(key) ? resting : open
    list.push({ ...entry, price: listPrice(model, inputTokens), isHealthy: state === 'healthy', expectedCost })
  }
  const first = alternateProviders(descending(cheapestFirst(open)), count)
  return first.length === count
    ? first
    : [...first, ...alternateProviders(descending(cheapestFirst(resting)), count - first.length)]
}

type Priced = Scored & PricedModel

/** Keeps an expected cost finite for a model that fails always. */
const leastSuccess = 0.01

/** Scores that fall along the list, as the order of near-equal prices is not that of their scores. */
function descending(ordered: readonly Scored[]): Scored[] {
  let lowest = 1
  return ordered.map(({ model, score }) => {
    lowest = Math.min(lowest, score)
    return { model, score: lowest }
  })
}

/** Scored models as candidates, in their order; those whose provider is not configured here are left out. */
export function candidatesOf(
  deps: RouteDeps,
  scored: readonly Scored[],
  candidateOf: (entry: Scored, endpoint: ConfiguredProvider) => Candidate,
): readonly Candidate[] {
  const candidates: Candidate[] = []
  for (const entry of scored) {
    const endpoint = deps.endpoints.get(entry.model.provider)
    if (endpoint !== undefined) candidates.push(candidateOf(entry, endpoint))
  }
  return candidates
}
