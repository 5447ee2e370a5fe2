/**
 * Writes Messages responses, as one body or as server-sent events. `message_delta` and `message_stop` follow only `done`: a truncated or
 * unsettled response must not look complete.
 */
import type { ResponsePart, ResponseStart, ResponseSummary, TextChannel } from '../../core/chat/chat-events.ts'
import type { BodyWriter } from '../../core/chat/response-collector.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import { parseModelJson } from '../../core/validation/untrusted-json.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import { type BlockSink, BlockWriter } from './block-writer.ts'
import { type BlockFields, isBlockFields } from './blocks.ts'
import { errorEnvelope } from './errors.ts'
import { detailedUsage, inputCounts, type MessageStyle, messageBase } from './reply.ts'

/** Returns the writer of one response that is not streamed. */
export function messageBody(style: MessageStyle): BodyWriter {
  const content: BlockFields[] = []
  const blocks = new BlockWriter(style, collectInto(content))
  return {
    text: (channel, text) => blocks.text(channel, text),
    add: part => blocks.add(part),
    body(opening, receipt) {
      const { ending, usage, container, others } = blocks.end(receipt)
      const own = container === null ? {} : { container }
      return { ...messageBase(opening), content, ...ending, usage, ...own, ...others }
    },
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
    say(field, text) {
      if (field === 'partial_json') input = (input ?? '') + text
      else block[field] = `${block[field]}${text}`
    },
    sign(signature) {
      block.signature = signature
    },
    cite(citation) {
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), citation]
    },
    close() {
      const parsed = input === null ? null : parseModelJson(input)
      content.push(input === null ? block : { ...block, input: isBlockFields(parsed) ? parsed : {} })
    },
  }
}

const ping = eventFrame('ping', {})

/** Writes one streamed response. It keeps the open block, so each response needs its own. */
export class MessageFrames implements StreamFormat {
  private out = ''
  private index = -1
  private hasStarted = false
  private readonly blocks: BlockWriter

  constructor(
    style: MessageStyle,
    private readonly requestId: string,
  ) {
    this.blocks = new BlockWriter(style, {
      open: block => {
        this.index++
        this.write('content_block_start', { index: this.index, content_block: block })
      },
      say: (field, text) => {
        this.out += `${deltaStart}${this.index},"delta":{"type":"${deltaTypes[field]}","${field}":${JSON.stringify(text)}}}\n\n`
      },
      sign: signature => this.delta({ type: 'signature_delta', signature }),
      cite: citation => this.delta({ type: 'citations_delta', citation }),
      close: () => this.write('content_block_stop', { index: this.index }),
    })
  }

  text(channel: TextChannel, text: string): void {
    this.blocks.text(channel, text)
  }

  add(part: ResponsePart): void {
    this.blocks.add(part)
    if (part.type === 'opened') this.start(part.opening)
    else if (part.type === 'done') this.end(part.receipt)
  }

  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  failure(error: GatewayError): string {
    return eventText('error', JSON.stringify(errorEnvelope(error, this.requestId)))
  }

  keepAlive(): string {
    return this.hasStarted ? ping : ': ping\n\n'
  }

  private start(opening: ResponseStart): void {
    this.hasStarted = true
    const counts = inputCounts(opening.inputUsage ?? { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 })
    const usage = { ...detailedUsage(opening.providerFields), ...counts, output_tokens: 1 }
    const end = { stop_reason: null, stop_sequence: null, stop_details: null }
    const message = { ...messageBase(opening), content: [], ...end, usage }
    this.write('message_start', { message })
    this.out += ping
  }

  private end(receipt: ResponseSummary): void {
    const { ending, container, usage, others } = this.blocks.end(receipt)
    this.write('message_delta', { delta: { ...ending, container }, usage, ...others })
    this.write('message_stop', {})
  }

  private delta(delta: BlockFields): void {
    this.write('content_block_delta', { index: this.index, delta })
  }

  private write(type: string, fields: BlockFields): void {
    this.out += eventFrame(type, fields)
  }
}

/** Most events are deltas of a text, in which only the text needs JSON. */
const deltaStart = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'
const deltaTypes = { text: 'text_delta', thinking: 'thinking_delta', partial_json: 'input_json_delta' } as const

function eventFrame(type: string, fields: BlockFields): string {
  return eventText(type, JSON.stringify({ type, ...fields }))
}

function eventText(type: string, data: string): string {
  return `event: ${type}\ndata: ${data}\n\n`
}
