import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import OpenAI from 'openai'
import type { FinishReason } from '../../src/core/chat/chat-events.ts'
import { ResponseCollector } from '../../src/core/chat/response-collector.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { ChunkWriter, completionBody } from '../../src/dialects/chat-completions/reply.ts'
import { type ChatEvent, tell, writeFrames } from '../harness/events.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const opening = startWith({ createdAt: 1_700_000_000 })
const receipt = summaryWith({ record: { billed_microcents: 12_345 } })
type CompletionStyle = ConstructorParameters<typeof ChunkWriter>[0]
const plain: CompletionStyle = { includeUsage: false, legacyFunctions: false, customTools: new Set() }
const counted: CompletionStyle = { includeUsage: true, legacyFunctions: false, customTools: new Set() }
const legacy: CompletionStyle = { includeUsage: false, legacyFunctions: true, customTools: new Set() }

const opened: ChatEvent = { type: 'opened', opening }
const done: ChatEvent = { type: 'done', receipt }
const text = (piece: string, choice = 0): ChatEvent => ({ type: 'text', choice, text: piece })
const finish = (reason: FinishReason, choice = 0): ChatEvent => ({ type: 'finish', choice, reason })
const opens = (index: number, name: string, signature: string | null = null, choice = 0): ChatEvent => ({
  type: 'tool_call',
  choice,
  index,
  id: `call_${choice}_${index}`,
  name,
  signature,
})
const argues = (index: number, piece: string, choice = 0): ChatEvent => ({
  type: 'tool_arguments',
  choice,
  index,
  text: piece,
})
const token = (name: string) => ({ token: name, logprob: -0.5, bytes: [...Buffer.from(name)], top_logprobs: [] })

const frames = (batches: readonly (readonly ChatEvent[])[], style = plain) => {
  const chunks = new ChunkWriter(style, 'req_1')
  return batches.map(batch => writeFrames(chunks, batch)).join('')
}

const answers = new Map<string, string>()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { model } = (await request.json()) as { model: string }
    const answer = answers.get(model) ?? ''
    const type = answer.startsWith('{') ? 'application/json' : 'text/event-stream; charset=utf-8'
    return new Response(answer, { headers: { 'content-type': type } })
  },
})
afterAll(() => server.stop(true))
const client = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'none', maxRetries: 0 })

let made = 0
/** Returns the result of the official client for a stream. */
function accumulate(stream: string, fields: object = {}) {
  const model = `answer-${made++}`
  answers.set(model, stream)
  return client.chat.completions
    .stream({ model, messages: [{ role: 'user', content: 'Hi' }], n: 8, ...fields })
    .finalChatCompletion()
}

describe('OpenAI client', () => {
  test('reads text with usage and cost', async () => {
    const { id, model, choices, usage } = await accumulate(
      frames([[opened, text('Hel')], [text('lo')], [finish('stop')], [done]], counted),
    )
    expect([id, model, choices[0]?.message.role, choices[0]?.message.content, choices[0]?.finish_reason]).toEqual([
      'req_1',
      'openai/gpt-5.5',
      'assistant',
      'Hello',
      'stop',
    ])
    expect(usage).toMatchObject({
      prompt_tokens: 11,
      completion_tokens: 7,
      total_tokens: 18,
      cost_usd: 0.00012345,
    } as object)
  })

  test('reads parallel calls before, between and after text', async () => {
    for (const before of [[], [text('I look. ')]]) {
      const events = [
        ...before,
        opens(0, 'one'),
        argues(0, '{"a"'),
        opens(1, 'two', 'sig'),
        argues(1, '{}'),
        argues(0, ':1}'),
        finish('tool_calls'),
      ]
      const { choices } = await accumulate(frames([[opened], ...events.map(event => [event]), [done]]))
      expect(choices[0]?.finish_reason).toBe('tool_calls')
      expect(choices[0]?.message.content).toBe(before.length === 0 ? null : 'I look. ')
      expect(choices[0]?.message.tool_calls).toMatchObject([
        { id: 'call_0_0', type: 'function', function: { name: 'one', arguments: '{"a":1}' } },
        { id: 'call_0_1', type: 'function', function: { name: 'two', arguments: '{}' } },
      ])
    }
  })

  test('reads interleaved choices', async () => {
    const { choices } = await accumulate(
      frames([
        [opened, text('a'), text('x', 1), text('b')],
        [text('y', 1), finish('length', 1)],
        [finish('stop')],
        [done],
      ]),
    )
    expect(choices.map(choice => [choice.index, choice.message.content, choice.finish_reason])).toEqual([
      [0, 'ab', 'stop'],
      [1, 'xy', 'length'],
    ])
  })

  test('reads a refusal, log probabilities and a response without content', async () => {
    const refused = await accumulate(
      frames([[opened, { type: 'refusal', choice: 0, text: 'I cannot.' }, finish('stop'), done]]),
    )
    expect(refused.choices[0]?.message.refusal).toBe('I cannot.')
    const probable = await accumulate(
      frames([
        [opened, text('a'), { type: 'logprobs', choice: 0, tokens: [token('a')] }],
        [{ type: 'logprobs', choice: 0, tokens: [token('b')] }, text('b')],
        [finish('stop'), done],
      ]),
    )
    expect(probable.choices[0]?.message.content).toBe('ab')
    expect(probable.choices[0]?.logprobs?.content?.map(logprob => logprob.token)).toEqual(['a', 'b'])
    const empty = await accumulate(frames([[opened, finish('length'), done]]))
    expect([empty.choices[0]?.message.content, empty.choices[0]?.finish_reason]).toEqual(['', 'length'])
  })

  test('throws an error after content and returns no finish reason for a truncated stream', async () => {
    const failure = new GatewayError('upstream_timeout', 'The model stopped answering. Ask again.')
    const failed = accumulate(frames([[opened, text('Hel')]]) + new ChunkWriter(plain, 'req_1').failure(failure))
    await expect(failed).rejects.toMatchObject({ code: 'upstream_timeout', type: 'upstream_error' })
    await expect(accumulate(frames([[opened, text('Hel'), finish('stop')]]))).rejects.toThrow('finish_reason')
  })

  test('reads a JSON response', async () => {
    const fold = tell(new ResponseCollector(), [text('Hello'), finish('stop')])
    answers.set('whole', JSON.stringify(completionBody(fold.result(), receipt, opening, plain)))
    const { choices, usage } = await client.chat.completions.create({ model: 'whole', messages: [] })
    expect([choices[0]?.message.content, usage?.total_tokens]).toEqual(['Hello', 18])
  })
})

describe('wire bytes', () => {
  test('match for a text stream with usage', () => {
    expect(frames([[opened, text('He'), text('y "you"\n')], [finish('stop')], [done]], counted)).toMatchInlineSnapshot(`
      "data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"content":"Hey \\"you\\"\\n"},"logprobs":null,"finish_reason":null}],"usage":null}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0},"cost_usd":0.00012345}}

      data: [DONE]

      "
    `)
  })

  test('match for a stream of calls with Google’s signature and without usage', () => {
    expect(
      frames([
        [
          opened,
          opens(0, 'one', 'sig'),
          argues(0, '{"a":'),
          argues(0, '1}'),
          opens(1, 'two'),
          argues(1, '{}'),
          finish('tool_calls'),
          done,
        ],
      ]),
    ).toMatchInlineSnapshot(`
      "data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_0_0","type":"function","function":{"name":"one","arguments":""},"extra_content":{"google":{"thought_signature":"sig"}}}],"refusal":null},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1}"}}]},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_0_1","type":"function","function":{"name":"two","arguments":""}}]},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}

      data: [DONE]

      "
    `)
  })

  test('match for a stream of a deprecated function call, with one call and no IDs', () => {
    expect(
      frames(
        [[opened, opens(0, 'one'), argues(0, '{}'), opens(1, 'two'), argues(1, '{}'), finish('tool_calls'), done]],
        legacy,
      ),
    ).toMatchInlineSnapshot(`
      "data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":null,"function_call":{"name":"one","arguments":""},"refusal":null},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"function_call":{"arguments":"{}"}},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"function_call"}]}

      data: [DONE]

      "
    `)
  })

  test('match for reasoning, refusal and log probabilities', () => {
    expect(
      frames([
        [
          opened,
          { type: 'reasoning', choice: 0, text: 'hm' },
          text('a'),
          { type: 'logprobs', choice: 0, tokens: [token('a')] },
          { type: 'refusal', choice: 0, text: 'no' },
        ],
      ]),
    ).toMatchInlineSnapshot(`
      "data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}

      data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"openai/gpt-5.5","choices":[{"index":0,"delta":{"refusal":"no"},"logprobs":null,"finish_reason":null}]}

      "
    `)
  })

  test('match for a failure', () => {
    const streamFormat = new ChunkWriter(plain, 'req_1')
    expect(
      streamFormat.failure(new GatewayError('upstream_failed', 'Ask again.', { detail: 'canary' })),
    ).toMatchInlineSnapshot(`
      "data: {"error":{"type":"upstream_error","code":"upstream_failed","message":"Ask again.","param":null,"request_id":"req_1"}}

      "
    `)
  })

  test('match for JSON responses with calls, and with text, refusal, reasoning and log probabilities', () => {
    const fold = tell(new ResponseCollector(), [
      opens(0, 'one', 'sig'),
      argues(0, '{}'),
      finish('tool_calls'),
      text('Hi', 1),
      finish('stop', 1),
      { type: 'reasoning', choice: 1, text: 'hm' },
      { type: 'refusal', choice: 2, text: 'no' },
      { type: 'logprobs', choice: 1, tokens: [token('Hi')] },
    ])
    expect(completionBody(fold.result(), receipt, opening, plain)).toStrictEqual({
      id: 'req_1',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          logprobs: null,
          message: {
            role: 'assistant',
            annotations: [],
            content: null,
            refusal: null,
            tool_calls: [
              {
                type: 'function',
                id: 'call_0_0',
                extra_content: { google: { thought_signature: 'sig' } },
                function: { name: 'one', arguments: '{}' },
              },
            ],
          },
        },
        {
          index: 1,
          finish_reason: 'stop',
          logprobs: { content: [{ bytes: [72, 105], logprob: -0.5, token: 'Hi', top_logprobs: [] }], refusal: null },
          message: { role: 'assistant', annotations: [], content: 'Hi', reasoning_content: 'hm', refusal: null },
        },
        {
          index: 2,
          finish_reason: 'stop',
          logprobs: null,
          message: { role: 'assistant', annotations: [], content: null, refusal: 'no' },
        },
      ],
      created: 1700000000,
      model: 'openai/gpt-5.5',
      object: 'chat.completion',
      usage: {
        completion_tokens: 7,
        completion_tokens_details: {
          accepted_prediction_tokens: 0,
          audio_tokens: 0,
          reasoning_tokens: 3,
          rejected_prediction_tokens: 0,
        },
        cost_usd: 0.00012345,
        prompt_tokens: 11,
        prompt_tokens_details: { audio_tokens: 0, cache_write_tokens: 2, cached_tokens: 4 },
        total_tokens: 18,
      },
    })
  })

  test('match for a JSON response with a deprecated function call', () => {
    const fold = tell(new ResponseCollector(), [opens(0, 'one'), argues(0, '{}'), finish('tool_calls')])
    expect(completionBody(fold.result(), receipt, opening, legacy)).toMatchObject({
      choices: [
        { message: { content: null, function_call: { name: 'one', arguments: '{}' } }, finish_reason: 'function_call' },
      ],
    })
  })
})

test('ChunkWriter: writes finish reason, usage and [DONE] only after settlement', () => {
  const cut = frames([[opened, text('Hel')], [finish('stop')]], counted)
  expect(cut).not.toMatch(/"finish_reason":"|"usage":\{|\[DONE\]/)
})

type Chunk = {
  choices: {
    index: number
    delta: {
      role?: string
      content?: string | null
      reasoning_content?: string
      tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[]
    }
    finish_reason: string | null
  }[]
}

test('ChunkWriter: keeps text, calls and order for any output and any batches', () => {
  const choice = fc.nat({ max: 2 })
  const piece = fc.string({ unit: 'binary', minLength: 1, maxLength: 6 })
  const written = fc.oneof(
    fc.record({ type: fc.constantFrom('text' as const, 'reasoning' as const), choice, text: piece }),
    fc.record({ type: fc.constant('call' as const), choice, text: piece }),
  )
  fc.assert(
    fc.property(fc.array(written, { maxLength: 20 }), fc.infiniteStream(fc.boolean()), (pieces, splits) => {
      const calls = [0, 0, 0]
      const events = pieces.flatMap((item): ChatEvent[] => {
        if (item.type !== 'call') return [{ type: item.type, choice: item.choice, text: item.text }]
        const index = calls[item.choice] ?? 0
        calls[item.choice] = index + 1
        return [opens(index, 'look', null, item.choice), argues(index, item.text, item.choice)]
      })
      const ends = [0, 1, 2].map(index => finish('stop', index))
      const batches: ChatEvent[][] = [[opened]]
      for (const event of [...events, ...ends, done]) {
        if (splits.next().value) batches.push([])
        batches.at(-1)?.push(event)
      }
      const stream = frames(batches)
      const blocks = stream.split('\n\n').slice(0, -1)
      expect(blocks.pop()).toBe('data: [DONE]')
      const read = [0, 1, 2].map(() => ({ text: '', reasoning: '', calls: [] as string[], roles: 0, ends: 0 }))
      for (const block of blocks) {
        expect(block).toStartWith('data: {')
        for (const { index, delta, finish_reason } of (JSON.parse(block.slice(6)) as Chunk).choices) {
          const item = read[index]
          if (item === undefined) throw new Error('unknown choice')
          expect(item.roles + (delta.role === undefined ? 0 : 1)).toBe(1)
          item.roles = 1
          item.text += delta.content ?? ''
          item.reasoning += delta.reasoning_content ?? ''
          for (const call of delta.tool_calls ?? [])
            item.calls[call.index] = (item.calls[call.index] ?? '') + call.function.arguments
          if (finish_reason !== null) item.ends++
        }
      }
      for (const whole of tell(new ResponseCollector(), [...events, ...ends]).result()) {
        expect(read[whole.index]).toEqual({
          text: whole.text,
          reasoning: whole.reasoning,
          calls: whole.toolCalls.map(call => call.arguments),
          roles: 1,
          ends: 1,
        })
      }
    }),
    { numRuns: 200 },
  )
})
