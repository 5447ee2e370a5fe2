/**
 * Streams with repeated or reordered events, or with those of a second response mixed in: no response that an adapter
 * reports as complete contains a tool call with a missing part.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { type AnswerPart, partsIn, recorded } from '../harness/answer-parts.ts'

type Json = Readonly<Record<string, unknown>>
type Call = { readonly name: string; readonly pieces: readonly string[] }
/** One wire format: events of a response with these calls, and its terminal event. */
type Wire = {
  readonly name: string
  readonly provider: Provider
  events(id: string, calls: readonly Call[]): readonly Json[]
  readonly terminal: string | null
  /** Calls of the modified response. */
  readonly names: readonly string[]
}

const anthropicWire: Wire = {
  name: 'Anthropic',
  provider: anthropic,
  events: (id, calls) => [
    { type: 'message_start', message: { id, model: 'm', content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Let me see.' } },
    { type: 'content_block_stop', index: 0 },
    ...calls.flatMap(({ name, pieces }, at) => [
      {
        type: 'content_block_start',
        index: at + 1,
        content_block: { type: 'tool_use', id: `${id}_${name}`, name, input: {} },
      },
      ...pieces.map(partial_json => ({
        type: 'content_block_delta',
        index: at + 1,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: at + 1 },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
  ],
  terminal: '{"type":"message_stop"}',
  names: ['alpha', 'beta'],
}

const openaiWire = (name: string, official: boolean, firstCallWithRole: boolean): Wire => ({
  name,
  provider: openai({ official }),
  events: (id, calls) => {
    const chunk = (delta: Json, finish_reason: string | null = null) => ({
      id,
      model: 'm',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
    })
    const chunks = calls.flatMap(({ name: called, pieces }, index) => [
      { tool_calls: [{ index, id: `${id}_${called}`, type: 'function', function: { name: called, arguments: '' } }] },
      ...pieces.map(piece => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ])
    const [first = {}, ...rest] = chunks
    const role = { role: 'assistant', content: null }
    const begun = firstCallWithRole ? [chunk({ ...role, ...first })] : [chunk(role), chunk(first)]
    return [...begun, ...rest.map(delta => chunk(delta)), chunk({}, 'tool_calls')]
  },
  terminal: '[DONE]',
  names: ['alpha', 'beta'],
})

const googleWire: Wire = {
  name: 'Gemini',
  provider: google,
  events: (responseId, calls) => {
    const frame = (parts: readonly Json[], finishReason?: string) => ({
      responseId,
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason }],
    })
    return [
      frame([{ text: 'Let me see.' }]),
      ...calls.flatMap(({ name, pieces }) => [
        frame([{ functionCall: { name, id: `${responseId}_${name}`, willContinue: true } }]),
        ...pieces.map((stringValue, at) =>
          frame([{ functionCall: { partialArgs: [{ jsonPath: `$.p${at}`, stringValue }], willContinue: true } }]),
        ),
        frame([{ functionCall: {} }]),
      ]),
      frame([], 'STOP'),
    ]
  },
  terminal: null,
  // Its deltas do not name their call, so two calls could not be distinguished.
  names: ['alpha'],
}

const wires = [
  anthropicWire,
  openaiWire('OpenAI', true, true),
  openaiWire('an OpenAI-compatible server', false, false),
  googleWire,
]

/** Splits a JSON object at `cuts`. */
function getPieces(value: string, cuts: readonly number[]): readonly string[] {
  const text = JSON.stringify({ city: value, days: [1, 2] })
  const at = [...new Set(cuts.map(cut => 1 + (cut % (text.length - 1))))].sort((item, other) => item - other)
  return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length))
}

const getCall = (name: string) =>
  fc
    .tuple(
      fc.constantFrom('Oslo', 'a "quoted" {city}', 'Łódź \\ [x]'),
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    )
    .map(([value, cuts]): Call => ({ name, pieces: getPieces(value, cuts) }))
const getCalls = (...names: readonly string[]) => fc.tuple(...names.map(getCall))

/** A modification of the list of events; `at` and `to` are indexes. */
type Mishap = { readonly kind: 'twice' | 'moved' | 'restarted' | 'mixed'; readonly at: number; readonly to: number }
const arbitraryMishap = (...kinds: readonly Mishap['kind'][]): fc.Arbitrary<Mishap> =>
  fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(40), to: fc.nat(40) })
/** Reordered events of one response, or those of two after or between each other. */
const mishaps = fc.oneof(
  fc.array(arbitraryMishap('twice', 'moved'), { minLength: 1, maxLength: 3 }),
  fc.tuple(arbitraryMishap('restarted', 'mixed')),
)

function after(events: readonly Json[], other: readonly Json[], { kind, at, to }: Mishap): readonly Json[] {
  const from = at % events.length
  const place = to % (events.length + 1)
  const event = events.slice(from, from + 1)
  switch (kind) {
    case 'twice':
      return events.toSpliced(place, 0, ...event)
    case 'moved':
      return events.toSpliced(from, 1).toSpliced(to % events.length, 0, ...event)
    case 'restarted':
      return [...events.slice(0, place), ...(at % 2 === 0 ? events : other)]
    case 'mixed':
      return [
        ...events.slice(0, place),
        ...Array.from({ length: Math.max(events.length - place, other.length) }, (_, index) => [
          ...other.slice(index, index + 1),
          ...events.slice(place + index, place + index + 1),
        ]).flat(),
      ]
  }
}

function read({ provider, terminal }: Wire, events: readonly Json[]): readonly AnswerPart[] {
  const reader = recorded(provider.streamReader())
  const lines = [...events.map(event => JSON.stringify(event)), ...(terminal === null ? [] : [terminal])]
  return [...lines.flatMap(data => reader.read({ name: '', data })), ...reader.finish()]
}

/** Returns the calls of a complete response; null if it is incomplete. */
function callsIn(parts: readonly AnswerPart[]): readonly { readonly name: string; readonly text: string }[] | null {
  if (parts.at(-1)?.type !== 'end') return null
  return parts.flatMap(part => {
    if (part.type !== 'tool_call') return []
    const own = parts.map(piece => (piece.type === 'tool_arguments' && piece.index === part.index ? piece.text : ''))
    return [{ name: part.name, text: own.join('') }]
  })
}

/** Length of the generated text: a shorter one lacks a part. */
const getLength = ({ pieces }: Call) => pieces.join('').length

describe.each(wires.map(wire => [wire.name, wire] as const))('%s adapter', (_, wire) => {
  test('stream reader: reads a response in its own order as complete', () => {
    fc.assert(
      fc.property(getCalls(...wire.names), calls => {
        const found = callsIn(read(wire, wire.events('r1', calls)))
        expect(found?.map(({ name }) => name)).toEqual([...wire.names])
        for (const [at, { text }] of (found ?? []).entries())
          expect(text.length).toBeGreaterThanOrEqual(calls[at] === undefined ? 0 : getLength(calls[at]))
      }),
      { numRuns: 50 },
    )
  })

  test('stream reader: never completes a response with a truncated call when events repeat, move, mix or restart', () => {
    fc.assert(
      fc.property(getCalls(...wire.names), getCalls('gamma'), mishaps, (calls, others, happened) => {
        const other = wire.events('r2', others)
        const events = happened.reduce((list, mishap) => after(list, other, mishap), wire.events('r1', calls))
        for (const { name, text } of callsIn(read(wire, events)) ?? []) {
          const written = [...calls, ...others].find(call => call.name === name)
          expect(text.length).toBeGreaterThanOrEqual(written === undefined ? 1 : getLength(written))
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('Anthropic adapter', () => {
  const [start = {}, ...rest] = anthropicWire.events('r1', [{ name: 'alpha', pieces: ['{"a"', ':1}'] }])
  const begun = [start, ...rest.slice(0, 5)]
  const ending = rest.at(-1) ?? {}
  const next = { type: 'tool_use', id: 'other', name: 'beta', input: {} }
  const cases: readonly (readonly [string, readonly Json[]])[] = [
    ['a second message begins inside a call', [...begun, start, ending]],
    [
      'a block opens under the index of an open call',
      [...begun, { type: 'content_block_start', index: 1, content_block: next }, ending],
    ],
    ['a call is never closed', [...begun, ending]],
    ['input arrives for a closed call', [...begun, { type: 'content_block_stop', index: 1 }, rest[4] ?? {}, ending]],
    [
      'a whole message follows half a streamed one',
      [...begun, { type: 'message', content: [], stop_reason: 'end_turn' }],
    ],
  ]
  test.each(cases)('stream reader: reports truncation when %s', (_, events) => {
    expect(read(anthropicWire, events).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'truncated' } })
  })

  test('stream reader: accepts a repeated message_start when nothing came before it', () => {
    expect(callsIn(read(anthropicWire, [start, start, ...rest]))).toEqual([{ name: 'alpha', text: '{"a":1}' }])
  })
})

describe('OpenAI adapter', () => {
  const wire = openaiWire('', false, false)
  const [role = {}, open = {}, ...rest] = wire.events('r1', [{ name: 'alpha', pieces: ['{"a"', ':1}'] }])
  const other = wire.events('r2', [{ name: 'beta', pieces: ['{"b"', ':2}'] }])
  const cases: readonly (readonly [string, readonly Json[]])[] = [
    ['an index goes to another call inside a call', [role, open, ...rest.slice(0, 1), ...other.slice(1)]],
    ['the response restarts under another id', [role, open, ...rest.slice(0, 1), ...other]],
    ['a call follows the finish reason', [role, open, ...rest, ...other.slice(1, -1)]],
    ['the last piece of a call is missing', [role, open, ...rest.slice(0, 1), rest.at(-1) ?? {}]],
  ]
  test.each(cases)('stream reader: reports truncation when %s', (_, events) => {
    expect(read(wire, events).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'truncated' } })
  })

  test('stream reader: accepts servers that repeat role and finish reason and name each chunk differently', () => {
    const chunk = (id: string, content: string) => ({
      id,
      choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: 'stop' }],
    })
    const parts = read(wire, [chunk('a', 'One'), chunk('b', ' two'), chunk('c', ' three')])
    expect(parts.map(part => (part.type === 'text' ? part.text : '')).join('')).toBe('One two three')
    expect(parts.at(-1)).toEqual({ type: 'end' })
  })

  const whole = (args: string, finish_reason: string) => ({
    choices: [
      {
        index: 0,
        finish_reason,
        message: { tool_calls: [{ id: 'a', type: 'function', function: { name: 'alpha', arguments: args } }] },
      },
    ],
  })
  test.each([
    ['{"a":', 'tool_calls', 'truncated'],
    ['{"a":"', 'stop', 'truncated'],
    ['"a":1}', 'stop', 'truncated'],
    ['{"a":', 'length', null],
    ["{'a': 1}", 'tool_calls', null],
    ['{"a":1}}', 'tool_calls', null],
  ] as const)(
    'JSON reader: judges a call with the arguments %p and finish reason %p as %p',
    (args, reason, expected) => {
      const last = partsIn(wire.provider, whole(args, reason)).at(-1)
      expect(last?.type === 'failure' ? last.failure.kind : null).toBe(expected)
    },
  )
})

describe('Gemini adapter', () => {
  const [text = {}, open = {}, ...rest] = googleWire.events('r1', [{ name: 'alpha', pieces: ['x', 'y'] }])
  const ending = rest.at(-1) ?? {}
  const cases: readonly (readonly [string, readonly Json[]])[] = [
    ['a call begins inside a call that continues', [text, open, open, ...rest]],
    ['the response ends inside a call that continues', [text, open, ending]],
    ['arguments come without a call', [text, rest[0] ?? {}, ending]],
    ['another response begins', [text, open, ...googleWire.events('r2', [])]],
    ['content follows the finish reason', [text, ending, text]],
  ]
  test.each(cases)('stream reader: reports truncation when %s', (_, events) => {
    expect(read(googleWire, events).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'truncated' } })
  })

  test('JSON reader: reports truncation when a call announces more', () => {
    expect(partsIn(google, [text, open, ending]).at(-1)).toMatchObject({
      type: 'failure',
      failure: { kind: 'truncated' },
    })
  })
})
