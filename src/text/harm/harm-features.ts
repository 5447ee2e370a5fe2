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

/** Judges some of a text's words as a text of their own. */
export type HarmJudge = (features: Words, from: number, to: number) => Harm

/** Creates a judge with its own buffers. */
export function createHarmJudge(): HarmJudge {
  const weights = decodeWeights(kept)
  const reader = createHarmReader()
  const { scale, bias } = kept
  return (features, from, to) => {
    const filled = reader.read(features, from, to)
    let request = 0
    let content = 0
    for (let at = 0; at < filled; at++) {
      const slot = (reader.slots[at] ?? 0) * harmHeads.length
      request += weights[slot] ?? 0
      content += weights[slot + 1] ?? 0
    }
    const loud = featureWeight(filled)
    return {
      request: request * loud * scale.request + bias.request,
      content: content * loud * scale.content + bias.content,
      evidence: filled,
      kinds: reader.kinds,
    }
  }
}

type HarmFeatureReader = {
  /** Fills `slots` and `kinds` from some words; returns how many slots, each once. */
  read(features: Words, from: number, to: number): number
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
  let notes = 0
  let filled = 0

  const note = (region: number, hash: number) => {
    regions[notes] = region * regionSlots
    noted[notes++] = hash
  }

  const noteKinds = (own: readonly number[], before: readonly number[], at: number): void => {
    while (recentFrom < recents && at - (recentAt[recentFrom & recentMask] ?? 0) > nearWords) recentFrom++
    for (const kind of own) {
      kinds[kind] = (kinds[kind] ?? 0) + 1
      for (const other of before) note(2, (kind * 64 + other + 1) ^ salts.kindPair)
      for (let other = recentFrom; other < recents; other++)
        note(2, (kind * 64 + (recentKinds[other & recentMask] ?? 0) + 1) ^ salts.kindNear)
    }
    for (const kind of own) {
      recentKinds[recents & recentMask] = kind
      recentAt[recents & recentMask] = at
      recents++
    }
  }

  /** Keeps the collected slots, each once. */
  const keep = (): void => {
    mixHashes(noted, notes, regionBits)
    for (let at = 0; at < notes; at++) {
      const slot = (regions[at] ?? 0) + (noted[at] ?? 0)
      const known = met[slot >>> 5] ?? 0
      slots[filled] = slot
      // A shift uses only the last five bits of the slot.
      filled += 1 - ((known >>> slot) & 1)
      met[slot >>> 5] = known | (1 << slot)
    }
    notes = 0
  }

  const noteWords = ({ words, stems }: Words, from: number, to: number): void => {
    let before = none
    for (let at = from; at < to; at++) {
      const word = words[at] ?? 0
      const stem = stems[at] ?? 0
      const own = sieve[word & (featureSieveSize - 1)] === 1 ? (kindsTable.get(word) ?? none) : none
      note(0, word ^ salts.word)
      note(0, stem ^ salts.stem)
      if (at - from < openingWords) note(0, Math.imul(stem, at - from + 3) ^ salts.opening)
      if (at > from) {
        const stemBefore = stems[at - 1] ?? 0
        note(1, (Math.imul(words[at - 1] ?? 0, 31) + word) ^ salts.pair)
        note(1, (Math.imul(stemBefore, 31) + stem) ^ salts.stemPair)
        if (at > from + 1) note(1, (Math.imul(stems[at - 2] ?? 0, 31) + stem) ^ salts.skip)
        for (const kind of before) note(1, (stem + Math.imul(kind + 1, kindSpread)) ^ salts.kindWord)
        for (const kind of own) note(1, (stemBefore + Math.imul(kind + 1, kindSpread)) ^ salts.wordKind)
      }
      if (own.length > 0) noteKinds(own, before, at)
      if (notes > mostNoted - mostOfWord) keep()
      before = own
    }
  }

  return {
    slots,
    kinds,
    read(features, from, to) {
      met.fill(0)
      kinds.fill(0)
      filled = 0
      recents = 0
      recentFrom = 0
      noteWords(features, from, to)
      const count = to - from
      for (let kind = 0; kind < kinds.length; kind++) {
        const times = kinds[kind] ?? 0
        if (times === 0) continue
        note(2, (kind + 1) ^ salts.kind)
        // A word that occurs once differs from a word in every line.
        const share = Math.min(7, Math.round((32 * times) / (count + 8)))
        note(2, (kind * 16 + share + 1) ^ salts.share)
      }
      note(2, Math.min(12, Math.round(Math.log2(count + 1) * 1.5)) ^ salts.length)
      keep()
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
