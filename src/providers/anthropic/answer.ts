import type { FinishReason } from '../../core/chat.ts'
import { failed } from '../failure.ts'
import { isRecord, isText, type Json, nameOf, parsed, record, records, textOf } from '../json.ts'
import { uniqueNames } from '../names.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { failureInAnswer } from './failure.ts'
import { jsonAnswerTool } from './json-answer.ts'
import { type Counts, countsOf, noCounts, outgrown, usageOf } from './usage.ts'

/** A whole answer. */
export function readResponse(body: unknown): readonly AnswerPart[] {
  return readMessage(answerReader(), body)
}

/** Events under other names than these are skipped unread: they need not hold JSON. */
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

/** An answer in events; it ends with `message_stop`, and is cut without it. */
export function streamReader(): StreamReader {
  const answer = answerReader()
  return {
    read: event => (isReadable(event) ? readEvent(answer, event) : nothing),
    finish: () => nothing,
  }
}

function isReadable({ name, data }: ServerSentEvent): boolean {
  return knownEvents.has(name) && data !== '[DONE]' && data.trim() !== ''
}

function readEvent(answer: AnswerReader, event: ServerSentEvent): readonly AnswerPart[] {
  const data = parsed(event.data)
  if (!isRecord(data)) return [failedBy(data)]
  switch (textOf(data.type) || event.name) {
    case 'message_start':
      return isRecord(data.message) ? answer.start(data.message) : nothing
    case 'content_block_start':
      return answer.openBlock(data.index, data.content_block)
    case 'content_block_delta':
      return answer.addToBlock(data.index, record(data.delta))
    case 'content_block_stop':
      return answer.closeBlock(data.index)
    case 'message_delta':
      return answer.update(record(data.delta).stop_reason, data.usage)
    case 'message_stop':
      return answer.end()
    // A relay that does not stream sends the whole answer as one event.
    case 'message':
      return readMessage(answer, data)
    case 'error':
      return [failedBy(data)]
    default:
      return data.error === undefined || data.error === null ? nothing : [failedBy(data)]
  }
}

function readMessage(answer: AnswerReader, body: unknown): readonly AnswerPart[] {
  if (!isRecord(body) || !Array.isArray(body.content)) return [failedBy(body)]
  const { usage, ...message } = body
  return [...answer.start(message), ...answer.update(body.stop_reason, usage), ...answer.end()]
}

function failedBy(body: unknown): AnswerPart {
  return failed(failureInAnswer(body))
}

type OpenBlock = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'json' | 'ignored'
  /** Calls only, counted from 0: the wire's own index counts blocks of every kind. */
  readonly toolIndex: number
  /** What a call holds before any piece of it came. */
  readonly input: unknown
  /** Whether a piece of a call's input was handed out. */
  isWritten: boolean
}

const ignored: OpenBlock = { kind: 'ignored', toolIndex: 0, input: null, isWritten: true }
const nothing: readonly AnswerPart[] = []

/** One answer being read, whole or streamed: takes its pieces in the wire's order and says what they mean. */
type AnswerReader = {
  start(message: Json): readonly AnswerPart[]
  openBlock(index: unknown, block: unknown): readonly AnswerPart[]
  addToBlock(index: unknown, delta: Json): readonly AnswerPart[]
  closeBlock(index: unknown): readonly AnswerPart[]
  update(stopReason: unknown, usage: unknown): readonly AnswerPart[]
  end(): readonly AnswerPart[]
}

function answerReader(): AnswerReader {
  const blocks = new Map<unknown, OpenBlock>()
  const unique = uniqueNames()
  let id: string | null = null
  let model: string | null = null
  let isStarted = false
  let hasJsonAnswer = false
  let callCount = 0
  let stopReason = ''
  let counts: Counts = noCounts

  const served = (now: unknown): readonly AnswerPart[] => {
    const name = nameOf(now)
    if (name === null || name === model) return nothing
    model = name
    return [{ type: 'served', id, model }]
  }
  const measured = (usage: unknown, stage: 'first' | 'later'): readonly AnswerPart[] => {
    const newer = countsOf(usage, counts, stage)
    if (newer === null) return nothing
    counts = newer
    return [{ type: 'usage', usage: usageOf(newer) }]
  }
  /** The pieces, behind what they make of a count that was told before them. */
  const wentOn = (pieces: readonly AnswerPart[]): readonly AnswerPart[] => {
    if (pieces.length === 0 || counts.output === null) return pieces
    counts = outgrown(counts)
    return [{ type: 'usage', usage: usageOf(counts) }, ...pieces]
  }
  const opened = ({ type, name, input }: Json): OpenBlock => {
    if (type === 'text') return { ...ignored, kind: 'text' }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning' }
    if (type !== 'tool_use') return ignored
    if (name !== jsonAnswerTool) return { kind: 'call', toolIndex: callCount++, input, isWritten: false }
    // A model that answers twice at once would make two documents of one: the first counts.
    if (hasJsonAnswer) return ignored
    hasJsonAnswer = true
    return { kind: 'json', toolIndex: 0, input, isWritten: false }
  }
  const toolCall = (index: number, block: Json): AnswerPart => {
    const wireId = nameOf(block.id) ?? 'call'
    const id = unique(wireId, count => `${wireId}_${count}`)
    return { type: 'tool_call', choice: 0, index, id, name: textOf(block.name).toWellFormed(), signature: null }
  }
  const closeBlock = (index: unknown): readonly AnswerPart[] => {
    const block = blocks.get(index)
    blocks.delete(index)
    return block === undefined || block.isWritten ? nothing : inputPiece(block, JSON.stringify(record(block.input)))
  }

  const openBlock = (index: unknown, block: unknown): readonly AnswerPart[] => {
    const unclosed = closeBlock(index)
    if (!isRecord(block)) return unclosed
    const open = opened(block)
    blocks.set(index, open)
    switch (open.kind) {
      case 'text':
        return [...unclosed, ...piece('text', block.text)]
      case 'reasoning':
        return [...unclosed, ...piece('reasoning', block.thinking)]
      case 'call':
        return [...unclosed, toolCall(open.toolIndex, block)]
      case 'json':
        return unclosed
      case 'ignored':
        return block.type === 'fallback' ? [...unclosed, ...served(record(block.to).model)] : unclosed
    }
  }

  return {
    start(message) {
      // Sent twice by some relays: the first one names the answer, and nothing restarts.
      if (isStarted) return nothing
      isStarted = true
      id = nameOf(message.id)
      model = nameOf(message.model)
      stopReason = textOf(message.stop_reason)
      const named: AnswerPart = { type: 'served', id, model }
      // Blocks stand here where the answer is whole, or where it ended before the stream began.
      const told = records(message.content).flatMap((block, index) => [
        ...openBlock(index, block),
        ...closeBlock(index),
      ])
      return [named, ...measured(message.usage, 'first'), ...told]
    },
    openBlock,
    addToBlock(index, delta) {
      const block = blocks.get(index)
      if (block?.kind === 'ignored') return nothing
      if (delta.type === 'text_delta') return wentOn(piece('text', delta.text))
      if (delta.type === 'thinking_delta') return wentOn(piece('reasoning', delta.thinking))
      if (delta.type !== 'input_json_delta' || block === undefined || !isText(delta.partial_json)) return nothing
      block.isWritten = true
      return wentOn(inputPiece(block, delta.partial_json))
    },
    closeBlock,
    update(reason, usage) {
      stopReason ||= textOf(reason)
      return [...served(servingModel(usage)), ...measured(usage, 'later')]
    },
    end() {
      const unclosed = [...blocks.keys()].flatMap(closeBlock)
      const reason = finishReason(stopReason, callCount > 0)
      return [...unclosed, { type: 'finish', choice: 0, reason }, { type: 'end' }]
    },
  }
}

function piece(type: 'text' | 'reasoning', text: unknown): readonly AnswerPart[] {
  return isText(text) ? [{ type, choice: 0, text }] : nothing
}

/** A piece of a call's input: arguments of a caller's tool, text of the JSON answer, nothing of any other block. */
function inputPiece(block: OpenBlock, text: string): readonly AnswerPart[] {
  if (block.kind === 'json') return [{ type: 'text', choice: 0, text }]
  return block.kind === 'call' ? [{ type: 'tool_arguments', choice: 0, index: block.toolIndex, text }] : nothing
}

/** Whether calls were made is read off the answer itself: a forced JSON answer ends as `tool_use` without a caller's call. */
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

/** The model of the last pass over the answer; passes of an adviser are not the answer's. */
function servingModel(usage: unknown): unknown {
  const passes = records(record(usage).iterations)
  return passes.findLast(({ type }) => type === 'message' || type === 'fallback_message')?.model
}
