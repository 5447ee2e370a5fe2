/** Second step of routing: scores each eligible model for a request, before health and learning. */

import type { HealthState, PlaceReason } from '../../core/chat/attempts.ts'
import type { Message } from '../../core/chat/chat.ts'
import {
  blendedPrice,
  type Catalog,
  fitsWindow,
  fullName,
  leavingSoon,
  type Model,
  type ModelHost,
  type RoutingFigures,
  tiers,
} from '../../core/models/models.ts'
import { type PriceTerms, ratesAt } from '../../core/models/pricing.ts'
import type { Clock } from '../../core/ports.ts'
import { priceTable } from '../../core/usage/money.ts'
import { getBias, type LearnedBiasLookup } from '../../learning/apply-bias.ts'
import type { EstimateCalibrator } from '../../learning/estimate-calibration.ts'
import { type CacheAffinity, describeAffinity, hasAffinity } from '../../models/cache-affinity.ts'
import { getLevel, type LevelShares } from '../../models/capability-levels.ts'
import type { TurnReason } from '../../models/conversation.ts'
import type { ChosenEffort } from '../../models/effort.ts'
import {
  costScore,
  describeScore,
  type FigureLookup,
  type Figures,
  publishedFigures,
  type Scored,
  type ScoringMode,
  score,
  scoreComponents,
  totalScore,
} from '../../models/scoring.ts'
import type { ConfiguredProvider, Endpoints } from '../../providers/configured-provider.ts'
import type { PromptAnalyzer } from '../../text/analysis/prompt-analysis.ts'
import { baseCost, expectedOutput, unknownLength } from '../cost-estimate.ts'
import type { Candidate, RouteRequest, ScoreParts } from './candidate.ts'
import { findEndpoint, firstHealthKey } from './hosts.ts'

export type ScoreDeps = {
  readonly catalog: Pick<Catalog, 'list'>
  readonly health: {
    /**
     * Returns the catalog figures of a model, blended with measured ones; null = nothing was measured. Absent =
     * measurement is off.
     */
    findFigures?(key: string, published: RoutingFigures): Figures | null
  }
}

export type ScoredModels = {
  readonly mode: ScoringMode
  readonly getFigures: FigureLookup
  /** Best first: models that allow the requested output length. */
  readonly long: readonly Scored[]
  /** Best first: models with a lower output limit. They go behind all others. */
  readonly short: readonly Scored[]
}

/** Filters the ranking by the strategy, or without one by the prompt's capability level, to eligible models. */
export function scoreCandidates(deps: ScoreDeps, request: RouteRequest, able: readonly Model[]): ScoredModels {
  const mode = getScoringMode(request)
  const getFigures = figuresBy(deps)
  const long: Scored[] = []
  const short: Scored[] = []
  const isAble = new Set(able)
  for (const entry of score(deps.catalog.list, mode, getFigures))
    if (isAble.has(entry.model)) (allowsOutputLength(request, entry.model) ? long : short).push(entry)
  return { mode, getFigures, long, short }
}

export function getScoringMode({ request: { strategy }, level, terms, efforts, lengths }: RouteRequest): ScoringMode {
  const mode = { strategy, level, terms, lengths }
  return efforts === undefined ? mode : Object.assign(mode, { efforts })
}

/** Scores models as fallbacks of a named one, the most similar first. */
export function scoreFallbacks(named: Model, models: readonly Model[], terms: PriceTerms): readonly Scored[] {
  return models
    .map(model => ({ model, score: similarity(named, model, terms) }))
    .sort((left, right) => right.score - left.score || (fullName(left.model) < fullName(right.model) ? -1 : 1))
}

/** Measured figures, looked up once for each model of a request. */
function figuresBy({ health }: Pick<ScoreDeps, 'health'>): FigureLookup {
  if (health.findFigures === undefined) return publishedFigures
  return model => health.findFigures?.(firstHealthKey(model), model.figures) ?? publishedFigures(model)
}

/**
 * Returns 0–1: how well a model replaces another. Another provider scores higher, because the first one may be
 * completely unavailable.
 */
function similarity(model: Model, other: Model, terms: PriceTerms): number {
  const apart =
    Math.abs(model.figures.quality - other.figures.quality) +
    0.15 * Math.abs(tiers.indexOf(model.tier) - tiers.indexOf(other.tier)) +
    0.1 * Math.max(0, costScore(model, terms) - costScore(other, terms)) +
    (model.provider === other.provider ? 0.2 : 0)
  return Math.max(0, 1 - apart)
}

export type OutputForecast = {
  /** Expected output length relative to the usual one. Absent = usual length. */
  readonly calibration?: Pick<EstimateCalibrator, 'of' | 'reasoning'>
}

/** Returns the expected output tokens of a model at an effort, all choices together. */
export function likelyOutputTokens(
  { calibration }: OutputForecast,
  request: RouteRequest,
): (model: Model, effort?: ChosenEffort) => number {
  const { caller, request: question, lengths } = request
  const { queryType, words } = request.analysis
  const known = calibration?.of(queryType, caller.accountId) ?? unknownLength
  return (model, effort = null) =>
    expectedOutput(model, { queryType, words, effort, lengths }, question.maxOutputTokens, known).tokens *
    question.choices
}

type PricedRequest = Pick<RouteRequest, 'inputTokens' | 'terms'>

/** Returns the blended price of a request of this input length, at its time. Only for comparisons: it has no unit. */
export function listPrice({ pricing }: Model, { inputTokens, terms }: PricedRequest): number {
  return blendedPrice(priceTable(ratesAt(pricing, terms), inputTokens))
}

/** Returns the cost of a request with this output without caching, at its time. */
export function expectedCost({ pricing }: Model, { inputTokens, terms }: PricedRequest, outputTokens: number): number {
  return baseCost(ratesAt(pricing, terms), inputTokens, outputTokens)
}

/** Returns whether a model allows the client's own output cap. */
export function allowsOutputLength({ request: { maxOutputTokens }, inputTokens }: RouteRequest, model: Model): boolean {
  if (maxOutputTokens === null) return true
  return model.maxOutputTokens >= maxOutputTokens && fitsWindow(model, inputTokens, maxOutputTokens)
}

/** A model whose price is at most this multiple of the cheapest one may precede it. */
export const nearEqualPrice = 1.1

export type PricedModel = {
  readonly model: Model
  /** List price that applies to the request, in the same unit for all models. */
  readonly price: number
  readonly isHealthy: boolean
  /** Expected cost of the request, including failed attempts. */
  readonly expectedCost: number
}

/** Sorts models by price, and near-equal ones by health. The order of `models` does not matter. */
export function cheapestFirst<T extends PricedModel>(models: readonly T[]): T[] {
  const byPrice = models.toSorted(
    (left, right) => left.price - right.price || (fullName(left.model) < fullName(right.model) ? -1 : 1),
  )
  const ordered: T[] = []
  let lowest = Number.NaN
  let equals: T[] = []
  for (const entry of byPrice) {
    if (!(entry.price <= lowest * nearEqualPrice)) {
      ordered.push(...equals.sort(byHealth))
      equals = []
      lowest = entry.price
    }
    equals.push(entry)
  }
  ordered.push(...equals.sort(byHealth))
  return ordered
}

/** A stable sort keeps the order by price among equals. */
function byHealth(left: PricedModel, right: PricedModel): number {
  if (left.isHealthy !== right.isHealthy) return left.isHealthy ? -1 : 1
  return left.expectedCost - right.expectedCost || right.model.figures.quality - left.model.figures.quality
}

type LikelyModelDeps = {
  readonly catalog: Pick<Catalog, 'list'>
  readonly clock: Pick<Clock, 'now'>
  readonly read: PromptAnalyzer
  readonly shares: LevelShares
}

/** Returns the model that routing would choose for these messages regardless of account and health; null = none. */
export function likelyModel(
  { catalog, clock, read, shares }: LikelyModelDeps,
  messages: readonly Message[],
): Model | null {
  const now = clock.now()
  const today = new Date(now).toISOString().slice(0, 10)
  const staying = catalog.list.filter(model => !leavingSoon(model, today))
  const level = getLevel(read(messages).strongGain, shares)
  return score(staying, { strategy: null, level, terms: { at: now, tier: null } })[0]?.model ?? null
}

/** Data behind the scores of a ranking. */
export type ScoreContext = {
  readonly mode: ScoringMode
  readonly learned: LearnedBiasLookup | null
  /** Cache affinity that put the first model there; null = none. */
  readonly keptFor: CacheAffinity | null
  /** Why the turn of the conversation has its model. */
  readonly reason: TurnReason
  /** The monthly soft cap is nearly used, which raises cheaper models. */
  readonly savesMoney: boolean
}

/** A class, since explanations are rarely requested. It explains by the figures of its ranking. */
export class RankedCandidate implements Candidate {
  readonly model: Model
  readonly host?: ModelHost
  readonly score: number
  readonly place: PlaceReason
  readonly health: HealthState
  readonly effort: ChosenEffort
  readonly figures?: Figures

  /** `context`: what explains its score, or why it is a candidate without one. */
  constructor(
    private readonly entry: Scored,
    readonly endpoint: ConfiguredProvider,
    private readonly context: ScoreContext | string,
  ) {
    const { model, score, effort = null, place = 'score', health = 'healthy', figures } = entry
    this.model = model
    const host = model.hosts?.[0]
    if (host !== undefined) this.host = host
    this.score = score
    this.effort = effort
    this.place = place
    this.health = health
    if (figures !== undefined) this.figures = figures
  }

  reason(): string {
    const { model, effort, context, figures = publishedFigures(model) } = this
    if (typeof context === 'string') return context
    const { mode, learned, keptFor, savesMoney, reason } = context
    const kept = keptFor !== null && hasAffinity(model, keptFor) ? `, ${describeAffinity(keptFor)}` : ''
    const saving = savesMoney ? ', cheaper models raised by the monthly soft cap' : ''
    const turn = reason === 'first' ? '' : `, conversation: ${turnSentences[reason]}`
    return describeScore(model, mode, figures, effort) + describeBias(learned, model) + saving + kept + turn
  }

  parts(): ScoreParts | null {
    const { model, effort, context, figures = publishedFigures(model) } = this
    if (typeof context === 'string') return null
    const { parts = scoreComponents(model, context.mode, figures, effort) } = this.entry
    return { ...parts, adjustment: this.score - totalScore(parts) }
  }
}

const turnSentences: Readonly<Record<Exclude<TurnReason, 'first'>, string>> = {
  tool_loop: 'a tool loop keeps its model and its effort',
  same_task: 'a task keeps its model',
  cached: 'another model gains less than the lost cache costs',
  escalated: 'trouble raised the effort or the model',
  better: 'the topic is of another level',
  cheaper: 'a new topic saves more than the lost cache costs',
  lost: 'its model cannot be called now',
}

/** Empty if there is no learning for the model. */
function describeBias(learned: LearnedBiasLookup | null, model: Model): string {
  const bias = getBias(learned, fullName(model))
  return bias === 0 ? '' : `, learnt ${bias > 0 ? '+' : '−'}${Math.abs(bias * 100).toFixed(1)}`
}

/** Converts scored models in their order; omits models without a configured provider. */
export function toCandidates(
  endpoints: Endpoints,
  scored: readonly Scored[],
  context: ScoreContext | string,
): readonly Candidate[] {
  const candidates: Candidate[] = []
  for (const entry of scored) {
    const endpoint = findEndpoint(endpoints, entry.model)
    if (endpoint !== undefined) candidates.push(new RankedCandidate(entry, endpoint, context))
  }
  return candidates
}
