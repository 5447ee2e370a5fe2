/** Writes native responses: one body, or `delta` events and one `done`. */

import type { ToolCall } from '../../core/chat/chat.ts'
import type { ChatEvent, CitedSource, ResponseSummary } from '../../core/chat/chat-events.ts'
import { type CollectedResponse, ResponseCollector } from '../../core/chat/response-collector.ts'
import type { WebSource } from '../../core/chat/web-sources.ts'
import { shownCost, toUsd } from '../../core/usage/money.ts'
import { modelMicrocents, servingModel } from '../../core/usage/usage-record.ts'
import { errorBody } from '../../core/validation/errors.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import type { ChatReply, ChatSummary } from './schema.ts'

type Piece = { readonly before: string; readonly after: string; text: string }

/**
 * Returns a framer for the server-sent events of one response; each response needs its own. Text is `content`. Reasoning and tool
 * calls have an empty `content`; calls have the delta form of Chat Completions. `done` is the response without its text.
 */
function deltaFramer(): Pick<StreamFormat, 'frame'> {
  // Collects only the events that `done` repeats.
  const kept = new ResponseCollector()
  let piece: Piece | null = null
  let out = ''

  const flush = () => {
    if (piece !== null)
      out += `data: {"type":"delta","content":${piece.before}${JSON.stringify(piece.text)}${piece.after}}\n\n`
    piece = null
  }
  const gather = (before: string, after: string, text: string) => {
    if (piece?.before === before) piece.text += text
    else {
      flush()
      piece = { before, after, text }
    }
  }
  const add = (event: ChatEvent) => {
    switch (event.type) {
      case 'text':
      case 'refusal':
        gather('', '', event.text)
        break
      case 'reasoning':
        gather('"","reasoning":', '', event.text)
        break
      case 'tool_call': {
        kept.add(event)
        flush()
        const call = { index: event.index, ...wireCall({ ...event, arguments: '' }) }
        out += `data: {"type":"delta","content":"","tool_calls":[${JSON.stringify(call)}]}\n\n`
        break
      }
      case 'tool_arguments':
        kept.add(event)
        gather(`"","tool_calls":[{"index":${event.index},"function":{"arguments":`, '}}]', event.text)
        break
      case 'filtered': {
        kept.add(event)
        flush()
        const { layer, category } = event
        out += `data: ${JSON.stringify({ type: 'filtered', layer, category })}\n\n`
        break
      }
      case 'finish':
        kept.add(event)
        break
      case 'done':
        flush()
        out += `data: ${JSON.stringify({ type: 'done', ...summary(kept.result(), event.receipt) })}\n\n`
        break
      case 'citation':
        kept.add(event)
        break
      case 'opened':
      case 'logprobs':
        break
    }
  }
  return {
    frame(batch) {
      out = ''
      for (const event of batch) add(event)
      flush()
      return out
    },
  }
}

/** Returns the format of one streamed response. No `done` follows a failure. */
export function nativeStream(requestId: string): StreamFormat {
  return {
    ...deltaFramer(),
    failure: error => `data: ${JSON.stringify({ type: 'error', ...errorBody(error, requestId) })}\n\n`,
  }
}

/** Returns the body of a response that is not streamed. A refusal is part of `output`. */
export function nativeBody(folded: CollectedResponse, receipt: ResponseSummary): ChatReply {
  const { request_id, ...rest } = summary(folded, receipt)
  const choice = folded.choices[0]
  return { request_id, output: choice === undefined ? '' : choice.text + choice.refusal, ...rest }
}

function summary(folded: CollectedResponse, receipt: ResponseSummary): ChatSummary {
  const { record, usage, estimated, outputCap, plan, progress } = receipt
  const { attempts, enhancement, web } = progress
  const { search_microcents: search = 0, fetch_microcents: fetch = 0 } = record
  const choice = folded.choices[0]
  return {
    request_id: record.request_id,
    model_used: servingModel(record),
    finish_reason: choice?.finishReason ?? 'stop',
    ...(choice?.filtered === undefined ? {} : { filtered: choice.filtered }),
    ...(outputCap === undefined ? {} : { output_cap: { tokens: outputCap.tokens, limited_by: outputCap.limitedBy } }),
    tool_calls: (choice?.toolCalls ?? []).map(wireCall),
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      total_tokens: usage.inputTokens + usage.outputTokens,
      ...shownCost(receipt),
      cached_input_tokens: usage.cachedInputTokens,
      reasoning_tokens: usage.reasoningTokens,
      estimated,
      cost: { model_usd: toUsd(modelMicrocents(record)), search_usd: toUsd(search), fetch_usd: toUsd(fetch) },
    },
    routing: {
      mode: record.routing_mode,
      requested_model: record.requested_model,
      strategy: plan.strategy,
      query_type: plan.analysis.queryType,
      complexity: plan.analysis.complexity ?? null,
      learned: plan.learning.influenced,
      effort: record.trace?.e ?? null,
      attempts: attempts.map(({ model, outcome }) => ({ model, outcome })),
    },
    enhancement:
      enhancement === null
        ? null
        : {
            changed: enhancement.changed,
            enhanced_prompt: enhancement.enhancedPrompt,
            query_type: enhancement.queryType,
          },
    web: {
      searched: web?.searched ?? false,
      sources: getSources(web?.sources ?? [], choice?.citations ?? []),
      left_out: (web?.leftOut ?? []).map(({ url, code }) => ({ url, code })),
    },
  }
}

/** Returns the sources that the model received, and those that its provider cites, each once. */
function getSources(received: readonly WebSource[], cited: readonly CitedSource[]): WebSource[] {
  const sources = new Map(received.map(({ url, title }) => [url, { url, title }]))
  for (const { url, title } of cited)
    if (url !== null && !sources.has(url)) sources.set(url, { url, title: title ?? url })
  return [...sources.values()]
}

function wireCall({ id, name, arguments: json, signature }: ToolCall): ChatReply['tool_calls'][number] {
  return {
    id,
    type: 'function',
    function: { name, arguments: json },
    ...(signature === null ? {} : { extra_content: { google: { thought_signature: signature } } }),
  }
}
