/**
 * Sends chat events as Server-Sent Events. The `Response` is built by hand: a returned generator ignores the request's
 * signal, so after a client disconnect on a silent upstream its reservation would leak. The first event decides the
 * status, `pull` reads one batch per call, so that a slow client slows the upstream, and `cancel` aborts the upstream
 * call.
 */

import type { ChatEvent, ChatEvents, ResponseStart } from '../core/chat/chat-events.ts'
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

export type StreamFormat = {
  /** Returns the frames of one batch of events, in order. The first batch begins with `opened`. */
  frame(batch: readonly ChatEvent[]): string
  /** Returns the frame of a failure after the status. It is the last frame. */
  failure(error: GatewayError): string
  /** Frame that keeps a silent connection open; absent = a comment line. */
  keepAlive?(): string
}

type StreamOptions = {
  readonly events: ChatEvents
  readonly streamFormat: StreamFormat
  /** Aborts the upstream call. */
  readonly abort: () => void
  readonly clock: StreamClock
  /** `opening` is null if the status is sent before the first event. */
  readonly headers: (opening: ResponseStart | null) => Headers
  readonly toError: (thrown: unknown) => GatewayError
}

/** Monotonic milliseconds, and one-shot timers; the returned function cancels one. */
type StreamClock = Pick<Clock, 'monotonic' | 'after'>

/**
 * Resolves with the response after the first content, the first failure (thrown, so that it keeps its status) or
 * `statusAfterMs`.
 */
export async function streamResponse(options: StreamOptions): Promise<Response> {
  const { events, clock } = options
  const first = events.next()
  const early = await within(first, statusAfterMs, clock)
  if (early?.done) throw new GatewayError('upstream_failed', 'The model returned no output. Send the request again.')
  const opened = early?.value.find(event => event.type === 'opened')
  try {
    const headers = options.headers(opened?.type === 'opened' ? opened.opening : null)
    const body = new ReadableStream<Uint8Array>(new FrameSource(options, early ?? first), { highWaterMark: 0 })
    return new Response(body, { headers })
  } catch (thrown) {
    options.abort()
    void events.return().catch(() => undefined)
    throw toBilledError(thrown)
  }
}

const encoder = new TextEncoder()

/** A class with one timer. Frames do not reset it; when it fires, it checks the time of the last one. */
class FrameSource {
  private readonly options: StreamOptions
  private readonly clock: StreamOptions['clock']
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null
  /** Resolves the pending `pull`; null = no `pull` is pending. */
  private served: (() => void) | null = null
  /** Frames that arrived without a pending `pull`. */
  private waiting: (() => void) | null = null
  private isAsking = false
  /** Headers are sent with the first bytes of the body, so a status before the first event needs some bytes. */
  private isPingDue: boolean
  private isOver = false
  private sentAt: number
  private cancelLook: () => void

  /** `early` is the first step, or the promise of it if the status was sent first. */
  constructor(options: StreamOptions, early: IteratorStep | Promise<IteratorStep>) {
    this.options = options
    this.clock = options.clock
    this.isPingDue = early instanceof Promise
    if (early instanceof Promise) this.query(early)
    else this.waiting = () => this.take(early)
    this.sentAt = this.clock.monotonic()
    this.cancelLook = this.clock.after(pingEveryMs, this.look)
  }

  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> | void {
    this.controller = controller
    if (this.isPingDue) {
      this.isPingDue = false
      return this.send(this.ping())
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.served = resolve
    const { waiting } = this
    this.waiting = null
    if (waiting !== null) waiting()
    else if (!this.isAsking) this.query(this.options.events.next())
    return promise
  }

  cancel(): void {
    this.leave()
  }

  private query(next: Promise<IteratorStep>): void {
    this.isAsking = true
    next.then(this.stepped, this.failed)
  }

  private readonly stepped = (step: IteratorStep): void => {
    this.isAsking = false
    if (this.served === null) this.waiting = () => this.take(step)
    else this.take(step)
  }

  private readonly failed = (thrown: unknown): void => {
    this.isAsking = false
    if (this.served === null) this.waiting = () => this.fail(thrown)
    else this.fail(thrown)
  }

  private take(step: IteratorStep): void {
    // The client has disconnected, so a failure of the aborted upstream call is not reported.
    if (this.isOver) return
    try {
      if (step.done) return void this.end()
      const frame = this.options.streamFormat.frame(step.value)
      // A batch may contain nothing to send yet, and `pull` is called again only after something was sent.
      if (frame === '') this.query(this.options.events.next())
      else this.send(frame)
    } catch (thrown) {
      this.fail(thrown)
    }
  }

  private fail(thrown: unknown): void {
    if (this.isOver) return
    this.send(this.options.streamFormat.failure(this.options.toError(thrown)))
    this.end()
  }

  private send(frame: string): void {
    this.sentAt = this.clock.monotonic()
    this.controller?.enqueue(encoder.encode(frame))
    this.serve()
  }

  private ping(): string {
    return this.options.streamFormat.keepAlive?.() ?? ping
  }

  private serve(): void {
    this.served?.()
    this.served = null
  }

  private end(): void {
    this.isOver = true
    this.cancelLook()
    this.controller?.close()
    this.serve()
  }

  private leave(): void {
    this.isOver = true
    this.cancelLook()
    this.serve()
    this.options.abort()
    // Not awaited: a generator that waits for the upstream ends when the abort reaches it.
    void this.options.events.return().catch(() => undefined)
  }

  /** Sends a ping to a client that waits for a silent upstream; aborts the stream of a client that does not read. */
  private readonly look = (): void => {
    let silentMs = this.clock.monotonic() - this.sentAt
    if (this.served !== null && silentMs >= pingEveryMs) {
      this.send(this.ping())
      silentMs = 0
    }
    if (silentMs >= readTimeoutMs) {
      this.leave()
      this.controller?.error(new Error('the client does not read the stream'))
      return
    }
    // A timer may fire slightly early.
    this.cancelLook = this.clock.after(Math.max(1, pingEveryMs - (silentMs % pingEveryMs)), this.look)
  }
}

/** Common headers of every stream. */
export const streamHeaders = new Headers({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
})

type IteratorStep = IteratorResult<readonly ChatEvent[], void>

/** Returns the promise's value, or null after the timeout. The promise itself continues. */
function within<T>(promise: Promise<T>, milliseconds: number, clock: StreamClock): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => resolve(null))
    promise.then(
      value => {
        cancel()
        resolve(value)
      },
      cause => {
        cancel()
        reject(cause)
      },
    )
  })
}
