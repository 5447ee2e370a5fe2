/**
 * Classifies in process whether a text requests something harmful, or states something harmful. Two linear classifiers
 * share one set of hashed features: words, neighboring words, and word kinds (`harm-slots.ts`), so that a word unseen in
 * training counts like related ones. Linear in the text, without allocation per word.
 */

import { decodeWeights } from '../analysis/feature-slots.ts'
import { type Features, featureSieveSize, mixHashes } from '../analysis/features.ts'
import kept from '../weights/safety.json'
import {
  featureWeight,
  type HarmHead,
  type HarmKind,
  harmHeads,
  harmKinds,
  harmSlots,
  kindTable,
  nearWords,
  openingWords,
  regionBits,
  regionSlots,
  salts,
} from './harm-slots.ts'

/**
 * Log-odds per classifier, the number of distinct features, and the number of words per kind; valid until the next
 * reading.
 */
export type Harm = Readonly<Record<HarmHead, number>> & {
  readonly evidence: number
  readonly kinds: Uint16Array
}

type Words = Pick<Features, 'words' | 'stems'>

export type HarmJudge = {
  /** Judges some of a text's words as a text of their own. */
  judge(features: Words, from: number, to: number): Harm
  /** Returns odds that `content` does not exceed. Neighbors, most of the features, weigh next to nothing there and are not read. */
  contentAtMost(features: Words, from: number, to: number): number
}

/** Creates a judge with its own buffers. */
export function createHarmJudge(): HarmJudge {
  const weights = decodeWeights(kept)
  const reader = createHarmReader()
  const { scale, bias } = kept
  const neighborsAtMost = mostOfNeighbors(weights)
  const sum = (filled: number, head: number) => {
    let total = 0
    for (let at = 0; at < filled; at++) total += weights[(reader.slots[at] ?? 0) * harmHeads.length + head] ?? 0
    return total
  }
  return {
    judge(features, from, to) {
      const filled = reader.read(features, from, to)
      const loud = featureWeight(filled)
      return {
        request: sum(filled, 0) * loud * scale.request + bias.request,
        content: sum(filled, 1) * loud * scale.content + bias.content,
        evidence: filled,
        kinds: reader.kinds,
      }
    },
    contentAtMost(features, from, to) {
      const filled = reader.read(features, from, to, false)
      // More features, as there are with neighbors, only make each one softer.
      return Math.max(0, sum(filled, 1) + neighborsAtMost) * featureWeight(filled) * scale.content + bias.content
    },
  }
}

/** Returns the largest sum that neighbors can add for the content head. */
function mostOfNeighbors(weights: Int8Array): number {
  let most = 0
  for (let slot = regionSlots; slot < 2 * regionSlots; slot++)
    most += Math.max(0, weights[slot * harmHeads.length + 1] ?? 0)
  return most
}

type HarmFeatureReader = {
  /** Fills `slots` and `kinds` from some words; returns how many slots, each once. Those of neighbors can be left out. */
  read(features: Words, from: number, to: number, withNeighbors?: boolean): number
  readonly slots: Int32Array
  readonly kinds: Uint16Array
}

/** More than the kinds of that many words. */
const recentMask = 127
/** Keeps the kinds apart where their numbers meet other hashes. */
const kindSpread = 0x9e3779b1

/**
 * Creates a reader that turns features into slots. Has its own buffers. Slots are first collected and then kept once
 * each, in two loops without unpredictable branches.
 */
export function createHarmReader(): HarmFeatureReader {
  const { kindsTable, sieve } = kindTable()
  const slots = new Int32Array(harmSlots + 1)
  /** Hashes of the collected features, then their slots, and the first slot of the region of each. */
  const noted = new Int32Array(mostNoted)
  const regions = new Uint16Array(mostNoted)
  /** One bit per slot: already kept. */
  const met = new Int32Array(harmSlots / 32)
  const kinds = new Uint16Array(harmKinds.length)
  /** The kinds of the last few words: a ring, and how much of it is near. */
  const recentKinds = new Uint8Array(recentMask + 1)
  const recentAt = new Int32Array(recentMask + 1)
  let recents = 0
  let recentFrom = 0
  let filled = 0

  /** Collects the kinds of a word from index `from` on; returns the index after them. */
  const noteKinds = (from: number, own: readonly number[], before: readonly number[], at: number): number => {
    let notes = from
    while (recentFrom < recents && at - (recentAt[recentFrom & recentMask] ?? 0) > nearWords) recentFrom++
    for (const kind of own) {
      kinds[kind] = (kinds[kind] ?? 0) + 1
      for (const other of before) noted[notes++] = (kind * 64 + other + 1) ^ salts.kindPair
      for (let other = recentFrom; other < recents; other++)
        noted[notes++] = (kind * 64 + (recentKinds[other & recentMask] ?? 0) + 1) ^ salts.kindNear
    }
    for (const kind of own) {
      recentKinds[recents & recentMask] = kind
      recentAt[recents & recentMask] = at
      recents++
    }
    return notes
  }

  /** Keeps the slots of so many collected features, each once. */
  const keep = (notes: number): void => {
    mixHashes(noted, notes, regionBits)
    for (let at = 0; at < notes; at++) {
      const slot = (regions[at] ?? 0) + (noted[at] ?? 0)
      const known = met[slot >>> 5] ?? 0
      slots[filled] = slot
      // A shift uses only the last five bits of the slot.
      filled += 1 - ((known >>> slot) & 1)
      met[slot >>> 5] = known | (1 << slot)
    }
  }

  /** Returns how many features are collected at the end. Writes in place: this runs for each word of every text. */
  const noteWords = ({ words, stems }: Words, from: number, to: number, withNeighbors: boolean): number => {
    let before = none
    let notes = 0
    for (let at = from; at < to; at++) {
      const word = words[at] ?? 0
      const stem = stems[at] ?? 0
      const own = sieve[word & (featureSieveSize - 1)] === 1 ? (kindsTable.get(word) ?? none) : none
      const first = notes
      noted[notes++] = word ^ salts.word
      noted[notes++] = stem ^ salts.stem
      if (at - from < openingWords) noted[notes++] = Math.imul(stem, at - from + 3) ^ salts.opening
      const pairs = notes
      if (withNeighbors && at > from) {
        const stemBefore = stems[at - 1] ?? 0
        noted[notes++] = (Math.imul(words[at - 1] ?? 0, 31) + word) ^ salts.pair
        noted[notes++] = (Math.imul(stemBefore, 31) + stem) ^ salts.stemPair
        if (at > from + 1) noted[notes++] = (Math.imul(stems[at - 2] ?? 0, 31) + stem) ^ salts.skip
        for (const kind of before) noted[notes++] = (stem + Math.imul(kind + 1, kindSpread)) ^ salts.kindWord
        for (const kind of own) noted[notes++] = (stemBefore + Math.imul(kind + 1, kindSpread)) ^ salts.wordKind
      }
      const ofKinds = notes
      if (own.length > 0) notes = noteKinds(notes, own, before, at)
      for (let note = first; note < notes; note++)
        regions[note] = note < pairs ? 0 : note < ofKinds ? regionSlots : 2 * regionSlots
      before = own
      if (notes <= mostNoted - mostOfWord) continue
      keep(notes)
      notes = 0
    }
    return notes
  }

  return {
    slots,
    kinds,
    read(features, from, to, withNeighbors = true) {
      met.fill(0)
      kinds.fill(0)
      filled = 0
      recents = 0
      recentFrom = 0
      const ofWords = noteWords(features, from, to, withNeighbors)
      let notes = ofWords
      const count = to - from
      for (let kind = 0; kind < kinds.length; kind++) {
        const times = kinds[kind] ?? 0
        if (times === 0) continue
        noted[notes++] = (kind + 1) ^ salts.kind
        // A word that occurs once differs from a word in every line.
        const share = Math.min(7, Math.round((32 * times) / (count + 8)))
        noted[notes++] = (kind * 16 + share + 1) ^ salts.share
      }
      noted[notes++] = Math.min(12, Math.round(Math.log2(count + 1) * 1.5)) ^ salts.length
      regions.fill(2 * regionSlots, ofWords, notes)
      keep(notes)
      return filled
    },
  }
}

const mostNoted = 16_384
/** Upper bound of the slots of one word or the end of a text, if it and the words near it had all kinds. */
const mostOfWord = 16 + harmKinds.length * ((nearWords + 2) * harmKinds.length + 2)

const none: readonly number[] = []

/** How often a reading met words of a kind. */
export function getCount(kinds: ArrayLike<number>, kind: HarmKind): number {
  return kinds[harmKinds.indexOf(kind)] ?? 0
}
