import { describe, expect, test } from 'bun:test'
import { anthropic } from '../../src/providers/anthropic.ts'
import { providerFailure } from '../../src/providers/failure.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { ReceivedAnswer } from '../../src/providers/received-answer.ts'
import { type AnswerPart, recorded, recordedAnswer } from '../harness/answer-parts.ts'
import { askWith } from '../harness/ask.ts'
import { type ChatEvent, EventLog } from '../harness/events.ts'

/** Deeper than `JSON.stringify` supports, within the longest accepted event. */
function takenFrom(response: ReceivedAnswer): ChatEvent[] {
  const log = new EventLog()
  response.release(log)
  return log.events
}

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
  const reader = recorded(provider.streamReader())
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

test('ReceivedAnswer: ignores everything after the end or a failure', () => {
  const failure = providerFailure('overloaded', '200 overloaded')
  for (const [part, close] of [
    [{ type: 'end' }, (response: ReceivedAnswer) => response.end()],
    [{ type: 'failure', failure }, (response: ReceivedAnswer) => response.fail(failure)],
  ] as const) {
    const { answer: response, drain } = recordedAnswer()
    close(response)
    response.addText(0, 'a')
    response.openCall(0, 0, { id: 'x', name: 'f', signature: null })
    response.finish(0, 'stop')
    response.reportUsage({ ...noTokens, inputTokens: 5, outputTokens: 5 })
    response.identify('x', 'm')
    response.fail(providerFailure('timeout', 'late'))
    response.end()
    expect(drain()).toEqual([part])
    expect([response.text, response.usage, response.upstreamId, response.finishes.size]).toEqual(['', null, null, 0])
  }
})

const noTokens = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

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
    const reader = recorded(provider.streamReader())
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

test('ReceivedAnswer: counts the items of a provider apart from the output', () => {
  const response = new ReceivedAnswer(askWith({ choices: 2 }))
  const json = JSON.stringify({ type: 'web_search_tool_result', content: 'x'.repeat(50_000) })
  response.add({ type: 'provider_item', choice: 0, dialect: 'messages', json })
  response.addText(0, 'Found.')
  expect([response.text, response.itemCharacters, response.hasContent]).toEqual(['Found.', json.length, true])
})

test('ReceivedAnswer: joins the deltas of one text until they are taken, and no others', () => {
  const response = new ReceivedAnswer(askWith({ choices: 2 }))
  response.addText(0, 'a')
  response.addText(0, 'b')
  response.addText(1, 'c')
  response.addText(0, 'd', 'final_answer')
  response.addText(0, 'e', 'final_answer')
  response.addText(0, 'f', null, 1)
  response.addReasoning(0, 'g')
  response.addReasoning(0, 'h')
  response.openCall(0, 0, { id: 'x', name: 'f', signature: null })
  response.openCall(0, 1, { id: 'y', name: 'f', signature: null })
  response.addArguments(0, 0, '{"a":')
  response.addArguments(0, 0, '1')
  response.addArguments(0, 1, '{"b"')
  const taken = takenFrom(response)
  const expected: readonly ChatEvent[] = [
    { type: 'text', choice: 0, text: 'ab' },
    { type: 'text', choice: 1, text: 'c' },
    { type: 'text', choice: 0, text: 'de', phase: 'final_answer' },
    { type: 'text', choice: 0, text: 'f', block: 1 },
    { type: 'reasoning', choice: 0, text: 'gh' },
    { type: 'tool_call', choice: 0, index: 0, id: 'x', name: 'f', signature: null },
    { type: 'tool_call', choice: 0, index: 1, id: 'y', name: 'f', signature: null },
    { type: 'tool_arguments', choice: 0, index: 0, text: '{"a":1' },
    { type: 'tool_arguments', choice: 0, index: 1, text: '{"b"' },
  ]
  expect(taken).toStrictEqual([...expected])
  response.addArguments(0, 1, ':2}')
  expect(takenFrom(response)).toStrictEqual([{ type: 'tool_arguments', choice: 0, index: 1, text: ':2}' }])
  // A taken event is sent already.
  expect(taken).toStrictEqual([...expected])
})

test('ReceivedAnswer: ignores choices that the request has not asked for', () => {
  const response = new ReceivedAnswer(askWith({}))
  response.addText(1, 'b')
  response.openCall(1, 0, { id: 'x', name: '', signature: null })
  response.finish(1, 'stop')
  response.addText(0, 'a')
  response.finish(0, 'stop')
  response.end()
  expect(takenFrom(response)).toEqual([{ type: 'text', choice: 0, text: 'a' }])
  expect([response.text, response.failure, [...response.finishes]]).toEqual(['a', null, [[0, 'stop']]])
})
