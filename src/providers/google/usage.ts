import type { ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { type Json, record, records, textOf, tokenCount } from '../json.ts'

/**
 * Returns the usage; null = not reported. Counts are cumulative; reasoning is separate from candidates' tokens, cached
 * tokens are included in the prompt's. Zeros are omitted on this wire: a missing candidates count is 0 before any
 * output (`answered`), and afterwards the rest of the total, or unknown if that is 0.
 */
export function googleUsageOf(metadata: unknown, answered: boolean): ReportedUsage | null {
  const counts = record(metadata)
  const prompt = tokenCount(counts.promptTokenCount)
  const told = tokenCount(counts.candidatesTokenCount)
  const thoughts = tokenCount(counts.thoughtsTokenCount)
  if (prompt === null && told === null && thoughts === null) return null
  const inputTokens = prompt === null ? null : prompt + (tokenCount(counts.toolUsePromptTokenCount) ?? 0)
  const reasoningTokens = thoughts ?? 0
  const rest = inputTokens === null ? 0 : (tokenCount(counts.totalTokenCount) ?? 0) - inputTokens - reasoningTokens
  const candidates = told ?? (rest > 0 ? rest : null)
  const isUntold = candidates === null && (answered || counts.candidatesTokenCount !== undefined)
  return {
    inputTokens,
    cachedInputTokens: Math.min(tokenCount(counts.cachedContentTokenCount) ?? 0, inputTokens ?? 0),
    cacheWriteTokens: 0,
    outputTokens: isUntold ? null : (candidates ?? 0) + reasoningTokens,
    ...(isUntold && { leastOutputTokens: reasoningTokens }),
    reasoningTokens,
  }
}

/** Returns the log probabilities of a delta's tokens. */
export function googleLogprobsOf(result: unknown): readonly TokenLogprob[] {
  const { chosenCandidates, topCandidates } = record(result)
  const tops = records(topCandidates)
  return records(chosenCandidates).map((chosen, position) => ({
    ...logprobOf(chosen),
    top_logprobs: records(tops[position]?.candidates).map(logprobOf),
  }))
}

/** Bytes are not reported, and cannot be derived from a token that is half a character. */
function logprobOf({ token, logProbability }: Json) {
  return {
    token: textOf(token).toWellFormed(),
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: null,
  }
}
