import { prefersCheaper, warningShare } from '../core/billing/billing.ts'
import type { HealthState, PlaceReason } from '../core/chat/attempts.ts'
import type { Strategy } from '../core/chat/chat.ts'
import { blendedPrice, fullName, type Model, type RoutingFigures } from '../core/models/models.ts'
import { type PriceTerms, type Rates, ratesAt } from '../core/models/pricing.ts'
import { remembered } from '../core/text/recent-map.ts'
import type { Level } from './capability-levels.ts'
import {
  type ChosenEffort,
  type EffortRules,
  effortRuleCount,
  expectedReasoning,
  firstTokenAt,
  listEfforts,
  qualityAt,
  type ReasoningLengths,
  usualLengths,
} from './effort.ts'

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
export type ScoringMode = {
  readonly strategy: Strategy | null
  readonly level: Level
  readonly terms: PriceTerms
  /** The efforts that the request allows; absent = no effort is chosen. */
  readonly efforts?: EffortRules
  /** Absent = before any measurement. */
  readonly lengths?: ReasoningLengths
}

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
  /** The effort that the score is about; absent or null = the provider's default. */
  readonly effort?: ChosenEffort
  /** Why it has its place, written by the step that placed it; absent = by its score. */
  readonly place?: PlaceReason
  /** Health at the time of the ranking; absent = healthy. */
  readonly health?: HealthState
  /** What the score was worked out from, and its components before any step that changed it; absent = by no figures. */
  readonly figures?: Figures
  readonly parts?: ScoreComponents
}

/** Returns entries with the reason of their place. */
export function placed(entries: readonly Scored[], place: PlaceReason): Scored[] {
  return entries.map(entry => ({ ...entry, place }))
}

/** Returns the figures of a model without measurements. */
export function withoutFailures({ quality, tokensPerSecond, firstTokenMs }: RoutingFigures): Figures {
  return { quality, tokensPerSecond, firstTokenMs, errorRate: 0, tries: 0 }
}

/** Remembered, since every request uses it for every model. */
export const publishedFigures: FigureLookup = remembered(model => withoutFailures(model.figures))

const modes = ['light', 'middle', 'strong', 'balanced', 'quality', 'cost', 'speed'] as const satisfies (
  | Level
  | Strategy
)[]

/**
 * Ranking of a list of models, each at the best of its efforts. A model is scored again only when its figures, prices or
 * lengths have changed.
 */
type RankTable = {
  readonly figures: (Figures | undefined)[]
  readonly rates: (Rates | undefined)[]
  lengths: ReasoningLengths
  /** By mode with its effort rules, and by model; absent = not scored since the last change. */
  readonly entries: Map<number, (Scored | undefined)[]>
  /** By mode with its effort rules, highest first; absent = not ordered since the last change. */
  readonly ranked: Map<number, readonly Scored[]>
}

const tables = new WeakMap<readonly Model[], RankTable>()

/**
 * Returns the models with their scores, highest first. Deterministic: the order of `models`, which never changes, does not
 * matter. Requests share the result.
 */
export function score(
  models: readonly Model[],
  choice: ScoringMode,
  toFigures: FigureLookup = publishedFigures,
): readonly Scored[] {
  const { lengths = usualLengths, efforts } = choice
  const table = tables.get(models) ?? { figures: [], rates: [], lengths, entries: new Map(), ranked: new Map() }
  tables.set(models, table)
  const { figures, rates, entries, ranked } = table
  if (table.lengths !== lengths) {
    table.lengths = lengths
    entries.clear()
    ranked.clear()
  }
  for (let at = 0; at < models.length; at++) {
    const model = models[at]
    if (model === undefined) continue
    const measured = toFigures(model)
    const prices = ratesAt(model.pricing, choice.terms)
    if (figures[at] === measured && rates[at] === prices) continue
    figures[at] = measured
    rates[at] = prices
    for (const scored of entries.values()) scored[at] = undefined
    ranked.clear()
  }
  const mode =
    modes.indexOf(choice.strategy ?? choice.level) * (effortRuleCount + 1) + (efforts?.key ?? effortRuleCount)
  const known = ranked.get(mode)
  if (known !== undefined) return known
  const scored = entries.get(mode) ?? []
  entries.set(mode, scored)
  const ordered = models.map((model, at) => (scored[at] ??= scoreModel(model, choice, toFigures(model)))).sort(byMerit)
  ranked.set(mode, ordered)
  return ordered
}

/** Scores a model at the best of its efforts; the lower of two equal ones. */
function scoreModel(model: Model, choice: ScoringMode, measured: Figures): Scored {
  const { efforts, strategy, level } = choice
  let best: Scored | null = null
  for (const effort of efforts === undefined ? [null] : listEfforts(model, strategy ?? level, efforts)) {
    const parts = scoreComponents(model, choice, measured, effort)
    const score = totalScore(parts)
    if (best === null || score > best.score) best = { model, score, effort, figures: measured, parts }
  }
  return best ?? { model, score: 0 }
}

export function totalScore({ quality, cost, speed, reliability }: ScoreComponents): number {
  return quality + cost + speed + reliability
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

/** Returns the components of a model's score at an effort. */
export function scoreComponents(
  model: Model,
  choice: ScoringMode,
  measured: Figures,
  effort: ChosenEffort = null,
): ScoreComponents {
  const weights = getWeights(choice)
  const { errorRate, ...figures } = figuresAt(model, choice, measured, effort)
  const quality = weights.quality * figures.quality
  const cost = weights.cost * figures.cost
  const speed = weights.speed * figures.speed
  return { quality, cost, speed, reliability: -errorRate * (quality + cost + speed) }
}

/** Returns what a model's score at an effort consists of, before the weights. */
function figuresAt(model: Model, choice: ScoringMode, measured: Figures, effort: ChosenEffort) {
  const { strategy, level, terms, efforts, lengths = usualLengths } = choice
  const { quality, firstTokenMs, tokensPerSecond, errorRate } = getLoss(choice, measured)
  const mode = strategy ?? level
  const outputs = efforts === undefined ? 1 : 1 + expectedReasoning(model, effort, lengths) / typicalAnswerTokens
  return {
    quality: quality * qualityAt(model, effort, mode),
    cost: costScore(model, terms, outputs),
    speed: speedScore({ firstTokenMs: firstTokenMs * firstTokenAt(effort), tokensPerSecond }),
    errorRate,
  }
}

const [lowestPrice, highestPrice] = [0.05, 50]
const priceScale = scale(lowestPrice, highestPrice)

/**
 * Returns 1 at 0.05 USD per million tokens (three in, one out) and 0 at 50, on a logarithmic scale. `outputs` is the
 * output with its reasoning as a multiple of the usual output.
 */
export function costScore({ pricing }: Pick<Model, 'pricing'>, terms: PriceTerms, outputs = 1): number {
  const { input, output } = ratesAt(pricing, terms)
  return 1 - priceScale(blendedPrice({ input, output: output * outputs }))
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

/** Returns a description of a model's score for the dry run. */
export function describeScore(
  model: Model,
  choice: ScoringMode,
  measured: Figures,
  effort: ChosenEffort = null,
): string {
  const weights = getWeights(choice)
  const figures = figuresAt(model, choice, measured, effort)
  const percent = (share: number) => Math.round(share * 100)
  const of = (name: string, figure: number, weight: number) => `${name} ${percent(figure)} × ${percent(weight)} %`
  const sum = [
    of('quality', figures.quality, weights.quality),
    of('cost', figures.cost, weights.cost),
    of('speed', figures.speed, weights.speed),
  ].join(', ')
  const named = effort === null ? sum : `${sum}, at effort ${effort}`
  return figures.errorRate === 0 ? named : `${named}, of which ${percent(figures.errorRate)} % are lost to failures`
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
