/** The first and the last event of a response, with usual values for everything except `fields`. */
import type { ResponseStart, ResponseSummary } from '../../src/core/chat/chat-events.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'

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

type Fields = Partial<Omit<ResponseSummary, 'record' | 'plan' | 'progress'>> & {
  readonly record?: Partial<UsageRecord>
  readonly plan?: Partial<ResponseSummary['plan']>
  readonly progress?: Partial<ResponseSummary['progress']>
}

export function summaryWith({
  record,
  plan,
  progress,
  ...fields
}: Fields = {}): ResponseSummary & { readonly record: UsageRecord } {
  return {
    record: recordWith({ provider: 'openai', model: 'gpt-5.5', billed_microcents: 1, ...record }),
    usage: { inputTokens: 11, cachedInputTokens: 4, cacheWriteTokens: 2, outputTokens: 7, reasoningTokens: 3 },
    estimated: false,
    plan: { strategy: null, analysis: { queryType: 'other' }, learning: { influenced: false }, ...plan },
    progress: { attempts: [], continued: [], enhancement: null, web: null, ...progress },
    ...fields,
  }
}

/** The usage record of a request that no model served. */
export function recordWith(fields: Partial<UsageRecord> = {}): UsageRecord {
  return {
    request_id: 'req_1',
    account_id: 'acc_1',
    key_id: 'key_1',
    at_ms: 0,
    provider: '',
    model: '',
    requested_model: 'gateway-ai',
    dialect: 'native',
    routing_mode: 'manual',
    strategy: null,
    query_type: null,
    streamed: false,
    status: 'completed',
    error_code: null,
    finish_reason: null,
    input_tokens: 0,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    estimated: false,
    billed_microcents: 0,
    reserved_microcents: 0,
    tried: [],
    attempts: 0,
    latency_ms: 1,
    first_token_ms: null,
    metadata: null,
    ...fields,
  }
}
