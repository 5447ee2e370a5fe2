import { expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { ResponseCollector } from '../../src/core/chat/response-collector.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { DeltaWriter, nativeBody } from '../../src/dialects/native/reply.ts'
import { chatEventShape, chatReplyShape } from '../../src/dialects/native/schema.ts'
import { type ChatEvent, tell, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const receipt = summaryWith({
  record: {
    provider: 'anthropic',
    model: 'claude-x',
    billed_microcents: 512_346,
    search_microcents: 500_000,
    fetch_microcents: 1,
    routing_mode: 'auto',
    trace: { c: [], e: 'low' },
  },
  estimated: true,
  plan: { strategy: 'cost', analysis: { queryType: 'code', complexity: 0.42 }, learning: { influenced: true } },
  progress: {
    attempts: [
      { model: 'openai/gpt-x', outcome: 'overloaded', startedAt: 0, durationMs: 5 },
      { model: 'anthropic/claude-x', outcome: 'served', startedAt: 0, durationMs: 9 },
    ],
    enhancement: { changed: true, enhancedPrompt: 'Better', queryType: 'code' },
    web: {
      searched: true,
      sources: [{ url: 'https://x', title: 'X' }],
      leftOut: [{ url: null, code: 'too_slow' }],
    },
  },
})
const opened: ChatEvent = {
  type: 'opened',
  opening: startWith({ model: 'anthropic/claude-x', provider: 'anthropic' }),
}
const answer: readonly ChatEvent[] = [
  { type: 'reasoning', choice: 0, text: 'hm' },
  { type: 'text', choice: 0, text: 'I ' },
  { type: 'text', choice: 0, text: 'look.' },
  { type: 'tool_call', choice: 0, index: 0, id: 'call_1', name: 'look', signature: 'sig' },
  { type: 'tool_arguments', choice: 0, index: 0, text: '{"a":' },
  { type: 'tool_arguments', choice: 0, index: 0, text: '1}' },
  { type: 'finish', choice: 0, reason: 'tool_calls' },
]

const folded = (events: readonly ChatEvent[]) => tell(new ResponseCollector(), events).result()
const payloads = (stream: string) =>
  stream
    .split('\n\n')
    .slice(0, -1)
    .map(block => JSON.parse(block.slice(6)) as Record<string, unknown>)

test('chat stream: matches byte for byte', () => {
  expect(writeFrames(new DeltaWriter('req_1'), [opened, ...answer, { type: 'done', receipt }])).toMatchInlineSnapshot(`
    "data: {"type":"delta","content":"","reasoning":"hm"}

    data: {"type":"delta","content":"I look."}

    data: {"type":"delta","content":"","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":""},"extra_content":{"google":{"thought_signature":"sig"}}}]}

    data: {"type":"delta","content":"","tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1}"}}]}

    data: {"type":"done","request_id":"req_1","model_used":"anthropic/claude-x","finish_reason":"tool_calls","tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\\"a\\":1}"},"extra_content":{"google":{"thought_signature":"sig"}}}],"usage":{"input_tokens":11,"output_tokens":7,"total_tokens":18,"cost_usd":0.00512346,"cached_input_tokens":4,"reasoning_tokens":3,"estimated":true,"cost":{"model_usd":0.00012345,"search_usd":0.005,"fetch_usd":1e-8}},"routing":{"mode":"auto","requested_model":"gateway-ai","strategy":"cost","query_type":"code","complexity":0.42,"learned":true,"effort":"low","attempts":[{"model":"openai/gpt-x","outcome":"overloaded"},{"model":"anthropic/claude-x","outcome":"served"}]},"enhancement":{"changed":true,"enhanced_prompt":"Better","query_type":"code"},"web":{"searched":true,"sources":[{"url":"https://x","title":"X"}],"left_out":[{"url":null,"code":"too_slow"}]}}

    "
  `)
})

test('chat response: matches field by field', () => {
  // As text, since the order of the fields is part of it.
  const expected = {
    request_id: 'req_1',
    output: 'I look.',
    model_used: 'anthropic/claude-x',
    finish_reason: 'tool_calls',
    tool_calls: [
      {
        id: 'call_1',
        type: 'function',
        function: { name: 'look', arguments: '{"a":1}' },
        extra_content: { google: { thought_signature: 'sig' } },
      },
    ],
    usage: {
      input_tokens: 11,
      output_tokens: 7,
      total_tokens: 18,
      cost_usd: 0.00512346,
      cached_input_tokens: 4,
      reasoning_tokens: 3,
      estimated: true,
      cost: { model_usd: 0.00012345, search_usd: 0.005, fetch_usd: 1e-8 },
    },
    routing: {
      mode: 'auto',
      requested_model: 'gateway-ai',
      strategy: 'cost',
      query_type: 'code',
      complexity: 0.42,
      learned: true,
      effort: 'low',
      attempts: [
        { model: 'openai/gpt-x', outcome: 'overloaded' },
        { model: 'anthropic/claude-x', outcome: 'served' },
      ],
    },
    enhancement: { changed: true, enhanced_prompt: 'Better', query_type: 'code' },
    web: { searched: true, sources: [{ url: 'https://x', title: 'X' }], left_out: [{ url: null, code: 'too_slow' }] },
  }
  expect(JSON.stringify(nativeBody(folded(answer), receipt))).toBe(JSON.stringify(expected))
})

test('done: equals the JSON response without its output, which the deltas contain', () => {
  const events: readonly ChatEvent[] = [...answer, { type: 'refusal', choice: 0, text: ' No.' }]
  const deltas = new DeltaWriter('req_1')
  const parts = [opened, ...events, { type: 'done', receipt } as const].flatMap(event =>
    payloads(writeFrames(deltas, [event])),
  )
  const { type, ...done } = parts.at(-1) ?? {}
  const { output, ...whole } = nativeBody(folded(events), receipt) as Record<string, unknown>
  expect(type).toBe('done')
  expect(done).toEqual(whole)
  expect(
    parts
      .slice(0, -1)
      .map(part => part.content)
      .join(''),
  ).toBe(output as string)
})

test('chat stream: has no done without settlement, and one error event for a failure', () => {
  const streamFormat = new DeltaWriter('req_1')
  expect(writeFrames(streamFormat, [opened, ...answer])).not.toContain('"done"')
  expect(streamFormat.failure(new GatewayError('upstream_failed', 'Ask again.', { detail: 'canary' }))).toBe(
    'data: {"type":"error","error":{"type":"upstream_error","code":"upstream_failed","message":"Ask again.","param":null,"request_id":"req_1"}}\n\n',
  )
})

test('chat response: has a null enhancement when none was requested', () => {
  expect(nativeBody(folded([]), summaryWith({}))).toMatchObject({
    output: '',
    enhancement: null,
    tool_calls: [],
  })
})

test('chat response: reports a moderation stop in its body, in an event and in `done`', () => {
  const filtered: readonly ChatEvent[] = [
    { type: 'text', choice: 0, text: 'See' },
    { type: 'filtered', choice: 0, layer: 'urls', category: 'malicious_url' },
    { type: 'finish', choice: 0, reason: 'content_filter' },
  ]
  const verdict = { layer: 'urls', category: 'malicious_url' }
  const body = nativeBody(folded(filtered), receipt)
  expect([body.filtered, Value.Check(chatReplyShape, body)]).toEqual([verdict, true])
  const events = payloads(writeFrames(new DeltaWriter('req_1'), [opened, ...filtered, { type: 'done', receipt }]))
  expect(events.slice(1)).toMatchObject([
    { type: 'filtered', ...verdict },
    { type: 'done', filtered: verdict },
  ])
  for (const event of events) expect([event, Value.Check(chatEventShape, event)]).toEqual([event, true])
})
