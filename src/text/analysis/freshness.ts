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
  weightedSum,
} from './feature-slots.ts'
import type { Features } from './features.ts'

/** Returns the probability (0–1) that the correct answer to a text changes over time. */
type FreshnessHead = (features: Features, meaning: ConceptCounts) => number

/** Creates a linear model over words, word pairs and concepts, trained on questions in seven languages. */
export function createFreshnessHead(weights: StoredWeights): FreshnessHead {
  const bytes = decodeWeights(weights)
  const slots = createSlots(weights.bits)
  return (features, meaning) => {
    fillFreshnessSlots(slots, features, meaning)
    return 1 / (1 + Math.exp(-weights.scale * weightedSum(slots, bytes)))
  }
}

/**
 * Returns the freshness probability adjusted for the query type: code, calculations and fiction do not change over
 * time. The more certain the type, the more evidence is required, since "Is the share above 250?" may look like a
 * calculation. `types` are the probabilities by type.
 */
export function adjustForQueryType(chance: number, types: Float64Array): number {
  let timeless = 0
  for (const index of timelessTypes) timeless += types[index] ?? 0
  if (timeless <= 0.5) return chance
  return 1 / (1 + ((1 - chance) / chance) * Math.exp(mostEvidence * (2 * timeless - 1)))
}

/** Log-odds deducted for a certain timeless type; set by cross-validation. */
const mostEvidence = 6
const timelessTypes = (['code', 'code_algorithm', 'debugging', 'math', 'creative'] as const).map(type =>
  queryTypes.indexOf(type),
)

/**
 * Returns true if a text only greets or sets values, like `hello status=503` or `[[sim:status=503]]`: one key and value
 * per equals sign, plus at most a name. It asks nothing, whatever the keys are called.
 */
export function isStatementOnly({ count, symbols }: Features): boolean {
  const values = symbols[equals] ?? 0
  return count >= 2 * values && count <= 3 * values
}

const equals = '='.charCodeAt(0)

// Kinds of features, kept apart in the table.
const word = getSalt(1)
const stem = getSalt(2)
const pair = getSalt(4)
const place = getSalt(5)
const openingPair = getSalt(6)
const closing = getSalt(7)
const symbol = getSalt(8)
const lengthStep = { salt: getSalt(9), value: 0.3 }
const concept = getSalt(10)
const conceptFirst = getSalt(11)
const conceptPair = getSalt(12)
const always = getSalt(13)

/** Quotes, brackets and program punctuation, which are rare in questions about the world. */
const tellingSymbols = Array.from("'({;=[`<", character => character.charCodeAt(0))

/** A question that needs the web says so soon; the rest of a long prompt is material. */
const mostWords = 64

/** Fills the features of a text. */
export function fillFreshnessSlots(slots: Slots, features: Features, meaning: ConceptCounts): void {
  const { words, stems, symbols } = features
  const count = Math.min(features.count, mostWords)
  slots.count = 0
  addFeature(slots, 0, always, 1)
  const volume = 3 / Math.sqrt(Math.max(8, count))
  for (let at = 0; at < count; at++) {
    const hash = words[at] ?? 0
    addFeature(slots, hash, word, volume)
    addFeature(slots, stems[at] ?? 0, stem, volume)
    if (at + 1 < count) addFeature(slots, wordPair(hash, words[at + 1] ?? 0), pair, volume)
    if (at < 2) addFeature(slots, hash + at, place, 1)
    if (at >= count - 2) addFeature(slots, stems[at] ?? 0, closing, 0.5)
  }
  if (count > 1) addFeature(slots, wordPair(words[0] ?? 0, words[1] ?? 0), openingPair, 1)
  for (const code of tellingSymbols) if ((symbols[code] ?? 0) > 0) addFeature(slots, code, symbol, 0.5)
  addSteps(slots, lengthStep, 0, Math.min(10, Math.floor(2 * Math.log2(features.count + 1))))
  addConcepts(slots, meaning)
  deduplicate(slots)
}

const pairReach = 6
const maximumPairs = 100

function addConcepts(slots: Slots, { count, found, at, times }: ConceptCounts): void {
  for (let number = 0; number < concepts.length; number++)
    if ((times[number] ?? 0) > 0) addFeature(slots, number, concept, 1)
  if (count > 0) addFeature(slots, found[0] ?? 0, conceptFirst, 0.7)
  let pairs = 0
  for (let first = 0; first < count && pairs < maximumPairs; first++) {
    for (let next = first + 1; next < count && pairs < maximumPairs; next++) {
      if ((at[next] ?? 0) - (at[first] ?? 0) > pairReach) break
      if (found[next] === found[first]) continue
      addFeature(slots, (found[first] ?? 0) * 256 + (found[next] ?? 0), conceptPair, 0.5)
      pairs++
    }
  }
}
