import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bodyLimits } from '../../src/http/body.ts'
import {
  EventTooLongError,
  maximumEventCharacters,
  type ServerSentEvent,
  SseSplitter,
} from '../../src/providers/sse.ts'
import { collected } from '../harness/answer-parts.ts'

const encoder = new TextEncoder()

function split(text: string | Uint8Array, cuts: readonly number[] = []): ServerSentEvent[] {
  const bytes = typeof text === 'string' ? encoder.encode(text) : text
  const splitter = collected(new SseSplitter())
  const offsets = [0, ...cuts, bytes.length]
  const events = offsets.slice(1).flatMap((to, position) => splitter.push(bytes.subarray(offsets[position], to)))
  return [...events, ...splitter.finish()]
}

function getData(text: string): string[] {
  return split(text).map(event => event.data)
}

/** The standard's algorithm in its slow and obvious form, on a complete text. */
function naive(text: string): ServerSentEvent[] {
  const events: ServerSentEvent[] = []
  let name = ''
  let lines: string[] = []
  for (const line of [...text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/), '']) {
    if (line === '') {
      if (lines.length > 0) events.push({ name, data: lines.join('\n') })
      name = ''
      lines = []
      continue
    }
    const at = line.indexOf(':')
    const field = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (field === 'data') lines.push(value)
    if (field === 'event') name = value
  }
  return events
}

describe('SSE splitter', () => {
  test('returns several events of one read', () => {
    expect(split('data: one\n\ndata: two\n\n')).toEqual([
      { name: '', data: 'one' },
      { name: '', data: 'two' },
    ])
  })

  test('accepts LF, CRLF and CR line ends, also mixed', () => {
    expect(getData('data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\n')).toEqual(['a', 'b', 'c', 'd'])
  })

  test('treats CR and LF in different reads as one line end', () => {
    const splitter = collected(new SseSplitter())
    expect(splitter.push(encoder.encode('data: a\r'))).toEqual([])
    expect(splitter.push(encoder.encode('\n'))).toEqual([])
    expect(splitter.push(encoder.encode('data: b\r'))).toEqual([])
    expect(splitter.push(encoder.encode('\n\r'))).toEqual([{ name: '', data: 'a\nb' }])
    expect(splitter.push(encoder.encode('\n'))).toEqual([])
    expect(splitter.finish()).toEqual([])
  })

  test('joins data lines with LF and removes one optional leading space', () => {
    expect(getData('data:a\ndata:  b\ndata\ndata:\n\n')).toEqual(['a\n b\n\n'])
  })

  test('applies an event name to its own event only', () => {
    expect(split('event: ping\ndata: 1\n\ndata: 2\n\n')).toEqual([
      { name: 'ping', data: '1' },
      { name: '', data: '2' },
    ])
  })

  test('ignores comments, IDs, retries, unknown fields and events without data', () => {
    expect(split(': hi\n\nid: 1\nretry: 5\n\nevent: x\n\ndatum: 1\ndata1: 2\neventual: 3\nfoo\n\n')).toEqual([])
  })

  test('skips a byte order mark at the start, also when split', () => {
    for (const cuts of [[], [1], [2], [1, 2]])
      expect(split('\uFEFFdata: a\n\n', cuts)).toEqual([{ name: '', data: 'a' }])
  })

  test('returns an unterminated last event', () => {
    expect(getData('data: a\n\ndata: b')).toEqual(['a', 'b'])
    expect(getData('data: b\n')).toEqual(['b'])
    expect(getData('data: b\r')).toEqual(['b'])
  })

  test('replaces invalid UTF-8 by U+FFFD and never throws', () => {
    expect(split(new Uint8Array([...encoder.encode('data: a'), 0xff, 0xe2, 0x82]))).toEqual([
      { name: '', data: 'a\uFFFD\uFFFD' },
    ])
  })
})

const line = fc.oneof(
  fc.constantFrom(
    'data: x',
    'data:',
    'data',
    ': c',
    'event: e',
    'event',
    'id: 1',
    'data: 🙂é',
    'data: {"a":1}',
    '',
    '',
    '',
  ),
  fc.string({ maxLength: 6, unit: 'grapheme' }).map(text => text.replaceAll(/[\r\n\uFEFF]/g, '')),
)
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 20 })
  .map(lines => lines.map(([text, end]) => text + end).join(''))

describe('SSE splitter for any split', () => {
  test('returns the same events for any offsets', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(400), { maxLength: 12 }), (text, offsets) => {
        const bytes = encoder.encode(text)
        const cuts = offsets.filter(offset => offset <= bytes.length).sort((offset, other) => offset - other)
        expect(split(bytes, cuts)).toEqual(naive(text))
      }),
      { numRuns: 500 },
    )
  })

  test('returns the same events for every single split, and byte by byte', () => {
    fc.assert(
      fc.property(stream, text => {
        const bytes = encoder.encode(text)
        const whole = naive(text)
        for (let at = 0; at <= bytes.length; at += 1) expect(split(bytes, [at])).toEqual(whole)
        expect(split(bytes, Array.from(bytes.keys()))).toEqual(whole)
      }),
      { numRuns: 100 },
    )
  })
})

describe('SSE splitter limits', () => {
  const long = 'x'.repeat(maximumEventCharacters)

  test('equal those of the largest request', () => {
    expect(maximumEventCharacters).toBe(bodyLimits.chatWithImages)
  })

  test('reject an endless line in small reads, one read, and as a comment', () => {
    const piece = encoder.encode('x'.repeat(65_536))
    const splitter = collected(new SseSplitter())
    const pushAll = () => {
      for (let count = 0; count <= maximumEventCharacters / 65_536; count += 1) splitter.push(piece)
    }
    expect(pushAll).toThrow(EventTooLongError)
    expect(() => collected(new SseSplitter()).push(encoder.encode(`data: ${long}`))).toThrow(EventTooLongError)
    expect(() => collected(new SseSplitter()).push(encoder.encode(`data: ${long}\n\n`))).toThrow(EventTooLongError)
    expect(() => collected(new SseSplitter()).push(encoder.encode(`:${long}\n`))).toThrow(EventTooLongError)
  })

  test('reject an event of too many lines', () => {
    const splitter = collected(new SseSplitter())
    const half = encoder.encode(`data: ${'x'.repeat(maximumEventCharacters / 2)}\n`)
    splitter.push(half)
    expect(() => splitter.push(half)).toThrow(EventTooLongError)
  })

  test('accept a line just within the limit for any read size', () => {
    const text = `data: ${'x'.repeat(maximumEventCharacters - 6)}\n\n`
    const bytes = encoder.encode(text)
    const cuts = Array.from({ length: Math.floor(bytes.length / 8_192) }, (_, position) => position * 8_192)
    expect(split(bytes, cuts)[0]?.data.length).toBe(maximumEventCharacters - 6)
  })
})
