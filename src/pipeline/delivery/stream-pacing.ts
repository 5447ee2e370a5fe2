/**
 * Delivery at a pace a reader enjoys and a server can afford: many small writes become few. A queue stands between the
 * source, read ahead within a bound, and the consumer, who gets a batch when one is due.
 *
 * Written as an iterator by hand and not as a generator: a generator's `return()` waits for its pending `next()`, and a
 * consumer who leaves while the upstream is silent would leave the source running.
 */
import type { ChatEvent, ChatEvents, StreamMode } from '../../core/chat/chat.ts'
import { completeTextLength } from '../../core/chat/sentence-boundary.ts'
import { appendMerged, isTextDelta } from '../../core/chat/text-deltas.ts'

/** Monotonic milliseconds. `sleep` resolves at its time or shortly after; see `createTicker`. */
export type PaceClock = { now(): number; sleep(milliseconds: number): Promise<void> }

/** Writes fall on this grid, so that one timer serves every stream; in `realtime` one write for each of its cells. */
const gridMs = 10
/** `buffered`: between one write of text and the next. */
const flushIntervalMs = 100
/** `buffered`: text whose sentence has not ended is shown as far as its last word after this long. */
const maximumHoldMs = 250
/** Characters held for a consumer who does not read; beyond it the source waits. */
const maximumPendingCharacters = 64 * 1024

/**
 * Paces an answer: same events, same order, neighbouring pieces of text joined. The first text goes at once.
 * `realtime`: at most one batch per 10 ms cell, nothing held longer. `buffered`: whole sentences about every 100 ms.
 * Tool calls, finishes and `done` never wait, and what was pending goes before them; when the source ends all goes at once.
 * A failure of the source is thrown after the text that came before it. `over` hears once the source has ended for good, of a
 * source that was closed perhaps twice.
 *
 * `return()` ends the source at once. It waits for the source's own ending unless a read of it is pending: that read
 * ends by the signal which the source listens to, and may take its time.
 */
export function paceStream(
  events: ChatEvents,
  mode: StreamMode,
  clock: PaceClock,
  over: () => void = ignore,
): ChatEvents {
  let queue: ChatEvent[] = []
  let pendingCharacters = 0
  /** When the oldest pending event came. */
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

  /** Hands out what is due to whoever waits, and sets the alarm for what is not. */
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

  /** When something of the queue is to go, or to be looked at again. */
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

  /** Empties the queue, but in `buffered` mode for the end of its last text where that is not ready. */
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

/** `text` may wait for its sentence, `soon` for the next cell of the grid; `along` goes with whatever it follows. */
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

/** What a ticker needs of a clock: monotonic milliseconds, and one timer at a time. */
type TickerSource = { monotonic(): number; after(milliseconds: number, action: () => void): () => void }

/**
 * One timer for any number of sleepers, running only while someone sleeps: a thousand timers of their own are late by
 * milliseconds. Ticks fall on multiples of 10 ms; a sleeper wakes at the first one not before its time.
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
    // A timer may fire a hair early; the tick it was set for is meant.
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
