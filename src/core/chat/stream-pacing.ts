/** Stream pacing: joins many small writes to few. Pure: the delivery of a stream says when something arrives and is read. */

import type { Clock } from '../ports.ts'
import type { StreamMode } from './chat.ts'
import type { ResponsePart, ResponseSink, TextChannel } from './chat-events.ts'

/** Grid of the writes, so that one timer serves every stream; upstream reads are joined on it. */
export const gridMs = 10
/** `buffered`: interval between two writes of text. */
const flushIntervalMs = 100
/** `buffered`: after this long, an incomplete sentence is sent up to its last word. */
const maximumHoldMs = 250
/** Maximum characters held for a client that does not read; beyond it the source waits. */
const maximumPendingCharacters = 64 * 1024

/**
 * Decides when the sink gets a response: same parts, same order, deltas in a row joined. The first text is
 * due immediately. `realtime`: at most one write per 10 ms cell, nothing held longer. `buffered`: whole sentences about
 * every 100 ms. Tool calls and `done` never wait, and pending parts precede them. A finish waits for `done`, with which
 * dialects write it: the last text and the end are one write. All times are monotonic milliseconds.
 */
export class PacedQueue implements ResponseSink {
  /** The newest text, which its next delta continues; '' = the sink has all. */
  private held = ''
  private channel: TextChannel | null = null
  /** The sink has something that was not sent. */
  private hasOther = false
  private pendingCharacters = 0
  /** When the oldest pending part arrived; NaN = none is pending. */
  private pendingSince = Number.NaN
  private mustGo = false
  private hasReasoning = false
  private textSeen = false
  private lastWrite = Number.NEGATIVE_INFINITY
  /** Nothing follows, so nothing waits. */
  private hasEnded = false

  constructor(
    private readonly mode: StreamMode,
    private readonly sink: ResponseSink,
  ) {}

  /** Whether the source has to wait until the client reads. */
  isFull(): boolean {
    return this.pendingCharacters >= maximumPendingCharacters
  }

  isEmpty(): boolean {
    return this.held === '' && !this.hasOther
  }

  text(channel: TextChannel, text: string): void {
    if (channel !== this.channel) this.pass(this.held.length)
    this.channel = channel
    this.held += text
    this.pendingCharacters += text.length
    // A sentence of arguments is nothing to wait for.
    if (channel.type === 'tool_arguments') this.mustGo = true
    else if (channel.type === 'reasoning') this.hasReasoning = true
    else if (!this.textSeen) {
      this.mustGo = true
      this.textSeen = true
    }
  }

  add(part: ResponsePart): void {
    this.pass(this.held.length)
    this.sink.add(part)
    this.hasOther = true
    this.pendingCharacters += partCharacters
    if (part.type !== 'logprobs' && part.type !== 'citation' && part.type !== 'finish') this.mustGo = true
  }

  /** Notes when the parts arrived that are new. */
  arrived(now: number): void {
    if (Number.isNaN(this.pendingSince) && !this.isEmpty()) this.pendingSince = now
  }

  end(): void {
    this.hasEnded = true
  }

  /** Returns the time at which a part is due; infinite while none is pending. */
  dueAt(now: number): number {
    if (this.isEmpty()) return Number.POSITIVE_INFINITY
    if (this.mustGo || this.hasEnded) return now
    if (this.mode === 'realtime' || this.hasReasoning) return (Math.floor(this.lastWrite / gridMs) + 1) * gridMs
    const beat = this.lastWrite + flushIntervalMs
    return now < beat || this.hasOther || completeTextLength(this.held, true) > 0 ? beat : this.patienceEnds()
  }

  /** Passes on what is due: all, except in `buffered` mode the end of the newest text if the sentence is incomplete. */
  release(now: number): void {
    const isAll = this.mode === 'realtime' || this.mustGo || this.hasEnded || this.hasReasoning
    this.pass(isAll ? this.held.length : completeTextLength(this.held, now < this.patienceEnds()))
    this.hasOther = false
    this.pendingCharacters = this.held.length
    if (this.held === '') this.pendingSince = Number.NaN
    this.mustGo = false
    this.hasReasoning = false
    this.lastWrite = now
  }

  private pass(length: number): void {
    if (length === 0 || this.channel === null) return
    this.sink.text(this.channel, this.held.slice(0, length))
    this.held = this.held.slice(length)
    this.hasOther = true
  }

  private patienceEnds(): number {
    return Math.max(this.lastWrite, this.pendingSince) + maximumHoldMs
  }
}

/** Cost of holding a part without text, in characters. */
const partCharacters = 64

/** Runs actions on the grid of the writes: `at` or at most one step later. */
export type Ticker = { at(time: number, action: () => void): void }

/**
 * One timer for any number of streams, running only while one waits: a thousand timers fire milliseconds late. Ticks are
 * multiples of 10 ms; an action runs at the first tick at or after its time. `report` receives what an action throws.
 */
export function createTicker(source: Pick<Clock, 'monotonic' | 'after'>, report: (thrown: unknown) => void): Ticker {
  let waiting: { readonly time: number; readonly action: () => void }[] = []
  let running = false

  function arm(): void {
    running = true
    const now = source.monotonic()
    source.after((Math.floor(now / gridMs) + 1) * gridMs - now, tick)
  }

  function tick(): void {
    // A timer may fire slightly early; it still counts as its tick.
    const now = source.monotonic() + 1
    const due = waiting.filter(({ time }) => time <= now)
    waiting = waiting.filter(({ time }) => time > now)
    if (waiting.length > 0) arm()
    else running = false
    for (const { action } of due)
      try {
        action()
      } catch (thrown) {
        // The streams of the same tick are served all the same.
        report(thrown)
      }
  }

  return {
    at(time, action) {
      waiting.push({ time, action })
      if (!running) arm()
    },
  }
}

/** Longer text is sent without waiting for its sentence to end. */
const longestWait = 160

/**
 * Returns how much of a text can be shown, in UTF-16 units from its start: up to the end of the last complete sentence
 * or line; 0 = none. A full stop ends a sentence only before white space, since `3.` may continue as `3.14`.
 *
 * If the text is long or no longer `patient` (code, lists, a slow model), returns up to the last clause if that is most
 * of the text, else the last word, else all of it for scripts without spaces (Chinese, Japanese).
 */
export function completeTextLength(text: string, patient: boolean): number {
  let clause = 0
  let word = 0
  for (let end = text.length; end > 0; end--) {
    const code = text.charCodeAt(end - 1)
    if (code === newline || wideEnds.has(code)) return end
    if (isSpace(code)) {
      if (word === 0) word = end
      const mark = markBefore(text, end - 1)
      if (sentenceEnds.has(mark)) return end
      if (clause === 0 && clauseEnds.has(mark)) clause = end
    } else if (clause === 0 && wideClauseEnds.has(code)) clause = end
  }
  if (patient && text.length < longestWait) return 0
  if (clause * 2 > text.length) return clause
  return word > 0 ? word : wholeCharacters(text)
}

/** Returns the length of a text without an unpaired surrogate at its end, unless nothing else is left. */
function wholeCharacters(text: string): number {
  const code = text.charCodeAt(text.length - 1)
  return code >= 0xd800 && code <= 0xdbff && text.length > 1 ? text.length - 1 : text.length
}

/** Returns the punctuation mark before the white space at `end`, skipping closing marks: `."`, `.)`, `.**`. */
function markBefore(text: string, end: number): number {
  let at = end - 1
  for (let seen = 0; seen < 4 && closers.has(text.charCodeAt(at)); seen++) at--
  return text.charCodeAt(at)
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === newline || code === 13 || code === 0xa0
}

const codes = (characters: string) => new Set(Array.from(characters, character => character.charCodeAt(0)))
const newline = 10
const sentenceEnds = codes('.!?…؟।')
const clauseEnds = codes(',;:–—')
/** No space follows a full-width mark. */
const wideEnds = codes('。！？')
const wideClauseEnds = codes('，、；：')
const closers = codes('"\'”’»)]*_`')
