import { type Message, type QueryType, queryTypes } from '../../core/chat/chat.ts'
import { type LastTurn, readLastTurn } from '../segments/conversation.ts'
import { createConceptReader, isCodeType, requestsWeb } from './concepts.ts'
import { weighConversation } from './conversation-gain.ts'
import { createDifficultyHead, type WeighedSignal } from './difficulty.ts'
import { effortWords, type KeptEffort } from './effort.ts'
import { extractUrls, withoutUrls } from './extract-urls.ts'
import type { StoredWeights } from './feature-slots.ts'
import { createFeatureReader, type FeatureReader, type Features } from './features.ts'
import { adjustForQueryType, createFreshnessHead, isStatementOnly } from './freshness.ts'
import { getLanguage } from './language.ts'
import { createNotionReader, type Notions } from './notions.ts'
import type { StoredGainModel } from './quality-gain.ts'
import { createTypeHead } from './query-type.ts'

/** Analysis of a prompt. Contains no content except `urls`. */
export type PromptAnalysis = {
  readonly queryType: QueryType
  /** Probability of each query type; the sum is 1. */
  readonly queryTypeScores: Readonly<Record<QueryType, number>>
  /** 0 = any model can answer, 1 = the most capable model is needed. */
  readonly complexity: number
  /** Expected quality gain of a strong model over a weak one, 0–1. */
  readonly strongGain: number
  /** True if the correct answer changes over time, or web access was requested. */
  readonly needsCurrent: boolean
  /** Probability of this, 0–1; 1 if web access was requested. */
  readonly needsCurrentScore: number
  /** http(s) URLs in the last user text, in order, at most 16. */
  readonly urls: readonly string[]
  /** ISO 639-1; `und` if unknown. */
  readonly language: string
  /** How the last user turn relates to those before it. */
  readonly turn: LastTurn['kind']
  /** Words of the last user text, without the middle of a very long one. */
  readonly words: number
}

/** What a request may do without, since each of it takes as long as all the rest. */
export type WantedHeads = {
  /** `complexity` and `strongGain`. */
  readonly difficulty: boolean
  /** `needsCurrent` and `needsCurrentScore`. */
  readonly freshness: boolean
  readonly language: boolean
}

type HeadFields = 'complexity' | 'strongGain' | 'needsCurrent' | 'needsCurrentScore' | 'language'

/** An analysis of the wanted heads. */
export type RequestAnalysis = Omit<PromptAnalysis, HeadFields> & Partial<Pick<PromptAnalysis, HeadFields>>

export type PromptAnalyzer = (messages: readonly Message[]) => PromptAnalysis

/** Returns the signals behind the `strongGain` of the last user text, strongest first. */
export type DifficultyExplainer = (messages: readonly Message[]) => readonly WeighedSignal[]

/** Trained weights of all classifiers. */
type AnalyzerWeights = {
  readonly queryTypes: StoredWeights
  readonly freshness: StoredWeights
  readonly gain: StoredGainModel
  readonly effort: KeptEffort
}

/** Creates a prompt analyzer and the explainer of its results, with shared tables. */
export function createReaders(weights: AnalyzerWeights, readFeatures: FeatureReader = createFeatureReader()) {
  const readMeaning = createConceptReader(readFeatures)
  // Reads a text without its URLs. A second reader, so that the features of the whole text stay available to others.
  const readAside = createFeatureReader()
  const getTypes = createTypeHead(weights.queryTypes)
  const getFreshness = createFreshnessHead(weights.freshness)
  const difficulty = createDifficultyHead(weights.gain, weights.effort)
  const notionReader = createNotionReader(true, true)
  const getNotions = (features: Features): Notions => {
    notionReader.begin(features)
    return notionReader.read(0, Math.min(features.count, effortWords))
  }

  /**
   * Returns the features that decide the query type. A URL indicates where to look, not what is requested, unless the
   * text may be a program.
   */
  const describeProblem = (text: string, features: Features): Features => {
    const prose = withoutUrls(text)
    if (prose === text) return features
    const plain = readAside(prose)
    return programChance(getTypes(plain, readMeaning(plain), getNotions(plain))) < leastProgram ? plain : features
  }

  const getProblem = (request: string): readonly [Features, Notions] => {
    const telling = describeProblem(request, readFeatures(request))
    return [telling, getNotions(telling)]
  }
  const explain: DifficultyExplainer = messages => difficulty.signals(...getProblem(readLastTurn(messages).request))
  const getGain = (request: string): number => difficulty.strongGain(...getProblem(request))

  /** Program text tells the type of a request beside it: `What is wrong here?`. Null = there is none. */
  const getProgramTypes = ({ text, segments }: LastTurn): Float64Array | null => {
    if (segments.code < leastProgramText || segments.request === text) return null
    const whole = readAside(text)
    return getTypes(whole, readMeaning(whole), getNotions(whole)).slice()
  }

  function read(messages: readonly Message[], wanted: WantedHeads): RequestAnalysis
  function read(messages: readonly Message[]): PromptAnalysis
  function read(messages: readonly Message[], wanted: WantedHeads = allHeads): RequestAnalysis {
    const turn = readLastTurn(messages)
    const { request: text, kind } = turn
    const programTypes = getProgramTypes(turn)
    const features = readFeatures(text)
    const language = wanted.language ? getLanguage(text, features, readAside) : undefined
    const telling = describeProblem(text, features)
    const meaning = readMeaning(telling)
    const notions = getNotions(telling)
    const types = programTypes ?? getTypes(telling, meaning, notions)
    const queryType = likeliest(types)
    const urls = extractUrls(text)
    const words = features.count
    const analysis: RequestAnalysis = { queryType, queryTypeScores: classifierScores(types), urls, turn: kind, words }
    if (language !== undefined) Object.assign(analysis, { language })
    if (wanted.freshness) {
      // URLs count for web intent.
      const whole = telling === features ? meaning : readMeaning(features)
      const chance = isTimeless(turn, features) ? 0 : adjustForQueryType(getFreshness(features, whole), types)
      const score = requestsWeb(words, whole, urls, queryType) ? 1 : chance
      Object.assign(analysis, { needsCurrent: score > leastNeed, needsCurrentScore: score })
    }
    if (wanted.difficulty) {
      const earlier = messages.length > 1 ? totalCharacters(messages) - turn.text.length : 0
      const length = telling.count
      const strongGain = weighConversation(turn, difficulty.strongGain(telling, notions), getGain)
      Object.assign(analysis, { strongGain, complexity: getComplexity(strongGain, length, earlier) })
    }
    return analysis
  }

  return { read, explain }
}

const allHeads: WantedHeads = { difficulty: true, freshness: true, language: true }

/** Returns true if a request needs no web: it depends on an earlier turn, a client's helper sends it, or material answers it. */
function isTimeless({ kind, isHelper, segments }: LastTurn, features: Features): boolean {
  return kind !== 'own' || isHelper || segments.material >= leastSource || isStatementOnly(features)
}

/** Less program text is a name or a line. */
const leastProgramText = 60

/** Material of this length answers a question about it. */
const leastSource = 300

/**
 * Minimum probability of a program for its URLs to count as code. Of 30 of the project's own requests, read without
 * URLs, those about a page reach 0.12 at most and those about code 0.18 at least.
 */
const leastProgram = 0.15

function programChance(types: Float64Array): number {
  return queryTypes.reduce((sum, type, index) => sum + (isCodeType[type] ? (types[index] ?? 0) : 0), 0)
}

/** More likely than not. */
const leastNeed = 0.5

function likeliest(chances: Float64Array): QueryType {
  let best = 0
  for (let index = 1; index < chances.length; index++) if ((chances[index] ?? 0) > (chances[best] ?? 0)) best = index
  return queryTypes[best] ?? 'other'
}

/** Returns probabilities in the order of `queryTypes` as a record by type. */
export function classifierScores(chances: Float64Array): Readonly<Record<QueryType, number>> {
  const [code = 0, code_algorithm = 0, debugging = 0, analysis = 0, writing = 0] = chances
  const [math = 0, creative = 0, planning = 0, comparison = 0, other = 0] = chances.subarray(5)
  return { code, code_algorithm, debugging, analysis, writing, math, creative, planning, comparison, other }
}

function totalCharacters(messages: readonly Message[]): number {
  let total = 0
  for (const message of messages) {
    if (message.role !== 'user') total += message.text?.length ?? 0
    else for (const part of message.content) total += part.type === 'text' ? part.text.length : 0
  }
  return total
}

/**
 * Returns the complexity: 0 = any model can answer, 1 = the most capable model is needed. Never decreases with
 * `strongGain`, the words of the request or the length of the earlier conversation.
 */
function getComplexity(strongGain: number, words: number, earlierCharacters: number): number {
  const history = Math.min(0.1, 0.02 * Math.log2(1 + earlierCharacters / 4000))
  return Math.min(1, strongGain / 2 + 0.05 * Math.log2(1 + words) + history)
}
