import type { Strategy } from './chat.ts'
import { blendedPrice, fullName, type Model } from './models.ts'

/** Shares of the three figures in a score; they add up to 1. */
export type Weights = { readonly quality: number; readonly cost: number; readonly speed: number }

/**
 * What each strategy is after. `balanced` never looks at the prompt; the other three want one thing alone, and only
 * between equals does the next figure decide.
 */
export const strategyWeights: Readonly<Record<Strategy, Weights>> = {
  balanced: { quality: 0.4, cost: 0.35, speed: 0.25 },
  quality: { quality: 1, cost: 0, speed: 0 },
  cost: { quality: 0, cost: 1, speed: 0 },
  speed: { quality: 0, cost: 0, speed: 1 },
}

/** Without a strategy the prompt decides: from the first of these at complexity 0 to the second at complexity 1. */
const forSimple: Weights = { quality: 0.15, cost: 0.5, speed: 0.35 }
const forComplex: Weights = { quality: 0.9, cost: 0.07, speed: 0.03 }

export type Choice = {
  readonly strategy: Strategy | null
  /** 0–1, of the prompt; matters where there is no strategy. */
  readonly complexity: number
  readonly testMode: boolean
}

export type Scored = { readonly model: Model /** 0–1. */; readonly score: number }

/**
 * Scores models for a request, best first. Deterministic: the order of `models` does not matter. With `testMode` premium
 * models are left out.
 */
export function score(models: readonly Model[], choice: Choice): Scored[] {
  const weights = weightsOf(choice)
  return models
    .filter(model => !(choice.testMode && model.tier === 'premium'))
    .map(model => ({ model, score: weigh(model, weights) }))
    .sort(byScore)
}

/** The weights that a strategy, or without one the prompt, comes to. */
export function weightsOf({ strategy, complexity }: Choice): Weights {
  if (strategy !== null) return strategyWeights[strategy]
  const between = (simple: number, complex: number) => simple + (complex - simple) * complexity
  return {
    quality: between(forSimple.quality, forComplex.quality),
    cost: between(forSimple.cost, forComplex.cost),
    speed: between(forSimple.speed, forComplex.speed),
  }
}

function weigh(model: Model, weights: Weights): number {
  return weights.quality * model.figures.quality + weights.cost * cheapness(model) + weights.speed * quickness(model)
}

/** 1 at 0.05 USD per million tokens (three in, one out), 0 at 50: by ratio, as prices are felt. */
export function cheapness(model: Pick<Model, 'pricing'>): number {
  return 1 - onScale(blendedPrice(model.pricing), 0.05, 50)
}

const typicalAnswerTokens = 400

/** 1 where a typical answer of 400 tokens is there within 1 s, 0 where it takes 5 min. */
export function quickness({ figures }: Pick<Model, 'figures'>): number {
  return 1 - onScale(figures.firstTokenMs / 1000 + typicalAnswerTokens / figures.tokensPerSecond, 1, 300)
}

function onScale(value: number, low: number, high: number): number {
  return Math.max(0, Math.min(1, Math.log(value / low) / Math.log(high / low)))
}

function byScore(left: Scored, right: Scored): number {
  if (left.score !== right.score) return right.score - left.score
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
export function diversify<T extends Scored>(ordered: readonly T[], count: number): T[] {
  const left = [...ordered]
  const chosen: T[] = []
  const used = new Set<string>()
  while (chosen.length < count) {
    const [best] = left
    if (best === undefined) break
    const fresh = left.findIndex(({ model, score }) => !used.has(model.provider) && best.score - score <= nearScore)
    const [next] = left.splice(Math.max(0, fresh), 1)
    if (next === undefined) break
    chosen.push(next)
    used.add(next.model.provider)
    if (left.every(({ model }) => used.has(model.provider))) used.clear()
  }
  return chosen
}

/** Why a model has its score, in words for whoever asks. */
export function explain(model: Model, choice: Choice): string {
  const weights = weightsOf(choice)
  const percent = (share: number) => Math.round(share * 100)
  const of = (name: string, figure: number, weight: number) => `${name} ${percent(figure)} × ${percent(weight)} %`
  return [
    of('quality', model.figures.quality, weights.quality),
    of('cost', cheapness(model), weights.cost),
    of('speed', quickness(model), weights.speed),
  ].join(', ')
}
