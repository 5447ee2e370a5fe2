import { decodeWeights, type StoredWeights } from '../weights/stored-weights.ts'
import { addFeature, createSlots, deduplicate, type Slots, weightedSum } from './feature-slots.ts'
import { type Features, maximumWords } from './features.ts'
import { courtesyWords, createCueReader, plainCues } from './quality-gain-cues.ts'
import { createForest, type StoredForest } from './quality-gain-forest.ts'

/** What `bun run train` keeps of the gain head: a table over hashed words, weights of the plain cues, and a forest over all cues. */
export type StoredGainModel = StoredWeights & {
  /** By plain cue: where it lies usually, how far it strays, and what one stray is worth. */
  readonly cues: readonly { readonly mean: number; readonly spread: number; readonly weight: number }[]
  readonly forest: StoredForest
  /** Scores that 0, 1, … 100 % of the reference traffic stay below. */
  readonly quantiles: readonly number[]
}

/**
 * How much better a strong model would do on a prompt than a weak one, 0 to 1. It is a rank: of reference traffic, the share
 * that would gain less; so the prompts of at least 1 − s are about the top share s, to be sent to the strong model.
 */
export type GainClassifier = (features: Features) => number

/** A head with its own buffers, from the kept weights. */
export function createGainHead(kept: StoredGainModel): GainClassifier {
  const scoreOf = createGainScorer(kept)
  return features => percentileRank(kept.quantiles, scoreOf(features))
}

/** The score behind the rank: what is predicted of strong minus weak, on no scale in particular. */
export function createGainScorer(kept: StoredGainModel): (features: Features) => number {
  const { bits, scale, cues, forest } = kept
  const weights = decodeWeights(kept)
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()
  const forestOf = createForest(forest)

  return features => {
    const slots = readSlots(features)
    let score = (weightedSum(slots, weights) * scale) / Math.sqrt(Math.max(1, slots.count))

    const values = readCues(features)
    for (let cue = 0; cue < plainCues; cue++) {
      const kind = cues[cue]
      if (kind !== undefined) score += kind.weight * standardScore(values[cue] ?? 0, kind)
    }

    return score + forestOf(values)
  }
}

/** How far a cue lies from where it usually does; outliers count no more than three times the usual spread. */
export function standardScore(
  value: number,
  { mean, spread }: { readonly mean: number; readonly spread: number },
): number {
  return Math.max(-3, Math.min(3, (value - mean) / spread))
}

/** Makes a reader of stems and pairs of neighbouring stems: what a text is about, and in what words it asks. Its list is overwritten by the next reading. */
export function createSlotReader(bits: number): (features: Features) => Slots {
  const slots = createSlots(bits, 2 * maximumWords)
  return features => {
    const { stems, count } = features
    const start = courtesyWords(features)
    slots.count = 0
    let before = 0
    for (let at = start; at < count; at++) {
      const stem = stems[at] ?? 0
      addFeature(slots, stem, stemSalt, 1)
      if (at > start) addFeature(slots, Math.imul(before, 31) ^ stem, pairSalt, 1)
      before = stem
    }
    deduplicate(slots)
    return slots
  }
}

const stemSalt = 2
const pairSalt = 3

/** The share of `quantiles` (ascending) that lie below a value, 0 to 1, straight between two of them. */
export function percentileRank(quantiles: readonly number[], value: number): number {
  const last = quantiles.length - 1
  let low = 0
  let high = last
  if (value <= (quantiles[0] ?? 0)) return 0
  if (value >= (quantiles[last] ?? 0)) return 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((quantiles[middle] ?? 0) <= value) low = middle
    else high = middle
  }
  const from = quantiles[low] ?? 0
  return (low + (value - from) / ((quantiles[high] ?? 0) - from)) / last
}
