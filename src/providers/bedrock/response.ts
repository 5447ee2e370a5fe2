import type { AttemptFailure } from '../../core/chat/attempts.ts'
import type { FinishReason } from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { exceptionPrefix } from '../aws-event-stream.ts'
import {
  badAnswer,
  findRetryAfter,
  kindOfStatus,
  kindsByName,
  providerFailure,
  requestFailure,
  specificKind,
} from '../failure.ts'
import { getText, isRecord, isText, type Json, record, records, tokenCount } from '../json.ts'
import { type ReasoningText, readThinking, releaseHeld, type Thinking } from '../openai/reasoning.ts'
import type { AnswerSink, ProviderFailure, StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { argumentsText } from '../tool-names.ts'
import { reportedUsage } from '../usage.ts'

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['content_filtered', 'content_filter'],
  ['guardrail_intervened', 'content_filter'],
])

/**
 * Reads a response of Converse or ConverseStream. A stream is complete after `messageStop`; the token counts follow it in
 * `metadata`, in some responses they precede it.
 */
export class ConverseReader implements StreamReader {
  private calls = 0
  /** Index among the calls of each block of a call that began. */
  private readonly open = new Map<unknown, number>()
  /** Some models write their reasoning into the text. */
  private readonly thinking: Thinking = { place: 'maybe', closing: '', held: '' }
  private reason: FinishReason | null = null
  private isCounted = false

  read({ name, data }: ServerSentEvent, sink: AnswerSink): null {
    if (name.startsWith(exceptionPrefix)) {
      sink.fail(bedrockException(name, data))
      return null
    }
    const event = parseUntrustedJson(data)
    if (!isRecord(event)) {
      sink.fail(badAnswer('unreadable_event'))
      return null
    }
    const { contentBlockIndex: at } = event
    switch (name) {
      case 'contentBlockStart':
        this.startCall(at, record(record(event.start).toolUse), sink)
        break
      case 'contentBlockDelta':
        this.addDelta(at, record(event.delta), sink)
        break
      case 'contentBlockStop':
        this.open.delete(at)
        break
      case 'messageStop':
        this.stop(getText(event.stopReason), sink)
        break
      case 'metadata':
        this.count(event.usage, sink)
        this.finish(sink)
        break
    }
    return null
  }

  whole(body: unknown, sink: AnswerSink): void {
    const { output, stopReason, usage } = record(body)
    const { content } = record(record(output).message)
    if (!Array.isArray(content) || !isText(stopReason)) {
      sink.fail(badAnswer('unreadable'))
      return
    }
    for (const [index, block] of records(content).entries()) this.addBlock(index, block, sink)
    this.stop(stopReason, sink)
    this.count(usage, sink)
    this.finish(sink)
  }

  finish(sink: AnswerSink): void {
    if (this.reason !== null) sink.end()
  }

  /** Adds a block of a complete response. */
  private addBlock(at: number, { text, toolUse, reasoningContent }: Json, sink: AnswerSink): void {
    if (isRecord(toolUse)) this.startCall(at, toolUse, sink)
    this.addDelta(at, { text, toolUse, reasoningContent: record(reasoningContent).reasoningText }, sink)
    this.open.delete(at)
  }

  private stop(stopReason: string, sink: AnswerSink): void {
    this.say(releaseHeld(this.thinking), sink)
    this.open.clear()
    if (/^malformed_/.test(stopReason)) {
      sink.fail(providerFailure('generation_failed', `200 ${stopReason.slice(0, 64)}`))
      return
    }
    const named = finishReasons.get(stopReason) ?? 'stop'
    this.reason ??= named === 'stop' && this.calls > 0 ? 'tool_calls' : named
    sink.finish(0, this.reason, stopReason === 'stop_sequence' ? null : undefined)
    if (this.isCounted) this.finish(sink)
  }

  /** Here, input excludes cache reads and writes. */
  private count(told: unknown, sink: AnswerSink): void {
    const counts = record(told)
    const cached = tokenCount(counts.cacheReadInputTokens) ?? 0
    const written = tokenCount(counts.cacheWriteInputTokens) ?? 0
    const input = tokenCount(counts.inputTokens)
    const byLifetime = records(counts.cacheDetails)
    const usage = reportedUsage({
      input: input === null ? null : input + cached + written,
      output: tokenCount(counts.outputTokens),
      total: null,
      cached,
      written,
      hourWritten: tokenCount(byLifetime.find(({ ttl }) => ttl === '1h')?.inputTokens) ?? 0,
      reasoning: 0,
    })
    if (usage === null) return
    this.isCounted = true
    sink.reportUsage(usage)
  }

  private addDelta(at: unknown, { text, toolUse, reasoningContent }: Json, sink: AnswerSink): void {
    if (isText(text)) this.addText(text, sink)
    const reasoning = getText(record(reasoningContent).text)
    if (reasoning !== '') sink.addReasoning(0, reasoning)
    const call = isRecord(toolUse) ? this.open.get(at) : undefined
    const input = argumentsText(record(toolUse).input)
    if (call !== undefined && input !== '') sink.addArguments(0, call, input)
  }

  private addText(text: string, sink: AnswerSink): void {
    if (this.calls > 0) sink.addText(0, text)
    else this.say(readThinking(this.thinking, text), sink)
  }

  private say(texts: readonly ReasoningText[], sink: AnswerSink): void {
    for (const { type, text } of texts) {
      if (type === 'text') sink.addText(0, text)
      else sink.addReasoning(0, text)
    }
  }

  private startCall(at: unknown, { toolUseId, name }: Json, sink: AnswerSink): void {
    if (!isText(name)) return
    this.say(releaseHeld(this.thinking), sink)
    const index = this.calls++
    this.open.set(at, index)
    sink.openCall(0, index, { id: isText(toolUseId) ? toolUseId : `call_${index}`, name, signature: null })
  }
}

/** In lower case, because streams write the first letter small. Others are known by their status. */
const kinds = kindsByName({
  rate_limited: 'throttlingexception',
  quota_exhausted: 'servicequotaexceededexception',
  overloaded: 'modelnotreadyexception serviceunavailableexception',
  unavailable: 'internalserverexception internalfailure',
  timeout: 'modeltimeoutexception',
  generation_failed: 'modelerrorexception modelstreamerrorexception',
  model_missing: 'resourcenotfoundexception',
  credential_refused: `accessdeniedexception unrecognizedclientexception invalidsignatureexception incompletesignature
    expiredtokenexception missingauthenticationtokenexception`,
  request_refused: 'validationexception',
})

/** Reads a response with a status other than 200. */
export function readBedrockFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const error = record(parseUntrustedJson(body))
  // `Name:http://…`, and in bodies `namespace#Name`.
  const name = (headers.get('x-amzn-errortype') || getText(error.__type)).replace(/:.*$/s, '').replace(/^.*#/s, '')
  const message = getText(error.message) || getText(error.Message) || body
  return getFailure(name, message, { status, retryAfterMs: findRetryAfter(headers) })
}

/** Reads an exception within a stream. `name` is the event's. */
export function bedrockException(name: string, data: string): ProviderFailure {
  const message = getText(record(parseUntrustedJson(data)).message) || data
  const failure = getFailure(name.slice(exceptionPrefix.length), message, { status: 200, retryAfterMs: null })
  // The request was accepted, so a plain rejection is the upstream's fault.
  return failure.kind === 'request_refused' ? providerFailure('generation_failed', failure.detail) : failure
}

type Answered = { readonly status: number; readonly retryAfterMs: number | null }

function getFailure(name: string, message: string, { status, retryAfterMs }: Answered): ProviderFailure {
  const named = kinds.get(name.toLowerCase()) ?? (status === 200 ? 'generation_failed' : kindOfStatus(status))
  const kind = specificKind(named, message)
  const detail = /^[A-Za-z]{1,64}$/.test(name) ? `${status} ${name}` : `${status} without error type`
  return requestFailure(kind === 'request_refused' ? kindOfRefusal(message) : kind, detail, { message, retryAfterMs })
}

const missingModel =
  /model identifier is invalid|on-demand throughput isn|model version is not supported|end of its life/i

function kindOfRefusal(message: string): AttemptFailure {
  if (/operation not allowed|security token included/i.test(message)) return 'credential_refused'
  return missingModel.test(message) ? 'model_missing' : 'request_refused'
}
