import { expect, test } from 'bun:test'
import { ResponseCollector } from '../../../src/core/chat/response-collector.ts'
import { type ChatEvent, tell } from '../../harness/events.ts'

const fold = (events: readonly ChatEvent[]) => tell(new ResponseCollector(), events).result()

test('ResponseCollector: returns interleaved choices complete and ordered by index', () => {
  const token = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }
  expect(
    fold([
      { type: 'text', choice: 1, text: 'b' },
      { type: 'reasoning', choice: 0, text: 'think' },
      { type: 'text', choice: 0, text: 'He' },
      { type: 'logprobs', choice: 0, tokens: [token] },
      { type: 'text', choice: 1, text: 'c' },
      { type: 'text', choice: 0, text: 'llo' },
      { type: 'refusal', choice: 1, text: 'no' },
      { type: 'finish', choice: 1, reason: 'length' },
      { type: 'finish', choice: 0, reason: 'stop' },
    ]),
  ).toMatchObject([
    {
      index: 0,
      text: 'Hello',
      reasoning: 'think',
      refusal: '',
      citations: [],
      toolCalls: [],
      finishReason: 'stop',
      logprobs: [token],
    },
    {
      index: 1,
      text: 'bc',
      reasoning: '',
      refusal: 'no',
      citations: [],
      toolCalls: [],
      finishReason: 'length',
      logprobs: [],
    },
  ])
})

test('ResponseCollector: assigns argument deltas of parallel calls by index', () => {
  const call = { choice: 0, type: 'tool_call', signature: null } as const
  const piece = { choice: 0, type: 'tool_arguments' } as const
  const [choice] = fold([
    { ...call, index: 0, id: 'a', name: 'one' },
    { ...call, index: 1, id: 'b', name: 'two', signature: 'sig' },
    { ...piece, index: 1, text: '{}' },
    { ...piece, index: 0, text: '{"x"' },
    { ...piece, index: 0, text: ':1}' },
  ])
  expect(choice?.toolCalls).toEqual([
    { id: 'a', name: 'one', arguments: '{"x":1}', signature: null },
    { id: 'b', name: 'two', arguments: '{}', signature: 'sig' },
  ])
  expect(choice?.finishReason).toBeNull()
})

test('ResponseCollector: returns one empty choice without events', () => {
  expect(fold([]).map(choice => choice.text)).toEqual([''])
})
