/**
 * What an account's own answers say of a model, per query type: a cell of running figures that entries go into. What the
 * cells come to for the router is `bias.ts`.
 */
import { dayMs } from '../text/utc-days.ts'

export const confidences = ['cold_start', 'warm_up', 'established'] as const
export type LearningConfidence = (typeof confidences)[number]

/** From how many entries on a model of a query type counts as known, and what its bias may then be at most. */
const steps: readonly { readonly from: number; readonly confidence: LearningConfidence; readonly bound: number }[] = [
  { from: 50, confidence: 'established', bound: 0.2 },
  { from: 10, confidence: 'warm_up', bound: 0.05 },
  { from: 0, confidence: 'cold_start', bound: 0 },
]
const coldStart = { confidence: 'cold_start', bound: 0 } as const

/** How well a model is known by so many entries. */
export function confidenceOf(entries: number): LearningConfidence {
  return stepOf(entries).confidence
}

/** The largest bias, either way, that so many entries allow. */
export function maximumBias(entries: number): number {
  return stepOf(entries).bound
}

function stepOf(entries: number) {
  for (const step of steps) if (entries >= step.from) return step
  return coldStart
}

/** What is known of one model for one query type of one account. Times are epoch milliseconds. */
export type Cell = {
  /** Answers, and what they count as: a rated one as three. */
  readonly requests: number
  readonly entries: number
  readonly since: number
  readonly at: number
  /** Evidence as of `at`, older entries fading: its weight, mean quality, and sum of squared deviations. */
  readonly weight: number
  readonly quality: number
  readonly spread: number
  /** A run of answers below the mean: how far in sum, and the weight and quality of those in it. */
  readonly slump: number
  readonly slumpWeight: number
  readonly slumpQuality: number
  /** Running means; those of `ratio` are of ln(output tokens / input tokens). */
  readonly latencyMs: number
  readonly firstTokenMs: number | null
  readonly costMicrocents: number
  readonly ratio: number
  readonly ratioVariance: number
  readonly ratings: number
  /** Mean of the ratings, as quality. */
  readonly rating: number
  readonly automatic: number
  readonly influenced: number
  readonly enhanced: number
  readonly enhancedQuality: number
  readonly plainQuality: number
}

/** One successful request, content-free. */
export type Entry = {
  readonly at: number
  /** 0–1. */
  readonly quality: number
  readonly latencyMs: number
  readonly firstTokenMs: number | null
  readonly costMicrocents: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly automatic: boolean
  readonly influenced: boolean
  readonly enhanced: boolean
}

export const emptyCell: Cell = {
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

/** How many entries a rating counts as. */
export const ratingWeight = 3
const halfLifeMs = 30 * dayMs
/** Weight that evidence fades to as more comes in, so that a model which changes slowly is followed. */
const maximumWeight = 200
/** Answers that the averages shown to people reach back over. */
const averagedAnswers = 200

/** The cell with one entry more. */
export function addEntry(cell: Cell, entry: Entry): Cell {
  const requests = cell.requests + 1
  const share = 1 / Math.min(requests, averagedAnswers)
  const towards = (mean: number, value: number) => mean + share * (value - mean)
  const ratio = logLengthRatio(entry)
  const surprise = ratio - cell.ratio
  const enhanced = cell.enhanced + (entry.enhanced ? 1 : 0)
  const known = withEvidence(cell, entry.quality, 1, entry.at)
  return {
    ...known,
    requests,
    since: cell.requests === 0 ? entry.at : Math.min(cell.since, entry.at),
    latencyMs: towards(cell.latencyMs, entry.latencyMs),
    firstTokenMs:
      entry.firstTokenMs === null || cell.firstTokenMs === null
        ? (entry.firstTokenMs ?? cell.firstTokenMs)
        : towards(cell.firstTokenMs, entry.firstTokenMs),
    costMicrocents: towards(cell.costMicrocents, entry.costMicrocents),
    ratio: cell.ratio + share * surprise,
    ratioVariance: (1 - share) * (cell.ratioVariance + share * surprise * surprise),
    automatic: cell.automatic + (entry.automatic ? 1 : 0),
    influenced: cell.influenced + (entry.influenced ? 1 : 0),
    enhanced,
    enhancedQuality: entry.enhanced
      ? cell.enhancedQuality + (entry.quality - cell.enhancedQuality) / enhanced
      : cell.enhancedQuality,
    plainQuality: entry.enhanced
      ? cell.plainQuality
      : cell.plainQuality + (entry.quality - cell.plainQuality) / (requests - enhanced),
  }
}

/** ln(output tokens / input tokens): how much a model says for what it was told. */
export function logLengthRatio({ inputTokens, outputTokens }: Pick<Entry, 'inputTokens' | 'outputTokens'>): number {
  return Math.log((outputTokens + 1) / (inputTokens + 1))
}

/** A piece of evidence: what quality, counting as how many entries, taken in at which time, by a rating or not. */
export type QualityEvidence = {
  readonly quality: number
  readonly weight: number
  readonly at: number
  readonly isRating: boolean
}

/** The cell with what was thought of one of its answers replaced. */
export function replaceEvidence(
  cell: Cell,
  before: QualityEvidence,
  after: QualityEvidence,
  wasEnhanced: boolean,
): Cell {
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

function without(cell: Cell, { quality, weight, at }: QualityEvidence): Cell {
  const entries = Math.max(0, cell.entries - weight)
  // It has faded since like all the others; where a slump made the cell forget, less of it is left than this.
  const faded = Math.min(cell.weight, weight * decayFactor(cell.at - at))
  const left = cell.weight - faded
  if (left < 1e-6) return { ...cell, entries, weight: 0, quality: 0, spread: 0 }
  const mean = clamp((cell.weight * cell.quality - faded * quality) / left, 0, 1)
  return { ...cell, entries, weight: left, quality: mean, spread: (cell.spread * left) / cell.weight }
}

/** A run this far below the mean in sum is no bad luck: the model has got worse. */
const slumpLimit = 5
/** What each answer of the run may lie below the mean without counting. */
const slumpAllowance = 0.12
/** Less evidence than this has no mean to fall below. */
const leastForSlump = 15
/** Weight that the time before a slump keeps. */
const keptAfterSlump = 15

function withEvidence(cell: Cell, quality: number, weight: number, at: number): Cell {
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
    // Only the run tells how it is now; a little of before stays, since the worst run of many was picked.
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

/** What is left of evidence after a time; all of it where the time runs backwards. */
export function decayFactor(elapsedMs: number): number {
  return elapsedMs <= 0 ? 1 : 2 ** (-elapsedMs / halfLifeMs)
}

/** The value, or the bound that it is beyond. */
export function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value))
}
