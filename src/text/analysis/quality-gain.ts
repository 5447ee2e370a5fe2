import { decodeWeights, type StoredWeights } from '../weights/stored-weights.ts'
import { createSlots, deduplicate, type Slots, weightedSum } from './feature-slots.ts'
import { type Features, maximumWords } from './features.ts'
import { courtesyWords, createCueReader, plainCues } from './quality-gain-cues.ts'

/**
 * A stored forest of oblivious trees with `depth` levels: each tree compares the same cue at each level for every text.
 */
type StoredForest = {
  readonly depth: number
  /** The cue compared at each level of each tree: one byte each, in base64. */
  readonly asked: string
  /** Thresholds: single-precision floats. */
  readonly above: string
  /** Value of each leaf in steps of `scale`: 16-bit integers, 2^depth per tree. */
  readonly leaves: string
  readonly scale: number
}

/** Returns the sum of all trees for a text's cues. */
type Forest = (cues: Float64Array) => number

/**
 * Creates a forest that evaluates by cue instead of by tree: the thresholds of a cue are sorted and pass up to the
 * first that fails. Most cues of most texts fail at once.
 */
export function createForest({ depth, asked, above, leaves, scale }: StoredForest): Forest {
  const cueTable = Uint8Array.fromBase64(asked)
  const thresholdTable = new Float32Array(Uint8Array.fromBase64(above).buffer)
  const addends = new Int16Array(Uint8Array.fromBase64(leaves).buffer)
  const questions = Array.from(cueTable.keys()).sort(
    (value, other) =>
      (cueTable[value] ?? 0) - (cueTable[other] ?? 0) || (thresholdTable[value] ?? 0) - (thresholdTable[other] ?? 0),
  )
  const thresholds = Float64Array.from(questions, question => thresholdTable[question] ?? 0)
  const trees = Uint16Array.from(questions, question => Math.floor(question / depth))
  const bits = Uint8Array.from(questions, question => 1 << (question % depth))
  const firsts = getFirstIndexes(questions.map(question => cueTable[question] ?? 0))
  const leafTable = new Uint8Array(cueTable.length / depth)

  return cues => {
    leafTable.fill(0)
    for (let cue = 0; cue + 1 < firsts.length; cue++) {
      const value = cues[cue] ?? 0
      const end = firsts[cue + 1] ?? 0
      for (let question = firsts[cue] ?? 0; question < end && value > (thresholds[question] ?? 0); question++) {
        const tree = trees[question] ?? 0
        leafTable[tree] = (leafTable[tree] ?? 0) | (bits[question] ?? 0)
      }
    }
    let steps = 0
    for (let tree = 0; tree < leafTable.length; tree++) steps += addends[(tree << depth) + (leafTable[tree] ?? 0)] ?? 0
    return steps * scale
  }
}

/** Returns the start of each cue's thresholds, and the end after the last. */
function getFirstIndexes(cues: readonly number[]): Uint16Array {
  const firsts = new Uint16Array(Math.max(...cues) + 2)
  for (let cue = 0; cue < firsts.length; cue++) firsts[cue] = cues.filter(value => value < cue).length
  return firsts
}

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
      slots.places[slots.count++] = stem ^ stemSalt
      if (at > start) slots.places[slots.count++] = Math.imul(before, 31) ^ stem ^ pairSalt
      before = stem
    }
    slots.values.fill(1, 0, slots.count)
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
