import type { FeatureReader, Features } from './features.ts'
import { type Concept, lexicon } from './lexicon.ts'

export type { Concept }

/** The concepts, numbered as they stand in the lexicon. */
export const concepts = Object.keys(lexicon) as readonly Concept[]

/** What a text means, word by word: the concepts met, in order. Overwritten by the reader's next reading. */
export type Meaning = {
  /** How many were met, at most 1,024. */
  readonly count: number
  /** Their numbers, in order; valid up to `count`. */
  readonly found: Uint8Array
  /** The word at which each was met, counted from 0. */
  readonly at: Uint16Array
  /** How often each concept was met, by its number. */
  readonly times: Uint16Array
}

const maximumFound = 1024
const sieveSize = 1 << 16

/** Makes a reader of meanings with its own tables and buffers; `read` makes the hashes that it will be given. */
export function createConceptReader(read: FeatureReader): (features: Features) => Meaning {
  const { words, stems, pairs, sieve } = tables(read)
  const found = new Uint8Array(maximumFound)
  const at = new Uint16Array(maximumFound)
  const times = new Uint16Array(concepts.length)
  return features => {
    let count = 0
    times.fill(0)
    const add = (numbers: Uint8Array | undefined, place: number) => {
      if (numbers === undefined) return
      for (let index = 0; index < numbers.length && count < maximumFound; index++) {
        const number = numbers[index] ?? 0
        found[count] = number
        at[count++] = place
        times[number] = (times[number] ?? 0) + 1
      }
    }
    for (let place = 0; place < features.count; place++) {
      const word = features.words[place] ?? 0
      const kinds = sieve[word & (sieveSize - 1)] ?? 0
      if ((kinds & asWord) !== 0) add(words.get(word | 0), place)
      // The first half of a pair is marked, so that few words are joined with the next one in vain.
      if ((kinds & asOpening) !== 0 && place + 1 < features.count)
        add(pairs.get(wordPair(word, features.words[place + 1] ?? 0)), place)
      const stem = features.stems[place] ?? 0
      if (((sieve[stem & (sieveSize - 1)] ?? 0) & asStem) !== 0) add(stems.get(stem | 0), place)
    }
    return { count, found, at, times }
  }
}

const asWord = 1
const asStem = 2
const asOpening = 4

/** One hash for two words side by side. */
export function wordPair(first: number, second: number): number {
  return Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b)
}

/** The lexicon by hash, made with the very reader whose hashes are looked up. */
function tables(read: FeatureReader) {
  const words = new Map<number, number[]>()
  const stems = new Map<number, number[]>()
  const pairs = new Map<number, number[]>()
  const sieve = new Uint8Array(sieveSize)
  const put = (table: Map<number, number[]>, hash: number, kind: number, number: number) => {
    const numbers = table.get(hash | 0) ?? []
    if (!numbers.includes(number)) table.set(hash | 0, [...numbers, number])
    if (kind !== 0) sieve[hash & (sieveSize - 1)] = (sieve[hash & (sieveSize - 1)] ?? 0) | kind
  }
  for (const [number, concept] of concepts.entries()) {
    for (const entry of lexicon[concept].split(/\s+/)) {
      // A first word that nobody reads as a courtesy stands in front: `please` and `hello` are entries too.
      const { count, words: hashes, stems: begun } = read(`x ${entry.replace('*', '')}`)
      const [first = 0, second = 0] = [hashes[1] ?? 0, hashes[2] ?? 0]
      if (entry.endsWith('*')) put(stems, begun[1] ?? 0, asStem, number)
      else if (count === 2) put(words, first, asWord, number)
      else {
        put(pairs, wordPair(first, second), 0, number)
        sieve[first & (sieveSize - 1)] = (sieve[first & (sieveSize - 1)] ?? 0) | asOpening
      }
    }
  }
  const packed = (table: Map<number, number[]>) =>
    new Map([...table].map(([hash, numbers]) => [hash, Uint8Array.from(numbers)]))
  return { words: packed(words), stems: packed(stems), pairs: packed(pairs), sieve }
}
