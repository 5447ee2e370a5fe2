/** What a request will probably cost, before it is made: from the catalogue's prices, with nothing asked of anybody. */
import type { ImagePart, Message } from '../chat/chat.ts'
import type { Model } from '../models/models.ts'
import { estimateImageTokens, factorOf } from '../tokens/tokens.ts'
import { noWeb, type WebPlan } from '../web/web-plan.ts'
import type { LengthSource } from './estimate-calibration.ts'
import { costOf, highestCostOf } from './money.ts'
import { type LengthCues, usualOutputTokens } from './output-length.ts'

/**
 * How far an estimate can be trusted.
 * - `high`: all text was counted by the model's own tokenizer, and the caller caps the output.
 * - `medium`: one of the two; or the account's own answers of this type are known, and their costs were foreseen within a third.
 * - `low`: neither: the provider publishes no tokenizer (or images and pages are estimated) and the answer may be of any length.
 */
export type EstimateConfidence = 'high' | 'medium' | 'low'

/** Where the length of the answer was taken from: the caller's cap, or as in `foresight.ts`. */
export type OutputSource = 'cap' | LengthSource

export type CostEstimate = {
  readonly model: Model
  readonly inputTokens: number
  readonly expectedOutputTokens: number
  readonly outputFrom: OutputSource
  readonly costMicrocents: number
  /** What it costs at most, where that is known: `confidence` is `high`. */
  readonly maximumCostMicrocents: number | null
  readonly confidence: EstimateConfidence
}

/** What is counted once and holds for all models. */
export type MeasuredPrompt = {
  readonly textTokens: number
  readonly messages: number
  readonly images: readonly ImagePart['detail'][]
  /** What its answer's length goes by. */
  readonly cues: LengthCues
  /** What would be looked up for it; nobody has looked. */
  readonly web: WebPlan
}

/** What is known of answers' lengths beside the table of usual ones. */
export type CalibratedOutput = {
  /** To multiply a usual length by. */
  readonly factor: number
  readonly source: LengthSource
  readonly typicalErrorPct: number | null
}

/** Where nothing was measured. */
export const unknownLength: CalibratedOutput = { factor: 1, source: 'table', typicalErrorPct: null }

/** Tokens that a usual page, and a usual list of results, add: our own rough figures. */
const usualWeb = { page: 2_000, results: 800 } as const

const tokensPerMessage = 4

/** Counts a conversation by `count`, which tells what OpenAI's tokenizer makes of all texts together. */
export async function measurePrompt(
  messages: readonly Message[],
  count: (texts: readonly string[]) => Promise<number>,
  cues: LengthCues,
  web: WebPlan = noWeb,
): Promise<MeasuredPrompt> {
  const textTokens = await count(messages.map(textOf))
  const images = messages.flatMap(message =>
    message.role === 'user' ? message.content.flatMap(part => (part.type === 'image' ? [part.detail] : [])) : [],
  )
  return { textTokens, messages: messages.length, images, cues, web }
}

/** The estimate of one model for a measured prompt. `maxOutputTokens` is the caller's cap; null = none. */
export function estimateCost(
  model: Model,
  prompt: MeasuredPrompt,
  maxOutputTokens: number | null,
  known: CalibratedOutput = unknownLength,
): CostEstimate {
  const images = prompt.images.reduce((sum, detail) => sum + estimateImageTokens(detail, model.provider), 0)
  const text = Math.ceil(prompt.textTokens * factorOf(model.provider))
  const { web } = prompt
  const looked = usualWebTokens(web, model)
  const inputTokens = text + images + looked + tokensPerMessage * (prompt.messages + 1)
  const { tokens, from } = expectedOutput(model, prompt.cues, maxOutputTokens, known)
  const counted = model.provider === 'openai' && images === 0 && looked === 0
  const confidence = confidenceOf(counted, maxOutputTokens !== null, known)
  const cap = Math.min(maxOutputTokens ?? model.maxOutputTokens, model.maxOutputTokens)
  return {
    model,
    inputTokens,
    expectedOutputTokens: tokens,
    outputFrom: from,
    costMicrocents: baseCost(model, inputTokens, tokens) + web.microcents,
    maximumCostMicrocents: confidence === 'high' ? highestCostOf(model, inputTokens, cap) : null,
    confidence,
  }
}

/** Output tokens to expect of one answer, and what says so. */
export function expectedOutput(
  model: Model,
  cues: LengthCues,
  maxOutputTokens: number | null,
  { factor, source }: CalibratedOutput,
): { readonly tokens: number; readonly from: OutputSource } {
  const tokens = Math.max(1, Math.round(usualOutputTokens(model, cues) * factor))
  const cap = Math.min(maxOutputTokens ?? model.maxOutputTokens, model.maxOutputTokens)
  return tokens >= cap ? { tokens: cap, from: 'cap' } : { tokens, from: source }
}

/** In micro-cents, nothing cached: what a request is foreseen to cost of so many tokens. */
export function baseCost(model: Model, inputTokens: number, outputTokens: number): number {
  return costOf(model, { inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 })
}

/** Tokens that what is looked up usually adds. */
export function usualWebTokens({ query, urls }: WebPlan, { provider }: Model): number {
  return Math.ceil((urls.length * usualWeb.page + (query === null ? 0 : usualWeb.results)) * factorOf(provider))
}

/** A usual error up to this is one that can be reckoned with. */
const tolerableErrorPct = 33

function confidenceOf(
  counted: boolean,
  capped: boolean,
  { source, typicalErrorPct }: CalibratedOutput,
): EstimateConfidence {
  if (counted && capped) return 'high'
  const proven = source === 'account' && typicalErrorPct !== null && typicalErrorPct <= tolerableErrorPct
  return counted || capped || proven ? 'medium' : 'low'
}

function textOf(message: Message): string {
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
