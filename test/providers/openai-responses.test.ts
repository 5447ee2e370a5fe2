/** OpenAI's Responses API as an upstream: when it is asked, what it is sent, and how its answers are read. */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ChatRequest, type Message, withTurn } from '../../src/core/chat/chat.ts'
import type { FinishReason } from '../../src/core/chat/chat-events.ts'
import type { Model } from '../../src/core/models/models.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { openai } from '../../src/providers/openai.ts'
import { needsResponses, openaiResponses } from '../../src/providers/openai-responses.ts'
import { type AnswerPart, partsIn, recorded } from '../harness/answer-parts.ts'
import { modelNamed } from '../harness/model.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const read = (fields: object): ChatRequest => {
  const body = { model: 'm', input: 'Hi', ...fields }
  return readResponses(body, { headers: new Headers(), text: '' }, { seal, accountId: 'acc_1' }).request
}
const message = (fields: object): ChatRequest => {
  const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...fields }
  return readMessages(body, { headers: new Headers(), text: '', accountId: 'acc_1' }, seal).request
}
const weather = { name: 'weather', input_schema: { type: 'object' } }
const thinking = modelNamed('gpt-5.5')
const plain = modelNamed('gpt-4.1')
const chat = (fields: Partial<ChatRequest> = {}) =>
  chatRequestWithDefaults([{ role: 'user', content: [{ type: 'text', text: 'Hi' }], name: null }], fields)
const access = { baseUrl: 'https://api.openai.com/v1', apiKey: 'k' }
function send(chatRequest: ChatRequest, model = thinking, outputCap = 500) {
  const request = openaiResponses.toRequest(
    { request: chatRequest, model, outputCap, stream: chatRequest.stream !== null },
    access,
  )
  const json: Readonly<Record<string, unknown>> = JSON.parse(request.body)
  return { ...request, json }
}
const added = (request: ChatRequest) => withTurn(request, [...request.messages], { before: 'Found', text: 'Better' })
const tool = { type: 'function', name: 'one', parameters: { type: 'object', properties: {} }, strict: true }

describe('needsResponses', () => {
  const needs = (request: ChatRequest, model = thinking) =>
    needsResponses({ request, model, outputCap: 1, stream: false })
  const sealed = seal.seal('acc_1', { family: 'openai', kind: 'encrypted', text: '', data: 'gAAAA', id: null })

  test.each<[string, ChatRequest, Model, boolean]>([
    ['a plain question', read({}), thinking, false],
    ['tools beside reasoning', read({ tools: [tool] }), thinking, true],
    ['tools without reasoning', read({ tools: [tool], reasoning: { effort: 'none' } }), thinking, false],
    ['tools on a model that does not reason', read({ tools: [tool] }), plain, false],
    ['encrypted reasoning asked for', read({ include: ['reasoning.encrypted_content'] }), thinking, true],
    ['a summary asked for', read({ reasoning: { summary: 'auto' } }), thinking, true],
    ['a tool of OpenAI’s own', read({ tools: [{ type: 'mcp' }] }), plain, true],
    ['an item of OpenAI’s own', read({ input: [{ type: 'mcp_call', id: 'm' }] }), plain, true],
    [
      'reasoning of an earlier turn',
      read({
        input: [
          { type: 'reasoning', id: 'rs', summary: [], encrypted_content: sealed },
          { role: 'assistant', content: 'a' },
          { role: 'user', content: 'b' },
        ],
      }),
      thinking,
      true,
    ],
    ['a chat completion', chat(), thinking, false],
    ['a message with tools that thinks', message({ thinking: { type: 'adaptive' }, tools: [weather] }), thinking, true],
    [
      'a message with tools and an effort',
      message({ output_config: { effort: 'low' }, tools: [weather] }),
      thinking,
      true,
    ],
    ['a message with tools that does not think', message({ tools: [weather] }), thinking, false],
    [
      'a message with tools that must not think',
      message({ thinking: { type: 'disabled' }, tools: [weather] }),
      thinking,
      false,
    ],
    ['a message that thinks without tools', message({ thinking: { type: 'adaptive' } }), thinking, false],
    [
      'a message that thinks, with stop sequences',
      message({ thinking: { type: 'adaptive' }, tools: [weather], stop_sequences: ['END'] }),
      thinking,
      false,
    ],
    ['a chat completion of a model that only it serves', chat(), { ...thinking, id: 'gpt-5.3-codex' }, true],
    [
      'one that the operator says so of',
      chat(),
      { ...plain, parameters: { ...plain.parameters, responsesOnly: true } },
      true,
    ],
    [
      'one that the operator says otherwise of',
      chat(),
      { ...plain, id: 'x-codex', parameters: { ...plain.parameters, responsesOnly: false } },
      false,
    ],
  ])('returns the expected value for %s', (_, request, model, expected) => {
    expect(needs(request, model)).toBe(expected)
  })

  test('does not apply to OpenAI-compatible servers', () => {
    expect(openai({ official: false }).formFor).toBeUndefined()
    expect(openai({ official: false }).takesSource).toBeUndefined()
    const request = read({ tools: [tool] })
    expect(openai({ official: true }).formFor?.({ request, model: thinking, outputCap: 1, stream: false })).toBe(
      openaiResponses,
    )
  })
})

describe('additions to the last turn', () => {
  const custom = {
    type: 'custom',
    name: 'patch',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
  }
  const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } }

  test.each<readonly [string, unknown, readonly object[]]>([
    [
      'a text',
      'Hi',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Found' },
            { type: 'input_text', text: 'Better' },
          ],
        },
      ],
    ],
    [
      'items',
      [
        { role: 'user', content: 'A', phase: 'x' },
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: 'https://a.test/a.png' },
            { type: 'input_text', text: 'Hi', ...breakpoint },
          ],
        },
      ],
      [
        { role: 'user', content: 'A', phase: 'x' },
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: 'https://a.test/a.png' },
            { type: 'input_text', text: 'Found' },
            { type: 'input_text', text: 'Better', ...breakpoint },
          ],
        },
      ],
    ],
  ])('go into %s, and tools keep their grammar', (_name, input, expected) => {
    const { json } = send(added(read({ input, tools: [custom] })))
    expect([json.input, json.tools]).toEqual([expected, [custom]])
  })

  test.each<readonly [string, readonly object[]]>([
    [
      'a tool result',
      [
        { type: 'function_call', call_id: 'c', name: 'one', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
      ],
    ],
    ['an image', [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.test/a.png' }] }]],
    ['an item between agents', [{ type: 'agent_message', content: 'x' }]],
  ])('do not apply after %s, which is no text of the user', (_name, input) => {
    const request = read({ input, tools: [tool], web: 'auto', enhance_prompt: true })
    expect([request.web, request.enhance]).toEqual(['off', false])
  })
})

describe('toRequest', () => {
  test('keeps the body of the client except for fields that the gateway controls', () => {
    const { json, url, headers, droppedParameters } = send(
      read({
        input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
        instructions: 'Be brief.',
        tools: [
          { type: 'custom', name: 'patch', format: { type: 'text' } },
          { type: 'namespace', name: 'ns', description: '', tools: [tool] },
          { type: 'mcp', server_label: 'x', server_url: 'https://mcp.example' },
          { type: 'web_search' },
          { type: 'file_search', vector_store_ids: ['vs_of_the_operator'] },
        ],
        tool_choice: { type: 'web_search' },
        include: ['web_search_call.results'],
        reasoning: { effort: 'low', summary: 'auto', context: 'auto' },
        text: { verbosity: 'low' },
        store: true,
        background: false,
        service_tier: 'priority',
        prompt_cache_key: 'thread',
        client_metadata: { a: 'b' },
        metadata: { c: 'd' },
        truncation: 'auto',
        user: 'u',
        strategy: 'cost',
        web: 'off',
        n: 3,
        brand_new: true,
        stream: true,
      }),
    )
    expect(url).toBe('https://api.openai.com/v1/responses')
    expect(headers.authorization).toBe('Bearer k')
    expect(json).toEqual({
      prompt_cache_key: 'thread',
      client_metadata: { a: 'b' },
      metadata: { c: 'd' },
      truncation: 'auto',
      model: 'gpt-5.5',
      instructions: 'Be brief.',
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
      stream: true,
      store: false,
      include: ['web_search_call.results', 'reasoning.encrypted_content'],
      max_output_tokens: 500,
      tools: [
        { type: 'custom', name: 'patch', format: { type: 'text' } },
        { type: 'namespace', name: 'ns', description: '', tools: [tool] },
        { type: 'mcp', server_label: 'x', server_url: 'https://mcp.example' },
      ],
      tool_choice: 'auto',
      reasoning: { effort: 'low', summary: 'auto', context: 'auto' },
      text: { verbosity: 'low' },
      safety_identifier: 'u',
    })
    expect(droppedParameters).toEqual(['service_tier', 'brand_new', 'tools.file_search'])
  })

  test('rewrites the body when the gateway has changed the messages', () => {
    const request = read({
      instructions: 'Be brief.',
      tools: [
        { type: 'custom', name: 'patch' },
        { type: 'mcp', server_label: 'x' },
      ],
    })
    const more: readonly Message[] = [{ role: 'system', text: 'More.' }, ...request.messages]
    const { json } = send({ ...request, messages: more })
    expect(json.instructions).toBeUndefined()
    expect(json.input).toEqual([
      { role: 'developer', content: 'More.' },
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
    ])
    expect(json.tools).toMatchObject([{ type: 'function', name: 'patch', strict: false }])
  })

  test('translates Chat Completions into items and reports dropped parameters', () => {
    const schema = { type: 'object', properties: {}, additionalProperties: false }
    const messages: readonly Message[] = [
      { role: 'system', text: 'Sys' },
      {
        role: 'user',
        content: [
          { type: 'image', url: 'https://a.example/a.png', detail: null },
          { type: 'file', url: 'data:application/pdf;base64,AA', name: null },
        ],
        name: null,
      },
      {
        role: 'assistant',
        text: 'Look',
        reasoning: null,
        toolCalls: [{ id: 'c1', name: 'one', arguments: '', signature: null }],
        name: null,
      },
      { role: 'tool', callId: 'c1', text: 'done' },
    ]
    const { json, droppedParameters } = send(
      chat({
        messages,
        seed: 1,
        stop: ['x'],
        temperature: 0.5,
        tools: [{ name: 'one', description: null, parameters: null, strict: null }],
        toolChoice: { name: 'one' },
        responseFormat: { type: 'json_schema', name: 'out', description: null, schema, strict: true },
        extras: { verbosity: 'low', prediction: {}, prompt_cache_key: 'k' },
      }),
      thinking,
      5,
    )
    expect(json).toMatchObject({
      input: [
        { role: 'developer', content: 'Sys' },
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: 'https://a.example/a.png', detail: 'auto' },
            { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,AA' },
          ],
        },
        { role: 'assistant', content: 'Look' },
        { type: 'function_call', call_id: 'c1', name: 'one', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'done' },
      ],
      max_output_tokens: 16,
      tools: [{ type: 'function', name: 'one', parameters: { type: 'object', properties: {} }, strict: false }],
      tool_choice: { type: 'function', name: 'one' },
      text: { format: { type: 'json_schema', name: 'out', schema, strict: true }, verbosity: 'low' },
      prompt_cache_key: 'k',
    })
    expect(droppedParameters).toEqual(['seed', 'temperature', 'stop', 'prediction'])
  })

  test('keeps `tool_choice` for tools that the input declares', () => {
    const declared = { type: 'additional_tools', role: 'developer', tools: [tool, { type: 'image_generation' }] }
    const input = [declared, { role: 'user', content: 'Hi' }]
    const { json } = send(read({ input, parallel_tool_calls: false, tool_choice: 'required' }))
    expect(json).toMatchObject({ parallel_tool_calls: false, tool_choice: 'required' })
    expect(json.input).toEqual([
      { ...declared, tools: [tool] },
      { role: 'user', content: 'Hi' },
    ])
    expect(json.tools).toBeUndefined()
  })

  test('adds the word “JSON” to the prompt for a JSON object, as the API requires', () => {
    const { json } = send(read({ text: { format: { type: 'json_object' } } }), plain)
    expect(json.text).toEqual({ format: { type: 'json_object' } })
    expect(JSON.stringify(json.input)).toContain('Answer with one JSON object.')
  })
})

const whole = (fields: object) => ({ id: 'resp_1', model: 'gpt-5.5-2026', object: 'response', ...fields })
const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
}
function stream(...events: readonly object[]): readonly AnswerPart[] {
  const reader = recorded(openaiResponses.streamReader())
  const parts = events.flatMap(event => [...reader.read({ name: '', data: JSON.stringify(event) })])
  return [...parts, ...reader.finish()]
}
const at = (place: number, fields: object) => ({ output_index: place, ...fields })

describe('response reader', () => {
  const reasoning = {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    encrypted_content: 'gAAAA',
  }
  const called = {
    id: 'fc_1',
    type: 'function_call',
    call_id: 'c1',
    namespace: 'ns',
    name: 'one',
    arguments: '{"a":1}',
    status: 'completed',
  }
  const patch = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'say "x"\n' }
  const hosted = { id: 'mcp_1', type: 'mcp_call', server_label: 'x', name: 'y', arguments: '{}' }
  const annotation = { type: 'url_citation', url: 'https://a.example/', title: 'A', start_index: 1, end_index: 5 }
  const message = {
    id: 'msg_1',
    type: 'message',
    phase: 'final_answer',
    content: [{ type: 'output_text', text: 'Hello', annotations: [annotation] }],
  }
  const expected: AnswerPart[] = [
    { type: 'served', id: 'resp_1', model: 'gpt-5.5-2026' },
    { type: 'reasoning', choice: 0, text: 'Hm.' },
    { type: 'reasoning_end', choice: 0, family: 'openai', kind: 'encrypted', data: 'gAAAA', id: 'rs_1' },
    { type: 'text', choice: 0, text: 'Hello', phase: 'final_answer' },
    {
      type: 'citation',
      choice: 0,
      source: { url: 'https://a.example/', title: 'A', start: 1, end: 5 },
      own: { dialect: 'responses', json: JSON.stringify(annotation) },
    },
    { type: 'tool_call', choice: 0, index: 0, id: 'c1', name: 'ns__one', signature: null },
    { type: 'tool_arguments', choice: 0, index: 0, text: '{"a":1}' },
    { type: 'tool_call', choice: 0, index: 1, id: 'c2', name: 'patch', signature: null },
    { type: 'tool_arguments', choice: 0, index: 1, text: '{"input":"' },
    { type: 'tool_arguments', choice: 0, index: 1, text: 'say \\"x\\"\\n' },
    { type: 'tool_arguments', choice: 0, index: 1, text: '"}' },
    { type: 'provider_item', choice: 0, dialect: 'responses', json: JSON.stringify(hosted) },
    {
      type: 'usage',
      usage: { inputTokens: 10, cachedInputTokens: 4, cacheWriteTokens: 2, outputTokens: 7, reasoningTokens: 3 },
    },
    { type: 'finish', choice: 0, reason: 'tool_calls' },
    { type: 'end' },
  ]

  test('reads a JSON response', () => {
    const body = whole({ status: 'completed', output: [reasoning, message, called, patch, hosted], usage })
    expect(partsIn(openaiResponses, body)).toEqual(expected)
  })

  test('reads a stream', () => {
    const parts = stream(
      { type: 'response.created', response: whole({ status: 'in_progress' }) },
      { type: 'response.output_item.added', ...at(0, { item: { ...reasoning, summary: [], encrypted_content: '' } }) },
      { type: 'response.reasoning_summary_part.added', ...at(0, { summary_index: 0 }) },
      { type: 'response.reasoning_summary_text.delta', ...at(0, { delta: 'Hm.' }) },
      { type: 'response.output_item.done', ...at(0, { item: reasoning }) },
      { type: 'response.output_item.added', ...at(1, { item: { ...message, content: [] } }) },
      { type: 'response.output_text.delta', ...at(1, { delta: 'Hello', logprobs: [] }) },
      { type: 'response.output_text.annotation.added', ...at(1, { annotation }) },
      { type: 'response.output_item.done', ...at(1, { item: message }) },
      { type: 'response.output_item.added', ...at(2, { item: { ...called, arguments: '' } }) },
      { type: 'response.function_call_arguments.delta', ...at(2, { delta: '{"a":1}' }) },
      { type: 'response.output_item.done', ...at(2, { item: called }) },
      { type: 'response.output_item.added', ...at(3, { item: { ...patch, input: '' } }) },
      { type: 'response.custom_tool_call_input.delta', ...at(3, { delta: 'say "x"\n' }) },
      { type: 'response.output_item.done', ...at(3, { item: patch }) },
      { type: 'keepalive', sequence_number: 9 },
      { type: 'response.output_item.done', ...at(4, { item: hosted }) },
      { type: 'response.completed', response: whole({ status: 'completed', usage }) },
      { type: 'response.output_text.delta', ...at(1, { delta: 'late' }) },
    )
    expect(parts).toEqual(expected)
  })

  test.each<[object, FinishReason]>([
    [
      { type: 'response.incomplete', response: whole({ incomplete_details: { reason: 'max_output_tokens' } }) },
      'length',
    ],
    [
      { type: 'response.incomplete', response: whole({ incomplete_details: { reason: 'content_filter' } }) },
      'content_filter',
    ],
    [{ type: 'response.completed', response: whole({}) }, 'stop'],
  ])('reads %j as finish reason %s', (event, reason) => {
    expect(stream(event).slice(-2)).toEqual([{ type: 'finish', choice: 0, reason }, { type: 'end' }])
  })

  test.each([
    [
      { type: 'response.failed', response: whole({ error: { code: 'rate_limit_exceeded', message: 'x' } }) },
      'rate_limited',
    ],
    [
      { type: 'response.failed', response: whole({ error: { code: 'server_error', message: 'x' } }) },
      'generation_failed',
    ],
    [{ type: 'error', code: 'context_length_exceeded', message: 'x' }, 'context_overflow'],
    [{ type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota' } }, 'quota_exhausted'],
  ])('reads %j as failure %s', (event, kind) => {
    expect(stream(event)).toMatchObject([{ type: 'failure', failure: { kind } }])
  })

  test('returns no end for a truncated stream and a failure for an unclosed call', () => {
    const begun = [
      { type: 'response.created', response: whole({}) },
      { type: 'response.output_item.added', ...at(0, { item: { ...called, arguments: '' } }) },
      { type: 'response.function_call_arguments.delta', ...at(0, { delta: '{"a"' }) },
    ]
    expect(stream(...begun).map(({ type }) => type)).not.toContain('end')
    const closed = stream(...begun, { type: 'response.completed', response: whole({}) })
    expect(closed.at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'truncated' } })
  })

  test('never throws for any events, stops after an end, opens each call once in order', () => {
    const json = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>(called, patch, reasoning, message, hosted))
    const event = fc.record({
      type: fc.constantFrom(
        ...[
          'response.created',
          'response.output_item.added',
          'response.output_item.done',
          'response.output_text.delta',
        ],
        ...[
          'response.function_call_arguments.delta',
          'response.custom_tool_call_input.delta',
          'response.refusal.delta',
        ],
        ...['response.reasoning_summary_text.delta', 'response.completed', 'response.incomplete', 'response.failed'],
        ...['error', 'keepalive', 'response.output_text.annotation.added'],
      ),
      output_index: fc.oneof(fc.nat({ max: 3 }), json),
      item: json,
      delta: fc.oneof(fc.string(), json),
      response: fc.oneof(json, fc.constant(whole({ usage }))),
      error: json,
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), events => {
        const parts = stream(...events)
        const over = parts.findIndex(({ type }) => type === 'end' || type === 'failure')
        if (over !== -1) expect(over).toBe(parts.length - 1)
        const calls = parts.flatMap(part => (part.type === 'tool_call' ? [part] : []))
        expect(calls.map(({ index }) => index)).toEqual(calls.map((_, index) => index))
        expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
      }),
      { numRuns: 300 },
    )
    fc.assert(
      fc.property(fc.jsonValue(), body => {
        const last = partsIn(openaiResponses, body).at(-1)?.type
        expect(last === 'end' || last === 'failure').toBe(true)
      }),
      { numRuns: 100 },
    )
  })
})
