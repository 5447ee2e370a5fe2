/**
 * Stream pacing: joins many small writes to few. A queue connects the source, read ahead within a bound, and the
 * consumer, which receives a batch when one is due. An iterator written by hand: a generator's `return()` waits for its
 * pending `next()`, so a client disconnect during an upstream silence would leave the source running.
 */

import type { StreamMode } from '../../core/chat/chat.ts'
import { appendMerged, type ChatEvent, type ChatEvents, isTextDelta } from '../../core/chat/chat-events.ts'
import { completeTextLength } from '../../core/chat/sentence-boundary.ts'
import type { Clock } from '../../core/ports.ts'

/** Monotonic milliseconds. `sleep` resolves at its time or shortly after; see `createTicker`. */
export type PaceClock = Pick<Clock, 'now' | 'sleep'>

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
  return new PacedStream(events, mode, clock, over)
}

type Batch = IteratorResult<readonly ChatEvent[], void>

class PacedStream implements ChatEvents {
  private queue: ChatEvent[] = []
  private pendingCharacters = 0
  /** When the oldest pending event arrived. */
  private pendingSince = 0
  private mustGo = false
  private hasReasoning = false
  private textSeen = false
  private lastWrite = Number.NEGATIVE_INFINITY
  private isReading = false
  private ended = false
  private closed = false
  private failure: { readonly thrown: unknown } | null = null
  private alarmAt = Number.POSITIVE_INFINITY
  private readonly waiting: PromiseWithResolvers<Batch>[] = []

  constructor(
    private readonly events: ChatEvents,
    private readonly mode: StreamMode,
    private readonly clock: PaceClock,
    private readonly over: () => void,
  ) {}

  next(): Promise<Batch> {
    const consumer = Promise.withResolvers<Batch>()
    this.waiting.push(consumer)
    this.read()
    this.serve()
    return consumer.promise
  }

  async return(): Promise<Batch> {
    this.closed = true
    this.ended = true
    this.queue = []
    for (const consumer of this.waiting.splice(0)) consumer.resolve({ value: undefined, done: true })
    const closing = this.events.return().finally(this.over)
    if (this.isReading) closing.catch(ignore)
    else await closing
    return { value: undefined, done: true }
  }

  async throw(thrown: unknown): Promise<never> {
    await this.return()
    throw thrown
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async [Symbol.asyncDispose]() {
    await this.return()
  }

  private read(): void {
    if (this.isReading || this.ended || this.pendingCharacters >= maximumPendingCharacters) return
    this.isReading = true
    this.events.next().then(this.arrived, this.broke)
  }

  private readonly arrived = (result: Batch): void => {
    this.isReading = false
    if (this.closed) return
    if (result.done === true) this.end()
    else this.takeIn(result.value)
    this.serve()
    this.read()
  }

  private readonly broke = (thrown: unknown): void => {
    this.isReading = false
    if (this.closed) return
    this.failure = { thrown }
    this.end()
    this.serve()
  }

  private end(): void {
    this.ended = true
    this.over()
  }

  private takeIn(batch: readonly ChatEvent[]): void {
    if (this.queue.length === 0) this.pendingSince = this.clock.now()
    for (const event of batch) {
      this.pendingCharacters += getCharacters(event)
      const urgency = flushPriority(event)
      if (urgency === 'now' || (urgency === 'text' && !this.textSeen)) this.mustGo = true
      if (urgency === 'text') this.textSeen = true
      if (urgency === 'soon') this.hasReasoning = true
      appendMerged(this.queue, event)
    }
  }

  /** Hands due events to the waiting consumer, and sets the timer for the others. */
  private serve(): void {
    for (let consumer = this.waiting[0]; consumer !== undefined; consumer = this.waiting[0]) {
      const now = this.clock.now()
      const dueAt = this.due(now)
      if (dueAt <= now) consumer.resolve({ value: this.take(now), done: false })
      else if (this.queue.length > 0) {
        this.wakeAt(dueAt)
        return
      } else if (!this.ended) return
      else if (this.failure !== null) {
        consumer.reject(this.failure.thrown)
        this.failure = null
      } else consumer.resolve({ value: undefined, done: true })
      this.waiting.shift()
    }
  }

  /** Returns the time at which part of the queue is due. */
  private due(now: number): number {
    if (this.queue.length === 0) return Number.POSITIVE_INFINITY
    if (this.mustGo || this.ended) return now
    if (this.mode === 'realtime' || this.hasReasoning) return (Math.floor(this.lastWrite / gridMs) + 1) * gridMs
    const beat = this.lastWrite + flushIntervalMs
    if (now < beat || this.queue.length > 1 || readyOfLast(this.queue, true) > 0) return beat
    return this.patienceEnds()
  }

  private patienceEnds(): number {
    return Math.max(this.lastWrite, this.pendingSince) + maximumHoldMs
  }

  /** Empties the queue, except in `buffered` mode the end of its last text if the sentence is incomplete. */
  private take(now: number): readonly ChatEvent[] {
    const batch = this.queue
    const last = batch.at(-1)
    const whole = this.mode === 'realtime' || this.mustGo || this.ended || this.hasReasoning
    this.queue = []
    this.pendingCharacters = 0
    if (!whole && last !== undefined && isTextDelta(last)) {
      const ready = readyOfLast(batch, now < this.patienceEnds())
      if (ready < last.text.length) {
        batch.pop()
        if (ready > 0) batch.push({ ...last, text: last.text.slice(0, ready) })
        this.queue = [{ ...last, text: last.text.slice(ready) }]
        this.pendingCharacters = last.text.length - ready
      }
    }
    this.mustGo = false
    this.hasReasoning = false
    this.lastWrite = now
    this.read()
    return batch
  }

  private wakeAt(time: number): void {
    if (this.alarmAt <= time) return
    this.alarmAt = time
    this.clock.sleep(time - this.clock.now()).then(() => {
      if (this.alarmAt === time) this.alarmAt = Number.POSITIVE_INFINITY
      if (!this.closed) this.serve()
    }, ignore)
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
function getCharacters(event: ChatEvent): number {
  return isTextDelta(event) ? event.text.length : 64
}

function readyOfLast(queue: readonly ChatEvent[], patient: boolean): number {
  const last = queue.at(-1)
  return last !== undefined && isTextDelta(last) ? completeTextLength(last.text, patient) : 0
}

function ignore(): void {}

/** Clock of a ticker: monotonic milliseconds, and one timer. */
type TickerSource = Pick<Clock, 'monotonic' | 'after'>

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
