import { queryTypes } from '../chat/chat.ts'
import { decodeWeights, type StoredWeights } from '../weights/stored-weights.ts'
import { type ConceptCounts, concepts, wordPair } from './concepts.ts'
import { addFeature, createSlots, deduplicate, type Slots } from './feature-slots.ts'
import { type Features, hashOf } from './features.ts'
import { englishLanguage, type Notions, taskNotions } from './notions.ts'

/** Probabilities by type, in the order of `queryTypes`; overwritten by the next reading. */
export type TypeHead = (features: Features, meaning: ConceptCounts, read: Notions) => Float64Array

/** A linear model over words, concepts and the punctuation of programs: which of the ten types a prompt is. */
export function createTypeHead(weights: StoredWeights): TypeHead {
  const pairs = pairsOf(decodeWeights(weights))
  const slots = createTypeSlots(weights.bits)
  const scores = new Float64Array(queryTypes.length)
  return (features, meaning, read) => {
    fillTypeSlots(slots, features, meaning, read)
    sumInto(scores, slots, pairs, weights.scale)
    return toProbabilities(scores)
  }
}

/** The head's list, to be filled by `fillTypeSlots`. */
export function createTypeSlots(bits: number): Slots {
  return createSlots(bits, 2048)
}

// Kinds of features, kept apart in the table.
const word = 1
const stem = 2
const opening = 3
const symbolCount = 4
const lengthStep = 5
const digitCount = 6
const concept = 7
const conceptShare = 8
const conceptAgain = 9
const conceptEarly = 10
const conceptFirst = 11
const conceptPair = 12
const always = 13
const digitShare = 14
const operator = 15
const notion = 16
const notionEarly = 17
const notionFirst = 18
const notionPair = 19
const notionBesideDigits = 20
const notionWithoutDigits = 21

/** Beside digits they calculate. */
const operators = Array.from('+-*/=^%', character => character.charCodeAt(0))

/** Of a long text the opening and the end are read: there it is said what is to be done. */
const openingWords = 240
const closingWords = 80

/** By name, so that a further notion in the lists leaves all others where they are. */
const hashOfNotion = Int32Array.from(taskNotions, hashOf)

/**
 * What the head reads of a text. Line feeds are left out: white space must not decide. Without `withWords` only what is the same in every
 * language, which is learned from as such: so what is known of English is known of the others.
 */
export function fillTypeSlots(
  slots: Slots,
  features: Features,
  meaning: ConceptCounts,
  read: Notions,
  withWords = true,
): void {
  slots.count = 0
  addFeature(slots, 0, always, 1)
  if (withWords) {
    addWords(slots, features)
    addConcepts(slots, meaning, features.count)
  }
  addShape(slots, features)
  // English words say themselves what the notions of English say again.
  addNotions(slots, read, features.digits > 0, withWords && read.language === englishLanguage ? 0.2 : 1)
  deduplicate(slots)
}

function addNotions(slots: Slots, { found, count }: Notions, hasDigits: boolean, loudness: number): void {
  for (let at = 0; at < count && at < mostNotions; at++) {
    const hash = hashOfNotion[found[at] ?? 0] ?? 0
    addFeature(slots, hash, notion, 0.8 * loudness)
    // Asking how many is a sum where numbers are given, and a fact where none is.
    addFeature(slots, hash, hasDigits ? notionBesideDigits : notionWithoutDigits, 0.6 * loudness)
    if (at < 4) addFeature(slots, hash, notionEarly, 0.6 * loudness)
    if (at === 0) addFeature(slots, hash, notionFirst, 0.8 * loudness)
    if (at > 0 && at < 8)
      addFeature(slots, wordPair(hashOfNotion[found[at - 1] ?? 0] ?? 0, hash), notionPair, 0.6 * loudness)
  }
}

const mostNotions = 64

function addWords(slots: Slots, features: Features): void {
  const { count, words, stems } = features
  // Each word speaks the more softly the more there are, so that length alone makes nothing sure.
  const volume = 3 / Math.sqrt(Math.max(10, Math.min(count, openingWords + closingWords)))
  for (let at = 0; at < count; at++) {
    if (at === openingWords && count > openingWords + closingWords) at = count - closingWords
    const hash = words[at] ?? 0
    addFeature(slots, hash, word, volume)
    addFeature(slots, stems[at] ?? 0, stem, volume)
    if (at < 3) addFeature(slots, hash, opening, 1)
  }
}

function addShape(slots: Slots, { count, symbols, digits }: Features): void {
  for (let code = 33; code < 127; code++) {
    const times = symbols[code] ?? 0
    if (times > 0)
      for (let step = 0; step <= 5 && 1 << step <= times; step++) addFeature(slots, code * 8 + step, symbolCount, 0.5)
  }
  for (let step = 0; step <= 10 && 1 << step <= count + 1; step++) addFeature(slots, step, lengthStep, 0.3)
  if (digits > 0) {
    addFeature(slots, 31 - Math.clz32(digits), digitCount, 0.5)
    addFeature(slots, Math.min(4, Math.floor((2 * digits) / count)), digitShare, 0.7)
    for (const code of operators) if ((symbols[code] ?? 0) > 0) addFeature(slots, code, operator, 0.7)
  }
}

/** Concepts this near to one another belong together. */
const pairReach = 6
const maximumPairs = 200
const earlyWords = 12

function addConcepts(slots: Slots, { count, found, at, times }: ConceptCounts, words: number): void {
  for (let number = 0; number < concepts.length; number++) {
    const often = times[number] ?? 0
    if (often === 0) continue
    addFeature(slots, number, concept, 1.3)
    addFeature(slots, number, conceptShare, Math.min(1.5, often / Math.sqrt(words + 4)))
    if (often > 1) addFeature(slots, number, conceptAgain, 0.65)
  }
  let pairs = 0
  for (let first = 0; first < count; first++) {
    const number = found[first] ?? 0
    const place = at[first] ?? 0
    if (first === 0) addFeature(slots, number, conceptFirst, 0.7)
    if (place < earlyWords) addFeature(slots, number, conceptEarly, 0.7)
    for (let next = first + 1; next < count && pairs < maximumPairs; next++) {
      if ((at[next] ?? 0) - place > pairReach) break
      if (found[next] === number) continue
      addFeature(slots, number * 256 + (found[next] ?? 0), conceptPair, 0.8)
      pairs++
    }
  }
}

/** Two types to a number, one in its lower half and one in its upper: half the loads and additions. */
function pairsOf(bytes: Int8Array): Int32Array {
  return Int32Array.from(
    { length: bytes.length / 2 },
    (_, pair) => (bytes[2 * pair] ?? 0) + (bytes[2 * pair + 1] ?? 0) * halfSpan,
  )
}

const pairsOfTypes = queryTypes.length / 2
const halfSpan = 2 ** 16
/** So many bytes add up to no more than half a number holds. */
const mostAdded = 256

/**
 * Adds up what the weights say of the slots, by type. Slots in a row mostly speak equally strongly, so that whole numbers can be
 * added first; the five pairs of the ten types have a variable each, for what lies in memory costs a load and a store.
 */
function sumInto(sums: Float64Array, { places, values, count }: Slots, pairs: Int32Array, scale: number): void {
  sums.fill(0)
  for (let at = 0; at < count; ) {
    const value = values[at] ?? 0
    const end = Math.min(count, at + mostAdded)
    let first = 0
    let second = 0
    let third = 0
    let fourth = 0
    let fifth = 0
    do {
      const from = (places[at] ?? 0) * pairsOfTypes
      first = (first + (pairs[from] ?? 0)) | 0
      second = (second + (pairs[from + 1] ?? 0)) | 0
      third = (third + (pairs[from + 2] ?? 0)) | 0
      fourth = (fourth + (pairs[from + 3] ?? 0)) | 0
      fifth = (fifth + (pairs[from + 4] ?? 0)) | 0
      at++
    } while (at < end && values[at] === value)
    addPair(sums, 0, first, value * scale)
    addPair(sums, 2, second, value * scale)
    addPair(sums, 4, third, value * scale)
    addPair(sums, 6, fourth, value * scale)
    addPair(sums, 8, fifth, value * scale)
  }
}

function addPair(sums: Float64Array, type: number, pair: number, value: number): void {
  const lower = (pair << 16) >> 16
  sums[type] = (sums[type] ?? 0) + lower * value
  sums[type + 1] = (sums[type + 1] ?? 0) + ((pair - lower) / halfSpan) * value
}

function toProbabilities(scores: Float64Array): Float64Array {
  let highest = Number.NEGATIVE_INFINITY
  for (let index = 0; index < scores.length; index++) highest = Math.max(highest, scores[index] ?? 0)
  let total = 0
  for (let index = 0; index < scores.length; index++) {
    const raised = Math.exp((scores[index] ?? 0) - highest)
    scores[index] = raised
    total += raised
  }
  for (let index = 0; index < scores.length; index++) scores[index] = (scores[index] ?? 0) / total
  return scores
}
