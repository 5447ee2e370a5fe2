import { decodeWeights, type StoredWeights } from '../weights/stored-weights.ts'
import { addFeature, createSlots, deduplicate, type Slots, weightedSum } from './feature-slots.ts'
import { type Features, maximumWords } from './features.ts'
import { courtesyWords, createCueReader, plainCues } from './quality-gain-cues.ts'
import { createForest, type StoredForest } from './quality-gain-forest.ts'

/**
 * Gain model stored by `bun run train`: a table over hashed words, weights of the plain cues, and a forest over all
 * cues.
 */
export type StoredGainModel = StoredWeights & {
  /** Per plain cue: mean, standard deviation, and weight per standard deviation. */
  readonly cues: readonly { readonly mean: number; readonly spread: number; readonly weight: number }[]
  readonly forest: StoredForest
  /** Scores at the percentiles 0, 1, … 100 of the reference traffic. */
  readonly quantiles: readonly number[]
}

/**
 * Returns the quality gain of a strong model as a rank, 0 to 1: the share of reference traffic that would gain less.
 * Prompts of at least 1 − s are about the top share s, which should go to a strong model.
 */
type GainClassifier = (features: Features) => number

/** Creates a classifier with its own buffers from stored weights. */
export function createGainHead(kept: StoredGainModel): GainClassifier {
  const getScore = createGainScorer(kept)
  return features => percentileRank(kept.quantiles, getScore(features))
}

/** Creates the scorer behind the rank: predicted strong minus weak, without a particular scale. */
function createGainScorer(kept: StoredGainModel): (features: Features) => number {
  const { bits, scale, cues, forest } = kept
  const weights = decodeWeights(kept)
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()
  const getForest = createForest(forest)

  return features => {
    const slots = readSlots(features)
    let score = (weightedSum(slots, weights) * scale) / Math.sqrt(Math.max(1, slots.count))

    const values = readCues(features)
    for (let cue = 0; cue < plainCues; cue++) {
      const kind = cues[cue]
      if (kind !== undefined) score += kind.weight * standardScore(values[cue] ?? 0, kind)
    }

    return score + getForest(values)
  }
}

/** Returns how far a cue is from its mean in standard deviations, limited to ±3. */
export function standardScore(
  value: number,
  { mean, spread }: { readonly mean: number; readonly spread: number },
): number {
  return Math.max(-3, Math.min(3, (value - mean) / spread))
}

/**
 * Creates a reader of stems and pairs of adjacent stems, which represent topic and wording. Its list is overwritten by
 * the next reading.
 */
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

/** Returns the share (0–1) of the ascending `quantiles` that are below a value, interpolated linearly. */
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
