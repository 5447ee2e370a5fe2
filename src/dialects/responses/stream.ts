/**
 * Writes responses as events of the Responses API: numbered from 0 without gaps, `response.created` first, one terminal event last.
 * `response.completed` and `response.incomplete` follow only `done`: a truncated or unsettled response must not look complete.
 */
import type { ResponsePart, TextChannel } from '../../core/chat/chat-events.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import type { OutputItems } from './output.ts'
import {
  createItems,
  endState,
  getResponseError,
  type ReplyContext,
  type ResponseHead,
  type ResponseState,
  responseJson,
  settingsJson,
  unopened,
} from './reply.ts'

/** Writes one streamed response. `now` returns Unix seconds, for a failure before the response starts. */
export class ResponseStream implements StreamFormat {
  private readonly settings: string
  private readonly items: OutputItems
  private opening: ResponseHead | null = null
  private number = 0
  private out = ''

  constructor(
    private readonly context: ReplyContext,
    private readonly requestId: string,
    private readonly now: () => number,
  ) {
    this.settings = settingsJson(context)
    this.items = createItems(context, requestId, (type, fields) => this.emit(type, fields))
  }

  text(channel: TextChannel, text: string): void {
    this.items.text(channel, text)
  }

  add(part: ResponsePart): void {
    this.items.add(part)
    if (part.type === 'opened') this.begin(part.opening)
    else if (part.type === 'done') {
      const state = endState(this.items, part.receipt)
      this.lifecycle(`response.${state.status}`, state)
    }
  }

  take(): string {
    this.items.flush()
    const { out } = this
    this.out = ''
    return out
  }

  failure(thrown: GatewayError): string {
    this.items.flush()
    if (this.opening === null) this.begin(unopened(this.context, this.now()))
    const error = getResponseError(thrown)
    this.lifecycle('response.failed', { status: 'failed', output: this.items.output(), usage: null, error })
    return this.take()
  }

  private begin(opening: ResponseHead): void {
    this.opening = opening
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
