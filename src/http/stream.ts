/**
 * A stream of chat events as a Server-Sent Events response.
 *
 * The `Response` is built by hand because a returned generator does not listen to the request's signal: when the upstream
 * hangs and the caller leaves, its `finally` would never run and the seat would leak. Here the first event is awaited
 * before the status is chosen, `pull` takes one batch at a time (so a reader who stalls stops the upstream too), and
 * `cancel` aborts the upstream call and ends the generator. So does a reader who is there and does not read.
 */
import type { ChatEvent, ChatEvents, Opening } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'

/** After this much silence a comment line keeps the connection open; before it proxies and browsers cut. */
const pingEveryMs = 10_000
/** The status is sent by then even without content, so that what fails later can only be an event. */
const statusAfterMs = 15_000
/** A reader who takes nothing for this long is as good as gone, and holds a seat. */
const stuckAfterMs = 60_000
const ping = ': ping\n\n'

export type StreamFace = {
  /** Frames for one batch of events, in order. The first batch begins with `opened`. */
  frame(batch: readonly ChatEvent[]): string
  /** The frame of a failure after the status has gone. Nothing follows it. */
  failure(error: GatewayError): string
}

/**
 * Resolves with the response once the first content, the first failure (thrown, so that it keeps its status) or
 * `statusAfterMs` is there. `abort` ends the upstream call.
 */
export async function streamResponse(options: {
  readonly events: ChatEvents
  readonly face: StreamFace
  readonly abort: () => void
  readonly clock: { after(milliseconds: number, action: () => void): () => void }
  /** `opening` is null where the status goes first. */
  readonly headers: (opening: Opening | null) => Headers
  readonly toError: (thrown: unknown) => GatewayError
}): Promise<Response> {
  const { events, face, abort, clock } = options
  let pending: Promise<Step> | null = events.next()
  const early = await within(pending, statusAfterMs, clock)
  if (early?.done) throw new GatewayError('upstream_failed', 'The answer was empty.')
  const opened = early?.value.find(event => event.type === 'opened')
  const encoder = new TextEncoder()
  // Headers leave with the first bytes of the body: a status that goes before the first event needs some.
  let isPingDue = early === null
  let left = false
  let takeBack = () => {}
  const leave = () => {
    left = true
    takeBack()
    abort()
    // Not awaited: a generator that is waiting for the upstream ends when the abort reaches it.
    void events.return().catch(() => undefined)
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        takeBack()
        const send = (frame: string) => {
          controller.enqueue(encoder.encode(frame))
          takeBack = clock.after(stuckAfterMs, () => {
            leave()
            controller.error(new Error('the reader takes nothing any more'))
          })
        }
        try {
          if (isPingDue) {
            isPingDue = false
            return send(ping)
          }
          // A batch may hold nothing to send yet, and `pull` is called again only after something was sent.
          for (let frame = ''; frame === ''; ) {
            pending ??= events.next()
            const step = await within(pending, pingEveryMs, clock)
            // Nobody is there any more, and how the upstream took its abort is no failure.
            if (left) return
            if (step === null) return send(ping)
            pending = null
            if (step.done) return controller.close()
            frame = face.frame(step.value)
            if (frame !== '') send(frame)
          }
        } catch (thrown) {
          if (left) return
          controller.enqueue(encoder.encode(face.failure(options.toError(thrown))))
          controller.close()
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: options.headers(opened?.type === 'opened' ? opened.opening : null) })
}

/** What every stream's headers begin with. */
export const streamHeaders = new Headers({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
})

type Step = IteratorResult<readonly ChatEvent[], void>

/** The promise's value, or null if it takes longer. The promise itself goes on. */
function within<T>(
  promise: Promise<T>,
  milliseconds: number,
  clock: { after(milliseconds: number, action: () => void): () => void },
): Promise<T | null> {
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
