import type { PromptAnalysis } from '../analysis/prompt-analysis.ts'
import type { QueryType } from '../chat/chat.ts'
import type { Model } from '../models/models.ts'

/**
 * Output tokens of a usual answer, without reasoning, by query type: to a short question, to one of usual length, and to one
 * that brings its material along. No public set has answer lengths of present models in chat: these are our own figures, until
 * answers were measured here. Where material is brought along they lean on what was published: median answers of 40 to 80 tokens
 * to exam questions with their material (RouterArena, two models of 2024; GSM8K as RouteLLM kept it, about 80).
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

/** Words up to which a prompt is a short question, and from which it brings its material along. */
const [briefWords, documentWords] = [14, 1_200]

/** Tokens that a model which always reasons spends on it before a usual answer, at its default effort. */
const usualReasoning = 800

/** What is read in a prompt that its answer's length goes by. */
export type LengthCues = Pick<PromptAnalysis, 'queryType' | 'words'>

/** Output tokens to expect of `model` before any was measured, reasoning included. */
export function usualOutputTokens(model: Model, { queryType, words }: LengthCues): number {
  const [brief, usual, document] = usualAnswer[queryType]
  const answer = words <= briefWords ? brief : words < documentWords ? usual : document
  return answer + (alwaysReasons(model) ? usualReasoning : 0)
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
