/**
 * Stream pacing: joins many small writes to few. A queue connects the source, read ahead within a bound, and the
 * consumer, which receives a batch when one is due. An iterator written by hand: a generator's `return()` waits for its
 * pending `next()`, so a client disconnect during an upstream silence would leave the source running.
 */

import type { StreamMode } from '../../core/chat/chat.ts'
import type { ChatEvent, ChatEvents } from '../../core/chat/chat-events.ts'
import { completeTextLength } from '../../core/chat/sentence-boundary.ts'
import { appendMerged, isTextDelta } from '../../core/chat/text-deltas.ts'

/** Monotonic milliseconds. `sleep` resolves at its time or shortly after; see `createTicker`. */
export type PaceClock = { now(): number; sleep(milliseconds: number): Promise<void> }

/** Grid of the writes, so that one timer serves every stream; `realtime` writes at most once per cell. */
export const gridMs = 10
/** `buffered`: interval between two writes of text. */
const flushIntervalMs = 100
/** `buffered`: after this long, an incomplete sentence is sent up to its last word. */
const maximumHoldMs = 250
/** Maximum characters held for a consumer that does not read; beyond it the source waits. */
const maximumPendingCharacters = 64 * 1024

/**
 * Paces a response: same events, same order, adjacent text deltas joined. The first text is sent immediately.
 * `realtime`: at most one batch per 10 ms cell, nothing held longer. `buffered`: whole sentences about every 100 ms.
 * Tool calls, finishes and `done` never wait, and pending events precede them; the end of the source flushes all. A
 * failure of the source is thrown after the text before it. `over` is called after the source has ended, possibly twice
 * for a source that was closed. `return()` ends the source at once. It waits for the source's cleanup unless a read is
 * pending: that read ends by the signal that the source listens to, which may take time.
 */
export function paceStream(
  events: ChatEvents,
  mode: StreamMode,
  clock: PaceClock,
  over: () => void = ignore,
): ChatEvents {
  let queue: ChatEvent[] = []
  let pendingCharacters = 0
  /** When the oldest pending event arrived. */
  let pendingSince = 0
  let mustGo = false
  let hasReasoning = false
  let textSeen = false
  let lastWrite = Number.NEGATIVE_INFINITY
  let reading = false
  let ended = false
  let closed = false
  let failure: { readonly thrown: unknown } | null = null
  let alarmAt = Number.POSITIVE_INFINITY
  const waiting: PromiseWithResolvers<IteratorResult<readonly ChatEvent[], void>>[] = []

  function read(): void {
    if (reading || ended || pendingCharacters >= maximumPendingCharacters) return
    reading = true
    events.next().then(arrived, broke)
  }

  function arrived(result: IteratorResult<readonly ChatEvent[], void>): void {
    reading = false
    if (closed) return
    if (result.done === true) end()
    else takeIn(result.value)
    serve()
    read()
  }

  function broke(thrown: unknown): void {
    reading = false
    if (closed) return
    failure = { thrown }
    end()
    serve()
  }

  function end(): void {
    ended = true
    over()
  }

  function takeIn(batch: readonly ChatEvent[]): void {
    if (queue.length === 0) pendingSince = clock.now()
    for (const event of batch) {
      pendingCharacters += charactersOf(event)
      const urgency = flushPriority(event)
      if (urgency === 'now' || (urgency === 'text' && !textSeen)) mustGo = true
      if (urgency === 'text') textSeen = true
      if (urgency === 'soon') hasReasoning = true
      appendMerged(queue, event)
    }
  }

  /** Hands due events to the waiting consumer, and sets the timer for the others. */
  function serve(): void {
    for (let consumer = waiting[0]; consumer !== undefined; consumer = waiting[0]) {
      const now = clock.now()
      const dueAt = due(now)
      if (dueAt <= now) consumer.resolve({ value: take(now), done: false })
      else if (queue.length > 0) {
        wakeAt(dueAt)
        return
      } else if (!ended) return
      else if (failure !== null) {
        consumer.reject(failure.thrown)
        failure = null
      } else consumer.resolve({ value: undefined, done: true })
      waiting.shift()
    }
  }

  /** Returns the time at which part of the queue is due. */
  function due(now: number): number {
    if (queue.length === 0) return Number.POSITIVE_INFINITY
    if (mustGo || ended) return now
    if (mode === 'realtime' || hasReasoning) return (Math.floor(lastWrite / gridMs) + 1) * gridMs
    const beat = lastWrite + flushIntervalMs
    if (now < beat || queue.length > 1 || readyOfLast(queue, true) > 0) return beat
    return patienceEnds()
  }

  function patienceEnds(): number {
    return Math.max(lastWrite, pendingSince) + maximumHoldMs
  }

  /** Empties the queue, except in `buffered` mode the end of its last text if the sentence is incomplete. */
  function take(now: number): readonly ChatEvent[] {
    const batch = queue
    const last = batch.at(-1)
    const whole = mode === 'realtime' || mustGo || ended || hasReasoning
    queue = []
    pendingCharacters = 0
    if (!whole && last !== undefined && isTextDelta(last)) {
      const ready = readyOfLast(batch, now < patienceEnds())
      if (ready < last.text.length) {
        batch.pop()
        if (ready > 0) batch.push({ ...last, text: last.text.slice(0, ready) })
        queue = [{ ...last, text: last.text.slice(ready) }]
        pendingCharacters = last.text.length - ready
      }
    }
    mustGo = false
    hasReasoning = false
    lastWrite = now
    read()
    return batch
  }

  function wakeAt(time: number): void {
    if (alarmAt <= time) return
    alarmAt = time
    clock.sleep(time - clock.now()).then(() => {
      if (alarmAt === time) alarmAt = Number.POSITIVE_INFINITY
      if (!closed) serve()
    }, ignore)
  }

  async function close(): Promise<IteratorResult<readonly ChatEvent[], void>> {
    closed = true
    ended = true
    queue = []
    for (const consumer of waiting.splice(0)) consumer.resolve({ value: undefined, done: true })
    const closing = events.return().finally(over)
    if (reading) closing.catch(ignore)
    else await closing
    return { value: undefined, done: true }
  }

  return {
    next() {
      const consumer = Promise.withResolvers<IteratorResult<readonly ChatEvent[], void>>()
      waiting.push(consumer)
      read()
      serve()
      return consumer.promise
    },
    return: close,
    async throw(thrown) {
      await close()
      throw thrown
    },
    [Symbol.asyncIterator]() {
      return this
    },
    async [Symbol.asyncDispose]() {
      await close()
    },
  }
}

/** `text` may wait for its sentence, `soon` for the next cell of the grid; `along` is sent with the event before it. */
function flushPriority(event: ChatEvent): 'now' | 'soon' | 'text' | 'along' {
  switch (event.type) {
    case 'text':
    case 'refusal':
      return 'text'
    case 'reasoning':
      return 'soon'
    case 'logprobs':
    case 'citation':
      return 'along'
    case 'opened':
    case 'reasoning_end':
    case 'provider_item':
    case 'tool_call':
    case 'tool_arguments':
    case 'filtered':
    case 'finish':
    case 'done':
      return 'now'
    default:
      return event satisfies never
  }
}

/** Cost of holding an event, in characters: an event without text still takes memory. */
function charactersOf(event: ChatEvent): number {
  return isTextDelta(event) ? event.text.length : 64
}

function readyOfLast(queue: readonly ChatEvent[], patient: boolean): number {
  const last = queue.at(-1)
  return last !== undefined && isTextDelta(last) ? completeTextLength(last.text, patient) : 0
}

function ignore(): void {}

/** Clock of a ticker: monotonic milliseconds, and one timer. */
type TickerSource = { monotonic(): number; after(milliseconds: number, action: () => void): () => void }

/**
 * One timer for any number of sleepers, running only while there are sleepers: a thousand timers fire milliseconds
 * late. Ticks are multiples of 10 ms; a sleeper wakes at the first tick at or after its time.
 */
export function createTicker(source: TickerSource): PaceClock {
  let sleepers: { readonly at: number; readonly wake: () => void }[] = []
  let running = false

  function arm(): void {
    running = true
    const now = source.monotonic()
    source.after((Math.floor(now / gridMs) + 1) * gridMs - now, tick)
  }

  function tick(): void {
    // A timer may fire slightly early; it still counts as its tick.
    const now = source.monotonic() + 1
    const due = sleepers.filter(({ at }) => at <= now)
    sleepers = sleepers.filter(({ at }) => at > now)
    if (sleepers.length > 0) arm()
    else running = false
    for (const { wake } of due) wake()
  }

  return {
    now: () => source.monotonic(),
    sleep(milliseconds) {
      const { promise, resolve } = Promise.withResolvers<void>()
      sleepers.push({ at: source.monotonic() + milliseconds, wake: resolve })
      if (!running) arm()
      return promise
    },
  }
}
