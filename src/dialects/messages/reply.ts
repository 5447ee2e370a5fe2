/** Writes Messages responses as one JSON body, and the parts that streams share with it. */

import type { ReasoningFamily, ReasoningItem } from '../../core/chat/chat.ts'
import type {
  ChatEvent,
  FinishReason,
  ResponseStart,
  ResponseSummary,
  TokenUsage,
} from '../../core/chat/chat-events.ts'
import type { CollectedResponse } from '../../core/chat/response-collector.ts'
import { toUsd } from '../../core/usage/money.ts'
import { parseModelJson, parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type BlockSink, BlockWriter } from './block-writer.ts'
import { type BlockFields, isBlockFields } from './blocks.ts'

/** Settings of the request and its account that change the form of the response. */
export type MessageStyle = {
  readonly wantsThinking: boolean
  /** Returns the name of the serving model in the response; `served` is `provider/model`. */
  readonly nameOf: (served: string) => string
  readonly seal: (item: ReasoningItem) => string
}

type Finish = Extract<ChatEvent, { type: 'finish' }>

/** Stop fields of a response. */
type Ending = {
  readonly stop_reason: string
  readonly stop_sequence: string | null
  readonly stop_details: BlockFields | null
}

/** Returns the reasoning family of a provider. */
export function familyOf(provider: string): ReasoningFamily {
  return provider === 'openai' || provider === 'anthropic' || provider === 'google' ? provider : 'compatible'
}

export function messageId(requestId: string): string {
  return `msg_${requestId.replace(/^req_/, '')}`
}

/** Returns the `message` object without content. */
export function messageBase({ requestId, model }: ResponseStart, { nameOf }: Pick<MessageStyle, 'nameOf'>) {
  return { id: messageId(requestId), type: 'message', role: 'assistant', model: nameOf(model) } as const
}

/**
 * Returns the stop fields, derived from the content and not from the provider's reason: a client ignores a call before `end_turn`. A
 * call that the output cap truncated must not run, so `max_tokens` takes precedence.
 */
export function endingOf(
  { reason, stopSequence, upstreamReason }: Pick<Finish, 'reason' | 'stopSequence' | 'upstreamReason'>,
  hasCalls: boolean,
  explanation: string | null,
): Ending {
  const plain = (stop_reason: string): Ending => ({ stop_reason, stop_sequence: null, stop_details: null })
  switch (reason) {
    case 'length':
      return plain(upstreamReason !== undefined && ownCuts.has(upstreamReason) ? upstreamReason : 'max_tokens')
    case 'content_filter':
      return { ...plain('refusal'), stop_details: { type: 'refusal', category: null, explanation } }
    case 'stop':
    case 'tool_calls':
      if (hasCalls) return plain('tool_use')
      if (stopSequence !== undefined) return { ...plain('stop_sequence'), stop_sequence: stopSequence }
      return plain(upstreamReason === 'pause_turn' ? upstreamReason : 'end_turn')
  }
}

/** Anthropic's own names of a cut that other APIs call `length`. */
const ownCuts: ReadonlySet<string> = new Set(['model_context_window_exceeded', 'compaction'])

/** Fields of the end of a message that only Anthropic sends. */
export type EndFields = { readonly container: unknown; readonly context_management?: unknown }

/** Parses the fields that `finish` has as JSON. */
export function endFieldsOf(json: string | undefined): EndFields {
  const fields = json === undefined ? null : parseUntrustedJson(json)
  if (!isBlockFields(fields)) return { container: null }
  const { container, context_management } = fields
  return {
    container: isBlockFields(container) ? container : null,
    ...(isBlockFields(context_management) ? { context_management } : {}),
  }
}

/** Returns the input counts. In this API the input excludes tokens read from a cache or written to one. */
export function inputCounts(usage: Pick<TokenUsage, 'inputTokens' | 'cachedInputTokens' | 'cacheWriteTokens'>) {
  const { inputTokens, cachedInputTokens, cacheWriteTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
  }
}

export function usageBody({ usage, cost, cacheSaved }: ResponseSummary) {
  return {
    ...inputCounts(usage),
    output_tokens: usage.outputTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    cost_usd: toUsd(cost.total),
    ...(cost.hedge === undefined ? {} : { hedge_cost_usd: toUsd(cost.hedge) }),
    ...(cacheSaved === undefined ? {} : { cache_saved_usd: toUsd(cacheSaved) }),
  }
}

/** Returns the explanation for output that moderation ended; null for other output. */
export function explanationOf(
  filtered: { readonly layer: string; readonly category: string } | undefined,
): string | null {
  return filtered === undefined ? null : `The gateway's moderation ended this output (${filtered.category}).`
}

/** Returns the body of a response that is not streamed. */
export function messageBody(
  answer: CollectedResponse,
  opening: ResponseStart,
  receipt: ResponseSummary,
  style: MessageStyle,
) {
  const [choice] = answer.choices
  const content: BlockFields[] = []
  const writer = new BlockWriter({
    sink: collectInto(content),
    seal: style.seal,
    family: () => familyOf(opening.provider),
    showsThinking: style.wantsThinking,
  })
  for (const event of answer.events) writer.add(event)
  writer.end()
  const reason: FinishReason = choice?.finishReason ?? 'stop'
  return {
    ...messageBase(opening, style),
    content,
    ...endingOf({ reason, ...endOf(choice) }, writer.hasCalls(), explanationOf(choice?.filtered)),
    usage: usageBody(receipt),
    ...(choice?.endFields === undefined ? {} : endFieldsOf(choice.endFields)),
  }
}

function endOf(choice: CollectedResponse['choices'][number] | undefined) {
  const { stopSequence, upstreamReason } = choice ?? {}
  return {
    ...(stopSequence === undefined ? {} : { stopSequence }),
    ...(upstreamReason === undefined ? {} : { upstreamReason }),
  }
}

/** Collects blocks in the same way as a client of the stream. */
function collectInto(content: BlockFields[]): BlockSink {
  let block: Record<string, unknown> = {}
  let input: string | null = null
  return {
    open(opening) {
      block = { ...opening }
      input = null
    },
    delta({ type, text, thinking, signature, partial_json, citation }) {
      if (type === 'text_delta') block.text = `${block.text}${text}`
      else if (type === 'thinking_delta') block.thinking = `${block.thinking}${thinking}`
      else if (type === 'signature_delta') block.signature = signature
      else if (type === 'input_json_delta') input = `${input ?? ''}${partial_json}`
      else if (type === 'citations_delta')
        block.citations = [...(Array.isArray(block.citations) ? block.citations : []), citation]
    },
    close() {
      const parsed = input === null ? null : parseModelJson(input)
      content.push(input === null ? block : { ...block, input: isBlockFields(parsed) ? parsed : {} })
    },
  }
}
