/**
 * Writes responses as events of the Responses API: numbered from 0 without gaps, `response.created` first, one terminal event last.
 * `response.completed` and `response.incomplete` follow only `done`: a truncated or unsettled response must not look complete.
 */
import type { ChatEvent, FinishReason, ResponseStart, TokenLogprob } from '../../core/chat/chat-events.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import type { Fields } from '../foreign-objects.ts'
import { OutputItems } from './output.ts'
import {
  getEnd,
  getResponseError,
  outputOptions,
  type ReplyContext,
  type ResponseHead,
  type ResponseState,
  responseJson,
  responseUsage,
  settingsJson,
  unopened,
} from './reply.ts'

/** Returns the format of one streamed response. `now` returns Unix seconds, for a failure before the response starts. */
export function responsesStream(context: ReplyContext, requestId: string, now: () => number): StreamFormat {
  const stream = new ResponseStream(context, requestId)
  return {
    frame: batch => stream.frame(batch),
    failure: error => stream.fail(getResponseError(error), now),
  }
}

class ResponseStream {
  private readonly context: ReplyContext
  private readonly requestId: string
  private readonly settings: string
  private items: OutputItems | null = null
  private opening: ResponseHead | null = null
  private finish: FinishReason = 'stop'
  private number = 0
  private out = ''
  /** Text of the batch, which becomes one event. */
  private text = ''
  private tokens: TokenLogprob[] = []
  private phase: string | undefined

  constructor(context: ReplyContext, requestId: string) {
    this.context = context
    this.requestId = requestId
    this.settings = settingsJson(context)
  }

  frame(batch: readonly ChatEvent[]): string {
    for (const event of batch) this.add(event)
    this.flush()
    const { out } = this
    this.out = ''
    return out
  }

  fail(error: Fields, now: () => number): string {
    this.flush()
    if (this.opening === null) this.begin(unopened(this.context, now()), null)
    this.lifecycle('response.failed', { status: 'failed', output: this.items?.output() ?? [], usage: null, error })
    const { out } = this
    this.out = ''
    return out
  }

  private add(event: ChatEvent): void {
    switch (event.type) {
      case 'opened':
        this.begin(event.opening, event.opening)
        break
      case 'text':
        if (event.phase !== this.phase) {
          this.flush()
          this.phase = event.phase
          this.items?.enter(event.phase ?? null)
        }
        this.text += event.text
        break
      case 'logprobs':
        this.tokens.push(...event.tokens)
        break
      case 'finish':
        this.finish = event.reason
        break
      case 'filtered':
        break
      case 'done': {
        this.flush()
        this.items?.close(this.finish)
        const end = getEnd(this.finish)
        const { providerFields } = event.receipt
        const fields = providerFields === undefined ? {} : { providerFields }
        const usage = responseUsage(event.receipt)
        const state = { ...end, output: this.items?.output() ?? [], usage, ...fields }
        this.lifecycle(`response.${end.status}`, state)
        break
      }
      default:
        this.flush()
        this.items?.add(event)
    }
  }

  private flush(): void {
    if (this.text === '' && this.tokens.length === 0) return
    this.items?.addText('output_text', this.text, this.tokens)
    this.text = ''
    this.tokens = []
  }

  private begin(opening: ResponseHead, known: ResponseStart | null): void {
    this.opening = opening
    const emit = (type: string, fields: string) => this.emit(type, fields)
    this.items = new OutputItems(outputOptions(this.context, this.requestId, known, emit))
    const state: ResponseState = { status: 'in_progress', output: [], usage: null }
    this.lifecycle('response.created', state)
    this.lifecycle('response.in_progress', state)
  }

  private lifecycle(type: string, state: ResponseState): void {
    const opening = this.opening ?? unopened(this.context, 0)
    this.emit(type, `"response":${responseJson(this.settings, this.requestId, opening, state)}`)
  }

  private emit(type: string, fields: string): void {
    this.out += `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.number++},${fields}}\n\n`
  }
}
