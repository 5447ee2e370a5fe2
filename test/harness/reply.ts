/** The first and the last event of a response, with usual values for everything except `fields`. */
import type { ResponseStart, ResponseSummary } from '../../src/core/chat/chat-events.ts'

export function startWith(fields: Partial<ResponseStart> = {}): ResponseStart {
  return {
    requestId: 'req_1',
    createdAt: 1,
    model: 'openai/gpt-5.5',
    provider: 'openai',
    attempts: [],
    droppedParameters: [],
    enhanced: null,
    overheadMs: 1,
    ...fields,
  }
}

export function summaryWith(fields: Partial<ResponseSummary> = {}): ResponseSummary {
  return {
    requestId: 'req_1',
    model: 'openai/gpt-5.5',
    provider: 'openai',
    usage: { inputTokens: 11, cachedInputTokens: 4, cacheWriteTokens: 2, outputTokens: 7, reasoningTokens: 3 },
    estimated: false,
    cost: { model: 1, search: 0, fetch: 0, total: 1 },
    routing: {
      mode: 'manual',
      strategy: null,
      queryType: null,
      complexity: null,
      learned: false,
      effort: null,
      attempts: [],
    },
    enhancement: null,
    web: { searched: false, sources: [], leftOut: [] },
    ...fields,
  }
}
