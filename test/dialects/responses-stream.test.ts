/** Streams of `POST /v1/responses`, read by the official client: grammar, terminal event and truncation. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import OpenAI from 'openai'
import type { FinishReason } from '../../src/core/chat/chat-events.ts'
import { type ErrorCode, GatewayError } from '../../src/core/validation/errors.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { type ReplyContext, responseBody } from '../../src/dialects/responses/reply.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { ResponseStream } from '../../src/dialects/responses/stream.ts'
import { type ChatEvent, type ContentEvent, writeBody, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const reasoningSeal = createReasoningSeal('a secret of the tests', null)
const requestId = 'req_00c0ffee'
const tools = [
  { type: 'function', name: 'plain' },
  { type: 'custom', name: 'patch' },
  { type: 'namespace', name: 'ns', description: '', tools: [{ type: 'function', name: 'inner' }] },
  { type: 'tool_search', execution: 'client' },
]

function getContext(fields: object = {}): ReplyContext {
  const source = { headers: new Headers(), text: '' }
  const read = readResponses({ model: 'm', input: 'Hi', tools, ...fields }, source, {
    seal: reasoningSeal,
    accountId: 'acc_1',
  })
  return { ...read, seal: item => reasoningSeal.seal('acc_1', item) }
}

const opening = startWith({ requestId, createdAt: 1_700_000_000, model: 'openai/gpt-4.1' })
const receipt = summaryWith({
  record: { request_id: requestId, model: 'gpt-4.1', billed_microcents: 500 },
  usage: { inputTokens: 10, cachedInputTokens: 4, cacheWriteTokens: 2, outputTokens: 7, reasoningTokens: 3 },
})
const opened: ChatEvent = { type: 'opened', opening }
const finish = (reason: FinishReason): ChatEvent => ({ type: 'finish', choice: 0, reason })
const done: ChatEvent = { type: 'done', receipt }

const text = (said: string): ContentEvent => ({ type: 'text', choice: 0, text: said })
const thought = (said: string): ContentEvent => ({ type: 'reasoning', choice: 0, text: said })
const call = (index: number, name: string, signature: string | null = null): ContentEvent => ({
  type: 'tool_call',
  choice: 0,
  index,
  id: `call_${index}`,
  name,
  signature,
})
const args = (index: number, piece: string): ContentEvent => ({ type: 'tool_arguments', choice: 0, index, text: piece })

type Wire = { readonly type: string; readonly sequence_number: number; readonly [field: string]: unknown }

/** Returns the frames of the batches, then those of a failure if `failure` is set. */
function getStream(
  batches: readonly (readonly ChatEvent[])[],
  failure: ErrorCode | null = null,
  context = getContext(),
): string {
  const stream = new ResponseStream(context, requestId, () => 1_700_000_001)
  const frames = batches.map(batch => writeFrames(stream, batch)).join('')
  return failure === null
    ? frames
    : frames + stream.failure(new GatewayError(failure, 'It broke.', { retryAfterMs: 2_500 }))
}
function getEvents(stream: string): readonly Wire[] {
  return stream
    .split('\n\n')
    .filter(frame => frame !== '')
    .map(frame => {
      const [name, data] = frame.split('\n')
      const event: Wire = JSON.parse((data ?? '').slice('data: '.length))
      expect(name).toBe(`event: ${event.type}`)
      return event
    })
}

/** Returns the response that the official client reads from a stream. */
async function accumulated(stream: string): Promise<OpenAI.Responses.Response> {
  const answer = () => Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }))
  const fetch = Object.assign(answer, { preconnect: () => {} })
  const client = new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch, maxRetries: 0 })
  return client.responses.stream({ model: 'm', input: 'Hi' }).finalResponse()
}

const getTypes = (stream: string) => getEvents(stream).map(({ type }) => type.replace('response.', ''))

describe('Responses stream', () => {
  test('announces, fills and ends a text and completes the response once', async () => {
    const stream = getStream([[opened, text('Hel')], [text('lo')], [finish('stop')], [done]])
    expect(getTypes(stream)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    const events = getEvents(stream)
    expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
    expect(events[0]).toMatchObject({
      response: { id: 'resp_00c0ffee', status: 'in_progress', output: [], usage: null },
    })
    expect(events.at(-1)).toMatchObject({
      response: {
        status: 'completed',
        store: false,
        model: 'openai/gpt-4.1',
        usage: {
          input_tokens: 10,
          input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 3 },
          total_tokens: 17,
        },
      },
    })
    expect((await accumulated(stream)).output_text).toBe('Hello')
  })

  test('gives each call its index, name and namespace, and unwraps free text', async () => {
    const stream = getStream([
      [
        opened,
        thought('Hm. '),
        thought('So.'),
        call(0, 'plain'),
        call(1, 'patch'),
        call(2, 'ns__inner'),
        call(3, 'tool_search'),
      ],
      [
        args(1, '{"inp'),
        args(0, '{"a"'),
        args(1, 'ut": "*** \\u00e9\\ud83d'),
        args(1, '\\ude00\\n\\"x\\"'),
        args(0, ':1}'),
      ],
      [args(1, '"}'), args(2, '{}'), args(3, '{"query":"x"}'), finish('tool_calls')],
      [done],
    ])
    const { output } = await accumulated(stream)
    expect<unknown>(output).toEqual([
      { id: 'rs_00c0ffee0000', type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm. So.' }] },
      expect.objectContaining({ type: 'function_call', call_id: 'call_0', name: 'plain', arguments: '{"a":1}' }),
      {
        id: 'ctc_00c0ffee0002',
        type: 'custom_tool_call',
        status: 'completed',
        call_id: 'call_1',
        name: 'patch',
        input: '*** é😀\n"x"',
      },
      expect.objectContaining({ name: 'inner', namespace: 'ns', arguments: '{}' }),
      expect.objectContaining({ type: 'tool_search_call', execution: 'client', arguments: { query: 'x' } }),
    ])
    const deltas = getEvents(stream).filter(({ type }) => type === 'response.custom_tool_call_input.delta')
    expect(deltas.map(({ delta }) => delta).join('')).toBe('*** é😀\n"x"')
    expect(deltas.length).toBeGreaterThan(1)
  })

  test.each([
    ['length', 'incomplete', 'max_output_tokens'],
    ['content_filter', 'incomplete', 'content_filter'],
  ] as const)('ends a response with finish reason %s as %s', (reason, status, detail) => {
    const last = getEvents(getStream([[opened, text('Half')], [finish(reason)], [done]])).at(-1)
    expect(last).toMatchObject({
      type: `response.${status}`,
      response: { status, incomplete_details: { reason: detail }, output: [{ status: 'incomplete' }] },
    })
  })

  test('marks a truncated call as incomplete, wherever it stands', async () => {
    const stream = getStream([
      [opened, call(0, 'plain'), call(1, 'plain'), call(2, 'patch'), call(3, 'plain')],
      [args(0, '{"a":'), args(1, '{"a":1}'), args(2, '{"input":"*** Beg'), args(3, '{}')],
      [finish('length')],
      [done],
    ])
    const { output } = await accumulated(stream)
    // The last one may lack its end, although it looks whole.
    expect(output.map(item => ('status' in item ? item.status : null))).toEqual([
      'incomplete',
      'completed',
      'incomplete',
      'incomplete',
    ])
  })

  test('writes one message per phase, as JSON and as a stream', async () => {
    const said = (phase: string, piece: string): ContentEvent => ({ type: 'text', choice: 0, text: piece, phase })
    const events = [said('commentary', 'I '), said('commentary', 'look.'), said('final_answer', 'Done.')]
    const streamed = await accumulated(getStream([[opened, ...events], [finish('stop')], [done]]))
    const whole = writeBody(responseBody(getContext(), requestId), [opened, ...events, finish('stop'), done])
    for (const { output } of [streamed, JSON.parse(JSON.stringify(whole))])
      expect<unknown>(output).toMatchObject([
        { phase: 'commentary', content: [{ text: 'I look.' }] },
        { phase: 'final_answer', content: [{ text: 'Done.' }] },
      ])
  })
})

describe('Responses stream reasoning', () => {
  const openedItem = (item: unknown) => {
    const { encrypted_content: sealed } = Object.assign({ encrypted_content: '' }, item)
    return reasoningSeal.open('acc_1', sealed)
  }

  test('seals signed and redacted reasoning into the item', async () => {
    const end = { type: 'reasoning_end', choice: 0, family: 'anthropic', id: null } as const
    const { output } = await accumulated(
      getStream([
        [
          opened,
          thought('Hm.'),
          { ...end, kind: 'signature', data: 'c2ln' },
          { ...end, kind: 'redacted', data: 'cmVk' },
          text('Hi'),
        ],
        [finish('stop')],
        [done],
      ]),
    )
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'reasoning', 'message'])
    expect(openedItem(output[0])).toEqual({
      family: 'anthropic',
      kind: 'signature',
      text: 'Hm.',
      data: 'c2ln',
      id: null,
    })
    expect(openedItem(output[1])).toEqual({ family: 'anthropic', kind: 'redacted', text: '', data: 'cmVk', id: null })
  })

  test('precedes its call for Google’s signature, with the ID of the call', async () => {
    const { output } = await accumulated(
      getStream([[opened, thought('Hm.'), call(0, 'plain', 'Z29v'), args(0, '{}')], [finish('tool_calls')], [done]]),
    )
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    expect(openedItem(output[0])).toEqual({ family: 'google', kind: 'signature', text: '', data: 'Z29v', id: 'call_0' })
  })

  test('seals plain reasoning of a compatible server on request', async () => {
    const events = (provider: string): readonly (readonly ChatEvent[])[] => [
      [{ type: 'opened', opening: { ...opening, provider } }, thought('Aloud.'), text('Hi')],
      [finish('stop')],
      [done],
    ]
    const asking = getContext({ include: ['reasoning.encrypted_content'] })
    expect(openedItem((await accumulated(getStream(events('deepseek'), null, asking))).output[0])).toEqual({
      family: 'compatible',
      kind: 'signature',
      text: 'Aloud.',
      data: '',
      id: null,
    })
    for (const stream of [getStream(events('deepseek')), getStream(events('google'), null, asking)])
      expect((await accumulated(stream)).output[0]).not.toHaveProperty('encrypted_content')
  })
})

describe('Responses stream failure', () => {
  test.each([
    ['context_length_exceeded', 'context_length_exceeded', /^It broke\./],
    ['daily_cost_exceeded', 'insufficient_quota', /^It broke\./],
    ['requests_per_minute_exceeded', 'rate_limit_exceeded', /try again in 3s/],
    ['no_model_available', 'rate_limit_exceeded', /try again in 3s/],
    ['content_blocked', 'invalid_prompt', /^It broke\./],
    ['upstream_failed', 'server_error', /^It broke\./],
  ] as const)('maps %s to %s', (code, wireCode, message) => {
    for (const batches of [[], [[opened, text('Half')]]]) {
      const events = getEvents(getStream(batches, code))
      expect(events[0]?.type).toBe('response.created')
      expect(events.at(-1)).toMatchObject({
        type: 'response.failed',
        response: { status: 'failed', error: { code: wireCode, message: expect.stringMatching(message) }, usage: null },
      })
    }
  })
})

const names = ['plain', 'patch', 'ns__inner', 'tool_search', 'unknown']
const piece = fc.string({ maxLength: 8, unit: 'binary' })
const content: fc.Arbitrary<ContentEvent> = fc.oneof(
  piece.map(text),
  piece.map(thought),
  fc.record({ type: fc.constant('refusal' as const), choice: fc.constant(0), text: piece }),
  fc.record({
    type: fc.constant('reasoning_end' as const),
    choice: fc.constant(0),
    family: fc.constantFrom('anthropic' as const, 'google' as const, 'openai' as const),
    kind: fc.constantFrom('signature' as const, 'redacted' as const, 'encrypted' as const),
    data: piece,
    id: fc.constantFrom('rs_1', null),
  }),
  fc
    .record({ index: fc.nat({ max: 3 }), signature: fc.constantFrom('c2ln', null), name: fc.constantFrom(...names) })
    .map(item => call(item.index, item.name, item.signature)),
  fc
    .record({ index: fc.nat({ max: 3 }), text: fc.oneof(piece, fc.constantFrom('{"input":"', 'a\\u00', 'e9"', '}')) })
    .map(item => args(item.index, item.text)),
  fc.constant<ContentEvent>({
    type: 'provider_item',
    choice: 0,
    dialect: 'responses',
    json: '{"type":"mcp_list_tools","id":"mcpl_1","server_label":"x","tools":[]}',
  }),
  fc.constant<ContentEvent>({ type: 'provider_item', choice: 0, dialect: 'messages', json: '{"type":"other"}' }),
  fc
    .record({ start: fc.nat({ max: 8 }), length: fc.nat({ max: 8 }), own: fc.boolean() })
    .map(({ start, length, own }): ContentEvent => {
      const source = { url: 'https://a.example/', title: null, start, end: start + length }
      const form = { dialect: 'responses', json: '{"type":"url_citation"}' } as const
      return { type: 'citation', choice: 0, source, ...(own ? { own: form } : {}) }
    }),
  fc.constant<ContentEvent>({
    type: 'logprobs',
    choice: 0,
    tokens: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }],
  }),
)

/** Keeps events that a response can have: calls start once and in order, and each provider item occurs once. */
function kept(events: readonly ContentEvent[]): readonly ContentEvent[] {
  let calls = 0
  let items = 0
  return events.flatMap((event): readonly ContentEvent[] => {
    if (event.type === 'tool_call') return [{ ...event, index: calls, id: `call_${calls++}` }]
    if (event.type === 'tool_arguments') return event.index < calls ? [event] : []
    if (event.type === 'provider_item') return items++ === 0 ? [event] : []
    return [event]
  })
}

test('Responses stream: stays readable for any events and truncation, and completes only after `done`', async () => {
  const reasons = fc.constantFrom<FinishReason>('stop', 'tool_calls', 'length', 'content_filter')
  await fc.assert(
    fc.asyncProperty(
      fc.array(content, { maxLength: 24 }),
      reasons,
      fc.nat(),
      fc.boolean(),
      async (drawn, reason, at, isCut) => {
        const all: readonly ChatEvent[] = [opened, ...kept(drawn), finish(reason), done]
        const cutAt = isCut ? 1 + (at % (all.length - 1)) : all.length
        const stream = getStream(
          all.slice(0, cutAt).map(event => [event]),
          isCut ? 'upstream_failed' : null,
        )
        const events = getEvents(stream)
        expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
        const ends = events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))
        const whole = reason === 'stop' || reason === 'tool_calls' ? 'completed' : 'incomplete'
        expect(ends.map(({ type }) => type)).toEqual([`response.${isCut ? 'failed' : whole}`])
        expect(events.at(-1)).toBe(ends[0])
        const response = await accumulated(stream)
        expect(response.status).toBe(isCut ? 'failed' : whole)
        const added = events
          .filter(({ type }) => type === 'response.output_item.added')
          .map(event => event.output_index)
        expect(added).toEqual(added.map((_, index) => index))
        const ended = events.filter(({ type }) => type === 'response.output_item.done').map(event => event.output_index)
        expect(new Set(ended).size).toBe(ended.length)
        if (!isCut) expect(ended.toSorted()).toEqual(added.toSorted())
      },
    ),
    { numRuns: 100 },
  )
})

test('responseBody: has the same items as the stream', async () => {
  const events: readonly ContentEvent[] = [
    thought('Hm.'),
    text('Hi '),
    text('there'),
    call(0, 'patch'),
    args(0, '{"input":"x"}'),
  ]
  const whole = writeBody(responseBody(getContext(), requestId), [opened, ...events, finish('tool_calls'), done])
  const streamed = await accumulated(getStream([[opened, ...events], [finish('tool_calls')], [done]]))
  const { output_text: _text, output_parsed: _parsed, ...response } = { output_parsed: null, ...streamed }
  expect(JSON.parse(JSON.stringify(whole))).toEqual(
    JSON.parse(JSON.stringify(response).replaceAll(/,"parsed(?:_arguments)?":null/g, '')),
  )
})
