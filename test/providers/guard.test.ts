import { describe, expect, test } from 'bun:test'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { guardedReader } from '../../src/providers/guard.ts'
import { openai } from '../../src/providers/openai.ts'
import type { AnswerPart, Provider } from '../../src/providers/provider.ts'

/** Deeper than `JSON.stringify` can go, within the longest event that is taken. */
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
] satisfies [string, Provider, string][])(
  '%s never throws, however deep an answer nests',
  (_, provider, data) => {
    const reader = provider.streamReader()
    const failure = { type: 'failure', failure: { kind: 'bad_answer', detail: '200 nested too deep' } }
    expect(reader.read({ name: '', data })).toMatchObject([failure])
    expect(reader.read({ name: '', data })).toEqual([])
    expect(reader.finish()).toEqual([])
    expect(provider.readFailure(400, new Headers(), `{"error":${deep}}`).detail).toStartWith('400')
  },
  20_000,
)

describe('a refusal', () => {
  test.each(['{"error":{"code":{"toString":1,"valueOf":1}}}', '{"error":[{"toString":1}]}', '[[[]]]'])(
    'of any shape is read: %s',
    body => {
      for (const provider of [openai({ official: true }), anthropic, google])
        expect(provider.readFailure(500, new Headers(), body).kind).toBe('unavailable')
    },
  )
})

test('nothing follows the end or a failure', () => {
  const end: readonly AnswerPart[] = [{ type: 'end' }]
  const reader = guardedReader({ read: () => end, finish: () => end })
  expect(reader.read({ name: '', data: '' })).toEqual(end)
  expect(reader.read({ name: '', data: '' })).toEqual([])
  expect(reader.finish()).toEqual([])
})
