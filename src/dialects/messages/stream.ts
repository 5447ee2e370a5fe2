/**
 * Writes Messages responses as server-sent events. `message_delta` and `message_stop` follow only `done`: a truncated or unsettled
 * response must not look complete.
 */
import type { ChatEvent, ResponseStart, ResponseSummary } from '../../core/chat/chat-events.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import { BlockWriter } from './block-writer.ts'
import type { BlockFields } from './blocks.ts'
import { errorEnvelope } from './errors.ts'
import {
  detailedUsage,
  findExplanation,
  getEndFields,
  getEnding,
  getFamily,
  inputCounts,
  type MessageStyle,
  messageBase,
  usageBody,
} from './reply.ts'

const ping = eventFrame('ping', {})

/** Returns the format of one streamed response. It keeps the open block, so each response needs its own. */
export function messagesStream(style: MessageStyle, requestId: string): StreamFormat {
  const stream = new MessageFrames(style)
  return {
    frame: batch => stream.frame(batch),
    failure: error => eventText('error', JSON.stringify(errorEnvelope(error, requestId))),
    keepAlive: () => (stream.hasStarted() ? ping : ': ping\n\n'),
  }
}

class MessageFrames {
  private out = ''
  private index = -1
  private provider: string | null = null
  private readonly writer: BlockWriter
  private finish: Extract<ChatEvent, { type: 'finish' }> | null = null
  private filtered: Extract<ChatEvent, { type: 'filtered' }> | undefined

  constructor(style: MessageStyle) {
    const { seal, wantsThinking } = style
    this.writer = new BlockWriter({
      sink: {
        open: block => {
          this.index++
          this.write('content_block_start', { index: this.index, content_block: block })
        },
        delta: delta => this.write('content_block_delta', { index: this.index, delta }),
        close: () => this.write('content_block_stop', { index: this.index }),
      },
      seal,
      family: () => getFamily(this.provider ?? ''),
      showsThinking: wantsThinking,
    })
  }

  hasStarted(): boolean {
    return this.provider !== null
  }

  frame(batch: readonly ChatEvent[]): string {
    this.out = ''
    for (const event of batch) this.add(event)
    return this.out
  }

  private add(event: ChatEvent): void {
    switch (event.type) {
      case 'opened':
        this.start(event.opening)
        break
      case 'finish':
        if (event.choice === 0) this.finish = event
        break
      case 'filtered':
        this.filtered = event
        break
      case 'done':
        this.end(event.receipt)
        break
      default:
        this.writer.add(event)
    }
  }

  private start(opening: ResponseStart): void {
    this.provider = opening.provider
    const counts = inputCounts(opening.inputUsage ?? { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 })
    const usage = { ...detailedUsage(opening.providerFields), ...counts, output_tokens: 1 }
    const end = { stop_reason: null, stop_sequence: null, stop_details: null }
    const message = { ...messageBase(opening), content: [], ...end, usage }
    this.write('message_start', { message })
    this.out += ping
  }

  private end(receipt: ResponseSummary): void {
    this.writer.end()
    const { details, container, others } = getEndFields(receipt.providerFields)
    const why = { explanation: findExplanation(this.filtered), details }
    const ending = getEnding(this.finish ?? { reason: 'stop' }, this.writer.hasCalls(), why)
    this.write('message_delta', { delta: { ...ending, container }, usage: usageBody(receipt), ...others })
    this.write('message_stop', {})
  }

  private write(type: string, fields: BlockFields): void {
    this.out += eventFrame(type, fields)
  }
}

function eventFrame(type: string, fields: BlockFields): string {
  return eventText(type, JSON.stringify({ type, ...fields }))
}

function eventText(type: string, data: string): string {
  return `event: ${type}\ndata: ${data}\n\n`
}
