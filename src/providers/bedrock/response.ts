import type { FinishReason } from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { exceptionPrefix } from '../aws-event-stream.ts'
import { argumentsText } from '../call-arguments.ts'
import { badAnswer, failed, providerFailure } from '../failure.ts'
import { getText, isRecord, isText, type Json, record, records, tokenCount } from '../json.ts'
import { type ReasoningText, readThinking, releaseHeld, type Thinking } from '../openai/reasoning.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import { reportedUsage } from '../usage.ts'
import { bedrockException } from './failure.ts'

/** Reads a complete response of Converse. */
export function readConverseResponse(body: unknown): readonly AnswerPart[] {
  const { output, stopReason, usage } = record(body)
  const { content } = record(record(output).message)
  if (!Array.isArray(content) || !isText(stopReason)) return [badAnswer('unreadable')]
  const answer = new ConverseAnswer()
  for (const [index, block] of records(content).entries()) answer.addBlock(index, block)
  answer.stop(stopReason)
  answer.count(usage)
  answer.end()
  return answer.drain()
}

/**
 * Creates a reader of ConverseStream. A response is complete after `messageStop`; the token counts follow it in
 * `metadata`, in some responses they precede it.
 */
export function converseReader(): StreamReader {
  const answer = new ConverseAnswer()
  return {
    read({ name, data }) {
      if (name.startsWith(exceptionPrefix)) return [failed(bedrockException(name, data))]
      const event = parseUntrustedJson(data)
      if (!isRecord(event)) return [badAnswer('unreadable_event')]
      answer.read(name, event)
      return answer.drain()
    },
    finish() {
      answer.end()
      return answer.drain()
    },
  }
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['content_filtered', 'content_filter'],
  ['guardrail_intervened', 'content_filter'],
])

/** One response: takes its events or its blocks, and collects their parts. */
class ConverseAnswer {
  private parts: AnswerPart[] = []
  private calls = 0
  /** Index among the calls of each block of a call that began. */
  private readonly open = new Map<unknown, number>()
  /** Some models write their reasoning into the text. */
  private readonly thinking: Thinking = { place: 'maybe', closing: '', held: '' }
  private reason: FinishReason | null = null
  private isCounted = false

  drain(): readonly AnswerPart[] {
    const { parts } = this
    this.parts = []
    return parts
  }

  read(name: string, event: Json): void {
    const { contentBlockIndex: at } = event
    switch (name) {
      case 'contentBlockStart':
        this.startCall(at, record(record(event.start).toolUse))
        break
      case 'contentBlockDelta':
        this.addDelta(at, record(event.delta))
        break
      case 'contentBlockStop':
        this.open.delete(at)
        break
      case 'messageStop':
        this.stop(getText(event.stopReason))
        break
      case 'metadata':
        this.count(event.usage)
        this.end()
        break
    }
  }

  /** Adds a block of a complete response. */
  addBlock(at: number, { text, toolUse, reasoningContent }: Json): void {
    if (isText(text)) this.addText(text)
    if (isRecord(reasoningContent)) this.addReasoning(record(reasoningContent.reasoningText).text)
    if (!isRecord(toolUse)) return
    this.startCall(at, toolUse)
    this.addDelta(at, { toolUse })
    this.open.delete(at)
  }

  stop(stopReason: string): void {
    this.say(releaseHeld(this.thinking))
    this.open.clear()
    if (/^malformed_/.test(stopReason))
      return void this.parts.push(failed(providerFailure('generation_failed', `200 ${stopReason.slice(0, 64)}`)))
    const named = finishReasons.get(stopReason) ?? 'stop'
    this.reason ??= named === 'stop' && this.calls > 0 ? 'tool_calls' : named
    const stoppedBy = stopReason === 'stop_sequence' ? { stopSequence: null } : {}
    this.parts.push({ type: 'finish', choice: 0, reason: this.reason, ...stoppedBy })
    if (this.isCounted) this.end()
  }

  /** Here, input excludes cache reads and writes. */
  count(told: unknown): void {
    const counts = record(told)
    const cached = tokenCount(counts.cacheReadInputTokens) ?? 0
    const written = tokenCount(counts.cacheWriteInputTokens) ?? 0
    const input = tokenCount(counts.inputTokens)
    const usage = reportedUsage({
      input: input === null ? null : input + cached + written,
      output: tokenCount(counts.outputTokens),
      total: null,
      cached,
      written,
      hourWritten: 0,
      reasoning: 0,
    })
    if (usage === null) return
    this.isCounted = true
    this.parts.push({ type: 'usage', usage })
  }

  end(): void {
    if (this.reason !== null) this.parts.push({ type: 'end' })
  }

  private addDelta(at: unknown, { text, toolUse, reasoningContent }: Json): void {
    if (isText(text)) this.addText(text)
    if (isRecord(reasoningContent)) this.addReasoning(reasoningContent.text)
    const call = isRecord(toolUse) ? this.open.get(at) : undefined
    const input = argumentsText(record(toolUse).input)
    if (call !== undefined && input !== '')
      this.parts.push({ type: 'tool_arguments', choice: 0, index: call, text: input })
  }

  private addText(text: string): void {
    this.say(this.calls > 0 ? [{ type: 'text', text }] : readThinking(this.thinking, text))
  }

  private addReasoning(text: unknown): void {
    if (isText(text)) this.parts.push({ type: 'reasoning', choice: 0, text })
  }

  private say(texts: readonly ReasoningText[]): void {
    for (const { type, text } of texts) if (text !== '') this.parts.push({ type, choice: 0, text })
  }

  private startCall(at: unknown, { toolUseId, name }: Json): void {
    if (!isText(name)) return
    this.say(releaseHeld(this.thinking))
    const index = this.calls++
    this.open.set(at, index)
    const id = isText(toolUseId) ? toolUseId : `call_${index}`
    this.parts.push({ type: 'tool_call', choice: 0, index, id, name, signature: null })
  }
}
