import { bytesOf, type KeptWeights } from '../weights/stored-weights.ts'
import { type Features, maximumWords } from './features.ts'
import { courtesyWords, createCueReader, plainCues } from './quality-gain-cues.ts'
import { createForest, type KeptForest } from './quality-gain-forest.ts'
import { createSlots, keepFirst, note, type Slots, sumOf } from './feature-slots.ts'

/** What `bun run train` keeps of the gain head: a table over hashed words, weights of the plain cues, and a forest over all cues. */
export type KeptGain = KeptWeights & {
  /** By plain cue: where it lies usually, how far it strays, and what one stray is worth. */
  readonly cues: readonly { readonly mean: number; readonly spread: number; readonly weight: number }[]
  readonly forest: KeptForest
  /** Scores that 0, 1, … 100 % of the reference traffic stay below. */
  readonly quantiles: readonly number[]
}

/**
 * How much better a strong model would do on a prompt than a weak one, 0 to 1. It is a rank: of reference traffic, the share
 * that would gain less; so the prompts of at least 1 − s are about the top share s, to be sent to the strong model.
 */
export type GainHead = (features: Features) => number

/** A head with its own buffers, from the kept weights. */
export function createGainHead(kept: KeptGain): GainHead {
  const scoreOf = createGainScorer(kept)
  return features => rankIn(kept.quantiles, scoreOf(features))
}

/** The score behind the rank: what is predicted of strong minus weak, on no scale in particular. */
export function createGainScorer(kept: KeptGain): (features: Features) => number {
  const { bits, scale, cues, forest } = kept
  const weights = bytesOf(kept)
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()
  const forestOf = createForest(forest)

  return features => {
    const slots = readSlots(features)
    let score = (sumOf(slots, weights) * scale) / Math.sqrt(Math.max(1, slots.count))

    const values = readCues(features)
    for (let cue = 0; cue < plainCues; cue++) {
      const kind = cues[cue]
      if (kind !== undefined) score += kind.weight * strays(values[cue] ?? 0, kind)
    }

    return score + forestOf(values)
  }
}

/** How far a cue lies from where it usually does; outliers count no more than three times the usual spread. */
export function strays(value: number, { mean, spread }: { readonly mean: number; readonly spread: number }): number {
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
      note(slots, stem, stemSalt, 1)
      if (at > start) note(slots, Math.imul(before, 31) ^ stem, pairSalt, 1)
      before = stem
    }
    keepFirst(slots)
    return slots
  }
}

const stemSalt = 2
const pairSalt = 3

/** The share of `quantiles` (ascending) that lie below a value, 0 to 1, straight between two of them. */
export function rankIn(quantiles: readonly number[], value: number): number {
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
