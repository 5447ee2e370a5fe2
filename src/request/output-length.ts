import type { QueryType } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import type { PromptAnalysis } from '../text/analysis/prompt-analysis.ts'

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

/** Reasoning tokens before a typical output, for models that always reason, at default effort. */
const usualReasoning = 800

/** Analysis that the output length depends on. */
export type LengthCues = Pick<PromptAnalysis, 'queryType' | 'words'>

/** Returns the expected output tokens of `model` before any measurement, including reasoning. */
export function usualOutputTokens(model: Model, { queryType, words }: LengthCues): number {
  const [brief, usual, document] = usualAnswer[queryType]
  const answer = words <= briefWords ? brief : words < documentWords ? usual : document
  return answer + (alwaysReasons(model) ? usualReasoning : 0)
}

/** Returns true if the model reasons even if the request does not ask for it. */
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
