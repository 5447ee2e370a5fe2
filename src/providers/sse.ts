/**
 * Synchronous parser for Server-Sent Events from arbitrarily split bytes (WHATWG HTML 9.2.6).
 *
 * A pull parser over an async iterator would cost a promise per event. A splitter that receives bytes and returns
 * events costs none, so one process can serve thousands of token streams.
 */

import { FrameTemplate, type TextSlot } from './frames.ts'

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

/** Reads the events of a stream, in order. */
export type EventReader<Sink> = {
  /** Returns the place of its text if an event says nothing else; null = it says more, or nothing. */
  read(event: ServerSentEvent, sink: Sink): TextSlot | null
  /** Reads an event that differs only in its text from the last one that had such a place; absent = none has. */
  repeat?(text: string, sink: Sink): void
}

export type EventSplitter = {
  /**
   * Reads the events completed by these bytes. Throws `EventTooLongError` beyond the limit, `InvalidFrameError` for other
   * bytes than frames.
   */
  push<Sink>(bytes: Uint8Array, reader: EventReader<Sink>, sink: Sink): void
  /** Ends the body and reads an unterminated last event. */
  finish<Sink>(reader: EventReader<Sink>, sink: Sink): void
}

const lineFeed = 10
const space = 32
const colon = 58

/**
 * Splits one stream. CR at the end of one read and LF at the start of the next are one line end; a byte order mark, comments,
 * `id:` and `retry:` are ignored; invalid UTF-8 becomes U+FFFD. A class, because closures would be created again for each
 * stream.
 */
export class SseSplitter implements EventSplitter {
  private readonly decoder = new TextDecoder()
  private readonly template = new FrameTemplate()
  /** Incomplete line: grows as a rope and is flattened once when it ends. */
  private carry = ''
  private skipLineFeed = false
  private name = ''
  private data: string | null = null

  push<Sink>(bytes: Uint8Array, reader: EventReader<Sink>, sink: Sink): void {
    this.take(this.decoder.decode(bytes, { stream: true }), reader, sink)
  }

  finish<Sink>(reader: EventReader<Sink>, sink: Sink): void {
    this.take(this.decoder.decode(), reader, sink)
    if (this.carry !== '') this.takeLine(this.carry, 0, this.carry.length)
    this.carry = ''
    this.dispatch('', reader, sink)
  }

  private take<Sink>(text: string, reader: EventReader<Sink>, sink: Sink): void {
    if (text === '') return
    let start = this.skipLineFeed && text.charCodeAt(0) === lineFeed ? 1 : 0
    this.skipLineFeed = false
    /** Where the event begins in this text; -1 = before it. */
    let eventAt = this.carry === '' && this.name === '' && this.data === null ? start : -1
    let carriage = text.indexOf('\r', start)
    for (;;) {
      if (eventAt === start) {
        start = this.template.repeat(text, start, reader, sink)
        eventAt = start
      }
      const feed = text.indexOf('\n', start)
      if (carriage !== -1 && carriage < start) carriage = text.indexOf('\r', start)
      if (feed === -1 && carriage === -1) break
      const isFeed = carriage === -1 || (feed !== -1 && feed < carriage)
      const end = isFeed ? feed : carriage
      const next = !isFeed && feed === end + 1 ? feed + 1 : end + 1
      this.skipLineFeed = !isFeed && next === text.length && feed !== end + 1
      const isEmpty = start === end && this.carry === ''
      if (isEmpty) {
        this.dispatch(eventAt === -1 ? '' : text.slice(eventAt, next), reader, sink)
        eventAt = next
      } else this.endLine(text, start, end)
      start = next
    }
    if (start === text.length) return
    this.bound(this.carry.length + text.length - start)
    this.carry += text.slice(start)
  }

  private endLine(text: string, start: number, end: number): void {
    if (this.carry === '') {
      this.takeLine(text, start, end)
      return
    }
    const line = this.carry + text.slice(start, end)
    this.carry = ''
    this.takeLine(line, 0, line.length)
  }

  /** Reads one line, `source` from `start` to `end` without its line end. Copies only its value. */
  private takeLine(source: string, start: number, end: number): void {
    this.bound(end - start)
    if (source.charCodeAt(start) === colon) return
    const isData = source.startsWith('data', start)
    const afterName = start + (isData ? 4 : 5)
    if (!isData && !source.startsWith('event', start)) return
    if (afterName !== end && source.charCodeAt(afterName) !== colon) return
    const spaced = afterName + 1 < end && source.charCodeAt(afterName + 1) === space
    const value = source.slice(Math.min(end, afterName + (spaced ? 2 : 1)), end)
    if (!isData) this.name = value
    else if (this.data === null) this.data = value
    else {
      this.bound(this.data.length + value.length + 1)
      this.data = `${this.data}\n${value}`
    }
  }

  /** Ends an event, whose source is known if it arrived in one read. */
  private dispatch<Sink>(source: string, reader: EventReader<Sink>, sink: Sink): void {
    const { name, data } = this
    this.name = ''
    this.data = null
    if (data === null) return
    const slot = reader.read({ name, data }, sink)
    if (slot !== null) this.template.learn(source, data, slot)
  }

  private bound(characters: number): void {
    if (characters <= maximumEventCharacters) return
    this.carry = ''
    this.data = null
    throw new EventTooLongError(`An event or line is longer than ${maximumEventCharacters} characters.`)
  }
}
