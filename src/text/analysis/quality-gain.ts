/**
 * Predicts the quality gain of a strong model over a weak one from benchmark results: one linear model over hashed word
 * stems and a few cues that do not depend on the topic.
 */

import { enterWordList } from '../hash-table.ts'
import {
  createSlots,
  decodeWeights,
  deduplicate,
  type Slots,
  type StoredWeights,
  weightedSum,
} from './feature-slots.ts'
import { type Features, getHash } from './features.ts'
import vocabulary from './lexicon/cues.json'

/** Gain model stored by `bun run train`: a table over hashed words, and weights of the cues. */
export type StoredGainModel = StoredWeights & {
  /** Per cue: mean, standard deviation, and weight per standard deviation. */
  readonly cues: readonly { readonly mean: number; readonly spread: number; readonly weight: number }[]
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
  const { bits, scale, cues, quantiles } = kept
  const weights = decodeWeights(kept)
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()

  return features => {
    const slots = readSlots(features)
    let score = (weightedSum(slots, weights) * scale) / Math.sqrt(Math.max(1, slots.count))
    const values = readCues(features)
    for (const [cue, kind] of cues.entries()) score += kind.weight * standardScore(values[cue] ?? 0, kind)
    return percentileRank(quantiles, score)
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
  const slots = createSlots(bits)
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

/** Number of cues: logarithms and shares, as a linear model needs them. */
export const cueCount = 21

/** Reads the cues of a text. The result is overwritten by the next reading. */
type CueReader = (features: Features) => Float64Array

/**
 * Creates a reader of topic-independent cues that a stronger model would do better: length and shape, numbers and
 * formulas, answer options, and words that ask, negate, compare or count. None depends on case, white space, final
 * punctuation or a polite opening.
 */
export function createCueReader(): CueReader {
  const cues = new Float64Array(cueCount)
  const groups = new Int32Array(groupNames.length)
  const groupsTable = groupTable()
  const list = enterWordList('cue', groupsTable.keys())
  // One bit per word hash, for the approximate number of distinct words.
  const met = new Int32Array(differentWords / 32)

  return features => {
    const { count, words, lists, symbols, digits } = features
    const start = courtesyWords(features)
    const letters = features.letters - courtesyLetters(features, start)
    const length = Math.max(1, count - start)
    met.fill(0)
    let distinct = 0
    let option = 0
    groups.fill(0)
    for (let at = start; at < count; at++) {
      const word = words[at] ?? 0
      const place = (word ^ (word >>> 12)) & (differentWords - 1)
      const known = met[place >>> 5] ?? 0
      distinct += 1 - ((known >>> place) & 1)
      met[place >>> 5] = known | (1 << place)
      if (((lists[at] ?? 0) & list) === 0) continue
      const entry = groupsTable.get(word) ?? 0
      for (let group = 0; group < groupNames.length; group++)
        groups[group] = (groups[group] ?? 0) + ((entry >>> group) & 1)
      // Answer options are single letters in order: an "a" without a "b" is an article.
      const letter = entry >>> letterShift
      if (letter === option + 1) option = letter
    }
    let at = 0
    cues[at++] = log(length)
    cues[at++] = log(digits)
    for (const characters of weighed) {
      let sum = 0
      for (const character of characters) sum += symbols[character] ?? 0
      cues[at++] = log(sum)
    }
    cues[at++] = (groups[asking] ?? 0) > 0 ? 1 : 0
    cues[at++] = log(groups[negating] ?? 0)
    cues[at++] = log(groups[stepping] ?? 0)
    cues[at++] = log(groups[comparing] ?? 0)
    cues[at++] = distinct / length
    cues[at++] = letters / length
    cues[at++] = digits / length
    cues[at++] = option >= fewestOptions ? 1 : 0
    return cues
  }
}

const fewestOptions = 3

/** Returns the number of words in an opening phrase that does not affect the question: "Could you", "Can you". */
export function courtesyWords({ count, words }: Features): number {
  return count > 2 && words[1] === you && willing.has(words[0] ?? 0) ? 2 : 0
}

/** Returns the number of letters in these words. */
export function courtesyLetters({ words }: Features, courtesy: number): number {
  return courtesy === 0 ? 0 : (willing.get(words[0] ?? 0) ?? 0) + 'you'.length
}

const willing = new Map(['can', 'could', 'would', 'will'].map(word => [getHash(word), word.length]))
const you = getHash('you')

/** Returns log(1 + x), from a table for small integers. */
function log(value: number): number {
  return logarithms[value] ?? Math.log1p(value)
}

const logarithms = Float64Array.from({ length: 1024 }, (_, value) => Math.log1p(value))

/**
 * Symbol groups in the order of their cues: full stops, formulas, brackets, operators, commas, percents, quotes, gaps,
 * colons, bars, dashes.
 */
const weighed = ['.?!', '$\\^{', '()', '=+*/', ',', '%', '"\'`', '_', ':', '|', '-'].map(characters =>
  Array.from(characters, character => character.charCodeAt(0)),
)

const differentWords = 4096

/** Groups of words in the order of their bits. */
const groupNames = ['asking', 'negating', 'comparing', 'stepping'] as const
const [asking, negating, comparing, stepping] = [0, 1, 2, 3]
const letterShift = groupNames.length

/**
 * Returns by signed word hash the bits of its groups, and above them the alphabetical index of an answer option's
 * letter.
 */
function groupTable(): ReadonlyMap<number, number> {
  const table = new Map<number, number>()
  const put = (hash: number, bits: number) => table.set(hash, (table.get(hash) ?? 0) | bits)
  for (const [index, name] of groupNames.entries())
    for (const word of vocabulary[name].join(' ').split(' ')) put(getHash(word), 1 << index)
  for (const [index, letter] of [...'abcdefgh'].entries()) put(getHash(letter), (index + 1) << letterShift)
  return table
}

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
