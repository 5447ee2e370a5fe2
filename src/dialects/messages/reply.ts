/** The fields of Messages responses around their content. */

import type { ReasoningFamily, ReasoningItem } from '../../core/chat/chat.ts'
import type {
  InputUsage,
  ProviderFields,
  ResponseStart,
  ResponseSummary,
  TypedPart,
} from '../../core/chat/chat-events.ts'
import { shownCost } from '../../core/usage/money.ts'
import { type BlockFields, isBlockFields } from './blocks.ts'

/** Settings of the request and its account that change the form of the response. */
export type MessageStyle = {
  readonly wantsThinking: boolean
  readonly seal: (item: ReasoningItem) => string
}

/** Stop fields of a response. */
type Ending = {
  readonly stop_reason: string
  readonly stop_sequence: string | null
  readonly stop_details: BlockFields | null
}

/** Returns the reasoning family of a provider. */
export function getFamily(provider: string): ReasoningFamily {
  return provider === 'openai' || provider === 'anthropic' || provider === 'google' ? provider : 'compatible'
}

function messageId(requestId: string): string {
  return `msg_${requestId.replace(/^req_/, '')}`
}

/** Returns the `message` object without content. */
export function messageBase({ requestId, model, askedName }: ResponseStart) {
  return { id: messageId(requestId), type: 'message', role: 'assistant', model: askedName ?? model } as const
}

/**
 * Returns the stop fields, derived from the content and not from the provider's reason: a client ignores a call before `end_turn`. A
 * call that the output cap truncated must not run, so `max_tokens` takes precedence.
 */
export function getEnding(
  { reason, stopSequence, upstreamReason }: Pick<TypedPart<'finish'>, 'reason' | 'stopSequence' | 'upstreamReason'>,
  hasCalls: boolean,
  { explanation, details }: { readonly explanation: string | null; readonly details: BlockFields | null },
): Ending {
  const plain = (stop_reason: string): Ending => ({ stop_reason, stop_sequence: null, stop_details: null })
  switch (reason) {
    case 'length':
      return plain(upstreamReason !== undefined && ownCuts.has(upstreamReason) ? upstreamReason : 'max_tokens')
    case 'content_filter':
      return { ...plain('refusal'), stop_details: getDetails(explanation, details) }
    case 'stop':
    case 'tool_calls':
      if (hasCalls) return plain('tool_use')
      if (stopSequence !== undefined) return { ...plain('stop_sequence'), stop_sequence: stopSequence }
      return plain(upstreamReason === 'pause_turn' ? upstreamReason : 'end_turn')
  }
}

/** Anthropic's own names of a cut that other APIs call `length`. */
const ownCuts: ReadonlySet<string> = new Set(['model_context_window_exceeded', 'compaction'])

/** Returns Anthropic's reason of a refusal, unless the gateway's moderation has ended the output. */
function getDetails(explanation: string | null, details: BlockFields | null): BlockFields {
  const type = 'refusal'
  if (explanation !== null || details?.type !== type) return { type, category: null, explanation }
  const { category, explanation: own } = details
  const textIn = (value: unknown) => (typeof value === 'string' ? value : null)
  return { type, category: textIn(category), explanation: textIn(own) }
}

/** Fields of the end of a message that only Anthropic sends. `details`: why the model refuses. */
type EndFields = {
  readonly details: BlockFields | null
  readonly container: BlockFields | null
  readonly others: { readonly context_management?: BlockFields }
}

export function getEndFields(fields: ProviderFields | undefined): EndFields {
  const { container, context_management, stop_details } = fields?.form === 'anthropic' ? fields.end : noFields
  return {
    details: isBlockFields(stop_details) ? stop_details : null,
    container: isBlockFields(container) ? container : null,
    others: isBlockFields(context_management) ? { context_management } : {},
  }
}

const noFields: BlockFields = {}

/** Returns the input counts. In this API the input excludes tokens read from a cache or written to one. */
export function inputCounts(usage: InputUsage) {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, hourCacheWriteTokens = 0 } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
    cache_creation: {
      ephemeral_5m_input_tokens: Math.max(0, cacheWriteTokens - hourCacheWriteTokens),
      ephemeral_1h_input_tokens: hourCacheWriteTokens,
    },
  }
}

/** Returns the fields of Anthropic's usage beside the counts. */
export function detailedUsage(fields: ProviderFields | undefined): BlockFields {
  return fields?.form === 'anthropic' ? fields.usage : noFields
}

export function usageBody(receipt: ResponseSummary) {
  const { usage, providerFields } = receipt
  return {
    ...detailedUsage(providerFields),
    ...inputCounts(usage),
    output_tokens: usage.outputTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    ...shownCost(receipt),
  }
}

/** Returns the explanation for output that moderation ended; null for other output. */
export function findExplanation(
  filtered: { readonly layer: string; readonly category: string } | undefined,
): string | null {
  return filtered === undefined ? null : `The gateway's moderation ended this output (${filtered.category}).`
}
