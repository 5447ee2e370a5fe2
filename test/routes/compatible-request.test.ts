import { describe, expect, test } from 'bun:test'
import { Kind, type TSchema } from '@sinclair/typebox'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { compatibleSchema, readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { nativeSchema } from '../../src/dialects/native/request.ts'
import { documentedDefaults } from '../harness/ask.ts'
import { getRefusal } from '../harness/refusal.ts'

const canary = 'canary-7f3a'
const hello = { role: 'user', content: 'Hello' }
const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"x":' } }
const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } }
const calling = { role: 'assistant', content: null, tool_calls: [call] }
const result = { role: 'tool', tool_call_id: 'call_1', content: 'found' }

const read = (body: object, headers: Record<string, string> = {}) => readCompatible(body, new Headers(headers), 100)
const send = (fields: object, headers: Record<string, string> = {}): ChatRequest =>
  read({ messages: [hello], ...fields }, headers).request

const failure = (body: object, headers: Record<string, string> = {}) => getRefusal(() => read(body, headers))

/** Values of the wrong type, range or length, by field. Wrong strings contain the canary if possible. */
const wrongFields: Record<string, readonly unknown[]> = {
  model: [7, '', canary.repeat(40), []],
  mode: [canary, 1],
  strategy: [canary, 1],
  stream: [canary, 1],
  stream_mode: [canary, true],
  enhance_prompt: [canary, 1],
  test_mode: [canary],
  fallback: [canary],
  continue: [canary, true],
  fallback_max_cost_factor: [0.99, 1001, -1, '3', canary],
  web: [canary, true],
  max_output_tokens: [0, -1, 1.5, canary, 1e308],
  max_completion_tokens: [0, -1, 1.5, canary],
  max_tokens: [0, -1, 1.5, canary],
  temperature: [-0.1, 2.1, '0.7', canary, true, Infinity],
  top_p: [-0.1, 1.1, canary],
  n: [0, 129, 1.5, canary],
  seed: [1.5, canary],
  presence_penalty: [-2.1, 2.1, canary],
  frequency_penalty: [-2.1, 2.1, canary],
  logprobs: [canary, 1],
  top_logprobs: [-1, 21, 1.5, canary],
  parallel_tool_calls: [canary],
  reasoning_effort: [canary, 3],
  user: [7, canary.repeat(60)],
  safety_identifier: [7, canary.repeat(20)],
  verbosity: [canary],
  service_tier: [canary],
  store: [canary],
  prompt: ['', 7],
  prediction: [canary],
  web_search_options: [canary],
  prompt_cache_key: [7],
  prompt_cache_retention: [canary],
}

describe('invalid field', () => {
  for (const [field, values] of Object.entries(wrongFields))
    test.each(values.map(value => [value]))(`${field}: %j`, value => {
      const error = failure({ messages: [hello], [field]: value })
      expect([error.code, error.param]).toEqual(['invalid_request', field])
      expect(error.message).toContain(`\`${field}\``)
      expect(error.message).not.toContain(canary)
    })

  const within = (fields: object) => ({ messages: [hello], ...fields })
  const talk = (...messages: unknown[]) => ({ messages })
  const part = (...content: unknown[]) => talk({ role: 'user', content })
  test.each<[object, string]>([
    [{}, 'messages'],
    [{ messages: null }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: '' }, 'messages'],
    [{ messages: 7 }, 'messages'],
    [{ messages: { canary } }, 'messages'],
    [{ messages: new Array(10_001).fill(hello) }, 'messages'],
    [within({ prompt: canary }), 'prompt'],
    [talk(canary), 'messages.0'],
    [talk(hello, { content: canary }), 'messages.1.role'],
    [talk({ role: canary, content: '' }), 'messages.0.role'],
    [talk({ role: 'user' }), 'messages.0.content'],
    [talk({ role: 'user', content: null }), 'messages.0.content'],
    [talk({ role: 'user', content: [] }), 'messages.0.content'],
    [talk({ role: 'user', content: { canary } }), 'messages.0.content'],
    [talk({ role: 'user', content: 'x', name: 7 }), 'messages.0.name'],
    [talk({ role: 'system', content: 7 }), 'messages.0.content'],
    [part(canary), 'messages.0.content.0'],
    [part({}), 'messages.0.content.0.type'],
    [part({ type: 7 }), 'messages.0.content.0.type'],
    [part({ type: 'text' }), 'messages.0.content.0.text'],
    [part({ type: 'text', text: 7 }), 'messages.0.content.0.text'],
    [part({ type: 'text', text: 'x' }, { type: 'image_url' }), 'messages.0.content.1.image_url'],
    [part({ type: 'image_url', image_url: canary }), 'messages.0.content.0.image_url'],
    [part({ type: 'image_url', image_url: {} }), 'messages.0.content.0.image_url.url'],
    [part({ type: 'image_url', image_url: { url: `file:///${canary}` } }), 'messages.0.content.0.image_url.url'],
    [
      part({ type: 'image_url', image_url: { url: 'https://x', detail: canary } }),
      'messages.0.content.0.image_url.detail',
    ],
    [talk(hello, { ...calling, tool_calls: [{ ...call, id: '' }] }), 'messages.1.tool_calls.0.id'],
    [
      talk(hello, { ...calling, tool_calls: [{ ...call, function: { name: 'look' } }] }),
      'messages.1.tool_calls.0.function.arguments',
    ],
    [
      talk(hello, { ...calling, tool_calls: [{ ...call, function: { name: canary, arguments: {} } }] }),
      'messages.1.tool_calls.0.function.arguments',
    ],
    [talk(hello, calling, { role: 'tool', content: 'x' }), 'messages.2.tool_call_id'],
    [talk(hello, calling, { ...result, tool_call_id: canary }), 'messages.2.tool_call_id'],
    [talk(hello, result), 'messages.1.tool_call_id'],
    [talk(hello, calling, hello, result), 'messages.3.tool_call_id'],
    [talk(hello, { role: 'function', name: 'look', content: 'x' }), 'messages.1.name'],
    [within({ tools: canary }), 'tools'],
    [within({ tools: new Array(1_025).fill(tool) }), 'tools'],
    [within({ tools: [{}] }), 'tools.0.type'],
    [within({ tools: [tool, { type: 'function' }] }), 'tools.1.function'],
    [within({ tools: [{ type: 'function', function: {} }] }), 'tools.0.function.name'],
    [within({ tools: [{ type: 'function', function: { name: `${canary} space` } }] }), 'tools.0.function.name'],
    [within({ tools: [{ type: 'function', function: { name: 'x'.repeat(129) } }] }), 'tools.0.function.name'],
    [
      within({ tools: [{ type: 'function', function: { name: 'x', parameters: canary } }] }),
      'tools.0.function.parameters',
    ],
    [within({ tools: [{ type: 'function', function: { name: 'x', strict: canary } }] }), 'tools.0.function.strict'],
    [within({ tools: [tool, tool] }), 'tools.1.function.name'],
    [within({ tool_choice: 'required' }), 'tool_choice'],
    [within({ tools: [], tool_choice: 'required' }), 'tool_choice'],
    [within({ tools: [tool], tool_choice: canary }), 'tool_choice'],
    [within({ tools: [tool], tool_choice: {} }), 'tool_choice.type'],
    [within({ tools: [tool], tool_choice: { type: 'function' } }), 'tool_choice.function'],
    [
      within({ tools: [tool], tool_choice: { type: 'function', function: { name: 'canary' } } }),
      'tool_choice.function.name',
    ],
    [
      within({
        tools: [tool],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'other' } }] },
        },
      }),
      'tool_choice.allowed_tools.tools.0.function.name',
    ],
    [within({ functions: [{ name: 'x' }], tools: [tool] }), 'functions'],
    [part({ type: 'file', file: { filename: canary } }), 'messages.0.content.0.file.file_data'],
    [
      part({ type: 'image_url', image_url: { url: `http://127.0.0.1/${canary}` } }),
      'messages.0.content.0.image_url.url',
    ],
    [within({ functions: [{}] }), 'functions.0.name'],
    [within({ functions: [{ name: 'x' }], function_call: { name: 'y' } }), 'function_call.name'],
    [within({ function_call: canary }), 'function_call'],
    [within({ response_format: canary }), 'response_format'],
    [within({ response_format: {} }), 'response_format.type'],
    [within({ response_format: { type: 'json_schema' } }), 'response_format.json_schema'],
    [within({ response_format: { type: 'json_schema', json_schema: {} } }), 'response_format.json_schema.name'],
    [
      within({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: canary } } }),
      'response_format.json_schema.schema',
    ],
    [within({ stop: ['1', '2', '3', '4', '5'] }), 'stop'],
    [within({ stop: [7] }), 'stop.0'],
    [within({ stop: 7 }), 'stop'],
    [within({ logit_bias: { '50256': 101 } }), 'logit_bias.50256'],
    [within({ logit_bias: [] }), 'logit_bias'],
    [within({ logit_bias: { '7\n8': canary } }), 'logit_bias.7\n8'],
    [within({ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, ''])) }), 'metadata'],
    [within({ metadata: { ['k'.repeat(65)]: canary } }), `metadata.${'k'.repeat(64)}`],
    [within({ metadata: { key: canary.repeat(50) } }), 'metadata.key'],
    [within({ metadata: { key: 7 } }), 'metadata.key'],
    [within({ top_logprobs: 3 }), 'top_logprobs'],
    [within({ stream_options: { include_usage: true } }), 'stream_options'],
    [within({ stream: true, stream_options: { include_usage: canary } }), 'stream_options.include_usage'],
    [within({ mode: 'gateway-ai', model: 'canary' }), 'mode'],
  ])('%j → %s', (body, param) => {
    const error = failure(body)
    expect([error.code, error.param]).toEqual(['invalid_request', param])
    expect(error.message).not.toContain(canary)
  })

  test.each<[object, string]>([
    [part({ type: 'input_audio', input_audio: { data: canary, format: 'wav' } }), 'messages.0.content.0.type'],
    [
      part({ type: 'text', text: 'x' }, { type: 'file', file: { file_id: canary } }),
      'messages.0.content.1.file.file_id',
    ],
    [
      part({ type: 'file', file: { file_data: `data:text/plain;base64,${canary}` } }),
      'messages.0.content.0.file.file_data',
    ],
    [
      part({ type: 'file', file: { file_data: `https://example.org/${canary}` } }),
      'messages.0.content.0.file.file_data',
    ],
    [
      talk({ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }),
      'messages.0.content.0.type',
    ],
    [within({ response_format: { type: 'grammar' } }), 'response_format.type'],
    [within({ modalities: ['text', 'audio'] }), 'modalities.1'],
    [within({ audio: { voice: canary } }), 'audio'],
    [talk({ role: 'assistant', audio: { id: canary } }), 'messages.0.audio'],
  ])('gets unsupported_parameter when the gateway lacks the feature: %j → %s', (body, param) => {
    const error = failure(body)
    expect([error.code, error.param]).toEqual(['unsupported_parameter', param])
    expect(error.message).not.toContain(canary)
  })
})

test('null: counts as absent in every field', () => {
  const nothing = Object.fromEntries(Object.keys(compatibleSchema.properties).map(field => [field, null]))
  expect(send({ ...nothing, messages: [hello] })).toEqual(send({}))
})

test('minimal request: uses automatic routing and fallbacks, and does not stream', () => {
  expect(send({})).toStrictEqual({
    ...documentedDefaults,
    dialect: 'chat_completions',
    messages: [{ role: 'user', name: null, content: [{ type: 'text', text: 'Hello' }] }],
  })
})

test('every field: reaches the chat request', () => {
  expect(
    send({
      model: 'openai/gpt-5.5',
      strategy: 'cost',
      temperature: 0,
      top_p: 0.5,
      n: 2,
      seed: -3,
      stop: 'END',
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { '5': -100 },
      logprobs: true,
      top_logprobs: 2,
      parallel_tool_calls: true,
      reasoning_effort: 'high',
      user: 'someone',
      metadata: { team: 'blue' },
      tools: [tool],
      tool_choice: { type: 'function', function: { name: 'look' } },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
      },
      fallback: false,
      fallback_max_cost_factor: 2.5,
      web: 'off',
      enhance_prompt: true,
      test_mode: true,
      max_completion_tokens: 30,
      max_tokens: 20,
      max_output_tokens: 10,
      verbosity: 'low',
      top_k: 40,
      min_p: null,
    }),
  ).toStrictEqual({
    ...documentedDefaults,
    choices: 2,
    dialect: 'chat_completions',
    endUser: 'someone',
    enhance: true,
    extras: { top_k: 40, verbosity: 'low' },
    fallback: 'same_model',
    continuation: null,
    fallbackMaxCostFactor: 2.5,
    frequencyPenalty: -1,
    logitBias: { 5: -100 },
    logprobs: true,
    maxOutputTokens: 30,
    messages: [{ role: 'user', name: null, content: [{ type: 'text', text: 'Hello' }] }],
    metadata: { team: 'blue' },
    model: 'openai/gpt-5.5',
    parallelToolCalls: true,
    presencePenalty: 1,
    reasoningEffort: 'high',
    responseFormat: {
      type: 'json_schema',
      name: 'answer',
      description: null,
      schema: { type: 'object' },
      strict: true,
    },
    seed: -3,
    stop: ['END'],
    strategy: 'cost',
    temperature: 0,
    testMode: true,
    toolChoice: { name: 'look' },
    tools: [{ name: 'look', description: null, parameters: { type: 'object' }, strict: null }],
    topLogprobs: 2,
    topP: 0.5,
    web: 'off',
  })
})

test('unknown fields: pass at every level, those of the top level in extras', () => {
  const spoken = send({
    messages: [{ ...hello, weight: 1, content: [{ type: 'text', text: 'x', annotations: {} }] }],
    tools: [{ ...tool, extra: 1, function: { ...tool.function, extra: 1 } }],
    chat_template_kwargs: { a: 1 },
  })
  expect(spoken.extras).toEqual({ chat_template_kwargs: { a: 1 } })
})

test.each<[object, ChatRequest['model']]>([
  [{}, null],
  [{ model: 'gateway-ai' }, null],
  [{ model: 'gateway-ai', mode: 'gateway-ai' }, null],
  [{ model: 'Gateway-AI', mode: 'gateway-ai' }, null],
  [{ mode: 'gateway-ai' }, null],
  [{ model: 'a/b:c' }, 'a/b:c'],
])('field `model`: parses %j', (fields, model) => expect(send(fields).model).toBe(model))

test.each<[object, ChatRequest['stream']]>([
  [{}, null],
  [{ stream: false }, null],
  [{ stream: true }, 'buffered'],
  [{ stream: true, stream_mode: 'realtime' }, 'realtime'],
  [{ stream_mode: 'realtime' }, 'realtime'],
  [{ stream: false, stream_mode: 'realtime' }, null],
])('field `delivery`: parses %j', (fields, stream) => expect(send(fields).stream).toBe(stream))

test('header: overrides the body', () => {
  const body = {
    strategy: 'cost',
    enhance_prompt: true,
    stream: true,
    stream_mode: 'buffered',
    web: 'auto',
    test_mode: false,
    fallback: true,
    fallback_max_cost_factor: 9,
  }
  const headers = {
    'X-Gateway-Strategy': 'speed',
    'X-Gateway-Enhance': 'false',
    'X-Gateway-Stream-Mode': 'realtime',
    'X-Gateway-Web': 'off',
    'X-Gateway-Test-Mode': 'true',
    'X-Gateway-No-Fallback': 'true',
    'X-Gateway-Fallback-Max-Cost-Factor': '4',
  }
  expect(send(body, headers)).toMatchObject({
    strategy: 'speed',
    enhance: false,
    stream: 'realtime',
    web: 'off',
    testMode: true,
    fallback: 'same_model',
    continuation: null,
    fallbackMaxCostFactor: 4,
  })
  for (const name of Object.keys(headers)) {
    const error = failure({ messages: [hello] }, { [name]: canary })
    expect([error.code, error.param]).toEqual(['invalid_request', name])
    expect(error.message).not.toContain(canary)
  }
})

test.each<[object, number | null]>([
  [{ max_tokens: 5, max_output_tokens: 6 }, 5],
  [{ max_output_tokens: 6 }, 6],
  [{ max_completion_tokens: 4, max_tokens: 5 }, 4],
])('output cap: parses %j', (fields, cap) => expect(send(fields).maxOutputTokens).toBe(cap))

test('string as messages: becomes one user message', () => {
  const message = { role: 'user', content: [{ type: 'text', text: 'Hi' }], name: null } as const
  expect(read({ prompt: 'Hi' }).request.messages).toEqual([message])
  expect(read({ messages: 'Hi' }).request.messages).toEqual([message])
})

test('conversation: keeps the order of parts, images, calls and results', () => {
  expect(
    send({
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be' },
            { type: 'text', text: 'brief' },
          ],
        },
        {
          role: 'user',
          name: 'Ann',
          content: [
            { type: 'input_text', text: 'See' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          reasoning_content: 'hm',
          tool_calls: [
            { ...call, extra_content: { google: { thought_signature: 'sig' } } },
            { ...call, id: 'call_2' },
          ],
        },
        { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'b' }] },
        result,
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'So' },
            { type: 'refusal', refusal: ' no' },
          ],
        },
        { role: 'assistant', content: null, refusal: 'no' },
        { role: 'assistant' },
        hello,
      ],
    }).messages,
  ).toStrictEqual([
    { role: 'system', text: 'Be\nbrief' },
    {
      role: 'user',
      name: 'Ann',
      content: [
        { type: 'text', text: 'See' },
        { type: 'image', detail: 'low', url: 'data:image/png;base64,AA' },
      ],
    },
    {
      role: 'assistant',
      name: null,
      reasoning: 'hm',
      text: null,
      toolCalls: [
        { id: 'call_1', name: 'look', arguments: '{"x":', signature: 'sig' },
        { id: 'call_2', name: 'look', arguments: '{"x":', signature: null },
      ],
    },
    { role: 'tool', callId: 'call_2', text: 'b' },
    { role: 'tool', callId: 'call_1', text: 'found' },
    { role: 'assistant', name: null, reasoning: null, text: 'So no', toolCalls: [] },
    { role: 'assistant', name: null, reasoning: null, text: 'no', toolCalls: [] },
    { role: 'assistant', name: null, reasoning: null, text: null, toolCalls: [] },
    { role: 'user', name: null, content: [{ type: 'text', text: 'Hello' }] },
  ])
})

test('deprecated functions: become tools, and the response uses functions', () => {
  const spoken = read({
    messages: [
      hello,
      { role: 'assistant', content: null, function_call: { name: 'look', arguments: '{}' } },
      { role: 'function', name: 'look', content: 'found' },
    ],
    functions: [{ name: 'look', parameters: { type: 'object' } }],
    function_call: { name: 'look' },
  })
  expect(spoken.legacyFunctions).toBe(true)
  expect(spoken.request.tools).toEqual([
    { name: 'look', description: null, parameters: { type: 'object' }, strict: null },
  ])
  expect(spoken.request.toolChoice).toEqual({ name: 'look' })
  expect(spoken.request.parallelToolCalls).toBe(false)
  expect(spoken.request.extras).toEqual({})
  const [, calling, answer] = spoken.request.messages
  expect(calling?.role === 'assistant' && calling.toolCalls[0]?.id).toBe('call_1')
  expect(answer).toEqual({ role: 'tool', callId: 'call_1', text: 'found' })
})

test('allowed_tools: removes the other tools', () => {
  const other = { type: 'function', function: { name: 'other' } }
  const allowed = { mode: 'required', tools: [{ type: 'function', function: { name: 'other' } }] }
  const spoken = send({ tools: [tool, other], tool_choice: { type: 'allowed_tools', allowed_tools: allowed } })
  expect([spoken.tools.map(item => item.name), spoken.toolChoice]).toEqual([['other'], 'required'])
})

test('tool_choice without tools: has no effect unless it requires a tool', () => {
  expect(send({ tools: [], tool_choice: 'auto' }).toolChoice).toBeNull()
  expect(send({ tool_choice: 'none' }).toolChoice).toBeNull()
})

test('__proto__ in a body: pollutes nothing', () => {
  const body = JSON.parse('{"messages":"Hi","__proto__":{"polluted":1},"metadata":{"__proto__":"x"}}') as object
  const spoken = read(body).request
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect((spoken as Record<string, unknown>).polluted).toBeUndefined()
})

test('schemas: have open objects in one dialect and closed ones in the other, and bounds on every string', () => {
  walk(compatibleSchema, '', true)
  walk(nativeSchema, '', false)
})

function walk(schema: TSchema, path: string, additionalProperties: boolean): void {
  const parts = schema as Record<string, unknown>
  if (schema[Kind] === 'Object' && Object.keys(schema.properties as object).length > 0) {
    // An unknown demand that passed would not be met.
    const isOpen = additionalProperties && path !== '.constraints'
    expect([path, parts.additionalProperties]).toEqual([path, isOpen])
  }
  if (schema[Kind] === 'String')
    expect([path, 'maxLength' in parts || parts.boundedBy === 'body']).toEqual([path, true])
  if (schema[Kind] === 'Array') expect([path, 'maxItems' in parts || path.includes('content')]).toEqual([path, true])
  for (const [key, child] of Object.entries((parts.properties ?? {}) as Record<string, TSchema>))
    walk(child, `${path}.${key}`, additionalProperties)
  for (const child of (parts.anyOf ?? []) as TSchema[]) walk(child, path, additionalProperties)
  if (parts.items !== undefined) walk(parts.items as TSchema, `${path}.0`, additionalProperties)
}
