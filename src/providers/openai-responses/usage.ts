import type { ReportedUsage } from '../../core/chat/chat-events.ts'
import { isRecord, record, tokenCount } from '../json.ts'

/** Returns the token counts of a response; null if it has none. Cached and cache-written tokens are part of the input. */
export function responsesUsageOf(wire: unknown): ReportedUsage | null {
  if (!isRecord(wire)) return null
  const inputTokens = tokenCount(wire.input_tokens)
  const outputTokens = tokenCount(wire.output_tokens)
  if (inputTokens === null && outputTokens === null) return null
  const details = record(wire.input_tokens_details)
  const cachedInputTokens = Math.min(tokenCount(details.cached_tokens) ?? 0, inputTokens ?? 0)
  const reasoning = tokenCount(record(wire.output_tokens_details).reasoning_tokens) ?? 0
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(tokenCount(details.cache_write_tokens) ?? 0, (inputTokens ?? 0) - cachedInputTokens),
    outputTokens,
    ...(outputTokens === null && { leastOutputTokens: reasoning }),
    reasoningTokens: outputTokens === null ? reasoning : Math.min(reasoning, outputTokens),
  }
}
