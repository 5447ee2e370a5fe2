import { prefersCheaper, warningShare } from '../core/billing/billing.ts'
import type { HealthState, PlaceReason } from '../core/chat/attempts.ts'
import type { Strategy } from '../core/chat/chat.ts'
import { blendedPrice, fullName, type Model, type RoutingFigures } from '../core/models/models.ts'
import { type PriceTerms, type Rates, ratesAt } from '../core/models/pricing.ts'
import type { Level } from './capability-levels.ts'
import { insertSorted } from './insert-sorted.ts'

/** Shares of the three components in a score; the sum is 1. */
type Weights = { readonly quality: number; readonly cost: number; readonly speed: number }

/**
 * Returns weights with the given share of quality; the rest is cost and speed at seven to five. The ratio is fixed, so
 * that a larger weight of quality never selects a model of lower quality.
 */
function weighing(quality: number): Weights {
  return { quality, cost: ((1 - quality) * 7) / 12, speed: ((1 - quality) * 5) / 12 }
}

/**
 * Weights by strategy, independent of the prompt. `balanced` combines all three. The others rank by one component, and
 * the next decides between equals.
 */
export const strategyWeights: Readonly<Record<Strategy, Weights>> = {
  balanced: weighing(0.4),
  quality: weighing(1),
  cost: { quality: 0, cost: 1, speed: 0 },
  speed: { quality: 0, cost: 0, speed: 1 },
}

/** Weights by the prompt's level if there is no strategy. */
export const levelWeights: Readonly<Record<Level, Weights>> = {
  light: weighing(0.15),
  middle: weighing(0.45),
  strong: weighing(0.9),
}

/** `level` is the prompt's; it applies without a strategy. `terms` decide which of a model's prices are compared. */
export type ScoringMode = { readonly strategy: Strategy | null; readonly level: Level; readonly terms: PriceTerms }

/** Components of a score; their sum is the score. */
export type ScoreComponents = {
  readonly quality: number
  readonly cost: number
  readonly speed: number
  /** Deduction for recent failures, at most 0. Always 0 under `cost`, where failures never outweigh a price. */
  readonly reliability: number
}

/** Current figures of a model: the catalog's combined with measurements. */
export type Figures = Pick<RoutingFigures, 'quality' | 'tokensPerSecond' | 'firstTokenMs'> & {
  /** Share of failed attempts, 0–1. */
  readonly errorRate: number
  /** Number of recent attempts behind these figures; older ones count less. */
  readonly tries: number
}
export type FigureLookup = (model: Model) => Figures

export type Scored = {
  readonly model: Model
  /** 0–1. */
  readonly score: number
  /** Why it has its place, written by the step that placed it; absent = by its score. */
  readonly place?: PlaceReason
  /** Health at the time of the ranking; absent = healthy. */
  readonly health?: HealthState
}

/** Returns entries with the reason of their place. */
export function placed(entries: readonly Scored[], place: PlaceReason): Scored[] {
  return entries.map(entry => ({ ...entry, place }))
}

/** Returns the figures of a model without measurements. */
export function withoutFailures({ quality, tokensPerSecond, firstTokenMs }: RoutingFigures): Figures {
  return { quality, tokensPerSecond, firstTokenMs, errorRate: 0, tries: 0 }
}

/** Cached, since every request uses it for every model. */
const published = new WeakMap<Model, Figures>()

export const publishedFigures: FigureLookup = model => {
  const known = published.get(model)
  if (known !== undefined) return known
  const figures = withoutFailures(model.figures)
  published.set(model, figures)
  return figures
}

/** Scores models for a request, highest first. Deterministic: the order of `models` does not matter. */
export function score(
  models: readonly Model[],
  choice: ScoringMode,
  toFigures: FigureLookup = publishedFigures,
): Scored[] {
  const weights = getWeights(choice)
  const scored: Scored[] = []
  for (const model of models)
    insertSorted(scored, { model, score: weigh(model, weights, choice, toFigures(model)) }, byMerit)
  return scored
}

/**
 * Returns the figures with the error rate that counts: 0 under `cost`, where a failure must not lead to a higher price.
 */
function getLoss({ strategy }: Pick<ScoringMode, 'strategy'>, figures: Figures): Figures {
  return strategy === 'cost' && figures.errorRate > 0 ? { ...figures, errorRate: 0 } : figures
}

/** Returns the weights of the strategy, or of the prompt's level without one. */
export function getWeights({ strategy, level }: Pick<ScoringMode, 'strategy' | 'level'>): Weights {
  return strategy === null ? levelWeights[level] : strategyWeights[strategy]
}

/** Returns the components of a model's score. */
export function scoreComponents(model: Model, choice: ScoringMode, measured: Figures): ScoreComponents {
  const weights = getWeights(choice)
  const figures = getLoss(choice, measured)
  const quality = weights.quality * figures.quality
  const cost = weights.cost * costScore(model, choice.terms)
  const speed = weights.speed * speedScore(figures)
  return { quality, cost, speed, reliability: -figures.errorRate * (quality + cost + speed) }
}

/** Returns the expected value of a response; a failed attempt has none. */
function weigh(model: Model, weights: Weights, choice: ScoringMode, measured: Figures): number {
  const figures = getLoss(choice, measured)
  const worth =
    weights.quality * figures.quality +
    weights.cost * costScore(model, choice.terms) +
    weights.speed * speedScore(figures)
  return worth * (1 - figures.errorRate)
}

const [lowestPrice, highestPrice] = [0.05, 50]
const priceScale = scale(lowestPrice, highestPrice)
const cheapnesses = new WeakMap<Rates, number>()

/** Returns 1 at 0.05 USD per million tokens (three in, one out) and 0 at 50, on a logarithmic scale. */
export function costScore({ pricing }: Pick<Model, 'pricing'>, terms: PriceTerms): number {
  const rates = ratesAt(pricing, terms)
  const known = cheapnesses.get(rates)
  if (known !== undefined) return known
  const made = 1 - priceScale(blendedPrice(rates))
  cheapnesses.set(rates, made)
  return made
}

/** Returns what a price at this share of itself (0–1) adds to the score of cost. */
export function discountScore(share: number): number {
  return Math.log(1 / Math.max(share, leastPriceShare)) / Math.log(highestPrice / lowestPrice)
}

const leastPriceShare = 0.01

const typicalAnswerTokens = 400
const timeScale = scale(1, 300)

/** Returns 1 if a typical output of 400 tokens takes at most 1 s, and 0 if it takes 5 min. */
export function speedScore({
  firstTokenMs,
  tokensPerSecond,
}: Pick<Figures, 'firstTokenMs' | 'tokensPerSecond'>): number {
  return 1 - timeScale(firstTokenMs / 1000 + typicalAnswerTokens / tokensPerSecond)
}

/** Returns a function for the position of a value between `low` and `high` on a logarithmic scale, 0–1. */
function scale(low: number, high: number): (value: number) => number {
  const [from, span] = [Math.log(low), Math.log(high / low)]
  return value => Math.max(0, Math.min(1, (Math.log(value) - from) / span))
}

/** Orders by score, highest first. */
export function byScore(left: { readonly score: number }, right: { readonly score: number }): number {
  return right.score - left.score
}

function byMerit(left: Scored, right: Scored): number {
  if (left.score !== right.score) return byScore(left, right)
  const { figures: ours, pricing: our } = left.model
  const { figures: theirs, pricing: their } = right.model
  if (ours.quality !== theirs.quality) return theirs.quality - ours.quality
  const dearer = blendedPrice(our) - blendedPrice(their)
  if (dearer !== 0) return dearer
  return fullName(left.model) < fullName(right.model) ? -1 : 1
}

/** Scores this close count as equal when alternating providers. */
export const nearScore = 0.15

/**
 * Returns the first `count` of a ranked list. After the first, a model of an unused provider moves ahead if its score
 * is near the best remaining one, so that one provider's outage does not also affect the next candidate.
 */
export function alternateProviders<T extends Scored>(ordered: readonly T[], count: number): T[] {
  const chosen: T[] = []
  // Index in `chosen` at which the current round begins; each provider has at most one model per round.
  let round = 0
  while (chosen.length < count) {
    const best = firstLeft(ordered, chosen, chosen.length)
    if (best === null) break
    const fresh = firstLeft(ordered, chosen, round)
    if (fresh === null) round = chosen.length
    const passes = fresh !== null && fresh !== best && best.score - fresh.score <= nearScore
    chosen.push(passes ? { ...fresh, place: 'other_provider' } : best)
  }
  return chosen
}

/** Returns the best remaining model whose provider has none in `chosen` from `round` on; null = none. */
function firstLeft<T extends Scored>(ordered: readonly T[], chosen: readonly T[], round: number): T | null {
  for (const entry of ordered) if (!rulesOut(chosen, round, entry)) return entry
  return null
}

function rulesOut(chosen: readonly Scored[], round: number, entry: Scored): boolean {
  for (let turn = 0; turn < chosen.length; turn++) {
    const scored = chosen[turn]
    if (scored?.model === entry.model || (turn >= round && scored?.model.provider === entry.model.provider)) return true
  }
  return false
}

/** Returns a description of a model's score for the dry run. */
export function describeScore(model: Model, choice: ScoringMode, measured: Figures): string {
  const weights = getWeights(choice)
  const figures = getLoss(choice, measured)
  const percent = (share: number) => Math.round(share * 100)
  const of = (name: string, figure: number, weight: number) => `${name} ${percent(figure)} × ${percent(weight)} %`
  const sum = [
    of('quality', figures.quality, weights.quality),
    of('cost', costScore(model, choice.terms), weights.cost),
    of('speed', speedScore(figures), weights.speed),
  ].join(', ')
  return figures.errorRate === 0 ? sum : `${sum}, of which ${percent(figures.errorRate)} % are lost to failures`
}

const [firstLean, fullLean] = [0.3, 0.6]

/**
 * Returns scores shifted toward cheaper models, more so the more of the soft cap is used; highest first. Unchanged
 * below the warning share.
 */
export function preferCheaper(scored: readonly Scored[], share: number, terms: PriceTerms): readonly Scored[] {
  if (!prefersCheaper(share)) return scored
  const lean = firstLean + (fullLean - firstLean) * Math.min(1, (share - warningShare) / (1 - warningShare))
  return scored
    .map(entry => ({ ...entry, score: (1 - lean) * entry.score + lean * costScore(entry.model, terms) }))
    .sort(byScore)
}
