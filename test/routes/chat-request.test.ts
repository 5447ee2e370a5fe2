import { describe, expect, test } from 'bun:test'
import { readNative } from '../../src/dialects/native/request.ts'
import { documentedDefaults } from '../harness/ask.ts'
import { getRefusal } from '../harness/refusal.ts'

const canary = 'canary-7f3a'
const hello = { role: 'user', content: 'Hello' }
const tool = { type: 'function', function: { name: 'look' } }
const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }

const read = (body: object, headers: Record<string, string> = {}) => readNative(body, new Headers(headers), 100)

const failure = (body: object, headers: Record<string, string> = {}) => getRefusal(() => read(body, headers))

const wrongFields: Record<string, readonly unknown[]> = {
  messages: [[], 7, canary, new Array(10_001).fill(hello)],
  model: [7, '', canary.repeat(40)],
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
  metadata: [canary, Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, '']))],
  max_output_tokens: [0, -1, 1.5, canary],
  temperature: [-0.1, 2.1, '0.7', canary],
  top_p: [-0.1, 1.1, canary],
  seed: [1.5, canary],
  stop: [7, ['1', '2', '3', '4', '5']],
  reasoning_effort: [canary],
  tools: [canary],
  tool_choice: [canary, 'required'],
  response_format: [canary],
}

describe('invalid field', () => {
  for (const [field, values] of Object.entries(wrongFields))
    test.each(values.map(value => [value]))(`${field}: %j`, value => {
      const error = failure({ messages: [hello], [field]: value })
      expect([error.code, error.param]).toEqual(['invalid_request', field])
      expect(error.message).not.toContain(canary)
    })

  test('gets an error with its name and not its value: prompt: too short or no text', () => {
    for (const prompt of ['', 7]) expect(failure({ prompt }).param).toBe('prompt')
  })
})

describe('misspelled field', () => {
  test.each<[object, string]>([
    [{ prompt: 'Hi', n: 2 }, 'n'],
    [{ prompt: 'Hi', max_tokens: 2 }, 'max_tokens'],
    [{ messages: [{ ...hello, nmae: canary }] }, 'messages.0.nmae'],
    [{ messages: [{ role: 'user', content: [{ type: 'text', text: 'x', txt: canary }] }] }, 'messages.0.content.0.txt'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x', size: 1 } }] }] },
      'messages.0.content.0.image_url.size',
    ],
    [
      { messages: [hello, { role: 'assistant', tool_calls: [{ ...call, extra: 1 }] }] },
      'messages.1.tool_calls.0.extra',
    ],
    [{ prompt: 'Hi', tools: [{ ...tool, extra: 1 }] }, 'tools.0.extra'],
    [{ prompt: 'Hi', tools: [{ type: 'function', function: { name: 'x', params: {} } }] }, 'tools.0.function.params'],
    [{ prompt: 'Hi', response_format: { type: 'text', extra: 1 } }, 'response_format.extra'],
    [{ prompt: 'Hi', __proto__: null, constructor: 1 }, 'constructor'],
  ])('%j → %s', (body, param) => {
    const error = failure(body)
    expect([error.code, error.param]).toEqual(['invalid_request', param])
    expect(error.message).toContain('is not a known field here')
    expect(error.message).not.toContain(canary)
  })
})

test.each<[object, string, string]>([
  [{}, 'invalid_request', 'messages'],
  [{ messages: null, prompt: null }, 'invalid_request', 'messages'],
  [{ messages: [hello], prompt: 'Hi' }, 'invalid_request', 'prompt'],
  [{ prompt: 'Hi', mode: 'gateway-ai', model: 'openai/other' }, 'invalid_request', 'mode'],
  [{ messages: [{ role: 'developer', content: 'x' }] }, 'invalid_request', 'messages.0.role'],
  [
    { messages: [hello, { role: 'tool', content: 'x', tool_call_id: 'y' }] },
    'invalid_request',
    'messages.1.tool_call_id',
  ],
  [
    { messages: [{ role: 'user', content: [{ type: 'video' }] }] },
    'unsupported_parameter',
    'messages.0.content.0.type',
  ],
  [
    { messages: [{ role: 'user', content: [{ type: 'image', url: 'ftp://x' }] }] },
    'invalid_request',
    'messages.0.content.0.url',
  ],
  [{ prompt: 'Hi', metadata: { key: 'x'.repeat(513) } }, 'invalid_request', 'metadata.key'],
])('unsupported value: %j → %s %s', (body, code, param) => {
  const error = failure(body)
  expect([error.code, error.param]).toEqual([code, param] as never)
})

test('bare prompt: becomes a chat request with the documented defaults', () => {
  expect(read({ prompt: 'Hi' })).toStrictEqual({
    ...documentedDefaults,
    dialect: 'native',
    messages: [{ role: 'user', name: null, content: [{ type: 'text', text: 'Hi' }] }],
  })
})

test('every field: reaches the chat request', () => {
  expect(
    read({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image', url: 'https://example.org/a.png', detail: 'high' },
            { type: 'image_url', image_url: { url: 'DATA:image/png;base64,AA' } },
          ],
        },
        { role: 'assistant', content: 'I look.', reasoning: 'hm', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'found' },
      ],
      model: 'gateway-ai',
      mode: 'gateway-ai',
      strategy: 'quality',
      stream: true,
      stream_mode: 'realtime',
      enhance_prompt: true,
      test_mode: true,
      fallback: false,
      fallback_max_cost_factor: 2.5,
      web: 'off',
      metadata: { team: 'blue' },
      max_output_tokens: 9,
      temperature: 2,
      top_p: 1,
      seed: 1,
      stop: ['a', ''],
      reasoning_effort: 'low',
      tools: [tool],
      tool_choice: 'required',
      response_format: { type: 'json_object' },
    }),
  ).toStrictEqual({
    ...documentedDefaults,
    dialect: 'native',
    enhance: true,
    fallback: 'same_model',
    continuation: null,
    fallbackMaxCostFactor: 2.5,
    maxOutputTokens: 9,
    messages: [
      { role: 'system', text: 'Be brief.' },
      {
        role: 'user',
        name: null,
        content: [
          { type: 'text', text: 'See' },
          { type: 'image', detail: 'high', url: 'https://example.org/a.png' },
          { type: 'image', detail: null, url: 'DATA:image/png;base64,AA' },
        ],
      },
      {
        role: 'assistant',
        name: null,
        reasoning: 'hm',
        text: 'I look.',
        toolCalls: [{ id: 'call_1', name: 'look', arguments: '{}', signature: null }],
      },
      { role: 'tool', callId: 'call_1', text: 'found' },
    ],
    metadata: { team: 'blue' },
    reasoningEffort: 'low',
    responseFormat: { type: 'json_object' },
    seed: 1,
    stop: ['a'],
    strategy: 'quality',
    stream: 'realtime',
    temperature: 2,
    testMode: true,
    toolChoice: 'required',
    tools: [{ name: 'look', description: null, parameters: null, strict: null }],
    topP: 1,
    web: 'off',
  })
})

test('gateway headers: override the body', () => {
  const headers = {
    'x-gateway-strategy': 'speed',
    'x-gateway-stream-mode': 'buffered',
    'x-gateway-no-fallback': 'false',
    'x-gateway-fallback-max-cost-factor': '1.5',
  }
  expect(read({ prompt: 'Hi', strategy: 'cost', fallback: false }, headers)).toMatchObject({
    strategy: 'speed',
    stream: 'buffered',
    fallback: 'any',
    continuation: null,
    fallbackMaxCostFactor: 1.5,
  })
  for (const factor of [canary, '', '0.5', '1001', '1e3', '0x10', 'NaN', '-2'])
    expect(failure({ prompt: 'Hi' }, { 'x-gateway-fallback-max-cost-factor': factor }).param).toBe(
      'X-Gateway-Fallback-Max-Cost-Factor',
    )
  expect(failure({ prompt: 'Hi' }, { 'x-gateway-strategy': canary }).param).toBe('X-Gateway-Strategy')
})
