/** Estimates the cost of a request from catalog prices, without any upstream call. */
import type { ImagePart, Message, QueryType } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import { type PriceTerms, type Rates, ratesAt } from '../core/models/pricing.ts'
import { getCost, getHighestCost } from '../core/usage/money.ts'
import type { CalibratedLength, LengthSource } from '../learning/estimate-calibration.ts'
import { type ChosenEffort, expectedReasoning, type ReasoningLengths, usualLengths } from '../models/effort.ts'
import type { PromptAnalysis } from '../text/analysis/prompt-analysis.ts'
import { countTokens, estimateImageTokens, getFactor } from '../text/tokens/tokens.ts'
import { noWeb, type WebPlan } from '../web/web-plan.ts'

/**
 * Reliability of an estimate.
 * - `high`: all text was counted exactly by the model's own tokenizer, and the client caps the output.
 * - `medium`: one of the two; or the account has responses of this query type whose costs were estimated within a
 * third.
 * - `low`: neither: the provider publishes no tokenizer (or images, pages and prose without spaces are estimated), and the
 * output length is open.
 */
type EstimateConfidence = 'high' | 'medium' | 'low'

/** Source of the output length: the client's cap, or as in `estimate-calibration.ts`. */
type OutputSource = 'cap' | LengthSource

export type CostEstimate = {
  readonly model: Model
  readonly inputTokens: number
  readonly expectedOutputTokens: number
  readonly outputFrom: OutputSource
  readonly costMicrocents: number
  /** Maximum cost; known if `confidence` is `high`. */
  readonly maximumCostMicrocents: number | null
  readonly confidence: EstimateConfidence
}

/** Measurements that are shared by all models. */
type MeasuredPrompt = {
  readonly text: ReturnType<typeof countTokens>
  readonly messages: number
  readonly images: readonly ImagePart['detail'][]
  /** Cues for the length of the output. */
  readonly cues: LengthCues
  /** Planned web access; an estimate performs none. */
  readonly web: WebPlan
  /** Epoch milliseconds of the estimate: prices can depend on the time. */
  readonly at: number
}

/** Calibration without measurements. */
export const unknownLength: CalibratedLength = { factor: 1, source: 'table', typicalErrorPct: null }

/** Typical tokens of a page and of search results: the project's own rough figures. */
const usualWeb = { page: 2_000, results: 800 } as const

const tokensPerMessage = 4

/** Measures a conversation. */
export function measurePrompt(
  messages: readonly Message[],
  { cues, at, web = noWeb }: Pick<MeasuredPrompt, 'cues' | 'at'> & Partial<Pick<MeasuredPrompt, 'web'>>,
): MeasuredPrompt {
  const images = messages.flatMap(message =>
    message.role === 'user' ? message.content.flatMap(part => (part.type === 'image' ? [part.detail] : [])) : [],
  )
  return { text: countTokens(messages.map(getText)), messages: messages.length, images, cues, web, at }
}

/** Returns the estimate of one model for a measured prompt. `maxOutputTokens` is the client's cap; null = none. */
export function estimateCost(
  model: Model,
  prompt: MeasuredPrompt,
  maxOutputTokens: number | null,
  known: CalibratedLength = unknownLength,
): CostEstimate {
  const images = prompt.images.reduce((sum, detail) => sum + estimateImageTokens(detail, model.provider), 0)
  const text = Math.ceil(prompt.text.tokens * getFactor(model.provider))
  const { web } = prompt
  const looked = usualWebTokens(web, model)
  const inputTokens = text + images + looked + tokensPerMessage * (prompt.messages + 1)
  const { tokens, from } = expectedOutput(model, prompt.cues, maxOutputTokens, known)
  const counted = model.provider === 'openai' && prompt.text.isExact && images === 0 && looked === 0
  const confidence = getConfidence(counted, maxOutputTokens !== null, known)
  const cap = Math.min(maxOutputTokens ?? model.maxOutputTokens, model.maxOutputTokens)
  const terms: PriceTerms = { at: prompt.at, tier: 'default' }
  return {
    model,
    inputTokens,
    expectedOutputTokens: tokens,
    outputFrom: from,
    costMicrocents: baseCost(ratesAt(model.pricing, terms), inputTokens, tokens) + web.microcents,
    maximumCostMicrocents:
      confidence === 'high' ? getHighestCost(model.pricing, { inputTokens, outputTokens: cap }, terms) : null,
    confidence,
  }
}

/** Returns the expected output tokens of one choice and their source. */
export function expectedOutput(
  model: Model,
  cues: LengthCues,
  maxOutputTokens: number | null,
  { factor, source }: CalibratedLength,
): { readonly tokens: number; readonly from: OutputSource } {
  const tokens = Math.max(1, Math.round(usualOutputTokens(model, cues) * factor))
  const cap = Math.min(maxOutputTokens ?? model.maxOutputTokens, model.maxOutputTokens)
  return tokens >= cap ? { tokens: cap, from: 'cap' } : { tokens, from: source }
}

/** Returns the expected cost in micro-cents for these tokens without caching. */
export function baseCost(rates: Rates, inputTokens: number, outputTokens: number): number {
  return getCost(rates, { inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 })
}

/** Returns the tokens that planned web access typically adds. */
export function usualWebTokens({ query, urls }: WebPlan, { provider }: Model): number {
  return Math.ceil((urls.length * usualWeb.page + (query === null ? 0 : usualWeb.results)) * getFactor(provider))
}

/** Typical errors up to this percentage count as reliable. */
const tolerableErrorPct = 33

function getConfidence(
  counted: boolean,
  capped: boolean,
  { source, typicalErrorPct }: CalibratedLength,
): EstimateConfidence {
  if (counted && capped) return 'high'
  const proven = source === 'account' && typicalErrorPct !== null && typicalErrorPct <= tolerableErrorPct
  return counted || capped || proven ? 'medium' : 'low'
}

function getText(message: Message): string {
  switch (message.role) {
    case 'system':
    case 'tool':
      return message.text
    case 'assistant':
      return message.text ?? ''
    case 'user':
      return message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  }
}

/**
 * Typical output tokens without reasoning by query type: for a short question, a usual one, and one with its own
 * material. No public data has output lengths of current models in chat, so these are the project's own figures until
 * responses are measured. With material they follow published medians of 40 to 80 tokens (RouterArena, two models of
 * 2024; GSM8K in RouteLLM, about 80).
 */
const usualAnswer: Readonly<Record<QueryType, readonly [brief: number, usual: number, document: number]>> = {
  code: [450, 900, 900],
  code_algorithm: [600, 1_000, 1_000],
  debugging: [400, 800, 800],
  analysis: [250, 600, 500],
  writing: [250, 600, 500],
  math: [150, 400, 400],
  creative: [300, 800, 800],
  planning: [500, 900, 900],
  comparison: [400, 700, 600],
  other: [120, 350, 400],
}

/** Words up to which a prompt is short, and from which it contains material. */
const [briefWords, documentWords] = [14, 1_200]

/** What the output length depends on. */
type LengthCues = Pick<PromptAnalysis, 'queryType' | 'words'> & {
  /** Absent = the provider's default. */
  readonly effort?: ChosenEffort
  /** Absent = before any measurement. */
  readonly lengths?: ReasoningLengths
}

/** Returns the expected output tokens of `model` before any measurement of outputs, including reasoning. */
export function usualOutputTokens(model: Model, cues: LengthCues): number {
  const { queryType, words, effort = null, lengths = usualLengths } = cues
  const [brief, usual, document] = usualAnswer[queryType]
  const answer = words <= briefWords ? brief : words < documentWords ? usual : document
  return answer + Math.round(expectedReasoning(model, effort, lengths))
}
