/** Writes response objects: the output, and the settings of the request that the API repeats. */

import type { ReasoningItem } from '../../core/chat/chat.ts'
import type { FinishReason, ProviderFields, ResponseStart, ResponseSummary } from '../../core/chat/chat-events.ts'
import { shownTier } from '../../core/chat/provider-features.ts'
import type { BodyWriter } from '../../core/chat/response-collector.ts'
import { autoModel } from '../../core/models/models.ts'
import { shownCost } from '../../core/usage/money.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import type { Fields } from '../foreign-objects.ts'
import { OutputItems } from './output.ts'
import type { OutputOptions } from './output-items.ts'
import type { ResponsesRequest } from './request.ts'

/** The request and the seal for its account. */
export type ReplyContext = ResponsesRequest & { readonly seal: (item: ReasoningItem) => string }

/** What a response object contains of its start. */
export type ResponseHead = Pick<ResponseStart, 'createdAt' | 'model' | 'askedName' | 'providerFields'>

/** Fields of a response object that change during a stream. */
export type ResponseState = {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly output: readonly Fields[]
  readonly usage: Fields | null
  readonly providerFields?: ProviderFields
  readonly error?: Fields
  readonly incompleteReason?: 'max_output_tokens' | 'content_filter'
}

/** Returns the response ID, which depends only on the request ID. */
function getResponseId(requestId: string): string {
  return `resp_${getStem(requestId)}`
}

function getStem(requestId: string): string {
  return requestId.replace(/^req_/, '')
}

/** Returns the output items of one response. `emit` as in `OutputOptions`. */
export function createItems(context: ReplyContext, requestId: string, emit?: OutputOptions['emit']): OutputItems {
  const { origins, seal, includesReasoning, refersToItems } = context
  const events = emit === undefined ? {} : { emit }
  return new OutputItems({ stem: getStem(requestId), origins, seal, includesReasoning, refersToItems, ...events })
}

/** Returns the response object as JSON text. `settings` comes from `settingsJson`. */
export function responseJson(settings: string, requestId: string, opening: ResponseHead, state: ResponseState): string {
  return `${JSON.stringify(stateFields(requestId, opening, state)).slice(0, -1)},${settings.slice(1)}`
}

function stateFields(
  requestId: string,
  opening: ResponseHead,
  { status, output, usage, providerFields, error, incompleteReason }: ResponseState,
) {
  return {
    id: getResponseId(requestId),
    object: 'response',
    created_at: opening.createdAt,
    status,
    background: false,
    error: error ?? null,
    incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
    model: opening.askedName ?? opening.model,
    output,
    usage,
    service_tier: shownTier(providerFields) ?? 'default',
  }
}

/** Returns the repeated settings of the request as JSON text. Called once per stream: several events contain them. */
export function settingsJson(request: ResponsesRequest): string {
  return JSON.stringify(getSettings(request))
}

function getSettings({ body, request }: ResponsesRequest) {
  const { reasoning, text } = body
  return {
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: 'max_tool_calls' in body ? body.max_tool_calls : null,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    store: false,
    temperature: body.temperature ?? 1,
    text: {
      format: text?.format ?? { type: 'text' },
      ...(text?.verbosity == null ? {} : { verbosity: text.verbosity }),
    },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: 'disabled',
    user: body.user ?? null,
    metadata: request.metadata ?? {},
  }
}

/** Returns the status for a finish reason. */
function getEnd(reason: FinishReason): Pick<ResponseState, 'status' | 'incompleteReason'> {
  switch (reason) {
    case 'stop':
    case 'tool_calls':
      return { status: 'completed' }
    case 'length':
      return { status: 'incomplete', incompleteReason: 'max_output_tokens' }
    case 'content_filter':
      return { status: 'incomplete', incompleteReason: 'content_filter' }
  }
}

/** Returns the usage. Cached and cache-written tokens are part of the input; reasoning is part of the output. */
export function responseUsage(receipt: ResponseSummary): Fields {
  const { usage } = receipt
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...shownCost(receipt),
  }
}

/** Returns the state after the last part of a response. */
export function endState(items: OutputItems, receipt: ResponseSummary): ResponseState {
  const end = getEnd(items.close())
  const { providerFields } = receipt
  const fields = providerFields === undefined ? {} : { providerFields }
  return { ...end, output: items.output(), usage: responseUsage(receipt), ...fields }
}

/** Returns the writer of one response that is not streamed. */
export function responseBody(context: ReplyContext, requestId: string): BodyWriter {
  const items = createItems(context, requestId)
  return {
    text: (channel, text) => items.text(channel, text),
    add: part => items.add(part),
    body: (opening, receipt) => ({
      ...stateFields(requestId, opening, endState(items, receipt)),
      ...getSettings(context),
    }),
  }
}

/** Returns the error of a failed response. By its code, clients shorten the input, wait or stop. */
export function getResponseError(error: GatewayError): Fields {
  const { code, message, retryAfterMs } = error
  switch (code) {
    case 'context_length_exceeded':
      return { code, message }
    case 'payment_required':
    case 'account_paused':
    case 'daily_tokens_exceeded':
    case 'daily_cost_exceeded':
    case 'monthly_cost_exceeded':
      return { code: 'insufficient_quota', message }
    case 'invalid_request':
    case 'unsupported_parameter':
    case 'content_blocked':
    case 'conversation_stopped':
      return { code: 'invalid_prompt', message }
    case 'requests_per_minute_exceeded':
    case 'concurrent_requests_exceeded':
    case 'no_model_available':
    case 'service_unavailable': {
      const seconds = Math.max(1, Math.ceil((retryAfterMs ?? 1000) / 1000))
      return { code: 'rate_limit_exceeded', message: `${message} Please try again in ${seconds}s.` }
    }
    default:
      return { code: 'server_error', message }
  }
}

/** Returns the start of a response that failed before a model was chosen. */
export function unopened({ body }: ResponsesRequest, createdAt: number): ResponseHead {
  return { createdAt, model: body.model ?? autoModel }
}
