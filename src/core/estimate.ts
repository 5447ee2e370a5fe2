/** What a request will probably cost, before it is made: from the catalogue's prices, with nothing asked of anybody. */
import type { ImagePart, Message } from './chat.ts'
import type { Model } from './models.ts'
import { costOf, highestCostOf } from './money.ts'
import { estimateImageTokens, factorOf } from './tokens.ts'
import type { WebPlan } from './web.ts'

/**
 * How far an estimate can be trusted.
 * - `high`: all text was counted by the model's own tokenizer, and the caller caps the output.
 * - `medium`: one of the two.
 * - `low`: neither: the provider publishes no tokenizer (or images and pages are estimated) and the answer may be of any length.
 */
export type Confidence = 'high' | 'medium' | 'low'

export type Estimate = {
  readonly model: Model
  readonly inputTokens: number
  readonly expectedOutputTokens: number
  readonly costMicrocents: number
  /** What it costs at most, where that is known: `confidence` is `high`. */
  readonly maximumCostMicrocents: number | null
  readonly confidence: Confidence
}

/** What is counted once and holds for all models. */
export type MeasuredPrompt = {
  readonly textTokens: number
  readonly messages: number
  readonly images: readonly ImagePart['detail'][]
  readonly shape: PromptShape
  /** What would be looked up for it; nobody has looked. */
  readonly web: WebPlan
}

/**
 * Tokens of a usual answer by the prompt's shape, without reasoning: our own rough figures, until answers have been
 * measured. A wrong guess here is what `confidence` warns of.
 */
const usualAnswer = { brief: 150, code: 900, long_form: 1_000, document: 600, general: 400 } as const
export type PromptShape = keyof typeof usualAnswer

/** Tokens that a model which always reasons spends on it before a usual answer, at its default effort. */
const usualReasoning = 800

/** Tokens that a usual page, and a usual list of results, add: our own rough figures too. */
const usualWeb = { page: 2_000, results: 800 } as const

const tokensPerMessage = 4
const documentCharacters = 8_000
const briefCharacters = 120
/** Cues stand early or at the end of a prompt; no more of it is searched. */
const searchedCharacters = 2_000

const codeCues = /```|\b(?:code|function|script|implement|refactor|debug|sql|regex|unit tests?)\b/i
const longFormCues = /\b(?:essay|article|story|report|blog|chapter|in detail|step by step|comprehensive)\b/i

/** Counts a conversation by `count`, which tells what OpenAI's tokenizer makes of all texts together. */
export async function measurePrompt(
  messages: readonly Message[],
  count: (texts: readonly string[]) => Promise<number>,
  web: WebPlan,
): Promise<MeasuredPrompt> {
  const textTokens = await count(messages.map(textOf))
  const images = messages.flatMap(message =>
    message.role === 'user' ? message.content.flatMap(part => (part.type === 'image' ? [part.detail] : [])) : [],
  )
  return { textTokens, messages: messages.length, images, shape: shapeOf(messages), web }
}

/** The estimate of one model for a measured prompt. `maxOutputTokens` is the caller's cap; null = none. */
export function estimateCost(model: Model, prompt: MeasuredPrompt, maxOutputTokens: number | null): Estimate {
  const images = prompt.images.reduce((sum, detail) => sum + estimateImageTokens(detail, model.provider), 0)
  const text = Math.ceil(prompt.textTokens * factorOf(model.provider))
  const { web } = prompt
  const looked = Math.ceil(webTokens(web) * factorOf(model.provider))
  const inputTokens = text + images + looked + tokensPerMessage * (prompt.messages + 1)
  const answer = usualAnswer[prompt.shape] + (alwaysReasons(model) ? usualReasoning : 0)
  const cap = Math.min(maxOutputTokens ?? model.maxOutputTokens, model.maxOutputTokens)
  const expectedOutputTokens = Math.min(answer, cap)
  const confidence = confidenceOf(model.provider === 'openai' && images === 0 && looked === 0, maxOutputTokens !== null)
  const usage = { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
  return {
    model,
    inputTokens,
    expectedOutputTokens,
    costMicrocents: costOf(model, { ...usage, outputTokens: expectedOutputTokens }) + web.microcents,
    maximumCostMicrocents: confidence === 'high' ? highestCostOf(model, inputTokens, cap) : null,
    confidence,
  }
}

function webTokens({ query, urls }: WebPlan): number {
  return urls.length * usualWeb.page + (query === null ? 0 : usualWeb.results)
}

function confidenceOf(counted: boolean, capped: boolean): Confidence {
  if (counted && capped) return 'high'
  return counted || capped ? 'medium' : 'low'
}

/** True where a request that says nothing of reasoning is reasoned about all the same. */
function alwaysReasons({ parameters: { reasoning, efforts } }: Model): boolean {
  switch (reasoning.kind) {
    case 'none':
    case 'budget':
      return false
    case 'effort':
      return !efforts.includes('none')
    case 'adaptive':
      return reasoning.off !== 'disabled'
    case 'level':
    case 'token_budget':
      return true
  }
}

function shapeOf(messages: readonly Message[]): PromptShape {
  const characters = messages.reduce((sum, message) => sum + textOf(message).length, 0)
  const last = messages.findLast(message => message.role === 'user')
  const question = last === undefined ? '' : textOf(last).trim()
  const searched = `${question.slice(0, searchedCharacters)}\n${question.slice(searchedCharacters).slice(-searchedCharacters)}`
  if (codeCues.test(searched)) return 'code'
  if (longFormCues.test(searched)) return 'long_form'
  if (characters > documentCharacters) return 'document'
  return question.length <= briefCharacters && question.endsWith('?') ? 'brief' : 'general'
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
