/**
 * Delivers one response as Server-Sent Events. The `Response` is built by hand: a returned generator ignores the request's
 * signal, so after a client disconnect on a silent upstream its reservation would leak. The first content decides the
 * status, `pull` sends what is due, once per call, a queue that a slow client does not empty makes the source
 * wait, and `cancel` aborts the upstream call.
 */

import type { StreamMode } from '../core/chat/chat.ts'
import type {
  ResponseOutput,
  ResponsePart,
  ResponseSink,
  ResponseStart,
  TextChannel,
} from '../core/chat/chat-events.ts'
import { PacedQueue, type Ticker } from '../core/chat/stream-pacing.ts'
import type { Clock } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { toBilledError } from './error-response.ts'

/** After this much silence a comment line keeps the connection open; otherwise proxies and browsers close it. */
const pingEveryMs = 10_000
/** The status is sent by then even without content; a later failure can only be an event. */
const statusAfterMs = 15_000
/** Aborts a stream after 60 s without a read. A client that stops reading would otherwise keep its reservation. */
const readTimeoutMs = 60_000
const ping = ': ping\n\n'

/** Writes one response in the form of a dialect. */
export type StreamFormat = ResponseSink & {
  /** Absent = server-sent events. */
  readonly contentType?: string
  /** Returns the frames of what it has received since the last call. */
  take(): string
  /** Returns the frame of a failure after the status. It is the last frame. */
  failure(error: GatewayError): string
  /** Frame that keeps a silent connection open; absent = a comment line. */
  keepAlive?(): string
}

type StreamOptions = {
  readonly streamFormat: StreamFormat
  readonly mode: StreamMode
  /** Aborts the upstream call. */
  readonly abort: () => void
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly ticker: Ticker
  /** `opening` is null if the status is sent before the first event. */
  readonly headers: (opening: ResponseStart | null) => Headers
  readonly toError: (thrown: unknown) => GatewayError
}

const encoder = new TextEncoder()

/** A class with one timer. Frames do not reset it; when it fires, it checks the time of the last one. */
export class StreamDelivery implements ResponseOutput {
  private readonly options: StreamOptions
  private readonly queue: PacedQueue
  private readonly status = Promise.withResolvers<Response>()
  private hasStatus = false
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null
  /** The client asks for the next bytes. */
  private isAsked = false
  /** Resolves the pending `pull`; null = none is pending, or it was answered at once. */
  private pulled: (() => void) | null = null
  /** Lets the source write again. */
  private emptied: PromiseWithResolvers<void> | null = null
  private hasEnded = false
  private opening: ResponseStart | null = null
  /** Something arrived since the last batch. */
  private hasNew = false
  /** The receipt was written. */
  private isComplete = false
  private failure: { readonly thrown: unknown } | null = null
  /** Headers are sent with the first bytes of the body, so a status before the first event needs some bytes. */
  private isPingDue = false
  private isOver = false
  private alarmAt = Number.POSITIVE_INFINITY
  private sentAt: number
  private cancelLook: () => void

  constructor(options: StreamOptions) {
    this.options = options
    this.queue = new PacedQueue(options.mode, options.streamFormat)
    this.sentAt = options.clock.monotonic()
    this.cancelLook = options.clock.after(statusAfterMs, () => {
      this.isPingDue = true
      this.begin(null)
    })
  }

  /** Fulfilled after the first content or `statusAfterMs`; rejected by a failure before, which keeps its own status. */
  response(): Promise<Response> {
    return this.status.promise
  }

  text(channel: TextChannel, text: string): void {
    if (this.isOver) return
    this.queue.text(channel, text)
    this.hasNew = true
  }

  add(part: ResponsePart): void {
    if (this.isOver) return
    this.queue.add(part)
    this.hasNew = true
    if (part.type === 'opened') this.opening = part.opening
    this.isComplete = part.type === 'done'
  }

  flush(): Promise<void> | null {
    if (this.isOver || !this.hasNew) return null
    this.hasNew = false
    this.queue.arrived(this.options.clock.monotonic())
    if (this.hasStatus) this.serve()
    else this.begin(this.opening)
    if (this.isOver || !this.queue.isFull()) return null
    this.emptied ??= Promise.withResolvers()
    return this.emptied.promise
  }

  /** Ends the response; a failure follows the text before it. */
  end(failure: { readonly thrown: unknown } | null = null): void {
    if (this.isOver) return
    // Nothing follows the receipt.
    this.failure = this.isComplete ? null : failure
    this.hasEnded = true
    this.queue.end()
    if (this.hasStatus) this.serve()
    else {
      this.stop()
      this.status.reject(failure === null ? noOutput : failure.thrown)
    }
  }

  private begin(opening: ResponseStart | null): void {
    this.hasStatus = true
    this.sentAt = this.options.clock.monotonic()
    this.lookAfter(pingEveryMs)
    try {
      const headers = this.options.headers(opening)
      const source = { pull: this.pull, cancel: this.leave }
      this.status.resolve(new Response(new ReadableStream<Uint8Array>(source, { highWaterMark: 0 }), { headers }))
    } catch (thrown) {
      this.leave()
      this.status.reject(toBilledError(thrown))
    }
  }

  private readonly pull = (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> | void => {
    this.controller = controller
    this.isAsked = true
    if (this.isPingDue) {
      this.isPingDue = false
      this.send(this.ping())
      return
    }
    this.serve()
    if (!this.isAsked || this.isOver) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.pulled = resolve
    return promise
  }

  /** Sends what is due to a client that reads, and sets the timer for the rest. */
  private serve(): void {
    while (this.isAsked && !this.isOver) {
      const now = this.options.clock.monotonic()
      const dueAt = this.queue.dueAt(now)
      if (dueAt <= now) this.sendDue(now)
      else if (this.queue.isEmpty() && this.hasEnded) this.finish()
      else {
        if (!this.queue.isEmpty()) this.wakeAt(dueAt)
        return
      }
    }
  }

  /** There may be nothing to send yet, and the client asks again only after something was sent. */
  private sendDue(now: number): void {
    this.emptied?.resolve()
    this.emptied = null
    try {
      this.queue.release(now)
      const frames = this.options.streamFormat.take()
      if (frames !== '') this.send(frames)
    } catch (thrown) {
      this.options.abort()
      this.failure = { thrown }
      this.finish()
    }
  }

  private finish(): void {
    try {
      if (this.failure !== null) this.send(this.options.streamFormat.failure(this.options.toError(this.failure.thrown)))
    } finally {
      this.stop()
      this.controller?.close()
      this.answerPull()
    }
  }

  private send(frame: string): void {
    this.sentAt = this.options.clock.monotonic()
    this.controller?.enqueue(encoder.encode(frame))
    this.answerPull()
  }

  private ping(): string {
    return this.options.streamFormat.keepAlive?.() ?? ping
  }

  private answerPull(): void {
    this.isAsked = false
    this.pulled?.()
    this.pulled = null
  }

  private wakeAt(time: number): void {
    if (this.alarmAt <= time) return
    this.alarmAt = time
    this.options.ticker.at(time, () => {
      if (this.alarmAt === time) this.alarmAt = Number.POSITIVE_INFINITY
      this.serve()
    })
  }

  private stop(): void {
    this.isOver = true
    this.cancelLook()
    this.emptied?.resolve()
  }

  /** The client has disconnected: a failure of the aborted upstream call has no reader. */
  private readonly leave = (): void => {
    if (this.isOver) return
    this.stop()
    this.answerPull()
    this.options.abort()
  }

  /** Sends a ping to a client that waits for a silent upstream; aborts the stream of a client that does not read. */
  private readonly look = (): void => {
    let silentMs = this.options.clock.monotonic() - this.sentAt
    if (this.isAsked && silentMs >= pingEveryMs) {
      this.send(this.ping())
      silentMs = 0
    }
    if (silentMs >= readTimeoutMs) {
      this.leave()
      this.controller?.error(new Error('the client does not read the stream'))
      return
    }
    this.lookAfter(pingEveryMs - (silentMs % pingEveryMs))
  }

  /** A timer may fire slightly early. */
  private lookAfter(milliseconds: number): void {
    this.cancelLook()
    this.cancelLook = this.options.clock.after(Math.max(1, milliseconds), this.look)
  }
}

const noOutput = new GatewayError('upstream_failed', 'The model returned no output. Send the request again.')

/** Common headers of every stream. */
export const streamHeaders = new Headers({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
})
