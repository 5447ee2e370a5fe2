import { describe, expect, test } from 'bun:test'
import { AwsEventSplitter } from '../../src/providers/aws-event-stream.ts'
import {
  EventTooLongError,
  InvalidFrameError,
  maximumEventCharacters,
  type ServerSentEvent,
} from '../../src/providers/sse.ts'
import { collected } from '../harness/answer-parts.ts'
import { awsMessage } from '../harness/clouds/bedrock.ts'

const event = (type: string, payload: string) =>
  awsMessage({
    headers: { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    payload,
  })
const exception = awsMessage({
  headers: { ':message-type': 'exception', ':exception-type': 'throttlingException' },
  payload: '{"message":"slow down"}',
})
const stream = Buffer.concat([
  event('messageStart', '{"role":"assistant"}'),
  event('contentBlockDelta', '{"t":"Grüße 🙂"}'),
  exception,
])
const expected: readonly ServerSentEvent[] = [
  { name: 'messageStart', data: '{"role":"assistant"}' },
  { name: 'contentBlockDelta', data: '{"t":"Grüße 🙂"}' },
  { name: 'exception:throttlingException', data: '{"message":"slow down"}' },
]

function read(...pieces: readonly Uint8Array[]): readonly ServerSentEvent[] {
  const splitter = collected(new AwsEventSplitter())
  return [...pieces.flatMap(piece => splitter.push(piece)), ...splitter.finish()]
}

describe('AWS event stream', () => {
  test('reads the same events wherever the bytes are cut', () => {
    for (let at = 0; at <= stream.length; at++)
      expect(read(stream.subarray(0, at), stream.subarray(at))).toEqual([...expected])
    expect(read(...[...stream].map(byte => new Uint8Array([byte])))).toEqual([...expected])
  })

  test('returns only complete messages of a stream that ends at any byte', () => {
    for (let at = 0; at < stream.length; at++) {
      const events = read(stream.subarray(0, at))
      expect(events).toEqual(expected.slice(0, events.length))
      expect(events.length).toBeLessThan(expected.length)
    }
  })

  test('never accepts a message with a changed byte', () => {
    for (let at = 0; at < stream.length; at++) {
      const damaged = Buffer.from(stream)
      damaged[at] = (damaged[at] ?? 0) ^ 0x10
      expect(() => read(damaged)).toThrow(InvalidFrameError)
    }
  })

  test('reads all types of headers and ignores unknown names', () => {
    // Written by hand: a boolean, a byte, bytes, a timestamp and a UUID around the only header that counts.
    const headers = Buffer.concat([
      Buffer.from([1, 0x61, 0]),
      Buffer.from([1, 0x62, 2, 7]),
      Buffer.from([1, 0x63, 6, 0, 2, 1, 2]),
      Buffer.from([11, ...Buffer.from(':event-type'), 7, 0, 4, ...Buffer.from('ping')]),
      Buffer.from([1, 0x64, 8, 0, 0, 0, 0, 0, 0, 0, 1]),
      Buffer.from([1, 0x65, 9, ...Buffer.alloc(16)]),
    ])
    expect(read(framed(headers, '{}'))).toEqual([{ name: 'ping', data: '{}' }])
    expect(() => read(framed(Buffer.from([1, 0x61, 42]), '{}'))).toThrow(InvalidFrameError)
    expect(() => read(framed(Buffer.from([9, 0x61]), '{}'))).toThrow(InvalidFrameError)
    expect(() => read(framed(Buffer.from([1, 0x61, 7, 255, 255]), '{}'))).toThrow(InvalidFrameError)
  })

  test('refuses a message over the size limit before its bytes arrive', () => {
    const huge = event('chunk', 'x'.repeat(maximumEventCharacters))
    expect(() => read(huge.subarray(0, 12))).toThrow(EventTooLongError)
  })

  test('reads a message near the size limit from small reads, and the ones around it', () => {
    const payload = 'x'.repeat(maximumEventCharacters - 1_000)
    const bytes = Buffer.concat([event('a', '{}'), event('b', payload), event('c', '{}')])
    const pieces = Array.from({ length: Math.ceil(bytes.length / 8_192) }, (_, at) =>
      bytes.subarray(at * 8_192, (at + 1) * 8_192),
    )
    expect(read(...pieces).map(({ name, data }) => [name, data.length])).toEqual([
      ['a', 2],
      ['b', payload.length],
      ['c', 2],
    ])
  })
})

function framed(headers: Uint8Array, payload: string): Uint8Array {
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + headers.length + body.length)
  prelude.writeUInt32BE(headers.length, 4)
  const message = Buffer.concat([prelude, sum(prelude), headers, body])
  return Buffer.concat([message, sum(message)])
}

function sum(bytes: Uint8Array): Uint8Array {
  const four = Buffer.alloc(4)
  four.writeUInt32BE(Bun.hash.crc32(bytes))
  return four
}
