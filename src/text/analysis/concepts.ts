import type { QueryType } from '../../core/chat/chat.ts'
import { enterWordList, findLists } from '../hash-table.ts'
import { type FeatureReader, type Features, maximumWords } from './features.ts'
import words from './lexicon/concepts.json'

/**
 * Maps words of a dozen languages to concepts. A model that learns from concepts beside words understands `напиши`
 * after having seen `write`, and words that no training row contained.
 *
 * `word*` = all words with the same first five letters; `one_two` = two adjacent words, which also represents Chinese and
 * Japanese, read one character at a time: `代_码`.
 */
const lexicon = {
  ...words,
  year: Array.from({ length: 524 }, (_, past) => String(1500 + past)),
} satisfies Readonly<Record<string, readonly string[]>>

export type Concept = keyof typeof lexicon

/** The concepts, numbered by their order in the lexicon. */
export const concepts = Object.keys(lexicon) as readonly Concept[]

/** Concepts found in a text, in order. Overwritten by the reader's next reading. */
export type ConceptCounts = {
  /** Number of concepts found, at most 1,024. */
  readonly count: number
  /** Concept numbers in order; valid up to `count`. */
  readonly found: Uint8Array
  /** Index of the word at which each concept was found, from 0. */
  readonly at: Uint16Array
  /** Number of occurrences by concept number. */
  readonly times: Uint16Array
}

const maximumFound = 1024
const none = new Uint8Array(0)

/**
 * Creates a concept reader with its own tables and buffers. `read` must be the reader that produces the hashes it will
 * receive.
 */
export function createConceptReader(read: FeatureReader): (features: Features) => ConceptCounts {
  const { entries, asWord, asFirst, asStem } = tables(read)
  const found = new Uint8Array(maximumFound)
  const at = new Uint16Array(maximumFound)
  const times = new Uint16Array(concepts.length)
  const listsOfStems = new Uint16Array(maximumWords)
  let count = 0

  /** Notes the concepts of a key. */
  const note = (key: number, place: number): void => {
    const numbers = entries.get(key) ?? none
    for (let value = 0; value < numbers.length && count < maximumFound; value++) {
      const number = numbers[value] ?? 0
      found[count] = number
      at[count++] = place
      times[number] = (times[number] ?? 0) + 1
    }
  }

  return ({ count: all, words, lists, stems }) => {
    count = 0
    times.fill(0)
    findLists(stems, all, listsOfStems)
    for (let place = 0; place < all && count < maximumFound; place++) {
      const word = words[place] ?? 0
      const kinds = lists[place] ?? 0
      if ((kinds & asWord) !== 0) note(word, place)
      if ((kinds & asFirst) !== 0 && place + 1 < all) note(wordPair(word, words[place + 1] ?? 0), place)
      if (((listsOfStems[place] ?? 0) & asStem) !== 0) note((stems[place] ?? 0) ^ stemSalt, place)
    }
    return { count, found, at, times }
  }
}

/** Returns one hash for two adjacent words. */
export function wordPair(first: number, second: number): number {
  return Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b)
}

/** Separates `word*` from `word`, since the stem of a short word is the word itself. */
const stemSalt = 0x3c6ef372

/** Returns the lexicon by key, built with the same reader whose hashes are looked up, and the lists of its words. */
function tables(read: FeatureReader) {
  const entries = new Map<number, Uint8Array>()
  const [asWord, asFirst, asStem] = [new Set<number>(), new Set<number>(), new Set<number>()]
  const put = (list: Set<number>, hash: number, number: number, key = hash) => {
    const numbers = entries.get(key | 0) ?? none
    if (!numbers.includes(number)) entries.set(key | 0, Uint8Array.of(...numbers, number))
    list.add(hash)
  }
  for (const [number, concept] of concepts.entries()) {
    for (const entry of lexicon[concept].join(' ').split(' ')) {
      // Prefixed with a word that is not a polite phrase, because the reader drops a leading `please` or `hello`, which
      // are entries too.
      const { count, words, stems } = read(`x ${entry.replace('*', '')}`)
      const [first = 0, second = 0] = [words[1] ?? 0, words[2] ?? 0]
      const stem = stems[1] ?? 0
      if (entry.endsWith('*')) put(asStem, stem, number, stem ^ stemSalt)
      else if (count === 2) put(asWord, first, number)
      else put(asFirst, first, number, wordPair(first, second))
    }
  }
  return {
    entries,
    asWord: enterWordList('concept', asWord),
    asFirst: enterWordList('conceptPair', asFirst),
    asStem: enterWordList('conceptStem', asStem),
  }
}

/**
 * Returns true if a text explicitly requests web access: to search, to answer as of today, or to read a page by its
 * URL. `urls` are the URLs found in it.
 */
export function requestsWeb(words: number, meaning: ConceptCounts, urls: readonly string[], type: QueryType): boolean {
  const { times } = meaning
  if ((times[web] ?? 0) > 0 && !isCodeType[type])
    if (isNear(meaning, seek, web, 8) || isNear(meaning, web, seekAfter, 5)) return true
  if ((times[asOfToday] ?? 0) > 0 || isNear(meaning, asTable, now, 3)) return true
  if (urls.length === 0) return false
  // Code contains many URLs that should not be fetched; a short question about one should.
  if (isNear(meaning, visit, address, 8)) return true
  return words <= shortWords ? (times[visit] ?? 0) > 0 || !isCodeType[type] : mayCite[type]
}

const shortWords = 40

const getNumber = (concept: Concept) => concepts.indexOf(concept)
const seek = getNumber('seek')
const seekAfter = getNumber('seek_after')
const web = getNumber('web')
const asTable = getNumber('as_of')
const asOfToday = getNumber('as_of_today')
const now = getNumber('now')
const visit = getNumber('visit')
const address = getNumber('address')

/** Query types in which a URL or a mention of web search is usually part of a program. */
export const isCodeType: Readonly<Record<QueryType, boolean>> = {
  code: true,
  code_algorithm: true,
  debugging: true,
  analysis: false,
  writing: false,
  math: false,
  creative: false,
  planning: false,
  comparison: false,
  other: false,
}

/** Query types whose longer prompts cite URLs to read; in fiction and calculations they are only mentioned. */
const mayCite: Readonly<Record<QueryType, boolean>> = {
  code: false,
  code_algorithm: false,
  debugging: false,
  analysis: true,
  writing: true,
  math: false,
  creative: false,
  planning: true,
  comparison: true,
  other: true,
}

/** Returns true if the second concept follows the first within `reach` words. */
function isNear({ count, found, at }: ConceptCounts, first: number, second: number, reach: number): boolean {
  let last = Number.NEGATIVE_INFINITY
  for (let index = 0; index < count; index++) {
    const number = found[index]
    const place = at[index] ?? 0
    if (number === first) last = place
    if (number === second && place !== last && place - last <= reach) return true
  }
  return false
}
