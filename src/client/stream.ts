/**
 * A streamed response: an async iterable of its events. The request is sent on the first read and aborted when the
 * reader stops.
 */

import { ConnectionError, IncompleteStreamError } from './errors.ts'
import { toStreamError } from './to-error.ts'
import type { Incoming } from './transport.ts'
import type { ChatDelta, ChatDone, ChatEvent, ChatFiltered } from './wire.ts'

/** Can be read once: by iterating, or by `text()` or `done()`. */
export class ChatStream implements AsyncIterable<ChatDelta | ChatFiltered | ChatDone> {
  readonly #open: (signal: AbortSignal) => Promise<Incoming>
  readonly #caller: AbortSignal | undefined
  readonly #abort = new AbortController()
  #isRead = false

  /** `open` sends the request; `signal` is the caller's own. */
  constructor(open: (signal: AbortSignal) => Promise<Incoming>, signal: AbortSignal | undefined) {
    this.#open = open
    this.#caller = signal
  }

  /** Aborts the response, including the upstream call. A reader gets `reason` thrown, by default an `AbortError`. */
  abort(reason?: unknown): void {
    this.#abort.abort(reason)
  }

  /** Returns the complete text. Throws if the response failed or was truncated. */
  async text(): Promise<string> {
    let text = ''
    for await (const event of this) if (event.type === 'delta') text += event.content
    return text
  }

  /** Returns the last event: serving model, usage and cost. */
  async done(): Promise<ChatDone> {
    for await (const event of this) if (event.type === 'done') return event
    throw new IncompleteStreamError('The answer ended before it was complete.')
  }

  /**
   * Yields `delta`s, `filtered` if moderation stopped the output, then one `done`. Throws the typed error of a failure,
   * and `IncompleteStreamError` without a `done`.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<ChatDelta | ChatFiltered | ChatDone, void, void> {
    if (this.#isRead) throw new TypeError('A stream can be read once.')
    this.#isRead = true
    // Only while the stream is read, since one signal may be used for many streams.
    const caller = this.#caller
    const leave = () => this.abort(caller?.reason)
    if (caller?.aborted) leave()
    caller?.addEventListener('abort', leave)
    try {
      yield* this.#events()
    } finally {
      caller?.removeEventListener('abort', leave)
    }
  }

  async *#events(): AsyncGenerator<ChatDelta | ChatFiltered | ChatDone, void, void> {
    const incoming = await this.#open(this.#abort.signal)
    try {
      for await (const data of eventData(incoming)) {
        // Events that had already arrived are not delivered after an abort.
        this.#abort.signal.throwIfAborted()
        const event = JSON.parse(data) as ChatEvent
        if (event.type === 'error') throw toStreamError(event, incoming.response.headers)
        yield event
        if (event.type === 'done') return
      }
      throw new IncompleteStreamError('The answer ended before it was complete.')
    } finally {
      incoming.close()
    }
  }
}

const lineEnd = /\r\n|\r|\n/

/** Yields the `data` of each server-sent event; a gateway uses no other field. */
async function* eventData({ response, within }: Incoming): AsyncGenerator<string, void, void> {
  const reader = response.body?.getReader()
  if (reader === undefined) throw new ConnectionError('The answer has no body.')
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  for (;;) {
    const { done, value } = await within(reader.read())
    if (done) return
    rest += decoder.decode(value, { stream: true })
    // A carriage return at the end may be the first half of a line end.
    const whole = rest.endsWith('\r') ? rest.slice(0, -1) : rest
    const lines = whole.split(lineEnd)
    rest = (lines.pop() ?? '') + rest.slice(whole.length)
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      if (line !== '' || data.length === 0) continue
      yield data.join('\n')
      data = []
    }
  }
}
