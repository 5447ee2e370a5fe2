import { queryTypes } from '../../core/chat/chat.ts'
import { type ConceptCounts, concepts, wordPair } from './concepts.ts'
import {
  addFeature,
  addSteps,
  createSlots,
  decodeWeights,
  deduplicate,
  getSalt,
  type Slots,
  type StoredWeights,
} from './feature-slots.ts'
import { type Features, getHash } from './features.ts'
import { englishLanguage, type Notions, taskNotions } from './notions.ts'

/** Returns probabilities in the order of `queryTypes`; overwritten by the next reading. */
type TypeHead = (features: Features, meaning: ConceptCounts, read: Notions) => Float64Array

/**
 * Creates a linear model over words, concepts and program punctuation that classifies a prompt into the ten query
 * types.
 */
export function createTypeHead(weights: StoredWeights): TypeHead {
  const table = decodeWeights(weights)
  const slots = createSlots(weights.bits)
  const scores = new Float64Array(queryTypes.length)
  return (features, meaning, read) => {
    fillTypeSlots(slots, features, meaning, read)
    sumInto(scores, slots, table, weights.scale)
    return toProbabilities(scores)
  }
}

// Kinds of features, kept apart in the table.
const word = getSalt(1)
const stem = getSalt(2)
const opening = getSalt(3)
const symbolCount = { salt: getSalt(4), value: 0.5 }
const lengthStep = { salt: getSalt(5), value: 0.3 }
const digitCount = getSalt(6)
const concept = getSalt(7)
const conceptShare = getSalt(8)
const conceptAgain = getSalt(9)
const conceptEarly = getSalt(10)
const conceptFirst = getSalt(11)
const conceptPair = getSalt(12)
const always = getSalt(13)
const digitShare = getSalt(14)
const operator = getSalt(15)
const notion = getSalt(16)
const notionEarly = getSalt(17)
const notionFirst = getSalt(18)
const notionPair = getSalt(19)
const notionBesideDigits = getSalt(20)
const notionWithoutDigits = getSalt(21)

/** Indicate a calculation beside digits. */
const operators = Array.from('+-*/=^%', character => character.charCodeAt(0))

/** Only the start and the end of a long text are read: they state the task. */
const openingWords = 240
const closingWords = 80

/** Keyed by name, so that adding a notion leaves the other slots unchanged. */
const hashOfNotion = Int32Array.from(taskNotions, getHash)

/**
 * Fills the features of a text. Line feeds are excluded, since white space must not decide. Without `withWords` only
 * language-independent features are used, so that what is learned from English applies to other languages.
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
  // In English, words already carry what the English notions would repeat.
  addNotions(slots, read, features.digits > 0, withWords && read.language === englishLanguage ? 0.2 : 1)
  deduplicate(slots)
}

function addNotions(slots: Slots, { found, count }: Notions, hasDigits: boolean, loudness: number): void {
  for (let at = 0; at < count && at < mostNotions; at++) {
    const hash = hashOfNotion[found[at] ?? 0] ?? 0
    addFeature(slots, hash, notion, 0.8 * loudness)
    // "How many" is a calculation if numbers are given, and a fact question otherwise.
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
  // The more words there are, the less each one counts, so that length does not create certainty.
  const volume = 3 / Math.sqrt(Math.max(10, Math.min(count, openingWords + closingWords)))
  const { places, values } = slots
  for (let at = 0; at < count; at++) {
    if (at === openingWords && count > openingWords + closingWords) at = count - closingWords
    const hash = words[at] ?? 0
    places[slots.count] = hash ^ word
    values[slots.count++] = volume
    places[slots.count] = (stems[at] ?? 0) ^ stem
    values[slots.count++] = volume
    if (at < 3) addFeature(slots, hash, opening, 1)
  }
}

function addShape(slots: Slots, { count, symbols, digits }: Features): void {
  for (let code = 33; code < 127; code++) {
    const times = symbols[code] ?? 0
    if (times > 0) addSteps(slots, symbolCount, code * 8, code * 8 + Math.min(5, 31 - Math.clz32(times)))
  }
  addSteps(slots, lengthStep, 0, Math.min(10, 31 - Math.clz32(count + 1)))
  if (digits > 0) {
    addFeature(slots, 31 - Math.clz32(digits), digitCount, 0.5)
    addFeature(slots, Math.min(4, Math.floor((2 * digits) / count)), digitShare, 0.7)
    for (const code of operators) if ((symbols[code] ?? 0) > 0) addFeature(slots, code, operator, 0.7)
  }
}

/** Maximum distance of concepts that form a pair. */
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

/** Sums the weights of the slots by type. */
function sumInto(sums: Float64Array, { places, values, count }: Slots, table: Int8Array, scale: number): void {
  sums.fill(0)
  for (let at = 0; at < count; at++) {
    const slot = (places[at] ?? 0) * queryTypes.length
    const loud = (values[at] ?? 0) * scale
    for (let type = 0; type < queryTypes.length; type++)
      sums[type] = (sums[type] ?? 0) + loud * (table[slot + type] ?? 0)
  }
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
