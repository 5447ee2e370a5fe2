/** Messages streams, read by the official SDK, for any order of events and any truncation. */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import type { ReasoningItem } from '../../src/core/chat/chat.ts'
import type { ProviderFields } from '../../src/core/chat/chat-events.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import type { MessageStyle } from '../../src/dialects/messages/reply.ts'
import { MessageFrames, messageBody } from '../../src/dialects/messages/writers.ts'
import { type ChatEvent, type ContentEvent, writeBody, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const seal = ({ family, kind, text: said, data, id }: ReasoningItem) =>
  `gwr1.${Buffer.from(JSON.stringify([family, kind, said, data, id])).toString('base64url')}`
const style: MessageStyle = { wantsThinking: true, seal }

const documentCitation: ContentEvent = {
  type: 'citation',
  choice: 0,
  source: { url: null, title: null, start: 0, end: 1 },
  own: { dialect: 'messages', json: '{"type":"char_location"}' },
}
const opening = startWith({ createdAt: 0, inputUsage: { inputTokens: 30, cachedInputTokens: 10, cacheWriteTokens: 5 } })
const receipt = summaryWith({
  usage: { inputTokens: 31, cachedInputTokens: 10, cacheWriteTokens: 5, outputTokens: 7, reasoningTokens: 2 },
  record: { billed_microcents: 100 },
})

const text = (value: string): ContentEvent => ({ type: 'text', choice: 0, text: value })
const reasoning = (value: string): ContentEvent => ({ type: 'reasoning', choice: 0, text: value })
const call = (index: number, signature: string | null = null): ContentEvent => ({
  type: 'tool_call',
  choice: 0,
  index,
  id: `call_${index}`,
  name: `tool_${index}`,
  signature,
})
const piece = (index: number, value: string): ContentEvent => ({
  type: 'tool_arguments',
  choice: 0,
  index,
  text: value,
})
const end = (
  family: ReasoningItem['family'],
  data: string,
  kind: ReasoningItem['kind'] = 'signature',
): ContentEvent => ({ type: 'reasoning_end', choice: 0, family, kind, data, id: null })
const item = (block: object): ContentEvent => ({
  type: 'provider_item',
  choice: 0,
  dialect: 'messages',
  json: JSON.stringify(block),
})

type End = Omit<Extract<ChatEvent, { type: 'finish' }>, 'type' | 'choice'>

const whole = (
  content: readonly ContentEvent[],
  finish: End = { reason: 'stop' },
  providerFields?: ProviderFields,
): ChatEvent[] => {
  const own = providerFields === undefined ? {} : { providerFields }
  return [
    { type: 'opened', opening: { ...opening, ...own } },
    ...content,
    { type: 'finish', choice: 0, ...finish },
    { type: 'done', receipt: { ...receipt, ...own } },
  ]
}

const framed = (events: readonly ChatEvent[], used = style): string => {
  const frames = new MessageFrames(used, 'req_1')
  return events.map(event => writeFrames(frames, [event])).join('')
}

const folded = (events: readonly ChatEvent[], used = style) =>
  writeBody(messageBody(used), events) as {
    readonly content: readonly Record<string, unknown>[]
    readonly stop_reason: string
  }

/** Returns the message that the SDK reads from a stream. Rejects if the SDK does. */
function readBySdk(bytes: string): Promise<Anthropic.Message> {
  const answer = async () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } })
  const client = new Anthropic({
    apiKey: 'k',
    fetch: Object.assign(answer, { preconnect: fetch.preconnect }),
    maxRetries: 0,
  })
  return client.messages
    .stream({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })
    .finalMessage()
}

const blocks = (content: readonly ContentEvent[], used = style) => folded(whole(content), used).content

describe('Messages blocks', () => {
  test.each<readonly [string, readonly ContentEvent[], readonly Readonly<Record<string, unknown>>[]]>([
    ['one text block', [text('A'), text('B')], [{ type: 'text', text: 'AB' }]],
    [
      'thinking with Anthropic’s own signature, then text',
      [reasoning('Hm'), end('anthropic', 'EqQ'), text('A')],
      [
        { type: 'thinking', thinking: 'Hm', signature: 'EqQ' },
        { type: 'text', text: 'A' },
      ],
    ],
    [
      'a signature without text',
      [end('anthropic', 'EqQ'), text('A')],
      [
        { type: 'thinking', thinking: '', signature: 'EqQ' },
        { type: 'text', text: 'A' },
      ],
    ],
    ['redacted thinking', [end('anthropic', 'xyz', 'redacted')], [{ type: 'redacted_thinking', data: 'xyz' }]],
    [
      'unsigned reasoning, sealed for the serving provider',
      [reasoning('Hm'), text('A')],
      [
        {
          type: 'thinking',
          thinking: 'Hm',
          signature: seal({ family: 'openai', kind: 'signature', text: '', data: '', id: null }),
        },
        { type: 'text', text: 'A' },
      ],
    ],
    [
      'a sealed item of another provider',
      [reasoning('Hm'), end('openai', 'enc', 'encrypted')],
      [
        {
          type: 'thinking',
          thinking: 'Hm',
          signature: seal({ family: 'openai', kind: 'encrypted', text: '', data: 'enc', id: null }),
        },
      ],
    ],
    [
      'Google’s signature before its call',
      [call(0, 'sig'), piece(0, '{}')],
      [
        {
          type: 'redacted_thinking',
          data: seal({ family: 'google', kind: 'signature', text: '', data: 'sig', id: 'call_0' }),
        },
        { type: 'tool_use', id: 'call_0', name: 'tool_0', input: {} },
      ],
    ],
    [
      'parallel calls one after the other',
      [call(0), call(1), piece(1, '{"b":'), piece(0, '{"a":"}'), piece(1, '2}'), piece(0, '"}'), text('T')],
      [
        { type: 'tool_use', id: 'call_0', name: 'tool_0', input: { a: '}' } },
        { type: 'tool_use', id: 'call_1', name: 'tool_1', input: { b: 2 } },
        { type: 'text', text: 'T' },
      ],
    ],
    [
      'a tool of Anthropic, its result and a citation',
      [
        item({ type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } }),
        item({ type: 'web_search_tool_result', tool_use_id: 's', content: [] }),
        text('A'),
        documentCitation,
      ],
      [
        { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
        { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
        { type: 'text', text: 'A', citations: [{ type: 'char_location' }] },
      ],
    ],
    ['an empty output', [], []],
  ])('have %s', async (_name, content, expected) => {
    expect(blocks(content)).toEqual([...expected])
    expect(await readBySdk(framed(whole(content)))).toMatchObject({ content: expected })
  })

  test('omit reasoning of other providers if the client did not request thinking', () => {
    const quiet = { ...style, wantsThinking: false }
    expect(blocks([reasoning('Hm'), end('openai', 'enc', 'encrypted'), text('A')], quiet)).toEqual([
      { type: 'text', text: 'A' },
    ])
    expect(blocks([end('anthropic', 'EqQ'), text('A')], quiet)).toHaveLength(2)
  })

  test('never seal unsigned reasoning as Anthropic’s', () => {
    const [block] = blocks([reasoning('Hm'), end('anthropic', '')])
    expect(String(block?.signature)).toBe(
      seal({ family: 'compatible', kind: 'signature', text: '', data: '', id: null }),
    )
  })
})

describe('Messages stream', () => {
  test.each<readonly [End, boolean, string]>([
    [{ reason: 'stop' }, false, 'end_turn'],
    [{ reason: 'tool_calls' }, false, 'end_turn'],
    [{ reason: 'stop' }, true, 'tool_use'],
    [{ reason: 'tool_calls' }, true, 'tool_use'],
    [{ reason: 'length' }, true, 'max_tokens'],
    [{ reason: 'length', upstreamReason: 'model_context_window_exceeded' }, false, 'model_context_window_exceeded'],
    [{ reason: 'length', upstreamReason: 'compaction' }, false, 'compaction'],
    [{ reason: 'stop', upstreamReason: 'pause_turn' }, false, 'pause_turn'],
    [{ reason: 'stop', upstreamReason: 'pause_turn' }, true, 'tool_use'],
    [{ reason: 'stop', stopSequence: 'END' }, false, 'stop_sequence'],
    [{ reason: 'content_filter' }, true, 'refusal'],
  ])('ends for %j (calls: %p) with %p', async (finish, hasCalls, reason) => {
    const events = whole(hasCalls ? [call(0), piece(0, '{}')] : [text('A')], finish)
    const expected = { stop_reason: reason, stop_sequence: finish.stopSequence ?? null }
    expect(folded(events)).toMatchObject(expected)
    expect(await readBySdk(framed(events))).toMatchObject(expected as Partial<Anthropic.Message>)
  })

  test('passes the container and the edits of the context on', async () => {
    const container = { id: 'container_1', expires_at: '2026-11-23T00:00:00Z' }
    const context_management = { applied_edits: [] }
    const fields = { form: 'anthropic' as const, usage: {}, end: { container, context_management } }
    const events = whole([text('A')], undefined, fields)
    expect(folded(events)).toMatchObject({ container, context_management })
    const delta = JSON.parse(/data: (\{"type":"message_delta".*)/.exec(framed(events))?.[1] ?? '')
    expect(delta).toMatchObject({ delta: { container }, context_management })
    expect(framed(whole([text('A')]))).toContain('"container":null}')
  })

  test('reports counts first as known and at the end as settled', async () => {
    const events = whole([text('A')])
    const first = /^data: (\{"type":"message_start".*)/m.exec(framed(events.slice(0, 1)))?.[1] ?? ''
    expect(JSON.parse(first).message.usage).toEqual({
      input_tokens: 15,
      cache_creation_input_tokens: 5,
      cache_read_input_tokens: 10,
      cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 0 },
      output_tokens: 1,
    })
    const message = await readBySdk(framed(events))
    expect(message.usage).toMatchObject({ input_tokens: 16, cache_read_input_tokens: 10, output_tokens: 7 })
  })

  test('ends with refusal and explanation after a block by moderation', () => {
    const events: ChatEvent[] = [
      { type: 'opened', opening },
      text('A'),
      { type: 'filtered', choice: 0, layer: 'classifier', category: 'violence' },
      { type: 'finish', choice: 0, reason: 'content_filter' },
      { type: 'done', receipt },
    ]
    const details = { type: 'refusal', category: null, explanation: expect.stringContaining('violence') }
    expect(folded(events)).toMatchObject({ stop_reason: 'refusal', stop_details: details })
    expect(framed(events)).toContain('"stop_reason":"refusal"')
  })

  test('ends with an error event that the SDK throws after a failure', async () => {
    const format = new MessageFrames(style, 'req_1')
    const begun = writeFrames(format, [{ type: 'opened', opening }, text('A')])
    const error = new GatewayError('upstream_failed', 'The answer broke off.')
    const failed = readBySdk(begun + format.failure(error))
    await expect(failed).rejects.toThrow('The answer broke off.')
  })

  test('keeps alive with comments before the start of the message and with pings later', () => {
    const format = new MessageFrames(style, 'req_1')
    expect(format.keepAlive()).toBe(': ping\n\n')
    format.add({ type: 'opened', opening })
    expect(format.keepAlive()).toBe('event: ping\ndata: {"type":"ping"}\n\n')
  })
})

/** The start and the deltas of a call, in order. */
const callEvents = (index: number) =>
  fc
    .tuple(fc.dictionary(fc.string({ maxLength: 4 }), fc.oneof(fc.string(), fc.integer()), { maxKeys: 3 }), fc.nat(20))
    .map(([input, cut]) => {
      const json = JSON.stringify(input)
      return [
        call(index, cut === 7 ? 'sig' : null),
        piece(index, json.slice(0, cut)),
        piece(index, json.slice(cut)),
      ].filter(event => !('text' in event) || event.text !== '')
    })

const anyText = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 })
const otherEvent = fc.oneof(
  anyText.map(text),
  anyText.map(reasoning),
  fc.constantFrom<ContentEvent>(
    end('anthropic', 'EqQ'),
    end('openai', 'enc', 'encrypted'),
    end('google', 'g'),
    end('anthropic', 'r', 'redacted'),
    item({ type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } }),
    item({ type: 'hologram', of: [1] }),
    documentCitation,
    { type: 'refusal', choice: 0, text: 'No.' },
    text('after choice'),
    { ...text('other choice'), choice: 1 },
  ),
)

/** Calls start in order; deltas and other events have any order. */
const content = fc
  .tuple(
    fc.nat(3).chain(count => fc.tuple(...Array.from({ length: count }, (_, index) => callEvents(index)))),
    fc.array(otherEvent, { maxLength: 8 }),
    fc.infiniteStream(fc.nat(9)),
  )
  .map(([calls, others, choices]) => {
    const queues: ContentEvent[][] = [...calls.map(events => [...events]), others]
    const out: ContentEvent[] = []
    for (let opened = 0; queues.some(queue => queue.length > 0); ) {
      const ready = queues.filter(
        ([first]) => first !== undefined && (first.type !== 'tool_call' || first.index <= opened),
      )
      const next = ready[(choices.next().value ?? 0) % ready.length]?.shift()
      if (next === undefined) break
      if (next.type === 'tool_call') opened = next.index + 1
      out.push(next)
    }
    return out
  })

const finish = fc.constantFrom<End>(
  { reason: 'stop' },
  { reason: 'length' },
  { reason: 'content_filter' },
  { reason: 'stop', stopSequence: 'x' },
)

test('Messages stream: gives the SDK the same message as JSON for any output', async () => {
  await fc.assert(
    fc.asyncProperty(content, finish, async (events, ending) => {
      const all = whole(events, ending)
      const { content: expected, stop_reason } = folded(all)
      const read = await readBySdk(framed(all))
      expect(read.content).toEqual(JSON.parse(JSON.stringify(expected)))
      expect(String(read.stop_reason)).toBe(stop_reason)
    }),
    { numRuns: 150 },
  )
})

test('Messages stream: never looks complete after a truncation at any byte', async () => {
  await fc.assert(
    fc.asyncProperty(content, fc.double({ min: 0, max: 1, noNaN: true }), async (events, at) => {
      const bytes = framed(whole(events))
      const terminal = bytes.indexOf('event: message_stop')
      const cut = bytes.slice(0, Math.floor(at * terminal))
      expect(cut).not.toContain('message_stop')
      await expect(readBySdk(cut)).rejects.toThrow()
    }),
    { numRuns: 100 },
  )
})

test('Messages stream: has neither stop reason nor end before settlement', () => {
  const events = whole([text('A'), call(0)])
  for (let length = 0; length < events.length; length++)
    expect(framed(events.slice(0, length))).not.toMatch(/message_delta|message_stop/)
})
