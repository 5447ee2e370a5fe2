import { describe, expect, test } from 'bun:test'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import type { ChatRequest, Message, Tool } from '../../src/core/chat/chat.ts'
import type { ParameterRules } from '../../src/core/models/models.ts'
import { jsonAnswerTool } from '../../src/providers/anthropic/schema.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { getTurns } from '../../src/providers/conversation-steps.ts'
import type { AdapterRequest } from '../../src/providers/provider.ts'
import { wireToolNames } from '../../src/providers/tool-names.ts'
import { type AnswerPart, partsIn, recorded } from '../harness/answer-parts.ts'
import { askWith } from '../harness/ask.ts'
import { budgetRules, modelWith } from '../harness/model.ts'
import { anyRequest, anyText, closed } from './any-request.ts'
import { cutOffsets, everyByte, mergeParts, readRecording, recordings } from './recordings.ts'

type Json = Record<string, unknown>

const adaptiveRules: ParameterRules = {
  ...budgetRules,
  sampling: 'rejected',
  prefill: false,
  efforts: ['low', 'medium', 'high', 'max'],
  reasoning: { kind: 'adaptive', off: 'disabled' },
}

const plainAsk = askWith({ messages: [] })

const getModel = (parameters: ParameterRules) => modelWith({ id: 'claude-test-1', provider: 'anthropic', parameters })

const access = { baseUrl: 'https://api.anthropic.com', apiKey: 'test-key' }
const system = (text: string): Message => ({ role: 'system', text })
const user = (...texts: string[]): Message => ({
  role: 'user',
  name: null,
  content: texts.map(text => ({ type: 'text', text })),
})
const image = (url: string): Message => ({
  role: 'user',
  name: null,
  content: [{ type: 'image', url, detail: null }],
})
const assistant = (text: string | null, ...calls: [id: string, name: string, json?: string][]): Message => ({
  role: 'assistant',
  text,
  reasoning: null,
  name: null,
  toolCalls: calls.map(([id, name, json = '{}']) => ({ id, name, arguments: json, signature: null })),
})
const result = (callId: string, text: string): Message => ({ role: 'tool', callId, text })
const weather: Tool = {
  name: 'weather',
  description: 'Looks outside.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: null,
}

function question(
  request: Partial<ChatRequest>,
  rules: ParameterRules = budgetRules,
  outputCap = 4_096,
): AdapterRequest {
  return {
    request: { ...plainAsk, messages: [user('Hi')], ...request },
    model: getModel(rules),
    outputCap,
    stream: false,
  }
}

function sent(chatRequest: Partial<ChatRequest>, rules: ParameterRules = budgetRules, outputCap = 4_096) {
  const request = anthropic.toRequest(question(chatRequest, rules, outputCap), access)
  return { body: JSON.parse(request.body) as Json, dropped: request.droppedParameters }
}

const getMessages = (...messages: Message[]): unknown => sent({ messages }).body.messages
const text = (value: string): Json => ({ type: 'text', text: value })

describe('Anthropic request', () => {
  test('goes to /v1/messages with key and version, whether or not the base URL ends in /v1', () => {
    for (const baseUrl of ['https://a.test', 'https://a.test/', 'https://a.test/v1', 'https://a.test/v1//']) {
      expect(anthropic.toRequest(question({}), { baseUrl, apiKey: 'k' })).toMatchObject({
        url: 'https://a.test/v1/messages',
        headers: { 'x-api-key': 'k', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      })
    }
    expect(anthropic.toRequest(question({}), { ...access, apiKey: null }).headers).not.toHaveProperty('x-api-key')
  })

  test('contains only model, cap, stream and messages for a bare prompt', () => {
    expect(sent({})).toStrictEqual({
      body: {
        max_tokens: 4096,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
        model: 'claude-test-1',
        stream: false,
      },
      dropped: [],
    })
  })

  test('contains every parameter that the API supports and reports the others as dropped', () => {
    expect(
      sent({
        messages: [
          system('Be brief.'),
          user('Weather?'),
          assistant(null, ['c1', 'weather', '{"city":"Oslo"}']),
          result('c1', 'Rain'),
        ],
        temperature: 1.5,
        topP: 0.9,
        presencePenalty: 0,
        frequencyPenalty: 1,
        seed: 7,
        logitBias: { 5: 1 },
        logprobs: true,
        topLogprobs: 2,
        stop: ['END', ' \n', ''],
        choices: 2,
        tools: [weather],
        toolChoice: 'required',
        parallelToolCalls: false,
        endUser: 'u-17',
      }),
    ).toStrictEqual({
      body: {
        max_tokens: 4096,
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Oslo' } }] },
          { role: 'user', content: [{ type: 'tool_result', content: 'Rain', tool_use_id: 'c1' }] },
        ],
        metadata: { user_id: 'u-17' },
        model: 'claude-test-1',
        stop_sequences: ['END'],
        stream: false,
        system: [{ type: 'text', text: 'Be brief.' }],
        temperature: 1,
        tool_choice: { type: 'any', disable_parallel_tool_use: true },
        tools: [
          {
            name: 'weather',
            description: 'Looks outside.',
            input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          },
        ],
      },
      dropped: [
        'n',
        'seed',
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'presence_penalty',
        'frequency_penalty',
        'top_p',
        'stop',
      ],
    })
  })

  test('omits an end-user ID that looks like an email address', () => {
    expect(sent({ endUser: 'someone@example.test' }).body).not.toHaveProperty('metadata')
    expect(sent({ endUser: 'x'.repeat(257) }).body).not.toHaveProperty('metadata')
  })

  test('replaces only unpaired surrogates', () => {
    const written = 'a\ud800b \\ud800 \u{1f600} \\\\\udc00 \n'
    const { body } = anthropic.toRequest(question({ messages: [user(written)] }), access)
    expect(JSON.parse(body).messages[0].content[0].text).toBe('a\ufffdb \\ud800 \u{1f600} \\\\\ufffd \n')
    const turns = getMessages(user('Go'), assistant(null, ['a', 'f', '{"\\ud800":1}'])) as { content: Json[] }[]
    expect(turns[1]?.content[0]?.input).toEqual({ '\ufffd': 1 })
  })
})

describe('Anthropic conversation', () => {
  test('collects non-empty system texts from anywhere in order', () => {
    const { body } = sent({
      messages: [system('One'), user('Hi'), system(' '), assistant('Yo'), system('Two'), user('?')],
    })
    expect(body.system).toEqual([text('One'), text('Two')])
    expect(body.messages).toEqual([
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [text('Yo')] },
      { role: 'user', content: [text('?')] },
    ])
  })

  test('contains a user turn when there is only system text, or nothing', () => {
    expect(getMessages(system('Tell a joke.'))).toEqual([{ role: 'user', content: [text('Begin.')] }])
    expect(getMessages()).toEqual([{ role: 'user', content: [text('Begin.')] }])
  })

  test('merges turns of one role and begins with the user', () => {
    expect(getMessages(assistant('Hello'), assistant('again'), user('a'), user('b', 'c'))).toEqual([
      { role: 'user', content: [text('Begin.')] },
      { role: 'assistant', content: [text('Hello'), text('again')] },
      { role: 'user', content: [text('a'), text('b'), text('c')] },
    ])
  })

  test('merges turns of any number of parts', () => {
    const many = Array.from({ length: 1_000_000 }, () => ({ type: 'text', text: 'a' }) as const)
    const turns = getTurns([user('first'), { role: 'user', content: many, name: null }], false, {
      text: () => 1,
      file: () => 0,
      image: () => 0,
      exchange: () => [0, 0],
    })
    expect(turns.map(({ parts }) => parts.length)).toEqual([1 + many.length])
  })

  test('drops empty assistant turns and fills empty user turns, but not empty parts beside others', () => {
    expect(getMessages(user(''), assistant('x'), user(' \n'), assistant(''), assistant(null), user('b', ''))).toEqual([
      { role: 'user', content: [text('(The message was empty.)')] },
      { role: 'assistant', content: [text('x')] },
      { role: 'user', content: [text('b')] },
    ])
    expect(getMessages({ role: 'user', content: [], name: null })).toEqual([
      { role: 'user', content: [text('(The message was empty.)')] },
    ])
  })

  test('continues a final assistant message without trailing space if supported, else adds a user turn', () => {
    const messages = [user('Count'), assistant('1, 2, \n')]
    expect(sent({ messages }).body.messages).toEqual([
      { role: 'user', content: [text('Count')] },
      { role: 'assistant', content: [text('1, 2,')] },
    ])
    const asked = [
      { role: 'user', content: [text('Count')] },
      { role: 'assistant', content: [text('1, 2, \n')] },
      { role: 'user', content: [text('Continue.')] },
    ]
    expect(sent({ messages }, adaptiveRules).body.messages).toEqual(asked)
    expect(sent({ messages, reasoningEffort: 'low' }).body.messages).toEqual(asked)
  })

  test('puts all results of a turn into one user message, before its text', () => {
    expect(
      getMessages(
        user('Go'),
        assistant('Looking.', ['a', 'f'], ['b', 'g']),
        result('b', 'B'),
        user('And?'),
        result('a', 'A'),
      ),
    ).toEqual([
      { role: 'user', content: [text('Go')] },
      {
        role: 'assistant',
        content: [
          text('Looking.'),
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'g', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'A' },
          { type: 'tool_result', tool_use_id: 'b', content: 'B' },
          text('And?'),
        ],
      },
    ])
  })

  test('treats parallel calls in separate assistant messages as one turn', () => {
    expect(
      getMessages(
        user('Go'),
        assistant(null, ['a', 'f']),
        assistant('and', ['b', 'f']),
        result('a', 'A'),
        result('b', ''),
      ),
    ).toEqual([
      { role: 'user', content: [text('Go')] },
      {
        role: 'assistant',
        content: [
          text('and'),
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'A' },
          { type: 'tool_result', tool_use_id: 'b' },
        ],
      },
    ])
  })

  test('answers calls without a result with an error and sends results without a call as text', () => {
    const missing = { type: 'tool_result', content: 'The tool gave no result.', is_error: true }
    expect(
      getMessages(
        user('Go'),
        assistant(null, ['a', 'f'], ['b', 'f']),
        result('a', 'A'),
        result('a', 'A2'),
        assistant('ok'),
        result('z', 'Z'),
        assistant(null, ['c', 'f']),
      ),
    ).toEqual([
      { role: 'user', content: [text('Go')] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'A' },
          { ...missing, tool_use_id: 'b' },
          text('Result of an earlier tool call:\nA2'),
        ],
      },
      { role: 'assistant', content: [text('ok')] },
      { role: 'user', content: [text('Result of an earlier tool call:\nZ')] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
      { role: 'user', content: [{ ...missing, tool_use_id: 'c' }] },
    ])
  })

  test('rewrites foreign, long, empty and repeated call IDs to valid unique ones, consistently in results', () => {
    const long = `${'x'.repeat(70)}|1`
    const messages = [
      user('Go'),
      assistant(null, ['a:b', 'f'], ['a|b', 'f'], [long, 'f'], ['', 'f'], ['same', 'f'], ['same', 'f']),
      result('same', '5'),
      result('', '4'),
      result(long, '3'),
      result('a|b', '2'),
      result('a:b', '1'),
      result('same', '6'),
      assistant(null, ['same', 'f']),
      result('same', '7'),
    ]
    const turns = getMessages(...messages) as { content: Json[] }[]
    const calls = turns
      .flatMap(turn => turn.content)
      .filter(block => block.type === 'tool_use')
      .map(block => block.id)
    const results = new Map(
      turns
        .flatMap(turn => turn.content)
        .filter(block => block.type === 'tool_result')
        .map(block => [block.tool_use_id, block.content]),
    )
    expect(calls).toEqual(['a_b', 'a_b_1', 'x'.repeat(64), 'unnamed', 'same', 'same_5', 'same_6'])
    expect(calls.map(id => results.get(id))).toEqual(['1', '2', '3', '4', '5', '6', '7'])
  })

  test('replaces invalid arguments by an object', () => {
    const inputs = ['{"a":1}', '', 'not json', '[1]', 'null', '"x"'].map(json => {
      const turns = getMessages(user('Go'), assistant(null, ['a', 'f', json])) as { content: Json[] }[]
      return turns[1]?.content[0]?.input
    })
    expect(inputs).toEqual([{ a: 1 }, {}, {}, {}, {}, {}])
  })

  test('sends images as bytes or URL, including unsupported kinds, which the API rejects', () => {
    const getSource = (url: string): unknown => {
      const turns = getMessages(image(url)) as { content: Json[] }[]
      return turns[0]?.content[0]?.source
    }
    expect(getSource('https://a.test/b.png')).toEqual({ type: 'url', url: 'https://a.test/b.png' })
    expect(getSource('data:image/png;base64,AAAA')).toEqual({ type: 'base64', media_type: 'image/png', data: 'AAAA' })
    expect(getSource('DATA:image/JPG;x=y;BASE64,AA,A')).toEqual({
      type: 'base64',
      media_type: 'image/jpeg',
      data: 'AA,A',
    })
    for (const url of ['data:image/svg+xml;base64,AAAA', 'data:image/png,%89PNG', 'data:', 'data:image/png;base64']) {
      expect(getSource(url)).toEqual({ type: 'url', url })
    }
  })
})

describe('Anthropic tools', () => {
  const toolsSent = (tool: Partial<Tool>, rules = budgetRules): unknown =>
    (sent({ tools: [{ ...weather, ...tool }] }, rules).body.tools as unknown[])[0]

  test('always have an object schema, with root alternatives described in text', () => {
    expect(toolsSent({ parameters: null, description: '' })).toEqual({
      name: 'weather',
      input_schema: { type: 'object', properties: {} },
    })
    expect(toolsSent({ parameters: { type: ['object', 'null'], anyOf: [{ required: ['a'] }] } })).toEqual({
      name: 'weather',
      description: 'Looks outside.\nArguments must also satisfy: {"anyOf":[{"required":["a"]}]}',
      input_schema: { type: 'object', properties: {} },
    })
  })

  test('use strict mode only when model and schema allow it', () => {
    const strict = { strict: true, parameters: { type: 'object', properties: { a: { type: 'string', minLength: 2 } } } }
    expect(toolsSent(strict)).toMatchObject({
      strict: true,
      input_schema: {
        additionalProperties: false,
        properties: { a: { type: 'string', description: '{"minLength":2}' } },
      },
    })
    expect(toolsSent(strict, { ...budgetRules, responseFormat: 'none' })).not.toHaveProperty('strict')
    const open = { type: 'object', properties: { a: { type: 'object' } } }
    expect(toolsSent({ strict: true, parameters: open })).toEqual({
      name: 'weather',
      description: 'Looks outside.',
      input_schema: open,
    })
  })

  test('derive from the history when the client offers none, and cannot be called', () => {
    const { body } = sent({
      messages: [user('Go'), assistant(null, ['a', 'f_x'], ['b', 'g'], ['c', 'g']), result('a', 'A')],
    })
    expect(body.tools).toEqual(['f_x', 'g'].map(name => ({ name, input_schema: { type: 'object', properties: {} } })))
    expect(body.tool_choice).toEqual({ type: 'none' })
  })

  test("follow the client's tool choice", () => {
    const chosen = (request: Partial<ChatRequest>) => sent({ tools: [weather], ...request }).body.tool_choice
    expect(chosen({})).toBeUndefined()
    expect(chosen({ toolChoice: 'auto' })).toEqual({ type: 'auto' })
    expect(chosen({ toolChoice: 'none', parallelToolCalls: false })).toEqual({ type: 'none' })
    expect(chosen({ toolChoice: 'required' })).toEqual({ type: 'any' })
    expect(chosen({ toolChoice: { name: 'weather' } })).toEqual({ type: 'tool', name: 'weather' })
    expect(chosen({ parallelToolCalls: false })).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(chosen({ parallelToolCalls: true })).toBeUndefined()
    expect(sent({ toolChoice: 'required' })).toMatchObject({ dropped: ['tool_choice'] })
    expect(sent({ toolChoice: 'required' }).body).not.toHaveProperty('tool_choice')
  })

  test('request calls in the prompt and report the dropped choice when the model cannot be forced', () => {
    const rules = { ...adaptiveRules, forcedToolChoice: 'rejected' } as const
    const { body, dropped } = sent(
      { tools: [weather], toolChoice: { name: 'weather' }, parallelToolCalls: false },
      rules,
    )
    expect(body.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(body.system).toEqual([text('Answer by calling the tool `weather`.')])
    expect(dropped).toEqual(['tool_choice'])
  })

  test('prefer a forced call to reasoning when the model supports only one', () => {
    const request = { tools: [weather], toolChoice: 'required', reasoningEffort: 'high' } as const
    expect(sent(request)).toMatchObject({ body: { tool_choice: { type: 'any' } }, dropped: ['reasoning_effort'] })
    expect(sent(request).body).not.toHaveProperty('thinking')
    expect(sent(request, adaptiveRules)).toMatchObject({
      body: { tool_choice: { type: 'any' }, thinking: { type: 'disabled' } },
      dropped: ['reasoning_effort'],
    })
    const always = { ...adaptiveRules, reasoning: { kind: 'adaptive', off: 'lowest_effort' } } as const
    expect(sent(request, always)).toMatchObject({
      body: { tool_choice: { type: 'auto' }, thinking: { type: 'adaptive' } },
      dropped: ['tool_choice'],
    })
  })
})

describe('Anthropic JSON output', () => {
  const city = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
  const schemaAsk = (schema: Json): Partial<ChatRequest> => ({
    responseFormat: { type: 'json_schema', name: 'city', description: 'A city.', schema, strict: true },
  })
  const native = (schema: Json): unknown => (sent(schemaAsk(schema)).body.output_config as Json).format
  const older = { ...budgetRules, responseFormat: 'none' } as const

  test('uses an instruction when any object is requested', () => {
    expect(sent({ responseFormat: { type: 'json_object' } })).toMatchObject({
      body: { system: [text('Answer with one JSON object and nothing else: no prose, no code fence.')] },
      dropped: [],
    })
  })

  test("uses the API's schema support with closed objects, and describes unsupported constraints", () => {
    expect(
      native({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        description: 'Root.',
        minProperties: 1,
        $defs: {
          Point: { type: 'object', properties: { x: { type: 'number', minimum: 0 } }, additionalProperties: false },
        },
        properties: {
          points: { type: 'array', minItems: 1, maxItems: 3, items: { $ref: '#/$defs/Point' } },
          kind: {
            oneOf: [{ const: 1 }, { type: ['string', 'null'], format: 'date' }, { type: 'string', format: 'color' }],
          },
          properties: { enum: ['', 'a'], pattern: '^a?$' },
        },
      }),
    ).toStrictEqual({
      type: 'json_schema',
      schema: {
        type: 'object',
        description: 'Root.\n{"minProperties":1}',
        $defs: {
          Point: {
            type: 'object',
            additionalProperties: false,
            properties: { x: { type: 'number', description: '{"minimum":0}' } },
          },
        },
        additionalProperties: false,
        properties: {
          kind: {
            anyOf: [
              { const: 1 },
              { type: ['string', 'null'], format: 'date' },
              { type: 'string', description: '{"format":"color"}' },
            ],
          },
          points: { type: 'array', description: '{"maxItems":3}', items: { $ref: '#/$defs/Point' }, minItems: 1 },
          properties: { description: '{"pattern":"^a?$"}', enum: ['', 'a'] },
        },
      },
    })
  })

  test('uses a forced tool when schema or model do not support that', () => {
    const tree = { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#' } } } }
    const map = { type: 'object', additionalProperties: { type: 'number' } }
    for (const { body, dropped } of [sent(schemaAsk(city), older), sent(schemaAsk(tree)), sent(schemaAsk(map))]) {
      expect(body.tool_choice).toEqual({ type: 'tool', name: jsonAnswerTool, disable_parallel_tool_use: true })
      expect(body.tools).toMatchObject([
        { name: jsonAnswerTool, description: 'Gives the final answer, `city`: A city.' },
      ])
      expect(body).not.toHaveProperty('output_config')
      expect(dropped).toEqual([])
    }
    expect(sent({ ...schemaAsk(city), tools: [weather] }, older).body).toMatchObject({
      tools: [{ name: 'weather' }, { name: jsonAnswerTool }],
      tool_choice: { type: 'any' },
    })
  })

  test('uses an instruction and reports the dropped schema when neither is possible', () => {
    const unforced = { ...older, forcedToolChoice: 'rejected' } as const
    for (const outcome of [
      sent(schemaAsk(city), unforced),
      sent(schemaAsk({ type: 'array', items: city }), older),
      sent({ ...schemaAsk(city), tools: [weather], toolChoice: 'required' }, older),
    ]) {
      expect(outcome.dropped).toEqual(['response_format'])
      expect(JSON.stringify(outcome.body.system)).toContain('JSON schema')
    }
  })

  test('emits the tool input as text with a normal finish reason, streamed and complete', () => {
    const block = { type: 'tool_use', id: 't', name: jsonAnswerTool, input: {} }
    const expected: AnswerPart[] = [
      { type: 'served', id: 'm', model: 'c' },
      { type: 'text', choice: 0, text: '{"name":"Oslo"}' },
      { type: 'finish', choice: 0, reason: 'stop' },
      { type: 'end' },
    ]
    const json = (partial_json: string) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json },
    })
    expect(
      read(
        start,
        { type: 'content_block_start', index: 0, content_block: block },
        json(''),
        json('{"name":'),
        json('"Oslo"}'),
        { type: 'content_block_stop', index: 0 },
        { type: 'content_block_start', index: 1, content_block: block },
        { type: 'content_block_stop', index: 1 },
        delta('tool_use'),
        stop,
      ),
    ).toEqual(expected)
    const whole = { id: 'm', model: 'c', content: [{ ...block, input: { name: 'Oslo' } }], stop_reason: 'tool_use' }
    expect(partsIn(anthropic, whole)).toEqual(expected)
  })
})

describe('Anthropic reasoning and sampling', () => {
  const adaptive = (off: 'disabled' | 'between_tools' | 'lowest_effort'): ParameterRules => ({
    ...adaptiveRules,
    reasoning: { kind: 'adaptive', off },
  })
  const summarized = { type: 'adaptive', display: 'summarized' }

  test('use the nearest effort of an adaptive model with its reasoning text', () => {
    const effortFor = (reasoningEffort: NonNullable<ChatRequest['reasoningEffort']>) =>
      sent({ reasoningEffort }, adaptive('disabled')).body
    expect(effortFor('minimal')).toMatchObject({ thinking: summarized, output_config: { effort: 'low' } })
    expect(effortFor('medium')).toMatchObject({ thinking: summarized, output_config: { effort: 'medium' } })
    expect(effortFor('xhigh')).toMatchObject({ thinking: summarized, output_config: { effort: 'high' } })
    expect(effortFor('max')).toMatchObject({ thinking: summarized, output_config: { effort: 'max' } })
  })

  test('turn reasoning off in the way that an adaptive model supports', () => {
    const off = { reasoningEffort: 'none' } as const
    expect(sent(off, adaptive('disabled')).body.thinking).toEqual({ type: 'disabled' })
    expect(sent(off, adaptive('between_tools')).body.thinking).toEqual({ type: 'between_tools' })
    expect(sent(off, adaptive('lowest_effort')).body).toMatchObject({
      thinking: summarized,
      output_config: { effort: 'low' },
    })
  })

  test('request the text of models that reason by default, and change nothing for others', () => {
    expect(sent({}, adaptive('lowest_effort')).body.thinking).toEqual(summarized)
    expect(sent({}, adaptive('disabled')).body).not.toHaveProperty('thinking')
  })

  test('keep a budget between its minimum and the output cap, or turn reasoning off and report it', () => {
    const budget = (reasoningEffort: ChatRequest['reasoningEffort'], cap: number, request: Partial<ChatRequest> = {}) =>
      sent({ reasoningEffort, ...request }, budgetRules, cap)
    expect(budget('low', 10_000).body.thinking).toEqual({ type: 'enabled', budget_tokens: 2_000 })
    expect(budget('minimal', 4_000).body.thinking).toEqual({ type: 'enabled', budget_tokens: 1_024 })
    expect(budget('max', 2_048).body.thinking).toEqual({ type: 'enabled', budget_tokens: 1_843 })
    expect(budget('max', 100_000).body.thinking).toEqual({ type: 'enabled', budget_tokens: 63_999 })
    expect(budget(null, 10_000)).toMatchObject({ dropped: [] })
    const calls = { messages: [user('Go'), assistant(null, ['a', 'f']), result('a', 'A')] }
    for (const off of [budget('high', 2_047), budget('high', 10_000, calls)]) {
      expect(off.body).not.toHaveProperty('thinking')
      expect(off.dropped).toEqual(['reasoning_effort'])
    }
    const always = {
      ...budgetRules,
      reasoning: { kind: 'budget', minimum: 1_024, maximum: 8_000, canDisable: false },
    } as const
    expect(sent({ reasoningEffort: 'none' }, always).body.thinking).toEqual({
      type: 'enabled',
      budget_tokens: 1_024,
    })
  })

  test('report a dropped effort for a model without reasoning', () => {
    const none = { ...budgetRules, reasoning: { kind: 'none' } } as const
    expect(sent({ reasoningEffort: 'high' }, none).dropped).toEqual(['reasoning_effort'])
    expect(sent({ reasoningEffort: 'none' }, none).dropped).toEqual([])
  })

  test('send temperature and top_p if supported and report them otherwise', () => {
    const request = { temperature: 0.3, topP: 0.9 }
    expect(sent(request, adaptiveRules).dropped).toEqual(['temperature', 'top_p'])
    expect(sent(request)).toMatchObject({ body: { temperature: 0.3 }, dropped: ['top_p'] })
    expect(sent({ topP: 0.9 })).toMatchObject({ body: { top_p: 0.9 }, dropped: [] })
    expect(sent(request, { ...budgetRules, temperatureWithTopP: true })).toMatchObject({
      body: { temperature: 0.3, top_p: 0.9 },
      dropped: [],
    })
    expect(sent({ ...request, reasoningEffort: 'low' }, budgetRules, 8_000).dropped).toEqual(['temperature', 'top_p'])
    expect(sent({ temperature: 0 }).body.temperature).toBe(0)
    const either = { ...adaptiveRules, sampling: 'accepted_when_thinking_disabled' } as const
    expect(sent({ temperature: 2 }, either).body).toMatchObject({ temperature: 1, thinking: { type: 'disabled' } })
  })

  test('drop and report stop sequences that the API would reject', () => {
    expect(sent({ stop: ['\n', 'a', ''] })).toMatchObject({ body: { stop_sequences: ['a'] }, dropped: ['stop'] })
    expect(sent({ stop: [''] }).body).not.toHaveProperty('stop_sequences')
    expect(sent({ stop: ['a', 'b', 'c'] }, { ...budgetRules, maximumStops: 2 })).toMatchObject({
      body: { stop_sequences: ['a', 'b'] },
      dropped: ['stop'],
    })
  })
})

// ─── Every request there could be ───────────────────────────────────────────────────────────────────────────────────

const id = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' }
const visible = { type: 'string', pattern: '\\S' }
const exactly = (type: string, properties: Json, required = Object.keys(properties)) =>
  closed({ type: { const: type }, ...properties }, ['type', ...required])
const userBlocks = [
  exactly('text', { text: visible }),
  exactly('image', {
    source: {
      oneOf: [
        exactly('base64', {
          media_type: { enum: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] },
          data: { type: 'string' },
        }),
        exactly('url', { url: { type: 'string' } }),
      ],
    },
  }),
  exactly('tool_result', { tool_use_id: id, content: visible, is_error: { const: true } }, ['tool_use_id']),
]
const assistantBlocks = [
  exactly('text', { text: visible }),
  exactly('tool_use', { id, name: id, input: { type: 'object' } }),
]
const turnSchema = (role: string, blocks: unknown[]) =>
  closed({ role: { const: role }, content: { type: 'array', minItems: 1, items: { oneOf: blocks } } }, [
    'role',
    'content',
  ])
/** Schema of a Messages request, written by hand from the API's documentation. */
const requestSchema = {
  type: 'object',
  properties: {
    model: visible,
    max_tokens: { type: 'integer', minimum: 1 },
    stream: { type: 'boolean' },
    system: { type: 'array', minItems: 1, items: exactly('text', { text: visible }) },
    messages: {
      type: 'array',
      minItems: 1,
      items: { oneOf: [turnSchema('user', userBlocks), turnSchema('assistant', assistantBlocks)] },
    },
    tools: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: {
          name: id,
          description: visible,
          strict: { const: true },
          input_schema: {
            type: 'object',
            properties: { type: { const: 'object' }, properties: { type: 'object' } },
            required: ['type', 'properties'],
            not: { anyOf: ['anyOf', 'oneOf', 'allOf'].map(key => ({ required: [key] })) },
          },
        },
        required: ['name', 'input_schema'],
        additionalProperties: false,
      },
    },
    tool_choice: {
      oneOf: [
        exactly('auto', { disable_parallel_tool_use: { const: true } }, []),
        exactly('any', { disable_parallel_tool_use: { const: true } }, []),
        exactly('tool', { name: id, disable_parallel_tool_use: { const: true } }, ['name']),
        exactly('none', {}),
      ],
    },
    temperature: { type: 'number', minimum: 0, maximum: 1 },
    top_p: { type: 'number', minimum: 0, maximum: 1 },
    stop_sequences: { type: 'array', minItems: 1, items: visible },
    thinking: {
      oneOf: [
        exactly('adaptive', { display: { const: 'summarized' } }),
        exactly('enabled', { budget_tokens: { type: 'integer', minimum: 1_024 } }),
        exactly('disabled', {}),
        exactly('between_tools', {}),
      ],
    },
    output_config: {
      type: 'object',
      minProperties: 1,
      properties: {
        effort: { enum: ['low', 'medium', 'high', 'xhigh', 'max'] },
        format: exactly('json_schema', { schema: { type: 'object' } }),
      },
      additionalProperties: false,
    },
    metadata: {
      type: 'object',
      properties: { user_id: { type: 'string', maxLength: 256, pattern: '^[^@]+$' } },
      required: ['user_id'],
      additionalProperties: false,
    },
  },
  required: ['model', 'max_tokens', 'stream', 'messages'],
  additionalProperties: false,
  dependentRequired: { tool_choice: ['tools'] },
}

const anySchema = fc.letrec<{ schema: Json }>(tie => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(
      { type: 'string', minLength: 1 },
      { $ref: '#' },
      { $ref: '#/$defs/a' },
      { type: 'object' },
      {},
      { enum: [1, ''] },
    ),
    fc.record({
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom('a', 'type', 'properties'), tie('schema')),
      additionalProperties: fc.constantFrom<unknown>(true, false, {}, { type: 'string' }, undefined),
    }),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.record({ anyOf: fc.array(tie('schema'), { maxLength: 2 }), $defs: fc.record({ a: tie('schema') }) }),
  ),
})).schema
const anyAsk = anyRequest({
  schema: anySchema,
  calledName: fc.oneof(fc.constantFrom('f', 'g', 'weather'), anyText),
}).map(some => ({ ...plainAsk, ...some }))
const anyRules: fc.Arbitrary<ParameterRules> = fc
  .record({
    sampling: fc.constantFrom('accepted', 'rejected', 'accepted_when_thinking_disabled'),
    temperatureWithTopP: fc.boolean(),
    prefill: fc.boolean(),
    forcedToolChoice: fc.constantFrom('accepted', 'rejected', 'rejected_when_thinking'),
    responseFormat: fc.constantFrom('json_schema', 'none'),
    reasoning: fc.constantFrom<ParameterRules['reasoning']>(
      { kind: 'none' },
      { kind: 'adaptive', off: 'disabled' },
      { kind: 'adaptive', off: 'between_tools' },
      { kind: 'adaptive', off: 'lowest_effort' },
      budgetRules.reasoning,
      { kind: 'budget', minimum: 1_024, maximum: 4_000, canDisable: false },
    ),
  })
  .map(some => ({ ...adaptiveRules, ...some }) as ParameterRules)

type WireTurn = { role: 'user' | 'assistant'; content: ({ type: string } & Json)[] }

describe('Anthropic request for any input', () => {
  const validate = new Ajv({ strict: false, allErrors: true }).compile(requestSchema)
  const everyRequest = (check: (body: Json, rules: ParameterRules) => void, numRuns = 600): void =>
    fc.assert(
      fc.property(anyAsk, anyRules, fc.constantFrom(1, 1_024, 2_048, 16_384), (request, rules, outputCap) => {
        const named = wireToolNames(request, anthropic)?.request ?? request
        const { body } = anthropic.toRequest(
          { request: named, model: getModel(rules), outputCap, stream: true },
          access,
        )
        check(JSON.parse(body) as Json, rules)
      }),
      { numRuns },
    )

  test('matches the documented Messages format with well-formed Unicode', () => {
    everyRequest(body => {
      validate(body)
      expect(validate.errors ?? []).toEqual([])
      expect(JSON.stringify(body).isWellFormed() && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(JSON.stringify(body))).toBe(
        true,
      )
    })
  })

  test("alternates turns from the user, with each call's result first in the next turn", () => {
    everyRequest((body, rules) => {
      const turns = body.messages as WireTurn[]
      const ids = turns.flatMap(turn => turn.content.flatMap(block => (block.type === 'tool_use' ? [block.id] : [])))
      expect(new Set(ids).size).toBe(ids.length)
      for (const [position, turn] of turns.entries()) {
        expect(turn.role).toBe(position % 2 === 0 ? 'user' : 'assistant')
        const called = (turns[position - 1]?.content ?? []).flatMap(block =>
          block.type === 'tool_use' ? [block.id] : [],
        )
        const answered = turn.content.flatMap(block => (block.type === 'tool_result' ? [block.tool_use_id] : []))
        expect(answered.toSorted()).toEqual(called.toSorted())
        expect(turn.content.slice(0, answered.length).every(block => block.type === 'tool_result')).toBe(
          turn.role === 'user' || answered.length === 0,
        )
      }
      const last = turns.at(-1)
      if (last?.role !== 'assistant') return
      expect(rules.prefill).toBe(true)
      expect(last.content.at(-1)).toMatchObject({ type: 'text', text: expect.stringMatching(/\S$/) })
    })
  })

  test('defines tools when the history has calls, forces only where allowed, and leaves room beside a budget', () => {
    everyRequest((body, rules) => {
      if (JSON.stringify(body.messages).includes('"tool_use"')) expect(body).toHaveProperty('tools')
      const thinking = body.thinking as { type: string; budget_tokens?: number } | undefined
      const thinks = thinking !== undefined && thinking.type !== 'disabled'
      const choice = body.tool_choice as { type: string } | undefined
      if (choice?.type === 'any' || choice?.type === 'tool') {
        expect(
          rules.forcedToolChoice === 'accepted' || (rules.forcedToolChoice === 'rejected_when_thinking' && !thinks),
        ).toBe(true)
      }
      if (thinking?.budget_tokens !== undefined) expect(thinking.budget_tokens).toBeLessThan(Number(body.max_tokens))
      if (rules.sampling === 'rejected' || (rules.sampling !== 'accepted' && thinks)) {
        expect(body).not.toHaveProperty('temperature')
        expect(body).not.toHaveProperty('top_p')
      }
    })
  })

  test('closes all objects of a schema and uses only supported keywords', () => {
    const check = (schema: unknown): void => {
      if (typeof schema !== 'object' || schema === null) return
      const { properties, $defs, items, anyOf, additionalProperties, ...rest } = schema as Record<string, Json>
      expect(Object.keys(rest).filter(keyword => !['type', 'description', 'enum', '$ref'].includes(keyword))).toEqual(
        [],
      )
      if ((rest.type as unknown) === 'object') expect(additionalProperties as unknown).toBe(false)
      for (const inner of [
        ...Object.values(properties ?? {}),
        ...Object.values($defs ?? {}),
        ...Object.values(anyOf ?? {}),
        items,
      ])
        check(inner)
    }
    everyRequest(body => check(((body.output_config as Json | undefined)?.format as Json | undefined)?.schema))
  })
})

// ─── Answers ────────────────────────────────────────────────────────────────────────────────────────────────────────

const start = { type: 'message_start', message: { id: 'm', model: 'c' } }
const stop = { type: 'message_stop' }
const isCount = (count: number | null) => count === null || (Number.isSafeInteger(count) && count >= 0)

const delta = (stop_reason: string | null, usage?: Json) => ({ type: 'message_delta', delta: { stop_reason }, usage })
const opens = (index: number, content_block: Json) => ({ type: 'content_block_start', index, content_block })
const adds = (index: number, piece: Json) => ({ type: 'content_block_delta', index, delta: piece })
const closes = (index: number) => ({ type: 'content_block_stop', index })
const says = (index: number, value: string) => adds(index, { type: 'text_delta', text: value })

function read(...payloads: Json[]): AnswerPart[] {
  const reader = recorded(anthropic.streamReader())
  const parts = payloads.flatMap(data => reader.read({ name: String(data.type ?? ''), data: JSON.stringify(data) }))
  return mergeParts([...parts, ...reader.finish()])
}

/** Summary of a response, computed independently of the tested code in plain passes over all events. */
type Summary = {
  id: unknown
  model: unknown
  text: string
  reasoning: string
  calls: unknown[]
  finish: unknown
  usage: Json
}

const finishes: Record<string, string> = { max_tokens: 'length', refusal: 'content_filter', tool_use: 'tool_calls' }
const naiveUsage = (usage: RecordedUsage, thinking: number): Json => ({
  inputTokens:
    Number(usage.input_tokens) + (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0),
  cachedInputTokens: usage.cache_read_input_tokens ?? 0,
  cacheWriteTokens: usage.cache_creation_input_tokens ?? 0,
  outputTokens: usage.output_tokens,
  reasoningTokens: thinking,
  ...((usage.server_tool_use?.web_search_requests ?? 0) > 0 && {
    providerSearches: usage.server_tool_use?.web_search_requests,
  }),
})

type RecordedUsage = Record<string, number> & {
  output_tokens_details?: { thinking_tokens: number }
  server_tool_use?: { web_search_requests: number }
}
type RecordedBlock = {
  type: string
  id: string
  name: string
  text: string
  thinking: string
  input: unknown
  to: { model: string }
}
type RecordedMessage = {
  id: string
  model: string
  content: RecordedBlock[]
  stop_reason: string
  usage: RecordedUsage
}
type RecordedEvent = {
  type: string
  index: number
  message: RecordedMessage
  content_block: RecordedBlock
  delta: { type: string; text: string; thinking: string; partial_json: string; stop_reason: string }
  usage: RecordedUsage
}

function oracleOfStream(source: string): Summary {
  const events: RecordedEvent[] = source
    .split('\n')
    .flatMap(line => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
  const deltas = (type: string) =>
    events.filter(event => event.type === 'content_block_delta' && event.delta.type === type)
  const blocks = events.filter(event => event.type === 'content_block_start')
  const first = events.find(event => event.type === 'message_start')?.message
  const last = events.findLast(event => event.type === 'message_delta')
  if (first === undefined || last === undefined) throw new Error('not a whole recording')
  const usage: RecordedUsage = Object.assign({}, first.usage, last.usage)
  const fallback = blocks.find(event => event.content_block.type === 'fallback')
  return {
    id: first.id,
    model: fallback?.content_block.to.model ?? first.model,
    text: deltas('text_delta')
      .map(event => event.delta.text)
      .join(''),
    reasoning: deltas('thinking_delta')
      .map(event => event.delta.thinking)
      .join(''),
    calls: blocks
      .filter(event => event.content_block.type === 'tool_use')
      .map(({ index, content_block }) => ({
        id: content_block.id,
        name: content_block.name,
        arguments:
          deltas('input_json_delta')
            .filter(event => event.index === index)
            .map(event => event.delta.partial_json)
            .join('') || '{}',
      })),
    finish: finishes[last.delta.stop_reason] ?? 'stop',
    usage: naiveUsage(usage, usage.output_tokens_details?.thinking_tokens ?? 0),
  }
}

function oracleOfMessage(source: string): Summary {
  const message: RecordedMessage = JSON.parse(source)
  const blocks = (type: string) => message.content.filter(block => block.type === type)
  return {
    id: message.id,
    model: message.model,
    text: blocks('text')
      .map(block => block.text)
      .join(''),
    reasoning: blocks('thinking')
      .map(block => block.thinking)
      .join(''),
    calls: blocks('tool_use').map(block => ({
      id: block.id,
      name: block.name,
      arguments: JSON.stringify(block.input),
    })),
    finish: finishes[message.stop_reason] ?? 'stop',
    usage: naiveUsage(message.usage, message.usage.output_tokens_details?.thinking_tokens ?? 0),
  }
}

function getSummary(parts: readonly AnswerPart[]): Summary {
  const joined = (type: 'text' | 'reasoning') => parts.map(part => (part.type === type ? part.text : '')).join('')
  const served = parts.findLast(part => part.type === 'served')
  return {
    id: served?.id,
    model: served?.model,
    text: joined('text'),
    reasoning: joined('reasoning'),
    calls: parts.flatMap(part =>
      part.type === 'tool_call'
        ? [
            {
              id: part.id,
              name: part.name,
              arguments: parts
                .map(piece => (piece.type === 'tool_arguments' && piece.index === part.index ? piece.text : ''))
                .join(''),
            },
          ]
        : [],
    ),
    finish: parts.find(part => part.type === 'finish')?.reason,
    usage: { ...parts.findLast(part => part.type === 'usage')?.usage },
  }
}

describe('Anthropic recordings', () => {
  const recorded = recordings('anthropic')
  const answers = recorded.filter(({ status }) => status === 200)

  for (const { name, text: source } of answers.filter(({ kind }) => kind === 'json')) {
    test(`${name}: reads the complete response like the reference`, () => {
      const parts = partsIn(anthropic, JSON.parse(source))
      expect(getSummary(parts)).toEqual(oracleOfMessage(source))
      expect(parts.at(-1)).toEqual({ type: 'end' })
    })
  }

  for (const { name, bytes, text: source } of answers.filter(({ kind }) => kind === 'stream')) {
    const whole = readRecording(anthropic.streamReader(), bytes)

    test(`${name}: reads the stream like the reference`, () => {
      expect(getSummary(whole)).toEqual(oracleOfStream(source))
      expect(whole.at(-1)).toEqual({ type: 'end' })
    })

    test(`${name}: reads the same when split anywhere or into single bytes`, () => {
      for (const offset of cutOffsets(bytes, 800)) {
        if (!Bun.deepEquals(readRecording(anthropic.streamReader(), bytes, [offset]), whole))
          throw new Error(`cut at ${offset}`)
      }
      expect(readRecording(anthropic.streamReader(), bytes, everyByte(bytes))).toEqual(whole)
    })

    test(`${name}: never ends when truncated anywhere`, () => {
      const complete = new TextEncoder().encode(source.slice(0, source.lastIndexOf('}'))).length
      for (const offset of cutOffsets(bytes, 800).filter(offset => offset <= complete)) {
        const parts = readRecording(anthropic.streamReader(), bytes.subarray(0, offset))
        if (parts.some(part => part.type === 'end' || part.type === 'finish')) throw new Error(`ended at ${offset}`)
      }
    })
  }

  for (const { name, status, headers, text: source } of recorded.filter(recording => recording.status !== 200)) {
    test(`${name}: has the expected blame`, () => {
      const kinds: Record<string, string> = {
        'error-400-prompt-too-long': 'context_overflow caller',
        'error-401': 'credential_refused us',
        'error-404-model': 'model_missing upstream',
      }
      const { kind, blame, detail } = anthropic.readFailure(status, headers, source)
      expect(`${kind} ${blame}`).toBe(String(kinds[name]))
      expect(detail).toMatch(/^4\d\d [a-z_]+$/)
    })
  }
})

describe('Anthropic stream', () => {
  test('keeps text, reasoning and calls in order, with indexes for calls only', () => {
    expect(
      read(
        start,
        { type: 'ping' },
        opens(0, { type: 'thinking', thinking: '', signature: '' }),
        adds(0, { type: 'thinking_delta', thinking: 'Hm' }),
        adds(0, { type: 'signature_delta', signature: 'x' }),
        closes(0),
        opens(1, { type: 'text', text: 'A' }),
        says(1, 'B'),
        adds(1, { type: 'citations_delta', citation: {} }),
        closes(1),
        opens(2, { type: 'tool_use', id: 'x', name: 'f', input: {} }),
        closes(2),
        opens(3, { type: 'text', text: '' }),
        says(3, 'C'),
        opens(4, { type: 'tool_use', id: 'x', name: 'g', input: {} }),
        adds(4, { type: 'input_json_delta', partial_json: '' }),
        adds(4, { type: 'input_json_delta', partial_json: '{"a"' }),
        adds(4, { type: 'input_json_delta', partial_json: ':1}' }),
        opens(5, { type: 'tool_use', name: 'h', input: { whole: true } }),
        delta('tool_use', { input_tokens: 3, output_tokens: 9 }),
        stop,
      ),
    ).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      { type: 'reasoning', choice: 0, text: 'Hm' },
      { type: 'reasoning_end', choice: 0, family: 'anthropic', kind: 'signature', data: 'x', id: null },
      { type: 'text', choice: 0, text: 'AB' },
      {
        type: 'citation',
        choice: 0,
        source: { url: null, title: null, start: 0, end: 2 },
        own: { dialect: 'messages', json: '{}' },
      },
      { type: 'tool_call', choice: 0, index: 0, id: 'x', name: 'f', signature: null },
      { type: 'text', choice: 0, text: 'C', block: 1 },
      { type: 'tool_call', choice: 0, index: 1, id: 'x_1', name: 'g', signature: null },
      { type: 'tool_arguments', choice: 0, index: 1, text: '{"a":1}' },
      { type: 'tool_call', choice: 0, index: 2, id: 'call', name: 'h', signature: null },
      {
        type: 'usage',
        usage: { inputTokens: 3, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 9, reasoningTokens: 0 },
      },
      { type: 'tool_arguments', choice: 0, index: 2, text: '{"whole":true}' },
      { type: 'tool_arguments', choice: 0, index: 0, text: '{}' },
      { type: 'finish', choice: 0, reason: 'tool_calls' },
      { type: 'end' },
    ])
  })

  test('reads a start event with complete content once', () => {
    const content = [
      { type: 'text', text: 'A' },
      { type: 'server_tool_result', content: [] },
      { type: 'tool_use', id: 'x', name: 'f', input: { n: 1 } },
    ]
    const begun = { type: 'message_start', message: { id: 'm', model: 'c', content, stop_reason: 'max_tokens' } }
    expect(read(begun, begun, stop)).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      { type: 'text', choice: 0, text: 'A' },
      { type: 'provider_item', choice: 0, dialect: 'messages', json: JSON.stringify(content[1]) },
      { type: 'tool_call', choice: 0, index: 0, id: 'x', name: 'f', signature: null },
      { type: 'tool_arguments', choice: 0, index: 0, text: '{"n":1}' },
      { type: 'finish', choice: 0, reason: 'length' },
      { type: 'end' },
    ])
  })

  test('emits server-side tools and unknown blocks as provider items, and ignores unknown events', () => {
    const parts = read(
      start,
      opens(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      adds(0, { type: 'input_json_delta', partial_json: '{"q":1}' }),
      closes(0),
      opens(1, { type: 'web_search_tool_result', content: [] }),
      opens(2, { type: 'redacted_thinking', data: 'x' }),
      opens(3, { type: 'hologram' }),
      says(3, 'not text'),
      { type: 'content_block_start', index: 5 },
      { type: 'telemetry', text: 'x' },
      { type: 'message_start' },
      delta('end_turn'),
      stop,
    )
    const item = (block: object) => ({
      type: 'provider_item',
      choice: 0,
      dialect: 'messages',
      json: JSON.stringify(block),
    })
    expect(parts.filter(({ type }) => type !== 'usage') as unknown[]).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      item({ type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } }),
      { type: 'reasoning_end', choice: 0, family: 'anthropic', kind: 'redacted', data: 'x', id: null },
      item({ type: 'web_search_tool_result', content: [] }),
      item({ type: 'hologram', text: 'not text' }),
      { type: 'finish', choice: 0, reason: 'stop' },
      { type: 'end' },
    ])
  })

  test('emits a signature without text and joins its deltas', () => {
    const parts = read(
      start,
      opens(0, { type: 'thinking', thinking: '', signature: 'ab' }),
      adds(0, { type: 'signature_delta', signature: 'cd' }),
      closes(0),
      opens(1, { type: 'compaction', content: 'Sum' }),
      adds(1, { type: 'compaction_delta', content: 'mary' }),
      closes(1),
      stop,
    )
    expect(parts).toMatchObject([
      { type: 'served' },
      { type: 'reasoning_end', kind: 'signature', data: 'abcd' },
      { type: 'provider_item', json: '{"type":"compaction","content":"Summary"}' },
      { type: 'finish' },
      { type: 'end' },
    ])
  })

  test("reports which of the client's stop sequences ended the output", () => {
    const stopped = { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' } }
    expect(read(start, stopped, stop).at(-2)).toEqual({
      type: 'finish',
      choice: 0,
      reason: 'stop',
      stopSequence: 'END',
    })
  })

  test('reports bad_answer when blocks are opened and never closed', () => {
    const blocks = Array.from({ length: 300 }, (_, index) => opens(index, { type: 'server_tool_use' }))
    expect(read(start, ...blocks, stop).at(-1)).toMatchObject({ type: 'failure', failure: { kind: 'bad_answer' } })
    const closed = blocks.flatMap(block => [block, { type: 'content_block_stop', index: block.index }])
    expect(read(start, ...closed, stop).at(-1)).toEqual({ type: 'end' })
  })

  test('keeps the first message when a second one begins, and the first stop reason', () => {
    const parts = read(
      start,
      { type: 'message_start', message: { id: 'other', model: 'd' } },
      says(0, 'A'),
      delta('max_tokens'),
      delta('end_turn'),
      stop,
    )
    expect(parts).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      { type: 'text', choice: 0, text: 'A' },
      { type: 'finish', choice: 0, reason: 'length' },
      { type: 'end' },
    ])
  })

  test('reports the container and the edits of the context, streamed or whole', () => {
    const container = { id: 'container_1', expires_at: '2026-11-23T00:00:00Z' }
    const context_management = { applied_edits: [{ type: 'clear_tool_uses_20250919', cleared_tool_uses: 3 }] }
    const end = { container, context_management }
    const fields = { type: 'provider_fields', fields: { form: 'anthropic', usage: {}, end } } as const
    const ended = { type: 'message_delta', delta: { stop_reason: 'end_turn', container }, context_management }
    expect(read(start, ended, stop)).toContainEqual(fields)
    const message = { id: 'm', type: 'message', model: 'c', content: [], stop_reason: 'end_turn' }
    expect(partsIn(anthropic, { ...message, container, context_management })).toContainEqual(fields)
    const without = partsIn(anthropic, { ...message, container: null })
    expect(without.some(({ type }) => type === 'provider_fields')).toBeFalse()
  })

  test('reports the model that took over as serving, never an adviser', () => {
    const takenOver = read(start, opens(0, { type: 'fallback', from: { model: 'c' }, to: { model: 'd' } }), stop)
    expect(takenOver[0]).toEqual({ type: 'served', id: 'm', model: 'd' })
    const iterations = [
      { type: 'message', model: 'c' },
      { type: 'fallback_message', model: 'e' },
      { type: 'advisor_message', model: 'z' },
    ]
    expect(read(start, delta('end_turn', { iterations }), stop)[0]).toEqual({ type: 'served', id: 'm', model: 'e' })
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['compaction', 'length'],
    ['refusal', 'content_filter'],
    ['tool_use', 'stop'],
    ['something_new', 'stop'],
    [null, 'stop'],
  ])('maps stop reason %p without calls to %p', (reason, expected) => {
    const isActedOn = ['pause_turn', 'model_context_window_exceeded', 'compaction'].some(name => name === reason)
    expect(read(start, delta(reason), stop).at(-2)).toEqual({
      type: 'finish',
      choice: 0,
      reason: expected,
      ...(isActedOn ? { upstreamReason: reason } : {}),
    } as AnswerPart)
  })

  test('finishes as tool_calls after a call, whatever the stop reason', () => {
    const call = opens(0, { type: 'tool_use', id: 'x', name: 'f', input: {} })
    expect(read(start, call, closes(0), delta('end_turn'), stop).at(-2)).toMatchObject({ reason: 'tool_calls' })
    expect(read(start, call, delta('max_tokens'), stop).at(-2)).toMatchObject({ reason: 'length' })
  })

  test('uses the newest counts including cached and written input, never negative or absurd', () => {
    const first = { input_tokens: 10, cache_creation_input_tokens: 5, cache_read_input_tokens: 7, output_tokens: 1 }
    const usage = (...later: Json[]) => {
      const parts = read(
        { type: 'message_start', message: { usage: first } },
        ...later.map(counts => delta(null, counts)),
      )
      return parts.findLast(part => part.type === 'usage')?.usage
    }
    const counted = { inputTokens: 22, cachedInputTokens: 7, cacheWriteTokens: 5, outputTokens: 1, reasoningTokens: 0 }
    // The output count of the first event is a placeholder.
    const early = { ...counted, outputTokens: null, leastOutputTokens: 1 }
    expect(usage()).toEqual(early)
    expect(
      usage(
        { output_tokens: 4 },
        { input_tokens: 0, output_tokens: 6, output_tokens_details: { thinking_tokens: 99 } },
      ),
    ).toEqual({ ...counted, inputTokens: 12, outputTokens: 6, reasoningTokens: 6 })
    expect(usage({ input_tokens: null, cache_read_input_tokens: null, output_tokens: 2 })).toEqual({
      ...counted,
      outputTokens: 2,
    })
    expect(
      usage({
        input_tokens: -5,
        output_tokens: null,
        cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 2 },
      }),
    ).toEqual(early)
    expect(usage({ output_tokens: '9x' }, {})).toEqual(early)
    expect(usage({ output_tokens: 0 })).toEqual({ ...counted, outputTokens: 0 })
    for (const absurd of [Number.NaN, Number.POSITIVE_INFINITY, -1, 2e9, null, '5x']) {
      const findUsage = (usage: Json) =>
        partsIn(anthropic, { content: [], usage }).find(part => part.type === 'usage')?.usage
      expect(findUsage({ input_tokens: absurd, output_tokens: 3 })).toMatchObject({
        inputTokens: null,
        outputTokens: 3,
      })
      expect(findUsage({ input_tokens: 3, output_tokens: absurd })).toMatchObject({
        inputTokens: 3,
        outputTokens: null,
      })
    }
    expect(read(start, stop).some(part => part.type === 'usage')).toBe(false)
  })

  test('tells what is charged beside tokens: writes for an hour and searches', () => {
    const usage = {
      input_tokens: 10,
      output_tokens: 3,
      cache_creation_input_tokens: 9,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 7 },
      server_tool_use: { web_search_requests: 2 },
    }
    const parts = partsIn(anthropic, { content: [], usage })
    expect(parts.find(part => part.type === 'usage')?.usage).toMatchObject({
      cacheWriteTokens: 9,
      hourCacheWriteTokens: 7,
      providerSearches: 2,
    })
  })

  test('treats a count that later output exceeds as a lower bound until it is updated', () => {
    const counted = delta(null, { input_tokens: 10, output_tokens: 4 })
    const last = (...events: Json[]) => read(start, ...events).findLast(part => part.type === 'usage')?.usage
    const outgrown = { inputTokens: 10, outputTokens: null, leastOutputTokens: 4 }
    expect(last(counted, opens(0, text('')), says(0, 'more'), delta('end_turn'), stop)).toMatchObject(outgrown)
    expect(
      last(counted, opens(0, text('')), says(0, 'more'), delta('end_turn', { input_tokens: 10 }), stop),
    ).toMatchObject(outgrown)
    expect(
      last(counted, opens(0, text('')), says(0, 'more'), delta('end_turn', { output_tokens: 9 }), stop),
    ).toMatchObject({
      outputTokens: 9,
    })
    expect(last(opens(0, text('')), says(0, 'more'), counted, stop)).toMatchObject({ outputTokens: 4 })
  })

  test('fails on an error event, an error under any name, and a frame without JSON, and ends there', () => {
    const findFailure = (name: string, data: string) => {
      const reader = recorded(anthropic.streamReader())
      const [part, ...more] = [...reader.read({ name, data }), ...reader.read({ name: '', data: JSON.stringify(stop) })]
      expect(more).toEqual([])
      return part?.type === 'failure' ? part.failure : null
    }
    const error = (type: string) => JSON.stringify({ type: 'error', error: { type, message: 'sk-ant-secret' } })
    expect(findFailure('error', error('overloaded_error'))).toEqual({
      kind: 'overloaded',
      blame: 'upstream',
      retryable: true,
      retryAfterMs: null,
      detail: '200 overloaded_error',
    })
    expect(findFailure('', error('rate_limit_error'))).toMatchObject({ kind: 'rate_limited' })
    expect(findFailure('error', error('invalid_request_error'))).toMatchObject({
      kind: 'request_refused',
      blame: 'caller',
    })
    expect(findFailure('error', error('Key sk-ant-secret'))).toMatchObject({
      kind: 'generation_failed',
      detail: '200 without error type',
    })
    expect(findFailure('error', '{}')).toMatchObject({ kind: 'bad_answer' })
    expect(findFailure('', '{"error":"broken"}')).toMatchObject({ kind: 'generation_failed' })
    expect(findFailure('content_block_delta', '{"type":')).toMatchObject({
      kind: 'bad_answer',
      blame: 'upstream',
      retryable: true,
    })
    expect(findFailure('', '[]')).toMatchObject({ kind: 'bad_answer' })
  })

  test('skips keep-alives of other names and a foreign terminator', () => {
    const reader = recorded(anthropic.streamReader())
    expect(reader.read({ name: 'ping', data: 'still here' })).toEqual([])
    expect(reader.read({ name: '', data: '[DONE]' })).toEqual([])
    expect(reader.finish()).toEqual([])
    expect(reader.read({ name: 'message_stop', data: '{"type":"message_stop"}' }).at(-1)).toEqual({ type: 'end' })
    expect(reader.read({ name: '', data: '{"type":"error","error":{}}' })).toEqual([])
  })

  test('accepts a complete message in one event', () => {
    expect(read({ type: 'message', id: 'm', model: 'c', content: [text('Hi')], stop_reason: 'end_turn' })).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      { type: 'text', choice: 0, text: 'Hi' },
      { type: 'finish', choice: 0, reason: 'stop' },
      { type: 'end' },
    ])
  })

  test('reads any events without throwing, in a valid order with valid counts', () => {
    const name = fc.constantFrom(
      '',
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
      'message',
      'error',
      'ping',
      'x',
    )
    const junk = fc.oneof(fc.constantFrom<unknown>(null, -1, 1e300, '', 'text', [], {}), fc.jsonValue({ maxDepth: 2 }))
    const block = fc.record(
      {
        type: fc.oneof(fc.constantFrom('text', 'tool_use', 'thinking', 'fallback', 'server_tool_use'), junk),
        id: junk,
        name: fc.oneof(fc.constantFrom('f', jsonAnswerTool), junk),
        text: junk,
        thinking: junk,
        input: junk,
        to: fc.oneof(fc.record({ model: junk }), junk),
      },
      { requiredKeys: [] },
    )
    const piece = fc.record(
      {
        type: fc.oneof(fc.constantFrom('text_delta', 'input_json_delta', 'thinking_delta'), junk),
        text: junk,
        thinking: junk,
        partial_json: junk,
        stop_reason: junk,
      },
      { requiredKeys: [] },
    )
    const counts = fc.oneof(
      fc.record(
        {
          input_tokens: junk,
          output_tokens: junk,
          cache_read_input_tokens: junk,
          cache_creation: junk,
          output_tokens_details: junk,
          iterations: junk,
        },
        { requiredKeys: [] },
      ),
      junk,
    )
    const payload = fc.record(
      {
        type: fc.oneof(name, junk),
        index: fc.oneof(fc.nat(3), junk),
        content_block: fc.oneof(block, junk),
        delta: fc.oneof(piece, junk),
        message: fc.oneof(fc.record({ id: junk, model: junk, usage: counts }), junk),
        content: fc.oneof(fc.array(block), junk),
        usage: counts,
        error: junk,
      },
      { requiredKeys: ['type'] },
    )
    const event = fc.record({
      name,
      data: fc.oneof(
        { weight: 9, arbitrary: payload.map(value => JSON.stringify(value)) },
        { weight: 1, arbitrary: fc.oneof(fc.json(), fc.string()) },
      ),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), events => {
        const reader = recorded(anthropic.streamReader())
        const parts = [...events.flatMap(item => reader.read(item)), ...reader.finish()]
        const over = parts.findIndex(part => part.type === 'end' || part.type === 'failure')
        expect(over === -1 || over === parts.length - 1).toBe(true)
        const calls = parts.filter(part => part.type === 'tool_call')
        expect(calls.map(call => call.index)).toEqual(calls.map((_, position) => position))
        expect(new Set(calls.map(call => call.id)).size).toBe(calls.length)
        for (const part of parts) {
          if (part.type === 'usage') expect(Object.values(part.usage).every(isCount)).toBe(true)
          if (part.type === 'tool_arguments') expect(calls[part.index]).toBeDefined()
        }
        if (parts.at(-1)?.type !== 'end') return
        for (const call of calls)
          expect(
            parts.some(part => part.type === 'tool_arguments' && part.index === call.index && part.text !== ''),
          ).toBe(true)
      }),
      { numRuns: 400 },
    )
  })
})

describe('Anthropic JSON response', () => {
  test('without content is valid', () => {
    expect(
      partsIn(anthropic, {
        id: 'm',
        model: 'c',
        content: [],
        stop_reason: 'end_turn',
        usage: { input_tokens: 2, output_tokens: 0 },
      }),
    ).toEqual([
      { type: 'served', id: 'm', model: 'c' },
      {
        type: 'usage',
        usage: { inputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 },
      },
      { type: 'finish', choice: 0, reason: 'stop' },
      { type: 'end' },
    ])
  })

  test('with an error or invalid content is one failure', () => {
    const getKind = (body: unknown) =>
      partsIn(anthropic, body).map(part => (part.type === 'failure' ? part.failure.kind : part.type))
    expect(getKind({ type: 'error', error: { type: 'overloaded_error' } })).toEqual(['overloaded'])
    expect(getKind({ error: 'no' })).toEqual(['generation_failed'])
    for (const body of [null, undefined, 'x', 7, [], {}, { choices: [] }, { content: 'text' }])
      expect(getKind(body)).toEqual(['bad_answer'])
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.jsonValue()), (value, content) => {
        expect(partsIn(anthropic, value).at(-1)?.type).toMatch(/^(end|failure)$/)
        expect(partsIn(anthropic, { content, usage: value }).at(-1)).toEqual({ type: 'end' })
      }),
    )
  })
})

describe('Anthropic failure', () => {
  const refusal = (status: number, type: string, message = 'sk-ant-secret', headers: Record<string, string> = {}) =>
    anthropic.readFailure(status, new Headers(headers), JSON.stringify({ type: 'error', error: { type, message } }))

  test.each([
    [400, 'invalid_request_error', 'messages: bad', 'request_refused caller false'],
    [400, 'invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum', 'context_overflow caller true'],
    [400, 'invalid_request_error', 'Your credit balance is too low', 'quota_exhausted us true'],
    [400, 'invalid_request_error', 'Output blocked by content filtering policy', 'content_filtered caller false'],
    [401, 'authentication_error', '', 'credential_refused us true'],
    [401, 'invalid_request_error', '', 'credential_refused us true'],
    [402, 'billing_error', '', 'quota_exhausted us true'],
    [403, 'permission_error', '', 'credential_refused us true'],
    [404, 'not_found_error', 'model: x', 'model_missing upstream true'],
    [413, 'request_too_large', '', 'request_too_large caller false'],
    [422, 'whatever', '', 'request_refused caller false'],
    [429, 'rate_limit_error', 'per minute', 'rate_limited upstream true'],
    [500, 'api_error', '', 'unavailable upstream true'],
    [503, 'invalid_request_error', '', 'overloaded upstream true'],
    [504, 'timeout_error', '', 'timeout upstream true'],
    [529, 'overloaded_error', '', 'overloaded upstream true'],
  ])('%p %s %p is %s', (status, type, message, expected) => {
    const { kind, blame, retryable, detail } = refusal(status, type, message)
    expect(`${kind} ${blame} ${retryable}`).toBe(expected)
    expect(detail).toBe(`${status} ${type}`)
  })

  test('respects wait time and retry advice and logs no upstream text', () => {
    expect(refusal(429, 'rate_limit_error', 'x', { 'retry-after': '7' })).toEqual({
      kind: 'rate_limited',
      blame: 'upstream',
      retryable: true,
      retryAfterMs: 7_000,
      detail: '429 rate_limit_error',
    })
    expect(refusal(429, 'rate_limit_error', 'x', { 'x-should-retry': 'false' })).toMatchObject({
      kind: 'quota_exhausted',
      blame: 'us',
    })
    expect(refusal(400, 'invalid_request_error', 'x', { 'x-should-retry': 'true' })).toMatchObject({
      kind: 'unavailable',
      retryable: true,
    })
    expect(refusal(529, 'overloaded_error', 'x', { 'x-should-retry': 'false' })).toMatchObject({
      kind: 'overloaded',
      retryable: true,
    })
  })

  test('reads any body', () => {
    for (const body of [
      '',
      '<html>',
      'null',
      '[]',
      '"x"',
      '{"error":"x"}',
      '{"error":null}',
      '{"detail":[1]}',
      '[{"error":{"type":5}}]',
    ]) {
      expect(anthropic.readFailure(503, new Headers(), body)).toMatchObject({
        kind: 'overloaded',
        detail: '503 without error type',
      })
    }
    expect(anthropic.readFailure(400, new Headers(), '{"detail":"prompt is too long"}').kind).toBe('context_overflow')
    expect(anthropic.readFailure(400, new Headers(), 'prompt is too long').kind).toBe('context_overflow')
  })
})
