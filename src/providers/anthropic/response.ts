import type { FinishReason } from '../../core/chat/chat-events.ts'
import { failed, truncated } from '../failure.ts'
import { findTextSlot, frameParser } from '../frames.ts'
import { findName, getText, isRecord, isText, type Json, record, records } from '../json.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { blockReader } from './blocks.ts'
import { anthropicBodyFailure } from './failure.ts'
import { type Counts, findCounts, findUsageFields, getAnthropicUsage, noCounts, outgrown } from './usage.ts'

/** Reads a complete response. */
export function readResponse(body: unknown): readonly AnswerPart[] {
  return readMessage(answerReader(), body)
}

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

/** Creates a reader for a streamed response, which ends with `message_stop` and is truncated without it. */
export function streamReader(): StreamReader {
  const answer = answerReader()
  const parse = frameParser(placeOfText)
  return {
    read: event => (isReadable(event) ? readEvent(answer, event.name, parse(event.data)) : nothing),
    finish: () => nothing,
  }
}

function isReadable({ name, data }: ServerSentEvent): boolean {
  return knownEvents.has(name) && (data.startsWith('{') || (data !== '[DONE]' && data.trim() !== ''))
}

const texts = ['text', 'thinking', 'partial_json'] as const

/** Locates the text in a block's delta. */
const placeOfText = (data: unknown) => findTextSlot(record(data).delta, texts)

function readEvent(answer: AnswerReader, name: string, data: unknown): readonly AnswerPart[] {
  if (!isRecord(data)) return [failedBy(data)]
  switch (getText(data.type) || name) {
    case 'message_start':
      return isRecord(data.message) ? answer.start(data.message) : nothing
    case 'content_block_start':
      return answer.openBlock(data.index, data.content_block)
    case 'content_block_delta':
      return answer.addToBlock(data.index, record(data.delta))
    case 'content_block_stop':
      return answer.closeBlock(data.index)
    case 'message_delta':
      return answer.update({ context_management: data.context_management, ...record(data.delta) }, data.usage)
    case 'message_stop':
      return answer.end()
    // A relay that does not stream sends the complete response as one event.
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
  const begun = answer.start(message)
  if (begun.at(-1)?.type === 'failure') return begun
  return [...begun, ...answer.update(body, usage), ...answer.end()]
}

function failedBy(body: unknown): AnswerPart {
  return failed(anthropicBodyFailure(body))
}

const nothing: readonly AnswerPart[] = []

/** Reads one response, streamed or complete: takes its events in order and returns their parts. */
type AnswerReader = {
  start(message: Json): readonly AnswerPart[]
  openBlock(index: unknown, block: unknown): readonly AnswerPart[]
  addToBlock(index: unknown, delta: Json): readonly AnswerPart[]
  closeBlock(index: unknown): readonly AnswerPart[]
  update(ending: Json, usage: unknown): readonly AnswerPart[]
  end(): readonly AnswerPart[]
}

function answerReader(): AnswerReader {
  const blocks = blockReader()
  let id: string | null = null
  let model: string | null = null
  let isStarted = false
  /** A block was opened, or text arrived. */
  let hasContent = false
  let stopReason = ''
  let stopSequence: string | null = null
  let counts: Counts = noCounts
  const end: Record<string, unknown> = {}
  let usageFields: Json = {}

  const served = (now: unknown): readonly AnswerPart[] => {
    const name = findName(now)
    if (name === null || name === model) return nothing
    model = name
    return [{ type: 'served', id, model }]
  }
  const measured = (usage: unknown, stage: 'first' | 'later'): readonly AnswerPart[] => {
    const newer = findCounts(usage, counts, stage)
    if (newer === null) return nothing
    counts = newer
    return [{ type: 'usage', usage: getAnthropicUsage(newer) }]
  }
  const noted = (usage: unknown, ending: Json): readonly AnswerPart[] => {
    const newer = findUsageFields(usage)
    const ended = endFieldNames.filter(name => isRecord(ending[name]))
    if (newer === null && ended.length === 0) return nothing
    for (const name of ended) end[name] = ending[name]
    usageFields = { ...usageFields, ...newer }
    return [{ type: 'provider_fields', fields: { form: 'anthropic', usage: usageFields, end: { ...end } } }]
  }
  /** Returns the parts, preceded by the adjustment of an earlier token count. */
  const wentOn = (pieces: readonly AnswerPart[]): readonly AnswerPart[] => {
    hasContent ||= pieces.length > 0
    if (pieces.length === 0 || counts.output === null) return pieces
    counts = outgrown(counts)
    return [{ type: 'usage', usage: getAnthropicUsage(counts) }, ...pieces]
  }
  const openBlock = (index: unknown, block: unknown): readonly AnswerPart[] => {
    const { type, to } = record(block)
    const opened = wentOn(blocks.open(index, block))
    return type === 'fallback' ? [...opened, ...served(record(to).model)] : opened
  }

  return {
    start(message) {
      // After content this starts a second message, which may only follow a complete first one.
      if (hasContent && (stopReason === '' || blocks.hasOpen())) return [truncated('message_restarted')]
      blocks.recount()
      // The first event identifies the response; some relays send it twice.
      if (isStarted) return nothing
      isStarted = true
      id = findName(message.id)
      model = findName(message.model)
      stopReason = getText(message.stop_reason)
      const named: AnswerPart = { type: 'served', id, model }
      const first = measured(message.usage, 'first')
      // Contains blocks if the response is complete, or ended before the stream began.
      const told = records(message.content).flatMap((block, index) => [
        ...openBlock(index, block),
        ...blocks.close(index),
      ])
      return [named, ...first, ...noted(message.usage, noEnding), ...told]
    },
    openBlock,
    addToBlock: (index, delta) => wentOn(blocks.add(index, delta)),
    closeBlock: blocks.close,
    update(ending, usage) {
      const { stop_reason, stop_sequence } = ending
      stopReason ||= getText(stop_reason)
      stopSequence ??= isText(stop_sequence) ? stop_sequence : null
      return [...served(servingModel(usage)), ...measured(usage, 'later'), ...noted(usage, ending)]
    },
    end() {
      const reason = finishReason(stopReason, blocks.hasCalls())
      // A response that reports being incomplete may end anywhere.
      if ((reason === 'stop' || reason === 'tool_calls') && blocks.hasTruncated())
        return [truncated('tool_call_unclosed')]
      const unclosed = blocks.closeAll()
      const stoppedBy = stopReason === 'stop_sequence' && stopSequence !== null ? { stopSequence } : {}
      const own = actedOn.has(stopReason) ? { upstreamReason: stopReason } : {}
      return [...unclosed, { type: 'finish', choice: 0, reason, ...stoppedBy, ...own }, { type: 'end' }]
    },
  }
}

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
