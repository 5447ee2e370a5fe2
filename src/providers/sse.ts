/**
 * Synchronous parser for Server-Sent Events from arbitrarily split bytes (WHATWG HTML 9.2.6).
 *
 * A pull parser over an async iterator would cost a promise per event. A splitter that receives bytes and returns
 * events costs none, so one process can serve thousands of token streams.
 */

export type ServerSentEvent = {
  /** `event:` line; '' = none. */
  readonly name: string
  /** `data:` lines joined with LF. */
  readonly data: string
}

/**
 * Maximum characters of a line or event, and bytes of a JSON response: those of the largest request, which providers repeat. A longer
 * one is an upstream error.
 */
export const maximumEventCharacters = 32 * 1_048_576

export class EventTooLongError extends Error {}
/** The bytes are not a frame of their format. */
export class InvalidFrameError extends Error {}

export type EventSplitter = {
  /**
   * Returns the events completed by these bytes. Throws `EventTooLongError` beyond the limit, `InvalidFrameError` for
   * other bytes than frames.
   */
  push(bytes: Uint8Array): ServerSentEvent[]
  /** Ends the body and returns an unterminated last event. */
  finish(): ServerSentEvent[]
}

const lineFeed = 10
const space = 32
const colon = 58

/**
 * Creates a splitter for one stream. CR at the end of one read and LF at the start of the next are one line end; a byte
 * order mark, comments, `id:` and `retry:` are ignored; invalid UTF-8 becomes U+FFFD.
 */
export function createEventSplitter(): EventSplitter {
  const decoder = new TextDecoder()
  let events: ServerSentEvent[] = []
  /** Incomplete line: grows as a rope and is flattened once when it ends. */
  let carry = ''
  let skipLineFeed = false
  let name = ''
  let data: string | null = null

  function bound(characters: number): void {
    if (characters <= maximumEventCharacters) return
    carry = ''
    data = null
    events = []
    throw new EventTooLongError(`An event or line is longer than ${maximumEventCharacters} characters.`)
  }

  function dispatch(): void {
    if (data !== null) events.push({ name, data })
    name = ''
    data = null
  }

  /** Reads one line, `source` from `start` to `end` without its line end. Copies only its value. */
  function takeLine(source: string, start: number, end: number): void {
    if (start === end) {
      dispatch()
      return
    }
    bound(end - start)
    if (source.charCodeAt(start) === colon) return
    const isData = source.startsWith('data', start)
    const afterName = start + (isData ? 4 : 5)
    if (!isData && !source.startsWith('event', start)) return
    if (afterName !== end && source.charCodeAt(afterName) !== colon) return
    const spaced = afterName + 1 < end && source.charCodeAt(afterName + 1) === space
    const value = source.slice(Math.min(end, afterName + (spaced ? 2 : 1)), end)
    if (!isData) name = value
    else if (data === null) data = value
    else {
      bound(data.length + value.length + 1)
      data = `${data}\n${value}`
    }
  }

  function endLine(text: string, start: number, end: number): void {
    if (carry === '') takeLine(text, start, end)
    else {
      const line = carry + text.slice(start, end)
      carry = ''
      takeLine(line, 0, line.length)
    }
  }

  function take(text: string): void {
    if (text === '') return
    let start = skipLineFeed && text.charCodeAt(0) === lineFeed ? 1 : 0
    skipLineFeed = false
    let feed = text.indexOf('\n', start)
    let carriage = text.indexOf('\r', start)
    while (feed !== -1 || carriage !== -1) {
      if (carriage === -1 || (feed !== -1 && feed < carriage)) {
        endLine(text, start, feed)
        start = feed + 1
      } else {
        endLine(text, start, carriage)
        start = carriage + 1
        if (start === text.length) skipLineFeed = true
        else if (start === feed) start += 1
        carriage = text.indexOf('\r', start)
      }
      if (feed !== -1 && feed < start) feed = text.indexOf('\n', start)
    }
    if (start === text.length) return
    bound(carry.length + text.length - start)
    carry += text.slice(start)
  }

  function drain(): ServerSentEvent[] {
    const completed = events
    events = []
    return completed
  }

  return {
    push(bytes) {
      take(decoder.decode(bytes, { stream: true }))
      return drain()
    },
    finish() {
      take(decoder.decode())
      endLine('', 0, 0)
      dispatch()
      return drain()
    },
  }
}
