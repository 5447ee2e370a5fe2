import { type Message, type QueryType, queryTypes } from '../chat/chat.ts'
import type { StoredWeights } from '../weights/stored-weights.ts'
import { complexityOf, scoreDemand } from './complexity.ts'
import { createConceptReader } from './concepts.ts'
import { createDifficultyHead, type WeighedSignal } from './difficulty.ts'
import { effortWords, type KeptEffort } from './effort.ts'
import { extractUrls } from './extract-urls.ts'
import { createFeatureReader, type FeatureReader, type Features } from './features.ts'
import { adjustForQueryType, createFreshnessHead, isStatementOnly } from './freshness.ts'
import { languageOf } from './language.ts'
import { createNotionReader, type Notions } from './notions.ts'
import type { StoredGainModel } from './quality-gain.ts'
import { createTypeHead } from './query-type.ts'
import { withoutUrls } from './strip-urls.ts'
import { isCodeType, requestsWeb } from './web-intent.ts'

/** What the gateway reads in a prompt. Content-free but for `urls`. */
export type PromptAnalysis = {
  readonly queryType: QueryType
  /** How probable each type is; they add up to 1. */
  readonly queryTypeScores: Readonly<Record<QueryType, number>>
  /** 0 = anyone can answer it, 1 = the most capable model is wanted. */
  readonly complexity: number
  /** How much better a strong model is expected to do than a weak one, 0–1. */
  readonly strongGain: number
  /** A right answer changes with time, or the web was asked for. */
  readonly needsCurrent: boolean
  /** How probable that is, 0–1; 1 where the web was asked for. */
  readonly needsCurrentScore: number
  /** http(s) addresses in the last user text, in order, at most 16. */
  readonly urls: readonly string[]
  /** ISO 639-1, `und` where it cannot be told. */
  readonly language: string
  /** Words of the last user text, those of a very long one's middle left out. */
  readonly words: number
}

export type PromptAnalyzer = (messages: readonly Message[]) => PromptAnalysis

/** Returns the signals that decide the `strongGain` of the last user text, strongest first. */
export type DifficultyExplainer = (messages: readonly Message[]) => readonly WeighedSignal[]

/** What the reader was taught. */
export type AnalyzerWeights = {
  readonly queryTypes: StoredWeights
  readonly freshness: StoredWeights
  readonly gain: StoredGainModel
  readonly effort: KeptEffort
}

/**
 * Makes a reader: the last user text in one pass, linear, the same answer whatever the case, white space and final
 * punctuation; of the conversation before it only the length counts.
 */
export function createPromptAnalyzer(weights: AnalyzerWeights, readFeatures?: FeatureReader): PromptAnalyzer {
  return createReaders(weights, readFeatures).read
}

/** Makes a reader, and beside it the explainer of its figures; they share their tables. */
export function createReaders(
  weights: AnalyzerWeights,
  readFeatures: FeatureReader = createFeatureReader(),
): { readonly read: PromptAnalyzer; readonly explain: DifficultyExplainer } {
  const readMeaning = createConceptReader(readFeatures)
  // What is left of a text without its addresses, beside the whole text that others may read again.
  const readAside = createFeatureReader()
  const typesOf = createTypeHead(weights.queryTypes)
  const freshnessOf = createFreshnessHead(weights.freshness)
  const difficulty = createDifficultyHead(weights.gain, weights.effort)
  const notionReader = createNotionReader(true, true)
  const notionsOf = (features: Features): Notions => {
    notionReader.begin(features)
    return notionReader.read(0, Math.min(features.count, effortWords))
  }

  /** What says which type a text is: an address tells where to look, not what is asked, unless a program may be. */
  const tellingOf = (text: string, features: Features): Features => {
    const prose = withoutUrls(text)
    if (prose === text) return features
    const plain = readAside(prose)
    return programChance(typesOf(plain, readMeaning(plain), notionsOf(plain))) < leastProgram ? plain : features
  }

  const explain: DifficultyExplainer = messages => {
    const text = lastUserText(messages)
    const telling = tellingOf(text, readFeatures(text))
    return difficulty.signals(telling, notionsOf(telling))
  }

  const read: PromptAnalyzer = messages => {
    const text = lastUserText(messages)
    const earlier = messages.length > 1 ? totalCharacters(messages) - text.length : 0
    const features = readFeatures(text)
    const language = languageOf(text, features, readAside)
    const telling = tellingOf(text, features)
    const tellingMeaning = readMeaning(telling)
    const notions = notionsOf(telling)
    const types = typesOf(telling, tellingMeaning, notions)
    const queryType = likeliest(types)
    const strongGain = difficulty.strongGain(telling, notions)
    const complexity = complexityOf(scoreDemand(types, telling, tellingMeaning), strongGain, earlier)
    // Whether the web is asked, addresses say too.
    const meaning = telling === features ? tellingMeaning : readMeaning(features)
    const urls = extractUrls(text)
    const isAsked = requestsWeb(features.count, meaning, urls, queryType)
    const chance = isStatementOnly(features) ? 0 : adjustForQueryType(freshnessOf(features, meaning), types)
    const score = isAsked ? 1 : chance
    return {
      queryType,
      queryTypeScores: classifierScores(types),
      complexity,
      strongGain,
      needsCurrent: score > leastNeed,
      needsCurrentScore: score,
      urls,
      language,
      words: features.count,
    }
  }

  return { read, explain }
}

/**
 * From so probable a program on, an address counts as a part of it. Of some thirty requests of our own, read without their
 * address, those about a page reach .12 at most, those about code .18 at least.
 */
const leastProgram = 0.15

function programChance(types: Float64Array): number {
  return queryTypes.reduce((sum, type, index) => sum + (isCodeType[type] ? (types[index] ?? 0) : 0), 0)
}

/** More probable than not. */
const leastNeed = 0.5

function likeliest(chances: Float64Array): QueryType {
  let best = 0
  for (let index = 1; index < chances.length; index++) if ((chances[index] ?? 0) > (chances[best] ?? 0)) best = index
  return queryTypes[best] ?? 'other'
}

/** Probabilities in the order of `queryTypes`, by type. */
export function classifierScores(chances: Float64Array): Readonly<Record<QueryType, number>> {
  const of = (index: number) => chances[index] ?? 0
  return {
    code: of(0),
    code_algorithm: of(1),
    debugging: of(2),
    analysis: of(3),
    writing: of(4),
    math: of(5),
    creative: of(6),
    planning: of(7),
    comparison: of(8),
    other: of(9),
  }
}

/** What the caller asked last: the text that is read. */
export function lastUserText(messages: readonly Message[]): string {
  const message = lastOfUser(messages)
  if (message === null) return ''
  const [first, second] = message.content
  if (first?.type === 'text' && second === undefined) return first.text
  return message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
}

/** The caller's last turn, null where there is none. */
export function lastOfUser(messages: readonly Message[]): Extract<Message, { role: 'user' }> | null {
  const message = messages.findLast(({ role }) => role === 'user')
  return message?.role === 'user' ? message : null
}

function totalCharacters(messages: readonly Message[]): number {
  let total = 0
  for (const message of messages) {
    if (message.role !== 'user') total += message.text?.length ?? 0
    else for (const part of message.content) total += part.type === 'text' ? part.text.length : 0
  }
  return total
}
