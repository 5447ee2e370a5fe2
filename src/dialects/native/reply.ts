/** Writes native responses: one body, or `delta` events and one `done`. */

import type { ToolCall } from '../../core/chat/chat.ts'
import type { CitedSource, ResponsePart, ResponseSummary, TextChannel } from '../../core/chat/chat-events.ts'
import { type CollectedChoice, ResponseCollector } from '../../core/chat/response-collector.ts'
import type { WebSource } from '../../core/chat/web-sources.ts'
import { shownCost, toUsd } from '../../core/usage/money.ts'
import { modelMicrocents, servingModel } from '../../core/usage/usage-record.ts'
import { errorBody, type GatewayError } from '../../core/validation/errors.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import type { ChatReply, ChatSummary } from './schema.ts'

type Piece = { readonly before: string; readonly after: string; text: string }

/**
 * Writes the server-sent events of one response; each response needs its own. Text is `content`. Reasoning and tool calls have an
 * empty `content`; calls have the delta form of Chat Completions. `done` is the response without its text. None follows a
 * failure.
 */
export class DeltaWriter implements StreamFormat {
  /** Collects only what `done` repeats. */
  private readonly kept = new ResponseCollector()
  private piece: Piece | null = null
  private out = ''

  constructor(private readonly requestId: string) {}

  text(channel: TextChannel, text: string): void {
    const { type, index } = channel
    if (type === 'reasoning') this.gather('"","reasoning":', '', text)
    else if (type !== 'tool_arguments') this.gather('', '', text)
    else {
      this.kept.text(channel, text)
      this.gather(`"","tool_calls":[{"index":${index},"function":{"arguments":`, '}}]', text)
    }
  }

  add(part: ResponsePart): void {
    switch (part.type) {
      case 'tool_call': {
        this.kept.add(part)
        this.flush()
        const call = { index: part.index, ...wireCall({ ...part, arguments: '' }) }
        this.out += `data: {"type":"delta","content":"","tool_calls":[${JSON.stringify(call)}]}\n\n`
        break
      }
      case 'filtered': {
        this.kept.add(part)
        this.flush()
        const { layer, category } = part
        this.out += `data: ${JSON.stringify({ type: 'filtered', layer, category })}\n\n`
        break
      }
      case 'finish':
      case 'citation':
        this.kept.add(part)
        break
      case 'done':
        this.flush()
        this.out += `data: ${JSON.stringify({ type: 'done', ...summary(this.kept.result(), part.receipt) })}\n\n`
        break
    }
  }

  take(): string {
    this.flush()
    const { out } = this
    this.out = ''
    return out
  }

  failure(error: GatewayError): string {
    return `data: ${JSON.stringify({ type: 'error', ...errorBody(error, this.requestId) })}\n\n`
  }

  private gather(before: string, after: string, text: string): void {
    if (this.piece?.before === before) this.piece.text += text
    else {
      this.flush()
      this.piece = { before, after, text }
    }
  }

  private flush(): void {
    const { piece } = this
    if (piece === null) return
    this.out += `data: {"type":"delta","content":${piece.before}${JSON.stringify(piece.text)}${piece.after}}\n\n`
    this.piece = null
  }
}

/** Returns the body of a response that is not streamed. A refusal is part of `output`. */
export function nativeBody(answer: readonly CollectedChoice[], receipt: ResponseSummary): ChatReply {
  const { request_id, ...rest } = summary(answer, receipt)
  const [choice] = answer
  return { request_id, output: choice === undefined ? '' : choice.text + choice.refusal, ...rest }
}

function summary([choice]: readonly CollectedChoice[], receipt: ResponseSummary): ChatSummary {
  const { record, usage, estimated, outputCap, plan, progress } = receipt
  const { attempts, enhancement, web } = progress
  const { search_microcents: search = 0, fetch_microcents: fetch = 0 } = record
  return {
    request_id: record.request_id,
    model_used: servingModel(record),
    finish_reason: choice?.finishReason ?? 'stop',
    ...(choice?.filtered == null ? {} : { filtered: choice.filtered }),
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
