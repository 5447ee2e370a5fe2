import type { ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { type Json, maximumTokens, record, records, textOf, tokenCount } from '../json.ts'
import { reportedUsage } from '../usage.ts'

/**
 * Returns the usage; null = not reported. Counts are cumulative; reasoning is separate from candidates' tokens, and
 * tokens of tools from the prompt's. Zeros are omitted on this wire: a missing candidates count is 0 before any output
 * (`answered`), and afterwards the rest of the total, or unknown if that is 0.
 */
export function googleUsageOf(metadata: unknown, answered: boolean): ReportedUsage | null {
  const counts = record(metadata)
  const prompt = tokenCount(counts.promptTokenCount)
  const told = tokenCount(counts.candidatesTokenCount)
  const reasoning = tokenCount(counts.thoughtsTokenCount) ?? 0
  const input = prompt === null ? null : prompt + (tokenCount(counts.toolUsePromptTokenCount) ?? 0)
  const total = tokenCount(counts.totalTokenCount)
  const isRest = told === null && input !== null && total !== null && total > input + reasoning
  const isNone = told === null && !isRest && !answered && counts.candidatesTokenCount === undefined
  if (isNone && input === null && counts.thoughtsTokenCount === undefined) return null
  return reportedUsage({
    input,
    output: told === null && !isNone ? null : (told ?? 0) + reasoning,
    total: told === null && !isRest ? null : total,
    cached: Math.min(tokenCount(counts.cachedContentTokenCount) ?? 0, input ?? maximumTokens),
    written: 0,
    hourWritten: 0,
    reasoning,
  })
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
