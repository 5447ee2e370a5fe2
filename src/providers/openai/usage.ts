import type { ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { type Json, record, records, tokenCount } from '../json.ts'

/**
 * Returns the usage; null if the object has none. A `total_tokens` above the sum contains reasoning that the server
 * counts in neither (xAI beside `completion_tokens`, Gemini's compatible endpoint nowhere): it is output. Two counts
 * imply the third, but a missing count is never assumed to be zero.
 */
export function usageOf(wire: Json): ReportedUsage | null {
  const prompt = tokenCount(wire.prompt_tokens)
  const completion = tokenCount(wire.completion_tokens)
  const total = tokenCount(wire.total_tokens)
  if (prompt === null && completion === null) return null
  const promptDetails = record(wire.prompt_tokens_details)
  const completionDetails = record(wire.completion_tokens_details)
  const input = prompt ?? restOf(total, completion)
  const output =
    completion === null || prompt === null
      ? (completion ?? restOf(total, prompt))
      : Math.max(completion, (total ?? 0) - prompt)
  // DeepSeek, Kimi and Mistral report it beside the details.
  const caches = [promptDetails.cached_tokens, wire.prompt_cache_hit_tokens, wire.cached_tokens, wire.num_cached_tokens]
  const cached = caches.map(tokenCount).find(count => count !== null) ?? 0
  const reasoning =
    (tokenCount(completionDetails.reasoning_tokens) ?? tokenCount(wire.reasoning_tokens)) ||
    (completion === null || output === null ? 0 : output - completion)
  const cachedInputTokens = Math.min(cached, input ?? 0)
  return {
    inputTokens: input,
    cachedInputTokens,
    cacheWriteTokens: Math.min(tokenCount(promptDetails.cache_write_tokens) ?? 0, (input ?? 0) - cachedInputTokens),
    outputTokens: output,
    ...(output === null && { leastOutputTokens: reasoning }),
    reasoningTokens: output === null ? reasoning : Math.min(reasoning, output),
  }
}

/** Returns the rest of a total without one part; null if that is 0, which means unknown. */
function restOf(total: number | null, part: number | null): number | null {
  const rest = (total ?? 0) - (part ?? 0)
  return rest > 0 ? rest : null
}

/** Returns the log probabilities of a delta's tokens, without incomplete entries. */
export function logprobsOf(content: unknown): readonly TokenLogprob[] {
  return records(content).flatMap(wire => {
    const token = tokenOf(wire)
    const top_logprobs = records(wire.top_logprobs).flatMap(other => tokenOf(other) ?? [])
    return token === null ? [] : [{ ...token, top_logprobs }]
  })
}

function tokenOf({ token, logprob, bytes }: Json): Omit<TokenLogprob, 'top_logprobs'> | null {
  if (typeof token !== 'string' || typeof logprob !== 'number') return null
  const numbers = Array.isArray(bytes) ? bytes.filter(byte => typeof byte === 'number') : null
  return { token: token.toWellFormed(), logprob, bytes: numbers }
}
