import type { TokenLogprob, TokenUsage } from '../../core/chat.ts'
import { type Json, record, records, textOf, tokenCount } from '../json.ts'

/** Counts are cumulative; thoughts stand beside the candidates' tokens, the cache inside the prompt's. Null = none told. */
export function usageOf(metadata: unknown): TokenUsage | null {
  const counts = record(metadata)
  const prompt = tokenCount(counts.promptTokenCount)
  if (prompt === null) return null
  const inputTokens = prompt + (tokenCount(counts.toolUsePromptTokenCount) ?? 0)
  const reasoningTokens = tokenCount(counts.thoughtsTokenCount) ?? 0
  return {
    inputTokens,
    cachedInputTokens: Math.min(tokenCount(counts.cachedContentTokenCount) ?? 0, inputTokens),
    cacheWriteTokens: 0,
    outputTokens: (tokenCount(counts.candidatesTokenCount) ?? 0) + reasoningTokens,
    reasoningTokens,
  }
}

/** The log probabilities of a piece's tokens. */
export function logprobsOf(result: unknown): readonly TokenLogprob[] {
  const { chosenCandidates, topCandidates } = record(result)
  const tops = records(topCandidates)
  return records(chosenCandidates).map((chosen, position) => ({
    ...logprobOf(chosen),
    top_logprobs: records(tops[position]?.candidates).map(logprobOf),
  }))
}

/** Bytes are not told, and cannot be had from a token that is half a character. */
function logprobOf({ token, logProbability }: Json) {
  return { token: textOf(token), logprob: typeof logProbability === 'number' ? logProbability : 0, bytes: null }
}
