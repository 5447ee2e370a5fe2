/** Where the features of a text stand in the table of the harm heads: words, neighbours, and the kinds of things that words speak of. */
import { type Features, getHash, getSlot } from '../analysis/features.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import harmWords from './harm-words.json'

export const harmHeads = ['request', 'content'] as const
export type HarmHead = (typeof harmHeads)[number]

/** Slots of a region: words, neighbours, and kinds each have one, so that training can trust them differently. */
export const regionBits = 14
const regionSlots = 1 << regionBits
export const harmSlots = 3 * regionSlots

export const [ofWords, ofNeighbors, ofKinds] = [0, 1, 2]

/** The region, 0 to 2, of a slot. */
export function getRegion(slot: number): number {
  return slot >> regionBits
}

/** How loudly each of a text's features speaks: a long text has many, and each says less. */
export function featureWeight(features: number): number {
  return 5 / Math.sqrt(features + 8)
}

/** How many words back a kind is remembered as near. */
export const nearWords = 4
export const openingWords = 3

/** The slot of a feature in a region; `key` is its hash with the salt of its sort. */
function featureSlot(region: number, key: number): number {
  return region * regionSlots + getSlot(key, 0, regionBits)
}

/** Keep the sorts of features apart in their region. Any odd numbers do. */
export const salts = {
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

/** A key of the words. */
export function openingKey(stem: number, at: number): number {
  return Math.imul(stem, at + 3) ^ salts.opening
}

/** A key of the kinds; `share` grows with how many of a text's words are of the kind. */
export function shareKey(kind: number, share: number): number {
  return (kind * 16 + Math.min(mostShare, share) + 1) ^ salts.share
}
const mostShare = 7

/** A key of the kinds. */
export function lengthKey(length: number): number {
  return Math.min(mostLength, length) ^ salts.length
}
const mostLength = 12

/** The most that a head can say of a text as a whole: for words of a kind, for its length, and for neighbors that were left out. */
export function mostOfWhole(weights: Int8Array, head: number) {
  const weighed = (slot: number) => Math.max(0, weights[slot * harmHeads.length + head] ?? 0)
  const most = (last: number, keyAt: (at: number) => number) =>
    Math.max(...Array.from({ length: last + 1 }, (_, at) => weighed(featureSlot(ofKinds, keyAt(at)))))
  let neighbors = 0
  if (head === 1) for (let slot = regionSlots; slot < 2 * regionSlots; slot++) neighbors += weighed(slot)
  return {
    kinds: Int32Array.from(
      harmKinds,
      (_, kind) =>
        weighed(featureSlot(ofKinds, (kind + 1) ^ salts.kind)) + most(mostShare, share => shareKey(kind, share)),
    ),
    length: most(mostLength, lengthKey),
    neighbors,
  }
}

/** Returns the kinds of words by their hashes. */
export function kindsOfWords(): ReadonlyMap<number, readonly number[]> {
  const kinds = new Map<number, readonly number[]>()
  for (const [index, kind] of harmKinds.entries())
    for (const hash of new Set(getWords(kind).map(getHash))) kinds.set(hash, [...(kinds.get(hash) ?? []), index])
  return kinds
}

/**
 * Groups of related words that the classifier knows beyond its training data, so that a word unseen in training counts
 * like its group. Written by hand. Offensive words are listed because they must be detected.
 *
 * `kill+` also stands for its regular inflections (kills, killed, killing, killer, killers).
 */
type HarmKind = keyof typeof harmWords
export const harmKinds = Object.keys(harmWords) as readonly HarmKind[]

/** Kinds that harm is named by, with their category. Rare words weigh more than words that crime shares with everyday life. */
export const categories: readonly (readonly [HarmKind, ModerationCategory, number])[] = [
  ['selfharm', 'self_harm', 1.2],
  ['weapon', 'weapons', 1.5],
  ['poison', 'weapons', 1.4],
  ['terror', 'violence', 1.3],
  ['violence', 'violence', 1.1],
  ['gore', 'violence', 1],
  ['drug', 'drugs', 1.4],
  ['cyber', 'cybercrime', 1.3],
  ['fraud', 'fraud', 1.1],
  ['slur', 'hate', 3],
  ['hate', 'hate', 1.4],
  ['group', 'hate', 0.6],
  ['sexual', 'sexual', 1.2],
  ['insult', 'harassment', 1.1],
  ['privacy', 'privacy', 0.7],
  ['lies', 'misinformation', 0.9],
  ['illicit', 'illegal', 0.8],
]

/** Upper bound of the features of one word and the end of a text, if it and the words near it had all kinds. */
export const mostOfWord = 16 + harmKinds.length * ((nearWords + 2) * harmKinds.length + 4)

/** How often a reading met words of a kind. */
export function getCount(kinds: ArrayLike<number>, kind: HarmKind): number {
  return kinds[harmKinds.indexOf(kind)] ?? 0
}

/** By kind: 1 if it names a harm. */
export const isHarm = Uint8Array.from(harmKinds, kind => (categories.some(([of]) => of === kind) ? 1 : 0))

const endings = ['', 's', 'd', 'ed', 'r', 'er', 'ers', 'rs', 'ing'] as const

/** Returns the words of a kind, with inflections. */
export function getWords(kind: HarmKind): readonly string[] {
  return harmWords[kind]
    .join(' ')
    .split(' ')
    .flatMap(word => {
      if (!word.endsWith('+')) return [word]
      const stem = word.slice(0, -1)
      const cut = stem.endsWith('e') ? [`${stem.slice(0, -1)}ing`] : []
      return [...endings.map(ending => stem + ending), ...cut]
    })
}

/** Splits a text into the parts that are judged separately: sentences, lines and quotations. */

/** Parts with fewer words are joined with the next part: a list number, an abbreviation, a name before a colon. */
const fewestWords = 4

/** The first word of a part, and the index after its last one. */
export type WordRange = readonly [from: number, to: number]

/** Returns the parts of a text in order; none for a text of one part. */
export function findParts({ count, breaks, breakCount }: Features): readonly WordRange[] {
  const parts: WordRange[] = []
  let from = 0
  for (let index = 0; index <= breakCount; index++) {
    const to = index < breakCount ? (breaks[index] ?? count) : count
    if (to - from < fewestWords && to < count) continue
    if (to > from && to - from < count) parts.push([from, to])
    from = to
  }
  return parts
}
