/**
 * Splits AWS's event stream (`application/vnd.amazon.eventstream`) into events: binary messages with headers, a payload,
 * and a checksum for the lengths and for the whole. Specification: AWS's Smithy, "Amazon Event Stream".
 */
import { crc32 } from 'node:zlib'
import {
  type EventReader,
  type EventSplitter,
  EventTooLongError,
  InvalidFrameError,
  maximumEventCharacters,
  type ServerSentEvent,
} from './sse.ts'

/** Begins the name of an event that is an exception; the type of the exception follows. */
export const exceptionPrefix = 'exception:'

const preludeBytes = 12
const checksumBytes = 4

/** Splits one stream. An event's name is its `:event-type`, its data the payload as text. */
export class AwsEventSplitter implements EventSplitter {
  private pieces: Uint8Array[] = []
  private held = 0
  /** Bytes without which nothing can be read: joining the pieces for each read would copy a long message many times. */
  private needed = preludeBytes

  push<Sink>(bytes: Uint8Array, reader: EventReader<Sink>, sink: Sink): void {
    this.held += bytes.length
    // Copied, because a network buffer may be reused after the call.
    if (this.held < this.needed) {
      this.pieces.push(bytes.slice())
      return
    }
    const all = this.pieces.length === 0 ? bytes : Buffer.concat([...this.pieces, bytes])
    this.needed = preludeBytes
    let at = 0
    while (all.length - at >= preludeBytes) {
      const { length, headersLength } = readPrelude(all, at)
      if (all.length - at < length) {
        this.needed = length
        break
      }
      reader.read(readMessage(all.subarray(at, at + length), headersLength), sink)
      at += length
    }
    this.pieces = [all.slice(at)]
    this.held = all.length - at
  }

  /** A truncated message is no event: the reader reports the missing end. */
  finish(): void {}
}

function readPrelude(all: Uint8Array, at: number) {
  const view = getView(all)
  const length = view.getUint32(at)
  const headersLength = view.getUint32(at + 4)
  if (crc32(all.subarray(at, at + 8)) !== view.getUint32(at + 8))
    throw new InvalidFrameError('a wrong prelude checksum')
  if (length > maximumEventCharacters) throw new EventTooLongError('A message is too long.')
  if (headersLength > length - preludeBytes - checksumBytes) throw new InvalidFrameError('wrong frame lengths')
  return { length, headersLength }
}

function readMessage(message: Uint8Array, headersLength: number): ServerSentEvent {
  const end = message.length - checksumBytes
  if (crc32(message.subarray(0, end)) !== getView(message).getUint32(end))
    throw new InvalidFrameError('a wrong message checksum')
  const headers = readHeaders(message.subarray(preludeBytes, preludeBytes + headersLength))
  const data = decoder.decode(message.subarray(preludeBytes + headersLength, end))
  switch (headers.get(':message-type')) {
    case 'exception':
      return { name: `${exceptionPrefix}${headers.get(':exception-type') ?? ''}`, data }
    case 'error':
      return { name: `${exceptionPrefix}${headers.get(':error-code') ?? ''}`, data }
    default:
      return { name: headers.get(':event-type') ?? '', data }
  }
}

/** Bytes of a header's value by its type; null = its first two bytes are its length. */
const valueBytes: readonly (number | null)[] = [0, 0, 1, 2, 4, 8, null, null, 8, 16]
const stringType = 7

function readHeaders(bytes: Uint8Array): ReadonlyMap<string, string> {
  const view = getView(bytes)
  const headers = new Map<string, string>()
  let at = 0
  try {
    while (at < bytes.length) {
      const nameEnd = at + 1 + view.getUint8(at)
      const type = view.getUint8(nameEnd)
      const fixed = valueBytes[type]
      if (fixed === undefined) throw new InvalidFrameError('an unknown header type')
      const start = nameEnd + (fixed === null ? 3 : 1)
      const end = start + (fixed ?? view.getUint16(nameEnd + 1))
      if (end > bytes.length) throw new InvalidFrameError('wrong header lengths')
      if (type === stringType)
        headers.set(decoder.decode(bytes.subarray(at + 1, nameEnd)), decoder.decode(bytes.subarray(start, end)))
      at = end
    }
  } catch (cause) {
    if (cause instanceof RangeError) throw new InvalidFrameError('wrong header lengths')
    throw cause
  }
  return headers
}

const decoder = new TextDecoder()

function getView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
