import type { Strategy } from '../chat/chat.ts'
import { blendedPrice, fullName, type Model, type Pricing, type RoutingFigures } from '../models/models.ts'
import type { Level } from './capability-levels.ts'
import { insertSorted } from './insert-sorted.ts'

/** Shares of the three figures in a score; they add up to 1. */
export type Weights = { readonly quality: number; readonly cost: number; readonly speed: number }

/**
 * Quality against everything else, which is price and speed as seven to five. That mixture is one and the same throughout:
 * so of any models whatever, the one chosen is never of a lower quality for a larger weight of it.
 */
function weighing(quality: number): Weights {
  return { quality, cost: ((1 - quality) * 7) / 12, speed: ((1 - quality) * 5) / 12 }
}

/**
 * What each strategy is after. None of them looks at the prompt. `balanced` trades, the other three want one thing alone, and
 * only between equals does the next figure decide.
 */
export const strategyWeights: Readonly<Record<Strategy, Weights>> = {
  balanced: weighing(0.4),
  quality: weighing(1),
  cost: { quality: 0, cost: 1, speed: 0 },
  speed: { quality: 0, cost: 0, speed: 1 },
}

/** Without a strategy the prompt decides, by its level. */
export const levelWeights: Readonly<Record<Level, Weights>> = {
  light: weighing(0.15),
  middle: weighing(0.45),
  strong: weighing(0.9),
}

/** `level` is the prompt's: it matters where there is no strategy. */
export type ScoringMode = { readonly strategy: Strategy | null; readonly level: Level }

/** What a score is made of; the parts add up to it. */
export type ScoreComponents = {
  readonly quality: number
  readonly cost: number
  readonly speed: number
  /** What the model's recent failures take away; 0 or less. Always 0 under `cost`, where they never outweigh a price. */
  readonly reliability: number
}

/** A model's figures as they are now: the catalogue's, and what was measured here. */
export type Figures = Pick<RoutingFigures, 'quality' | 'tokensPerSecond' | 'firstTokenMs'> & {
  /** Share of tries that fail, 0–1. */
  readonly errorRate: number
  /** Tries of late that these figures rest on, older ones counting less. */
  readonly tries: number
}
export type FiguresOf = (model: Model) => Figures

export type Scored = { readonly model: Model /** 0–1. */; readonly score: number }

/** Figures of a model of which nothing was measured. */
export function withoutFailures({ quality, tokensPerSecond, firstTokenMs }: RoutingFigures): Figures {
  return { quality, tokensPerSecond, firstTokenMs, errorRate: 0, tries: 0 }
}

/** Asked for every model of every request: made once for each. */
const published = new WeakMap<Model, Figures>()

export const publishedFigures: FiguresOf = model => {
  const known = published.get(model)
  if (known !== undefined) return known
  const figures = withoutFailures(model.figures)
  published.set(model, figures)
  return figures
}

/** Scores models for a request, best first. Deterministic: the order of `models` does not matter. */
export function score(
  models: readonly Model[],
  choice: ScoringMode,
  figuresOf: FiguresOf = publishedFigures,
): Scored[] {
  const weights = weightsOf(choice)
  const scored: Scored[] = []
  for (const model of models)
    insertSorted(scored, { model, score: weigh(model, weights, lossOf(choice, figuresOf(model))) }, byMerit)
  return scored
}

/** The figures with the share of failures that counts: none for `cost`, which a failure must not turn to a higher price. */
function lossOf({ strategy }: ScoringMode, figures: Figures): Figures {
  return strategy === 'cost' && figures.errorRate > 0 ? { ...figures, errorRate: 0 } : figures
}

/** The weights that a strategy, or without one the prompt, comes to. */
export function weightsOf({ strategy, level }: ScoringMode): Weights {
  return strategy === null ? levelWeights[level] : strategyWeights[strategy]
}

/** A score taken apart. */
export function scoreComponents(model: Model, choice: ScoringMode, measured: Figures): ScoreComponents {
  const weights = weightsOf(choice)
  const figures = lossOf(choice, measured)
  const quality = weights.quality * figures.quality
  const cost = weights.cost * costScore(model)
  const speed = weights.speed * speedScore(figures)
  return { quality, cost, speed, reliability: -figures.errorRate * (quality + cost + speed) }
}

/** What an answer is expected to be worth: nothing, where there is none. */
function weigh(model: Model, weights: Weights, figures: Figures): number {
  const worth =
    weights.quality * figures.quality + weights.cost * costScore(model) + weights.speed * speedScore(figures)
  return worth * (1 - figures.errorRate)
}

const priceScale = scale(0.05, 50)
const cheapnesses = new WeakMap<Pricing, number>()

/** 1 at 0.05 USD per million tokens (three in, one out), 0 at 50: by ratio, as prices are felt. */
export function costScore({ pricing }: Pick<Model, 'pricing'>): number {
  const known = cheapnesses.get(pricing)
  if (known !== undefined) return known
  const made = 1 - priceScale(blendedPrice(pricing))
  cheapnesses.set(pricing, made)
  return made
}

const typicalAnswerTokens = 400
const timeScale = scale(1, 300)

/** 1 where a typical answer of 400 tokens is there within 1 s, 0 where it takes 5 min. */
export function speedScore({
  firstTokenMs,
  tokensPerSecond,
}: Pick<Figures, 'firstTokenMs' | 'tokensPerSecond'>): number {
  return 1 - timeScale(firstTokenMs / 1000 + typicalAnswerTokens / tokensPerSecond)
}

/** Where a value lies between two others by ratio, 0–1. */
function scale(low: number, high: number): (value: number) => number {
  const [from, span] = [Math.log(low), Math.log(high / low)]
  return value => Math.max(0, Math.min(1, (Math.log(value) - from) / span))
}

/** Best first. */
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

/** Scores this close count as equal where another provider can stand in. */
const nearScore = 0.15

/**
 * The first `count` of a list ordered best first, reordered after the first so that a provider's outage does not take
 * the next candidate too: one of a provider not yet used goes first where its score is near the best one left.
 */
export function alternateProviders<T extends Scored>(ordered: readonly T[], count: number): T[] {
  const chosen: T[] = []
  // Where the latest round of providers begins in `chosen`: in a round each has at most one turn.
  let round = 0
  while (chosen.length < count) {
    const best = firstLeft(ordered, chosen, chosen.length)
    if (best === null) break
    const fresh = firstLeft(ordered, chosen, round)
    if (fresh === null) round = chosen.length
    chosen.push(fresh !== null && best.score - fresh.score <= nearScore ? fresh : best)
  }
  return chosen
}

/** The best that is not chosen, nor of the provider of one chosen from turn `round` on; null = there is none. */
function firstLeft<T extends Scored>(ordered: readonly T[], chosen: readonly T[], round: number): T | null {
  for (const entry of ordered) if (!rulesOut(chosen, round, entry)) return entry
  return null
}

function rulesOut(chosen: readonly Scored[], round: number, entry: Scored): boolean {
  for (let turn = 0; turn < chosen.length; turn++) {
    const one = chosen[turn]
    if (one === entry || (turn >= round && one?.model.provider === entry.model.provider)) return true
  }
  return false
}

/** Why a model has its score, in words for whoever asks. */
export function describeScore(model: Model, choice: ScoringMode, measured: Figures): string {
  const weights = weightsOf(choice)
  const figures = lossOf(choice, measured)
  const percent = (share: number) => Math.round(share * 100)
  const of = (name: string, figure: number, weight: number) => `${name} ${percent(figure)} × ${percent(weight)} %`
  const sum = [
    of('quality', figures.quality, weights.quality),
    of('cost', costScore(model), weights.cost),
    of('speed', speedScore(figures), weights.speed),
  ].join(', ')
  return figures.errorRate === 0 ? sum : `${sum}, of which ${percent(figures.errorRate)} % are lost to failures`
}
