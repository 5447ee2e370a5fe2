import type { FinishReason } from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { truncated } from '../failure.ts'
import { findTextSlot, type TextSlot } from '../frames.ts'
import { findName, getText, isRecord, isText, type Json, record, records } from '../json.ts'
import type { AnswerSink, ProviderFailure, StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { BlockReader } from './blocks.ts'
import { anthropicBodyFailure } from './failure.ts'
import { MessageUsage } from './usage.ts'

/** Other events are skipped unparsed, since they may not be JSON. */
const knownEvents: ReadonlySet<string> = new Set([
  '',
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'message',
  'error',
])

/**
 * Reads one response, streamed or complete. A stream ends with `message_stop` and is truncated without it. A class, because
 * closures would be created again for each response.
 */
export class MessageReader implements StreamReader {
  private readonly blocks = new BlockReader()
  /** The last delta that an event may repeat with another text. */
  private repeated: { readonly index: unknown; readonly delta: Json; readonly slot: TextSlot } | null = null
  private id: string | null = null
  private model: string | null = null
  private isStarted = false
  /** A block was opened, or text arrived. */
  private hasContent = false
  private stopReason = ''
  private stopSequence: string | null = null
  private readonly usage = new MessageUsage()
  private readonly ending: Record<string, unknown> = {}

  read(event: ServerSentEvent, sink: AnswerSink): TextSlot | null {
    if (!isReadable(event)) return null
    const data = parseUntrustedJson(event.data)
    if (!isRecord(data)) {
      sink.fail(anthropicBodyFailure(data))
      return null
    }
    if ((getText(data.type) || event.name) !== 'content_block_delta') {
      this.readEvent(event.name, data, sink)
      return null
    }
    const delta = record(data.delta)
    this.addToBlock(data.index, delta, sink)
    const slot = findTextSlot(delta, texts)
    if (slot !== null) this.repeated = { index: data.index, delta, slot }
    return slot
  }

  repeat(text: string, sink: AnswerSink): void {
    if (this.repeated === null) return
    const { index, delta, slot } = this.repeated
    slot.holder[slot.key] = text
    this.addToBlock(index, delta, sink)
  }

  private readEvent(name: string, data: Json, sink: AnswerSink): void {
    switch (getText(data.type) || name) {
      case 'message_start':
        if (isRecord(data.message)) this.start(data.message, sink)
        break
      case 'content_block_start':
        this.openBlock(data.index, data.content_block, sink)
        break
      case 'content_block_stop':
        this.blocks.close(data.index, sink)
        break
      case 'message_delta':
        this.update({ context_management: data.context_management, ...record(data.delta) }, data.usage, sink)
        break
      case 'message_stop':
        this.end(sink)
        break
      // A relay that does not stream sends the complete response as one event.
      case 'message':
        this.whole(data, sink)
        break
      case 'error':
        sink.fail(anthropicBodyFailure(data))
        break
      default:
        if (data.error !== undefined && data.error !== null) sink.fail(anthropicBodyFailure(data))
    }
  }

  finish(): void {}

  /** Reads a complete response. */
  whole(body: unknown, sink: AnswerSink): void {
    if (!isRecord(body) || !Array.isArray(body.content)) {
      sink.fail(anthropicBodyFailure(body))
      return
    }
    const { usage, ...message } = body
    this.start(message, sink)
    this.update(body, usage, sink)
    this.end(sink)
  }

  private start(message: Json, sink: AnswerSink): void {
    // After content this starts a second message, which may only follow a complete first one.
    if (this.hasContent && (this.stopReason === '' || this.blocks.hasOpen())) {
      sink.fail(truncated('message_restarted'))
      return
    }
    this.blocks.recount()
    // The first event identifies the response; some relays send it twice.
    if (this.isStarted) return
    this.isStarted = true
    this.id = findName(message.id)
    this.model = findName(message.model)
    this.stopReason = getText(message.stop_reason)
    sink.identify(this.id, this.model)
    this.measure(message.usage, 'first', noEnding, sink)
    // Contains blocks if the response is complete, or ended before the stream began.
    for (const [index, block] of records(message.content).entries()) {
      this.openBlock(index, block, sink)
      this.blocks.close(index, sink)
    }
  }

  private addToBlock(index: unknown, delta: Json, sink: AnswerSink): void {
    this.goOn(sink, sink.received, this.blocks.add(index, delta, sink))
  }

  private openBlock(index: unknown, block: unknown, sink: AnswerSink): void {
    const { type, to } = record(block)
    this.goOn(sink, sink.received, this.blocks.open(index, block, sink))
    if (type === 'fallback') this.serve(record(to).model, sink)
  }

  private update(ending: Json, usage: unknown, sink: AnswerSink): void {
    const { stop_reason, stop_sequence } = ending
    this.stopReason ||= getText(stop_reason)
    this.stopSequence ??= isText(stop_sequence) ? stop_sequence : null
    this.serve(servingModel(usage), sink)
    this.measure(usage, 'later', ending, sink)
  }

  private end(sink: AnswerSink): void {
    const { blocks, stopReason } = this
    const reason = finishReason(stopReason, blocks.hasCalls())
    // A response that reports being incomplete may end anywhere.
    if ((reason === 'stop' || reason === 'tool_calls') && blocks.hasTruncated()) {
      sink.fail(truncated('tool_call_unclosed'))
      return
    }
    blocks.closeAll(sink)
    const stoppedBy = stopReason === 'stop_sequence' ? (this.stopSequence ?? undefined) : undefined
    sink.finish(0, reason, stoppedBy, actedOn.has(stopReason) ? stopReason : undefined)
    sink.end()
  }

  /** After a part of the output, or its failure: a token count from before it is too low. */
  private goOn(sink: AnswerSink, received: number, failure: ProviderFailure | null): void {
    const goesOn = failure !== null || sink.received > received
    this.hasContent ||= goesOn
    if (goesOn && this.usage.outgrow()) sink.reportUsage(this.usage.counts())
    if (failure !== null) sink.fail(failure)
  }

  private serve(now: unknown, sink: AnswerSink): void {
    const name = findName(now)
    if (name === null || name === this.model) return
    this.model = name
    sink.identify(this.id, name)
  }

  private measure(usage: unknown, stage: 'first' | 'later', ending: Json, sink: AnswerSink): void {
    if (isRecord(usage) && this.usage.add(usage, stage)) sink.reportUsage(this.usage.counts())
    for (const name of endFieldNames) if (isRecord(ending[name])) this.ending[name] = ending[name]
    const fields = this.usage.fields()
    if (fields === null && Object.keys(this.ending).length === 0) return
    sink.reportFields({ form: 'anthropic', usage: fields ?? {}, end: { ...this.ending } })
  }
}

function isReadable({ name, data }: ServerSentEvent): boolean {
  return knownEvents.has(name) && (data.startsWith('{') || (data !== '[DONE]' && data.trim() !== ''))
}

const texts = ['text', 'thinking', 'partial_json'] as const

/** Finish reasons that clients of this API act on and other forms lack. */
const actedOn: ReadonlySet<string> = new Set(['pause_turn', 'model_context_window_exceeded', 'compaction'])

/** Fields of the end of a message for which other API forms have no equivalent. */
const endFieldNames = ['container', 'context_management', 'stop_details'] as const
const noEnding: Json = {}

/** Returns the finish reason. The calls decide: a forced JSON answer ends as `tool_use` without a client's call. */
function finishReason(stopReason: string, hasCalls: boolean): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
    case 'compaction':
      return 'length'
    case 'refusal':
      return 'content_filter'
    default:
      return hasCalls ? 'tool_calls' : 'stop'
  }
}

/** Returns the model of the last pass over the output, ignoring passes of an adviser. */
function servingModel(usage: unknown): unknown {
  const passes = records(record(usage).iterations)
  return passes.findLast(({ type }) => type === 'message' || type === 'fallback_message')?.model
}
