/**
 * Classifies in process whether a text requests something harmful, or states something harmful. Two linear classifiers
 * share one set of hashed features: words, neighboring words, and word kinds (`harm-slots.ts`), so that a word unseen in
 * training counts like related ones. Linear in the text, without allocation per word.
 */

import { decodeWeights } from '../analysis/feature-slots.ts'
import { type Features, getSlot, maximumWords, mixHashes } from '../analysis/features.ts'
import { enterWordList } from '../hash-table.ts'
import kept from '../weights/safety.json'
import {
  featureWeight,
  type HarmHead,
  harmHeads,
  harmKinds,
  harmSlots,
  isHarm,
  kindsOfWords,
  lengthKey,
  mostOfWhole,
  mostOfWord,
  nearWords,
  ofKinds,
  ofNeighbors,
  ofWords,
  openingKey,
  openingWords,
  regionBits,
  salts,
  shareKey,
  type WordRange,
} from './harm-slots.ts'

/**
 * Log-odds per classifier, the number of distinct features, and the number of words per kind; valid until the next
 * reading.
 */
export type Harm = Readonly<Record<HarmHead, number>> & {
  readonly evidence: number
  readonly kinds: Uint16Array
}

type Words = Pick<Features, 'words' | 'lists' | 'stems' | 'count'>

export type HarmJudge = {
  /** Judges some of a text's words as a text of their own. */
  judge(features: Words, from: number, to: number): Harm
  /**
   * Judges a whole text, and keeps what bounds one head for its parts. For `content`, neighbors, most of the features, are left
   * out: they weigh next to nothing there.
   */
  measure(features: Words, head: HarmHead, parts: readonly WordRange[]): Harm
  /**
   * Returns odds that the head does not exceed for a part of the text that was measured last, or for two parts in a row for
   * `content`, judged as a text of their own.
   */
  atMost(from: number, to: number): number
  /** Returns true if words of that text name a harm. */
  namesHarm(from: number, to: number): boolean
  /** The features of the last reading, each once; valid up to its `evidence`. */
  readonly slots: Int32Array
}

/** More than the kinds of that many words. */
const recentMask = 127
/** Keeps the kinds apart where their numbers meet other hashes. */
const kindSpread = 0x9e3779b1
/** Features that a word has wherever it stands: itself and its stem. They are noted first. */
const ownFeatures = 2
/** Features beyond that many are kept before the next word is read; then no bounds are known. */
const mostNoted = 65_536

/** Creates a judge with its own buffers. Features are first noted and then kept, in two loops without unpredictable branches. */
export function createHarmJudge(): HarmJudge {
  const weights = decodeWeights(kept)
  /** Both heads of a slot. */
  const pairs = new Int16Array(weights.buffer)
  const { scale, bias } = kept
  const kindsByWord = kindsOfWords()
  const list = enterWordList('harm', kindsByWord.keys())
  const mosts = [mostOfWhole(weights, 0), mostOfWhole(weights, 1)] as const
  /** The keys of all features in order, their regions, and where those of each word begin. */
  const noted = new Int32Array(mostNoted)
  const regions = new Uint8Array(mostNoted)
  const starts = new Int32Array(maximumWords + 1)
  /** Sums up to each feature: what it adds to the measured head at most, and how many are new to their part. */
  const most = new Int32Array(mostNoted + 1)
  const fresh = new Int32Array(mostNoted + 1)
  /** Sums up to each word: what its kinds add to a text as a whole at most, and how many words name a harm. */
  const ends = new Int32Array(maximumWords + 1)
  const named = new Int32Array(maximumWords + 1)
  /** By slot: the part that had it last. Parts are numbered through all texts, so that nothing needs to be cleared. */
  const lastPart = new Int32Array(harmSlots)
  let part = 1
  let firstPart = 1
  const slots = new Int32Array(harmSlots + 1)
  const kinds = new Uint16Array(harmKinds.length)
  /** The kinds of the last few words: a ring, and how much of it is near. */
  const recentKinds = new Uint8Array(recentMask + 1)
  const recentAt = new Int32Array(recentMask + 1)
  let recents = 0
  let recentFrom = 0
  let filled = 0
  let request = 0
  let content = 0
  let head = 0
  let isBounded = false
  let stems: Features['stems'] = new Int32Array(0)

  /** Notes the kinds of a word from index `from` on; returns the index after them. */
  const noteKinds = (from: number, own: readonly number[], before: readonly number[], at: number): number => {
    let notes = from
    while (recentFrom < recents && at - (recentAt[recentFrom & recentMask] ?? 0) > nearWords) recentFrom++
    for (const kind of own) {
      kinds[kind] = (kinds[kind] ?? 0) + 1
      for (const other of before) {
        regions[notes] = ofKinds
        noted[notes++] = (kind * 64 + other + 1) ^ salts.kindPair
      }
      for (let other = recentFrom; other < recents; other++) {
        const near = recentKinds[other & recentMask] ?? 0
        regions[notes] = ofKinds
        noted[notes++] = (kind * 64 + near + 1) ^ salts.kindNear
      }
    }
    for (const kind of own) {
      recentKinds[recents & recentMask] = kind
      recentAt[recents & recentMask] = at
      recents++
    }
    return notes
  }

  /** Keeps the noted features of a part, each once. */
  const keep = (from: number, to: number): void => {
    const lift = head === 0 ? 24 : 16
    let sum = most[from] ?? 0
    let news = fresh[from] ?? 0
    let ofRequest = request
    let ofContent = content
    let count = filled
    mixHashes(noted, from, to, regionBits)
    for (let note = from; note < to; note++) {
      const slot = ((regions[note] ?? 0) << regionBits) | (noted[note] ?? 0)
      const last = lastPart[slot] ?? 0
      lastPart[slot] = part
      const pair = pairs[slot] ?? 0
      // All bits set if the feature is new, else 0.
      const isNew = (last - firstPart) >> 31
      ofRequest += ((pair << 24) >> 24) & isNew
      ofContent += (pair >> 8) & isNew
      slots[count] = slot
      count -= isNew
      // One that the part before had too may be new or not where both are judged together, so it counts if it raises the odds.
      const isFresh = (last - part + head) >> 31
      const weight = (pair << lift) >> 24
      sum += weight & (isFresh | ~(weight >> 31))
      news -= isFresh
      most[note + 1] = sum
      fresh[note + 1] = news
    }
    request = ofRequest
    content = ofContent
    filled = count
  }

  /** Returns how many features are noted at the end. Notes in place: this runs for each word of every text. */
  const note = (features: Words, from: number, to: number, hasNeighbors: boolean): number => {
    const { words, lists, stems } = features
    let before = none
    let notes = 0
    for (let at = from; at < to; at++) {
      const word = words[at] ?? 0
      const stem = stems[at] ?? 0
      const own = ((lists[at] ?? 0) & list) === 0 ? none : (kindsByWord.get(word) ?? none)
      starts[at] = notes
      regions[notes] = ofWords
      noted[notes++] = word ^ salts.word
      regions[notes] = ofWords
      noted[notes++] = stem ^ salts.stem
      if (at - from < openingWords) {
        regions[notes] = ofWords
        noted[notes++] = openingKey(stem, at - from)
      }
      if (hasNeighbors && at > from) {
        const first = notes
        const stemBefore = stems[at - 1] ?? 0
        noted[notes++] = (Math.imul(words[at - 1] ?? 0, 31) + word) ^ salts.pair
        noted[notes++] = (Math.imul(stemBefore, 31) + stem) ^ salts.stemPair
        if (at > from + 1) noted[notes++] = (Math.imul(stems[at - 2] ?? 0, 31) + stem) ^ salts.skip
        for (const kind of before) noted[notes++] = (stem + Math.imul(kind + 1, kindSpread)) ^ salts.kindWord
        for (const kind of own) noted[notes++] = (stemBefore + Math.imul(kind + 1, kindSpread)) ^ salts.wordKind
        for (let neighbor = first; neighbor < notes; neighbor++) regions[neighbor] = ofNeighbors
      }
      let harms = 0
      let whole = 0
      if (own.length > 0) {
        notes = noteKinds(notes, own, before, at)
        for (const kind of own) {
          whole += mosts[head]?.kinds[kind] ?? 0
          harms += isHarm[kind] ?? 0
        }
      }
      ends[at + 1] = (ends[at] ?? 0) + whole
      named[at + 1] = (named[at] ?? 0) + harms
      before = own
      if (notes <= mostNoted - mostOfWord) continue
      isBounded = false
      keep(0, notes)
      notes = 0
    }
    starts[to] = notes
    return notes
  }

  /** Notes what a text has as a whole from index `from` on; returns the index after it. */
  const noteWhole = (from: number, count: number): number => {
    let notes = from
    for (let kind = 0; kind < kinds.length; kind++) {
      const times = kinds[kind] ?? 0
      if (times === 0) continue
      regions[notes] = ofKinds
      noted[notes++] = (kind + 1) ^ salts.kind
      // A word that occurs once differs from a word in every line.
      regions[notes] = ofKinds
      noted[notes++] = shareKey(kind, Math.round((32 * times) / (count + 8)))
    }
    regions[notes] = ofKinds
    noted[notes++] = lengthKey(Math.round(Math.log2(count + 1) * 1.5))
    return notes
  }

  const begin = (): void => {
    if (part > lastOfParts) {
      lastPart.fill(0)
      part = 1
    }
    // Beyond what `keep` looks back.
    part += 2
    firstPart = part
    kinds.fill(0)
    filled = 0
    recents = 0
    recentFrom = 0
    request = 0
    content = 0
  }

  const getHarm = (): Harm => {
    const loud = featureWeight(filled)
    return {
      request: request * loud * scale.request + bias.request,
      content: content * loud * scale.content + bias.content,
      evidence: filled,
      kinds,
    }
  }

  return {
    slots,
    judge(features, from, to) {
      begin()
      isBounded = false
      const notes = note(features, from, to, true)
      keep(0, noteWhole(notes, to - from))
      return getHarm()
    },
    measure(features, measured, parts) {
      begin()
      head = harmHeads.indexOf(measured)
      isBounded = true
      stems = features.stems
      const { count } = features
      const notes = note(features, 0, count, head === 0)
      let kept = 0
      if (isBounded)
        for (const [, to] of parts) {
          keep(kept, starts[to] ?? 0)
          kept = starts[to] ?? 0
          part++
        }
      keep(kept, noteWhole(notes, count))
      return getHarm()
    },
    atMost(from, to) {
      if (!isBounded) return Number.POSITIVE_INFINITY
      const { length, neighbors } = mosts[head] ?? mosts[0]
      const begin = starts[from] ?? 0
      const end = starts[to] ?? 0
      let sum = between(most, begin, end) + between(ends, from, to) + length + neighbors
      let news = between(fresh, begin, end)
      for (let at = from; at < Math.min(to, from + nearWords); at++) {
        // What a word has because of those before the part does not count where it lowers the odds.
        const first = (starts[at] ?? 0) + ownFeatures
        const next = starts[at + 1] ?? 0
        for (let note = first; note < next; note++) sum -= Math.min(0, (most[note + 1] ?? 0) - (most[note] ?? 0))
        if (first < next) news -= between(fresh, first, next)
        if (at - from >= openingWords) continue
        const openingSlot = getSlot(openingKey(stems[at] ?? 0, at - from), 0, regionBits)
        sum += Math.max(0, weights[openingSlot * harmHeads.length + head] ?? 0)
      }
      const name = harmHeads[head] ?? 'request'
      return Math.max(0, sum) * featureWeight(news) * scale[name] + bias[name]
    },
    namesHarm: (from, to) => between(named, from, to) > 0,
  }
}

/** From here on the numbers of parts begin with 1 again. */
const lastOfParts = 2 ** 30

const none: readonly number[] = []

function between(sums: Int32Array, from: number, to: number): number {
  return (sums[to] ?? 0) - (sums[from] ?? 0)
}
