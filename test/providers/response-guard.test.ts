import { describe, expect, test } from 'bun:test'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { AnswerPart, Provider } from '../../src/providers/provider.ts'
import { guardStream } from '../../src/providers/response-guard.ts'

/** Deeper than `JSON.stringify` supports, within the longest accepted event. */
const depth = 45_000
const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

test.each([
  [
    'openai',
    openai({ official: false }),
    `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":${deep}}}]}}]}`,
  ],
  ['anthropic', anthropic, `{"type":"message","content":[{"type":"tool_use","id":"x","name":"f","input":${deep}}]}`],
  ['google', google, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${deep}}}]}}]}`],
] satisfies [string, Provider, string][])('%s adapter: never throws for any nesting depth', (_, provider, data) => {
  const reader = provider.streamReader()
  const failure = { type: 'failure', failure: { kind: 'bad_answer', blame: 'upstream' } }
  expect(reader.read({ name: '', data })).toMatchObject([failure])
  expect(reader.read({ name: '', data })).toEqual([])
  expect(reader.finish()).toEqual([])
  expect(provider.readFailure(400, new Headers(), `{"error":${deep}}`).detail).toStartWith('400')
})

describe('readFailure on any body', () => {
  test.each(['{"error":{"code":{"toString":1,"valueOf":1}}}', '{"error":[{"toString":1}]}', '[[[]]]'])(
    'reads an error of any form: %s',
    body => {
      for (const provider of [openai({ official: true }), anthropic, google])
        expect(provider.readFailure(500, new Headers(), body).kind).toBe('unavailable')
    },
  )
})

test('guardStream: stops after the end or a failure', () => {
  const end: readonly AnswerPart[] = [{ type: 'end' }]
  const reader = guardStream({ read: () => end, finish: () => end })
  expect(reader.read({ name: '', data: '' })).toEqual(end)
  expect(reader.read({ name: '', data: '' })).toEqual([])
  expect(reader.finish()).toEqual([])
})

type Streamed = (...pieces: readonly string[]) => string[]
/** JSON text with escaped surrogate halves, as some servers send them. */
const wire = (value: unknown) => JSON.stringify(value)
const providers: readonly [
  string,
  Provider,
  text: Streamed,
  call: (index: number, name: string) => string,
  end: string[],
][] = [
  [
    'openai',
    openai({ official: true }),
    (...pieces) => pieces.map(content => wire({ choices: [{ delta: { content } }] })),
    (index, name) =>
      wire({ choices: [{ delta: { tool_calls: [{ index, id: `c${index}`, function: { name, arguments: '{}' } }] } }] }),
    [wire({ choices: [{ delta: {}, finish_reason: 'stop' }] }), '[DONE]'],
  ],
  [
    'anthropic',
    anthropic,
    (...pieces) =>
      pieces.map(text => wire({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    (index, name) =>
      wire({
        type: 'content_block_start',
        index,
        content_block: { type: 'tool_use', id: `c${index}`, name, input: {} },
      }),
    [wire({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }), wire({ type: 'message_stop' })],
  ],
  [
    'google',
    google,
    (...pieces) => pieces.map(text => wire({ candidates: [{ content: { parts: [{ text }] } }] })),
    (_, name) => wire({ candidates: [{ content: { parts: [{ functionCall: { name } }] } }] }),
    [wire({ candidates: [{ finishReason: 'STOP' }] })],
  ],
]

describe.each(providers)('%s guard', (_, provider, getText, getCall, end) => {
  const read = (frames: readonly string[]) => {
    const reader = provider.streamReader()
    return [...frames.flatMap(data => reader.read({ name: '', data })), ...reader.finish()]
  }
  const textIn = (parts: readonly AnswerPart[]) =>
    parts.map(part => (part.type === 'text' ? part.text : part.type === 'end' ? '|' : '')).join('')

  test('joins split surrogate pairs and replaces an unpaired one before the end', () => {
    expect(textIn(read([...getText('a\ud83d', '\ude00b'), ...end]))).toBe('a😀b|')
    expect(textIn(read([...getText('a\ud83d', 'b\ude00c', '\ud83d'), ...end]))).toBe('a\ufffdb\ufffdc\ufffd|')
    for (const part of read([...getText('\ud83d', '', '\ude00'), ...end]))
      if ('text' in part) expect([part.text.isWellFormed(), part.text === '']).toEqual([true, false])
  })

  test('reports bad_answer for a call without a name, or too many calls', () => {
    const calls = (count: number) => Array.from({ length: count }, (_, index) => getCall(index, 'f'))
    expect(read([...calls(128), ...end]).filter(part => part.type === 'tool_call')).toHaveLength(128)
    expect(read([...calls(129), ...end]).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'bad_answer' } })
    expect(read([...calls(129), ...end]).filter(part => part.type === 'tool_call')).toHaveLength(128)
    if (provider === google) return
    expect(read([getCall(0, ''), ...end]).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'bad_answer' } })
  })

  test('ignores blank data between frames', () => {
    expect(textIn(read(['', ' ', ...getText('a'), ' ', ...end]))).toBe('a|')
  })
})
