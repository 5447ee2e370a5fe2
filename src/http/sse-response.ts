/**
 * A stream of chat events as a Server-Sent Events response.
 *
 * The `Response` is built by hand because a returned generator does not listen to the request's signal: when the upstream
 * hangs and the caller leaves, its `finally` would never run and the seat would leak. Here the first event is awaited
 * before the status is chosen, `pull` takes one batch at a time (so a reader who stalls stops the upstream too), and
 * `cancel` aborts the upstream call and ends the generator. So does a reader who is there and does not read.
 */
import type { ChatEvent, ChatEvents, ResponseStart } from '../core/chat/chat.ts'
import { GatewayError } from '../core/validation/errors.ts'

/** After this much silence a comment line keeps the connection open; before it proxies and browsers cut. */
const pingEveryMs = 10_000
/** The status is sent by then even without content, so that what fails later can only be an event. */
const statusAfterMs = 15_000
/** A reader who takes nothing for this long is as good as gone, and holds a seat. */
const readTimeoutMs = 60_000
const ping = ': ping\n\n'

export type StreamFormat = {
  /** Frames for one batch of events, in order. The first batch begins with `opened`. */
  frame(batch: readonly ChatEvent[]): string
  /** The frame of a failure after the status has gone. Nothing follows it. */
  failure(error: GatewayError): string
  /** What keeps a silent connection open; absent = a comment line. */
  keepAlive?(): string
}

type StreamOptions = {
  readonly events: ChatEvents
  readonly face: StreamFormat
  /** Ends the upstream call. */
  readonly abort: () => void
  readonly clock: StreamClock
  /** `opening` is null where the status goes first. */
  readonly headers: (opening: ResponseStart | null) => Headers
  readonly toError: (thrown: unknown) => GatewayError
}

/** Monotonic milliseconds, and one-shot timers that the returned function takes back. */
type StreamClock = { monotonic(): number; after(milliseconds: number, action: () => void): () => void }

/**
 * Resolves with the response once the first content, the first failure (thrown, so that it keeps its status) or
 * `statusAfterMs` is there.
 */
export async function streamResponse(options: StreamOptions): Promise<Response> {
  const { events, clock } = options
  const first = events.next()
  const early = await within(first, statusAfterMs, clock)
  if (early?.done) throw new GatewayError('upstream_failed', 'The answer was empty.')
  const opened = early?.value.find(event => event.type === 'opened')
  const body = new ReadableStream<Uint8Array>(new FrameSource(options, early ?? first), { highWaterMark: 0 })
  return new Response(body, { headers: options.headers(opened?.type === 'opened' ? opened.opening : null) })
}

const encoder = new TextEncoder()

/** A class with one timer, which is not set anew for every frame but looks when it runs out what has happened since. */
class FrameSource {
  private readonly options: StreamOptions
  private readonly clock: StreamOptions['clock']
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null
  /** Lets the reader's `pull` return; null while the reader does not ask. */
  private served: (() => void) | null = null
  /** What came while the reader did not ask. */
  private waiting: (() => void) | null = null
  private isAsking = false
  /** Headers leave with the first bytes of the body: a status that goes before the first event needs some. */
  private isPingDue: boolean
  private isOver = false
  private sentAt: number
  private cancelLook: () => void

  /** `early` is the first step, or where the status goes before it, the wait for it. */
  constructor(options: StreamOptions, early: IteratorStep | Promise<IteratorStep>) {
    this.options = options
    this.clock = options.clock
    this.isPingDue = early instanceof Promise
    if (early instanceof Promise) this.ask(early)
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
    else if (!this.isAsking) this.ask(this.options.events.next())
    return promise
  }

  cancel(): void {
    this.leave()
  }

  private ask(next: Promise<IteratorStep>): void {
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
    // Nobody is there any more, and how the upstream took its abort is no failure.
    if (this.isOver) return
    try {
      if (step.done) return void this.end()
      const frame = this.options.face.frame(step.value)
      // A batch may hold nothing to send yet, and `pull` is called again only after something was sent.
      if (frame === '') this.ask(this.options.events.next())
      else this.send(frame)
    } catch (thrown) {
      this.fail(thrown)
    }
  }

  private fail(thrown: unknown): void {
    if (this.isOver) return
    this.send(this.options.face.failure(this.options.toError(thrown)))
    this.end()
  }

  private send(frame: string): void {
    this.sentAt = this.clock.monotonic()
    this.controller?.enqueue(encoder.encode(frame))
    this.serve()
  }

  private ping(): string {
    return this.options.face.keepAlive?.() ?? ping
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
    // Not awaited: a generator that is waiting for the upstream ends when the abort reaches it.
    void this.options.events.return().catch(() => undefined)
  }

  /** A reader who waits for an upstream that is silent hears a ping; one who does not read is left in the end. */
  private readonly look = (): void => {
    let silentMs = this.clock.monotonic() - this.sentAt
    if (this.served !== null && silentMs >= pingEveryMs) {
      this.send(this.ping())
      silentMs = 0
    }
    if (silentMs >= readTimeoutMs) {
      this.leave()
      this.controller?.error(new Error('the reader takes nothing any more'))
      return
    }
    // A timer may fire a hair early.
    this.cancelLook = this.clock.after(Math.max(1, pingEveryMs - (silentMs % pingEveryMs)), this.look)
  }
}

/** What every stream's headers begin with. */
export const streamHeaders = new Headers({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
})

type IteratorStep = IteratorResult<readonly ChatEvent[], void>

/** The promise's value, or null if it takes longer. The promise itself goes on. */
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
