/**
 * Learning cell: running statistics of one model for one query type of an account. `learned-bias.ts` turns cells into
 * routing biases.
 */
import { dayMs } from '../core/text/utc-days.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'

export const confidences = ['cold_start', 'warm_up', 'established'] as const
export type LearningConfidence = (typeof confidences)[number]

/** Number of entries at which a model reaches each confidence, with the maximum bias there. */
const steps: readonly { readonly from: number; readonly confidence: LearningConfidence; readonly bound: number }[] = [
  { from: 50, confidence: 'established', bound: 0.2 },
  { from: 10, confidence: 'warm_up', bound: 0.05 },
  { from: 0, confidence: 'cold_start', bound: 0 },
]
const coldStart = { confidence: 'cold_start', bound: 0 } as const

/** Returns the confidence for a number of entries. */
export function getConfidence(entries: number): LearningConfidence {
  return getStep(entries).confidence
}

/** Returns the largest bias, in either direction, for a number of entries. A rating counts from the first one. */
export function maximumBias(entries: number, ratings = 0): number {
  const { bound } = getStep(entries)
  return ratings > 0 ? Math.max(bound, firstRatingBound) : bound
}

/** The bound of the warm-up. */
const firstRatingBound = 0.05

function getStep(entries: number) {
  for (const step of steps) if (entries >= step.from) return step
  return coldStart
}

/** Statistics of one model for one query type of one account. Times are epoch milliseconds. */
export type LearningCell = {
  /** Responses, and the entries that they count as: a rated response counts as three. */
  readonly requests: number
  readonly entries: number
  readonly since: number
  readonly at: number
  /** Evidence as of `at`, with older entries decayed: weight, mean quality, and sum of squared deviations. */
  readonly weight: number
  readonly quality: number
  readonly spread: number
  /** A run of responses below the mean: summed deficit, and weight and quality of its entries. */
  readonly slump: number
  readonly slumpWeight: number
  readonly slumpQuality: number
  /** Running means. `ratio` is the mean of ln(output tokens / input tokens). */
  readonly latencyMs: number
  readonly firstTokenMs: number | null
  readonly costMicrocents: number
  readonly ratio: number
  readonly ratioVariance: number
  readonly ratings: number
  /** Mean rating on the quality scale. */
  readonly rating: number
  readonly automatic: number
  readonly influenced: number
  readonly enhanced: number
  readonly enhancedQuality: number
  readonly plainQuality: number
}

type Measured = 'at_ms' | 'latency_ms' | 'first_token_ms' | 'billed_microcents' | 'input_tokens' | 'output_tokens'

/** What a cell learns from: the usage record of a successful request. */
export type Lesson = Pick<UsageRecord, Measured | 'routing_mode'> & {
  readonly learning: Pick<NonNullable<UsageRecord['learning']>, 'quality' | 'influenced' | 'enhanced'>
}

export const emptyCell: LearningCell = {
  requests: 0,
  entries: 0,
  since: 0,
  at: 0,
  weight: 0,
  quality: 0,
  spread: 0,
  slump: 0,
  slumpWeight: 0,
  slumpQuality: 0,
  latencyMs: 0,
  firstTokenMs: null,
  costMicrocents: 0,
  ratio: 0,
  ratioVariance: 0,
  ratings: 0,
  rating: 0,
  automatic: 0,
  influenced: 0,
  enhanced: 0,
  enhancedQuality: 0,
  plainQuality: 0,
}

/** Number of entries that a rating counts as. */
export const ratingWeight = 3
const halfLifeMs = 30 * dayMs
/** Maximum weight of old evidence. Bounded, so that slow changes of a model are followed. */
const maximumWeight = 200
/** Number of responses that displayed averages cover. */
const averagedAnswers = 200

/** Returns the cell with one more entry. */
export function addEntry(cell: LearningCell, lesson: Lesson): LearningCell {
  const { at_ms: at, first_token_ms: firstTokenMs, learning } = lesson
  const requests = cell.requests + 1
  const share = 1 / Math.min(requests, averagedAnswers)
  const towards = (mean: number, value: number) => mean + share * (value - mean)
  const ratio = logLengthRatio(lesson.input_tokens, lesson.output_tokens)
  const surprise = ratio - cell.ratio
  const { quality } = learning
  const enhanced = cell.enhanced + (learning.enhanced ? 1 : 0)
  const known = withEvidence(cell, quality, 1, at)
  return {
    ...known,
    requests,
    since: cell.requests === 0 ? at : Math.min(cell.since, at),
    latencyMs: towards(cell.latencyMs, lesson.latency_ms),
    firstTokenMs:
      firstTokenMs === null || cell.firstTokenMs === null
        ? (firstTokenMs ?? cell.firstTokenMs)
        : towards(cell.firstTokenMs, firstTokenMs),
    costMicrocents: towards(cell.costMicrocents, lesson.billed_microcents),
    ratio: cell.ratio + share * surprise,
    ratioVariance: (1 - share) * (cell.ratioVariance + share * surprise * surprise),
    automatic: cell.automatic + (lesson.routing_mode === 'auto' ? 1 : 0),
    influenced: cell.influenced + (learning.influenced ? 1 : 0),
    enhanced,
    enhancedQuality: learning.enhanced
      ? cell.enhancedQuality + (quality - cell.enhancedQuality) / enhanced
      : cell.enhancedQuality,
    plainQuality: learning.enhanced
      ? cell.plainQuality
      : cell.plainQuality + (quality - cell.plainQuality) / (requests - enhanced),
  }
}

/** Returns ln(output tokens / input tokens). */
export function logLengthRatio(inputTokens: number, outputTokens: number): number {
  return Math.log((outputTokens + 1) / (inputTokens + 1))
}

/** One piece of evidence: its quality, weight in entries, time, and whether it is a rating. */
export type QualityEvidence = {
  readonly quality: number
  readonly weight: number
  readonly at: number
  readonly isRating: boolean
}

/** Returns the cell with the evidence of one response replaced. */
export function replaceEvidence(
  cell: LearningCell,
  before: QualityEvidence,
  after: QualityEvidence,
  wasEnhanced: boolean,
): LearningCell {
  const known = withEvidence(without(cell, before), after.quality, after.weight, after.at)
  const ratings = cell.ratings - (before.isRating ? 1 : 0) + (after.isRating ? 1 : 0)
  const sum = cell.ratings * cell.rating - (before.isRating ? before.quality : 0) + (after.isRating ? after.quality : 0)
  const change = after.quality - before.quality
  const moved = (mean: number, count: number) => clamp(mean + change / Math.max(1, count), 0, 1)
  return {
    ...known,
    ratings,
    rating: ratings === 0 ? 0 : clamp(sum / ratings, 0, 1),
    enhancedQuality: wasEnhanced ? moved(cell.enhancedQuality, cell.enhanced) : cell.enhancedQuality,
    plainQuality: wasEnhanced ? cell.plainQuality : moved(cell.plainQuality, cell.requests - cell.enhanced),
  }
}

function without(cell: LearningCell, { quality, weight, at }: QualityEvidence): LearningCell {
  const entries = Math.max(0, cell.entries - weight)
  // The old evidence has decayed like all others. After a slump reset even less of it is left than this.
  const faded = Math.min(cell.weight, weight * decayFactor(cell.at - at))
  const left = cell.weight - faded
  if (left < 1e-6) return { ...cell, entries, weight: 0, quality: 0, spread: 0 }
  const mean = clamp((cell.weight * cell.quality - faded * quality) / left, 0, 1)
  return { ...cell, entries, weight: left, quality: mean, spread: (cell.spread * left) / cell.weight }
}

/** A run whose summed deficit exceeds this is not chance: the model has become worse. */
const slumpLimit = 5
/** Deficit per response of a run that does not count. */
const slumpAllowance = 0.12
/** With less evidence there is no reliable mean to compare to. */
const leastForSlump = 15
/** Weight that evidence from before a slump keeps. */
const keptAfterSlump = 15

function withEvidence(cell: LearningCell, quality: number, weight: number, at: number): LearningCell {
  const faded = decayFactor(at - cell.at)
  const added = weight * decayFactor(cell.at - at)
  const entries = cell.entries + weight
  const latest = Math.max(cell.at, at)
  const old = Math.min(cell.weight * faded, maximumWeight)
  const spread = cell.weight === 0 ? 0 : (cell.spread * old) / cell.weight

  const depth = old < leastForSlump ? 0 : cell.slump + weight * (cell.quality - quality - slumpAllowance)
  const isSlump = depth > 0
  const slumpWeight = isSlump ? cell.slumpWeight + weight : 0
  const slumpQuality = isSlump ? cell.slumpQuality + weight * quality : 0
  if (depth > slumpLimit) {
    // Only the run shows the current quality. Some older evidence stays, since the worst run of many was selected.
    const total = slumpWeight + keptAfterSlump
    return {
      ...cell,
      entries,
      at: latest,
      weight: total,
      quality: (slumpQuality + keptAfterSlump * cell.quality) / total,
      spread: (spread / old) * total,
      slump: 0,
      slumpWeight: 0,
      slumpQuality: 0,
    }
  }
  const total = old + added
  const mean = cell.quality + (added * (quality - cell.quality)) / total
  return {
    ...cell,
    entries,
    at: latest,
    weight: total,
    quality: mean,
    spread: Math.max(0, spread + added * (quality - cell.quality) * (quality - mean)),
    slump: isSlump ? depth : 0,
    slumpWeight,
    slumpQuality,
  }
}

/** Returns the remaining share of evidence after `elapsedMs`; 1 for negative times. */
export function decayFactor(elapsedMs: number): number {
  return elapsedMs <= 0 ? 1 : 2 ** (-elapsedMs / halfLifeMs)
}

/** Returns the value limited to `low`–`high`. */
export function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value))
}
