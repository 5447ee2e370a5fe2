/**
 * Classifies in process whether a text requests something harmful, states something harmful, or tries to remove a
 * model's rules. Three linear classifiers share one set of hashed features: words, neighboring words, and word kinds
 * (`harm-slots.ts`), so that a word unseen in training counts like related ones. Linear in the text, without allocation
 * per word.
 */

import { decodeWeights } from '../analysis/feature-slots.ts'
import { type Features, featureSieveSize, maximumWords, mixHashes } from '../analysis/features.ts'
import { filledTable } from '../code-units.ts'
import kept from '../weights/safety.json'
import {
  categories,
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

export type HarmScorer = {
  read(features: Features): Harm
  /** Reads part of a text's words as a text of its own. */
  readPart(features: Features, from: number, to: number): Harm
  /**
   * Returns an approximation of the request classifier's odds for some words of the last text, from prefix sums in
   * constant time.
   */
  requestAbout(from: number, to: number): number
  /** Whether one of some words of the last text names a harm. */
  namesHarm(from: number, to: number): boolean
  /** Log-odds that the content head does not exceed for some words, told without the neighbours: those weigh next to nothing there. */
  contentAtMost(features: Words, from: number, to: number): number
}

/** Creates a scorer with its own buffers. */
export function createHarmJudge(): HarmScorer {
  const weights = decodeWeights(kept)
  const reader = createHarmReader(weights)
  const { scale, bias } = kept
  const neighboursAtMost = mostOfNeighbours(weights)
  const { sums } = reader
  const getHarm = (filled: number): Harm => {
    const loud = featureWeight(filled)
    return {
      request: sums.request * loud * scale.request + bias.request,
      content: sums.content * loud * scale.content + bias.content,
      jailbreak: sums.jailbreak * loud * scale.jailbreak + bias.jailbreak,
      evidence: filled,
      kinds: reader.kinds,
    }
  }
  const contentAtMost: HarmScorer['contentAtMost'] = (features, from, to) => {
    const filled = reader.readPart(features, from, to, false)
    // More features, as there are with the neighbours, only make each one softer.
    return Math.max(0, sums.content + neighboursAtMost) * featureWeight(filled) * scale.content + bias.content
  }
  return {
    read: features => getHarm(reader.read(features)),
    readPart: (features, from, to) => getHarm(reader.readPart(features, from, to)),
    requestAbout(from, to) {
      const { weight, slots } = reader.between(from, to)
      return weight * featureWeight(slots) * scale.request + bias.request
    },
    namesHarm: reader.namesHarm,
    contentAtMost,
  }
}

/** Returns the largest sum that neighbor features can add for the content classifier. */
function mostOfNeighbours(weights: Int8Array): number {
  let most = 0
  for (let slot = regionSlots; slot < 2 * regionSlots; slot++)
    most += Math.max(0, weights[slot * harmHeads.length + harmHeads.indexOf('content')] ?? 0)
  return most
}

type Words = Pick<Features, 'words' | 'stems'>

type HarmFeatureReader = {
  /** Fills `slots`, `sums` and `kinds`; returns how many slots, each once. */
  read(features: Words & Pick<Features, 'count'>): number
  /** The same of some of the words. Slots of neighbours can be left out. */
  readPart(features: Words, from: number, to: number, withNeighbours?: boolean): number
  /** Of some words of what `read` read last: how many slots they filled, and what those weigh in requests; each as often as it came. */
  between(from: number, to: number): { readonly weight: number; readonly slots: number }
  /** Whether one of some words of what `read` read last names a harm. */
  namesHarm(from: number, to: number): boolean
  readonly slots: Int32Array
  /** Sum of the slots' weights per classifier. */
  readonly sums: Record<HarmHead, number>
  readonly kinds: Uint16Array
}

/** More than the kinds of that many words. */
const recentMask = 127
/** Keeps the kinds apart where their numbers meet other hashes. */
const kindSpread = 0x9e3779b1

/**
 * Creates a reader that turns features into slots and weighs them; without `weights` (three per slot, by classifier)
 * all weights are 0. Has its own buffers. Slots are first collected and then weighed, in two loops without
 * unpredictable branches.
 */
export function createHarmReader(weights: Int8Array = new Int8Array(harmSlots * harmHeads.length)): HarmFeatureReader {
  const { kindsTable, sieve } = kindTable()
  const slots = new Int32Array(harmSlots + 1)
  /** Hashes of the collected features, then their slots, and the first slot of the region of each. */
  const noted = new Int32Array(mostNoted)
  const regions = new Uint16Array(mostNoted)
  const unmet = packed(weights)
  const table = unmet.slice()
  const kinds = new Uint16Array(harmKinds.length)
  const sums = { request: 0, content: 0, jailbreak: 0 }
  /** The kinds of the last few words: a ring, and how much of it is near. */
  const recentKinds = new Uint8Array(recentMask + 1)
  const recentAt = new Int32Array(recentMask + 1)
  let recents = 0
  let recentFrom = 0
  let stamp = 0
  let filled = 0
  /** Per word: the number of slots collected up to it and their weight for requests. */
  const notesUpTo = new Int32Array(maximumWords + 1)
  const weightUpTo = new Int32Array(maximumWords + 1)
  /** Per word: the number of words up to it that name a harm. */
  const namedUpTo = new Uint16Array(maximumWords + 1)
  const running = new Int32Array(mostNoted + 1)

  const noteKinds = (from: number, own: readonly number[], before: readonly number[], at: number): number => {
    let count = from
    while (recentFrom < recents && at - (recentAt[recentFrom & recentMask] ?? 0) > nearWords) recentFrom++
    for (const kind of own) {
      kinds[kind] = (kinds[kind] ?? 0) + 1
      for (const other of before) {
        regions[count] = 2 * regionSlots
        noted[count++] = (kind * 64 + other + 1) ^ salts.kindPair
      }
      for (let other = recentFrom; other < recents; other++) {
        regions[count] = 2 * regionSlots
        noted[count++] = (kind * 64 + (recentKinds[other & recentMask] ?? 0) + 1) ^ salts.kindNear
      }
    }
    for (const kind of own) {
      recentKinds[recents & recentMask] = kind
      recentAt[recents & recentMask] = at
      recents++
    }
    return count
  }

  /** Adds the collected slots to the sums, each once: two weights in the halves of one sum, the third in another. */
  const weigh = (count: number): void => {
    mixHashes(noted, count, regionBits)
    let found = filled
    let weight = 0
    for (let from = 0; from < count; from += mostInHalf) {
      const to = Math.min(count, from + mostInHalf)
      const before = found
      let outer = 0
      let inner = 0
      for (let at = from; at < to; at++) {
        const slot = (regions[at] ?? 0) + (noted[at] ?? 0)
        const entry = table[slot] ?? 0
        // All bits set if the slot was last used in an earlier reading.
        const isNew = ((entry >>> stampShift) - stamp) >> 31
        table[slot] = (entry & weightMask) | (stamp << stampShift)
        slots[found] = slot
        found -= isNew
        weight += (entry & 0xff) - weightShift
        running[at + 1] = weight
        outer = (outer + (entry & outerWeights & isNew)) | 0
        inner += (entry >>> 8) & 0xff & isNew
      }
      const shift = (found - before) * weightShift
      sums.request += (outer & 0xffff) - shift
      sums.content += inner - shift
      sums.jailbreak += (outer >>> 16) - shift
    }
    filled = found
  }

  const begin = () => {
    stamp++
    filled = 0
    recents = 0
    recentFrom = 0
    kinds.fill(0)
    sums.request = 0
    sums.content = 0
    sums.jailbreak = 0
    if (stamp <= lastStamp) return
    table.set(unmet)
    stamp = 1
  }

  /** Stores the prefix sums for the words since `since`. */
  const keepSums = (since: number, to: number): void => {
    const notes = notesUpTo[since] ?? 0
    const weight = weightUpTo[since] ?? 0
    for (let at = since + 1; at <= to; at++) weightUpTo[at] = weight + (running[(notesUpTo[at] ?? 0) - notes] ?? 0)
  }

  const read = (
    { words, stems }: Words,
    from: number,
    to: number,
    withNeighbours: boolean,
    isWhole: boolean,
  ): number => {
    begin()
    let since = 0
    let before = none
    let wordBefore = 0
    let stemBefore = 0
    let stemBeforeThat = 0
    let notes = 0
    for (let at = from; at < to; at++) {
      const word = words[at] ?? 0
      const stem = stems[at] ?? 0
      const own = sieve[word & (featureSieveSize - 1)] === 1 ? (kindsTable.get(word) ?? none) : none
      const first = notes
      noted[notes++] = word ^ salts.word
      noted[notes++] = stem ^ salts.stem
      if (at - from < openingWords) noted[notes++] = Math.imul(stem, at - from + 3) ^ salts.opening
      for (let note = first; note < notes; note++) regions[note] = 0
      if (withNeighbours && at > from) {
        const neighbours = notes
        noted[notes++] = (Math.imul(wordBefore, 31) + word) ^ salts.pair
        noted[notes++] = (Math.imul(stemBefore, 31) + stem) ^ salts.stemPair
        if (at > from + 1) noted[notes++] = (Math.imul(stemBeforeThat, 31) + stem) ^ salts.skip
        for (const kind of before) noted[notes++] = (stem + Math.imul(kind + 1, kindSpread)) ^ salts.kindWord
        for (const kind of own) noted[notes++] = (stemBefore + Math.imul(kind + 1, kindSpread)) ^ salts.wordKind
        for (let note = neighbours; note < notes; note++) regions[note] = regionSlots
      }
      if (own.length > 0) notes = noteKinds(notes, own, before, at)
      if (isWhole) {
        notesUpTo[at + 1] = (notesUpTo[since] ?? 0) + notes
        namedUpTo[at + 1] = (namedUpTo[at] ?? 0) + (own.length > 0 && own.some(isNamed) ? 1 : 0)
      }
      if (notes > mostNoted - mostOfWord) {
        weigh(notes)
        if (isWhole) keepSums(since, at + 1)
        since = at + 1
        notes = 0
      }
      before = own
      wordBefore = word
      stemBeforeThat = stemBefore
      stemBefore = stem
    }
    const count = to - from
    const ofText = notes
    for (let kind = 0; kind < kinds.length; kind++) {
      const times = kinds[kind] ?? 0
      if (times === 0) continue
      noted[notes++] = (kind + 1) ^ salts.kind
      // A word that occurs once differs from a word in every line.
      const share = Math.min(7, Math.round((32 * times) / (count + 8)))
      noted[notes++] = (kind * 16 + share + 1) ^ salts.share
    }
    noted[notes++] = Math.min(12, Math.round(Math.log2(count + 1) * 1.5)) ^ salts.length
    regions.fill(2 * regionSlots, ofText, notes)
    weigh(notes)
    if (isWhole) keepSums(since, to)
    return filled
  }

  return {
    slots,
    sums,
    kinds,
    read: features => read(features, 0, features.count, true, true),
    readPart: (features, from, to, withNeighbours = true) => read(features, from, to, withNeighbours, false),
    between: (from, to) => ({
      weight: (weightUpTo[to] ?? 0) - (weightUpTo[from] ?? 0),
      slots: (notesUpTo[to] ?? 0) - (notesUpTo[from] ?? 0),
    }),
    namesHarm: (from, to) => namedUpTo[to] !== namedUpTo[from],
  }
}

const namedKinds: readonly boolean[] = harmKinds.map(kind => categories.some(([named]) => named === kind))
const isNamed = (kind: number) => namedKinds[kind] === true

const mostNoted = 16_384
/** Upper bound of the slots of one word or the end of a text, if it and the words near it had all kinds. */
const mostOfWord = 16 + harmKinds.length * ((nearWords + 2) * harmKinds.length + 2)

/**
 * Packs a slot's three non-negative weights into three bytes, with the last reading that used the slot above them, so
 * that one load returns everything.
 */
function packed(weights: Int8Array): Int32Array {
  return filledTable(new Int32Array(harmSlots), slot => {
    const byte = (head: number) => (weights[slot * harmHeads.length + head] ?? 0) + weightShift
    return byte(0) | (byte(1) << 8) | (byte(2) << 16)
  })
}

const weightShift = 128
/** Weights of the first and third classifier. */
const outerWeights = 0xff00ff
/** Number of byte values whose sum fits into 16 bits. */
const mostInHalf = 256
const stampShift = 24
const weightMask = 0xff_ffff
const lastStamp = 255

const none: readonly number[] = []

/** How often a reading met words of a kind. */
export function getCount(kinds: ArrayLike<number>, kind: HarmKind): number {
  return kinds[harmKinds.indexOf(kind)] ?? 0
}
