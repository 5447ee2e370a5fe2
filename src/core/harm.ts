/**
 * What a text is up to, judged in process: whether it asks for something harmful, says something harmful, or tries to take a
 * model's rules away. Three linear heads over one set of hashed features: words, their neighbours, and what the words speak
 * of (`harm-words.ts`), so that a word never seen in training counts like its kin. Linear in the text, nothing allocated a word.
 */
import { type Features, hashOf, sieveOf, sieveSize, slotOf } from './features.ts'
import { type HarmKind, harmKinds, wordsOf } from './harm-words.ts'
import kept from './weights/safety.json'
import { bytesOf } from './weights.ts'

export const harmHeads = ['request', 'content', 'jailbreak'] as const
export type HarmHead = (typeof harmHeads)[number]

/** Log-odds by head, how many different features spoke, and how many words of each kind were read; valid until the next reading. */
export type Harm = Readonly<Record<HarmHead, number>> & {
  readonly evidence: number
  readonly kinds: Uint16Array
}

/** Slots of a region: words, neighbours, and kinds each have one, so that training can trust them differently. */
const regionBits = 14
const regionSlots = 1 << regionBits
export const harmSlots = 3 * regionSlots

/** The region, 0 to 2, of a slot. */
export function regionOf(slot: number): number {
  return slot >> regionBits
}

/** How loudly each of a text's features speaks: a long text has many, and each says less. */
export function loudness(features: number): number {
  return 5 / Math.sqrt(features + 8)
}

export type HarmJudge = {
  read(features: Features): Harm
  /** Log-odds that the content head does not exceed, told without the neighbours: those weigh next to nothing there. */
  contentAtMost(features: Features): number
}

/** A judge with buffers of its own. */
export function createHarmJudge(): HarmJudge {
  const reader = createHarmReader()
  const weights = bytesOf(kept)
  const { scale, bias } = kept
  const neighboursAtMost = mostOfNeighbours(weights)
  return {
    read(features) {
      const filled = reader.read(features)
      let request = 0
      let content = 0
      let jailbreak = 0
      for (let at = 0; at < filled; at++) {
        const place = (reader.slots[at] ?? 0) * harmHeads.length
        request += weights[place] ?? 0
        content += weights[place + 1] ?? 0
        jailbreak += weights[place + 2] ?? 0
      }
      const loud = loudness(filled)
      return {
        request: request * loud * scale.request + bias.request,
        content: content * loud * scale.content + bias.content,
        jailbreak: jailbreak * loud * scale.jailbreak + bias.jailbreak,
        evidence: filled,
        kinds: reader.kinds,
      }
    },
    contentAtMost(features) {
      const filled = reader.read(features, false)
      let content = neighboursAtMost
      for (let at = 0; at < filled; at++) content += weights[(reader.slots[at] ?? 0) * harmHeads.length + 1] ?? 0
      // More features, as there are with the neighbours, only make each one softer.
      return Math.max(0, content) * loudness(filled) * scale.content + bias.content
    },
  }
}

/** All that speaks for the content head among neighbours, were all of it in one text. */
function mostOfNeighbours(weights: Int8Array): number {
  let most = 0
  for (let slot = regionSlots; slot < 2 * regionSlots; slot++)
    most += Math.max(0, weights[slot * harmHeads.length + harmHeads.indexOf('content')] ?? 0)
  return most
}

export type HarmReader = {
  /** Fills `slots` and `kinds`; returns how many slots, each once. Those of neighbours can be left out. */
  read(features: Features, withNeighbours?: boolean): number
  readonly slots: Uint32Array
  readonly kinds: Uint16Array
}

const maximumSlots = 65_536
/** How many words back a kind is remembered as near. */
const nearWords = 7
/** More than the kinds of that many words. */
const recentMask = 127
const openingWords = 3
/** Keeps the kinds apart where their numbers meet other hashes. */
const kindSpread = 0x9e3779b1

/** Turns features into slots. Keeps buffers of its own. */
export function createHarmReader(): HarmReader {
  const { kindsOf, sieve } = kindTable()
  const slots = new Uint32Array(maximumSlots)
  const stamps = new Uint32Array(harmSlots)
  const kinds = new Uint16Array(harmKinds.length)
  /** The kinds of the last few words: a ring, and how much of it is near. */
  const recentKinds = new Uint8Array(recentMask + 1)
  const recentAt = new Int32Array(recentMask + 1)
  let recents = 0
  let recentFrom = 0
  let stamp = 0

  /** Adds a slot unless it is there already; returns how many there are now. */
  const add = (filled: number, region: number, hash: number, salt: number): number => {
    const slot = region * regionSlots + slotOf(hash, salt, regionBits)
    if (stamps[slot] === stamp || filled >= maximumSlots) return filled
    stamps[slot] = stamp
    slots[filled] = slot
    return filled + 1
  }

  const addBeforeKinds = (from: number, own: readonly number[], stemBefore: number): number => {
    let filled = from
    for (const kind of own) filled = add(filled, 1, stemBefore + Math.imul(kind + 1, kindSpread), salts.wordKind)
    return filled
  }

  const addKinds = (from: number, own: readonly number[], before: readonly number[], at: number): number => {
    let filled = from
    while (recentFrom < recents && at - (recentAt[recentFrom & recentMask] ?? 0) > nearWords) recentFrom++
    for (const kind of own) {
      kinds[kind] = (kinds[kind] ?? 0) + 1
      for (const other of before) filled = add(filled, 2, kind * 64 + other + 1, salts.kindPair)
      for (let other = recentFrom; other < recents; other++)
        filled = add(filled, 2, kind * 64 + (recentKinds[other & recentMask] ?? 0) + 1, salts.kindNear)
    }
    for (const kind of own) {
      recentKinds[recents & recentMask] = kind
      recentAt[recents & recentMask] = at
      recents++
    }
    return filled
  }

  return {
    slots,
    kinds,
    read({ count, words, stems }, withNeighbours = true) {
      stamp++
      let filled = 0
      kinds.fill(0)
      recents = 0
      recentFrom = 0
      let before = none
      for (let at = 0; at < count; at++) {
        const word = words[at] ?? 0
        const stem = stems[at] ?? 0
        const stemBefore = at > 0 ? (stems[at - 1] ?? 0) : 0
        filled = add(filled, 0, word, salts.word)
        filled = add(filled, 0, stem, salts.stem)
        if (at < openingWords) filled = add(filled, 0, Math.imul(stem, at + 3), salts.opening)
        if (withNeighbours) {
          if (at > 0) {
            filled = add(filled, 1, Math.imul(words[at - 1] ?? 0, 31) + word, salts.pair)
            filled = add(filled, 1, Math.imul(stemBefore, 31) + stem, salts.stemPair)
          }
          if (at > 1) filled = add(filled, 1, Math.imul(stems[at - 2] ?? 0, 31) + stem, salts.skip)
          for (const kind of before) filled = add(filled, 1, stem + Math.imul(kind + 1, kindSpread), salts.kindWord)
        }
        const own = sieve[word & (sieveSize - 1)] === 1 ? (kindsOf.get(word) ?? none) : none
        if (own.length > 0) {
          if (withNeighbours && at > 0) filled = addBeforeKinds(filled, own, stemBefore)
          filled = addKinds(filled, own, before, at)
        }
        before = own
      }
      for (let kind = 0; kind < kinds.length; kind++) {
        const times = kinds[kind] ?? 0
        if (times === 0) continue
        filled = add(filled, 2, kind + 1, salts.kind)
        // Once in a sentence is not the same as in every line.
        filled = add(filled, 2, kind * 16 + Math.min(7, Math.round((32 * times) / (count + 8))) + 1, salts.share)
      }
      filled = add(filled, 2, Math.min(12, Math.round(Math.log2(count + 1) * 1.5)), salts.length)
      return filled
    },
  }
}

const none: readonly number[] = []

/** Keep the sorts of features apart in their region. Any odd numbers do. */
const salts = {
  word: 0x1b873593,
  stem: 0x38b34ae5,
  opening: 0x4cf5ad43,
  pair: 0x2c1b3c6d,
  stemPair: 0x297a2d39,
  skip: 0x165667b1,
  kindWord: 0x046ca68b,
  wordKind: 0x1e3779b1,
  kind: 0x52dce729,
  kindPair: 0x6c8e9cf5,
  kindNear: 0x7feb352d,
  share: 0x20761d65,
  length: 0x35297a4d,
} as const

function kindTable() {
  const kindsOf = new Map<number, number[]>()
  for (const [index, kind] of harmKinds.entries())
    for (const word of wordsOf(kind)) {
      const hash = hashOf(word)
      const known = kindsOf.get(hash)
      if (known === undefined) kindsOf.set(hash, [index])
      else if (!known.includes(index)) known.push(index)
    }
  return { kindsOf, sieve: sieveOf(kindsOf.keys()) }
}

/** How often a reading met words of a kind. */
export function timesOf(kinds: Uint16Array, kind: HarmKind): number {
  return kinds[harmKinds.indexOf(kind)] ?? 0
}
