/**
 * What the content head says of any words of a text at most: sums, over words, of all that could speak for it, each counted as
 * often as it comes and as loudly as anything ever speaks. Read once a text; nearly all sentences are below any threshold so.
 */

import { type Features, featureSieveSize, maximumWords, mixHashes } from '../analysis/features.ts'
import { filledTable } from '../code-units.ts'
import {
  featureSlot,
  featureWeight,
  harmHeads,
  harmKinds,
  kindTable,
  nearWords,
  openingWords,
  regionBits,
  regionSlots,
  salts,
} from './harm-slots.ts'

type Words = Pick<Features, 'words' | 'stems'>

type ContentBound = {
  /** Begins with a text. */
  begin(features: Words & Pick<Features, 'count'>): void
  /** The sum that speaks for the content head in its words from one up to before another, without neighbours, at most. */
  between(features: Words, from: number, to: number): number
}

/** The loudness of a text's features is at most this: each text has one of its length. */
export const loudest = featureWeight(1)

/** A bound with buffers of its own; `weights` are three a slot. */
export function createContentBound(weights: Int8Array): ContentBound {
  const content = harmHeads.indexOf('content')
  const positive = (place: number) => Math.max(0, weights[place * harmHeads.length + content] ?? 0)
  const kindPositive = (hash: number, salt: number) => positive(featureSlot(2, hash, salt))
  const ofWords = filledTable(new Uint8Array(regionSlots), positive)
  const { kindsTable, sieve } = kindTable()
  const kinds = harmKinds.length
  const ofShare = (kind: number) => Math.max(...steps(8, share => kindPositive(kind * 16 + share + 1, salts.share)))
  const ofKind = Int32Array.from(harmKinds, (_, kind) => kindPositive(kind + 1, salts.kind) + ofShare(kind))
  const ofKindNear = Int32Array.from(
    steps(kinds * kinds, pair => {
      const hash = Math.floor(pair / kinds) * 64 + (pair % kinds) + 1
      return kindPositive(hash, salts.kindPair) + kindPositive(hash, salts.kindNear)
    }),
  )
  const ofLength = Math.max(...steps(13, step => kindPositive(step, salts.length)))
  const upTo = new Int32Array(maximumWords + 1)
  /** Of each word and its stem. */
  const slots = new Int32Array(2 * maximumWords)
  /** The words that have kinds: theirs, and where they stand. */
  const metKinds: (readonly number[])[] = []
  const metAt = new Int32Array(maximumWords)

  /** Of the kinds of a word, and of them beside those of another word. */
  const ofKinds = (own: readonly number[], near: readonly number[] | undefined): number => {
    let sum = 0
    for (const kind of own) {
      if (near === undefined) sum += ofKind[kind] ?? 0
      else for (const other of near) sum += ofKindNear[kind * kinds + other] ?? 0
    }
    return sum
  }

  return {
    begin({ words, stems, count }) {
      let sum = 0
      let met = 0
      for (let at = 0; at < count; at++) {
        slots[2 * at] = (words[at] ?? 0) ^ salts.word
        slots[2 * at + 1] = (stems[at] ?? 0) ^ salts.stem
      }
      mixHashes(slots, 2 * count, regionBits)
      for (let at = 0; at < count; at++) {
        const word = words[at] ?? 0
        sum += (ofWords[slots[2 * at] ?? 0] ?? 0) + (ofWords[slots[2 * at + 1] ?? 0] ?? 0)
        if (sieve[word & (featureSieveSize - 1)] === 1) {
          const own = kindsTable.get(word)
          if (own !== undefined) {
            sum += ofKinds(own, undefined)
            for (let last = met - 1; last >= 0 && at - (metAt[last] ?? 0) <= nearWords; last--)
              sum += ofKinds(own, metKinds[last])
            metKinds[met] = own
            metAt[met++] = at
          }
        }
        upTo[at + 1] = sum
      }
    },
    between({ stems }, from, to) {
      let sum = (upTo[to] ?? 0) - (upTo[from] ?? 0) + ofLength
      for (let at = from; at < to && at < from + openingWords; at++)
        sum += ofWords[featureSlot(0, Math.imul(stems[at] ?? 0, at - from + 3), salts.opening)] ?? 0
      return sum
    },
  }
}

function steps(count: number, of: (step: number) => number): number[] {
  return Array.from({ length: count }, (_, step) => of(step))
}
