import { describe, expect, test } from 'bun:test'
import Ajv from 'ajv/dist/2020'
import fc from 'fast-check'
import { type ChatRequest, type Message, reasoningEfforts } from '../../src/core/chat/chat.ts'
import type { ReportedUsage } from '../../src/core/chat/chat-events.ts'
import type { Model, ParameterRules } from '../../src/core/models/models.ts'
import { catalog } from '../../src/models/catalog.ts'
import { openai } from '../../src/providers/openai.ts'
import type { ProviderRequest } from '../../src/providers/provider.ts'
import { SseSplitter } from '../../src/providers/sse.ts'
import { type AnswerPart, collected, partsIn, recorded } from '../harness/answer-parts.ts'
import { askWith } from '../harness/ask.ts'
import { generousRules, modelWith } from '../harness/model.ts'
import { anyRequest, closed } from './any-request.ts'
import { cutOffsets, everyByte, mergeParts, type Recording, readRecording, recordings } from './recordings.ts'

const official = openai({ official: true })
const compatible = openai({ official: false })

type Json = Record<string, unknown>

// ------------------------------------------------------------------------------------------------ building asks

const strictRules: ParameterRules = {
  ...generousRules,
  sampling: 'rejected',
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumTopLogprobs: 0,
  maximumStops: 0,
  maximumChoices: 1,
  systemRole: 'developer',
  forcedToolChoice: 'rejected',
  efforts: ['low', 'medium', 'high'],
  streamOptions: false,
  parallelToolCalls: false,
  responseFormat: 'none',
  passExtras: false,
}

function getModel(rules: Partial<ParameterRules> = {}, id = 'gpt-5.5'): Model {
  return modelWith({ id, provider: 'openai', parameters: { ...generousRules, ...rules } })
}

const hello: Message = { role: 'user', content: [{ type: 'text', text: 'Hello' }], name: null }

type Situation = {
  readonly request?: Partial<ChatRequest>
  readonly rules?: Partial<ParameterRules>
  readonly id?: string
  readonly stream?: boolean
  readonly provider?: typeof official
  readonly baseUrl?: string
  readonly apiKey?: string | null
}

function requestFor(situation: Situation): ProviderRequest {
  const { request, rules, id, stream = false, provider = official, baseUrl, apiKey = 'key' } = situation
  return provider.toRequest(
    { request: askWith(request), model: getModel(rules, id), outputCap: 1000, stream },
    { baseUrl: baseUrl ?? 'https://api.openai.com/v1', apiKey },
  )
}

function bodyFor(situation: Situation): Json {
  return JSON.parse(requestFor(situation).body) as Json
}

const weather = {
  name: 'weather',
  description: 'Weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: null,
}

const emptySchema = { type: 'object', properties: {}, additionalProperties: false }
const fullAsk: Partial<ChatRequest> = {
  temperature: 0.7,
  topP: 0.9,
  presencePenalty: 0.1,
  frequencyPenalty: 0.2,
  seed: 7,
  logitBias: { '50256': -100 },
  logprobs: true,
  topLogprobs: 5,
  stop: ['END'],
  choices: 2,
  tools: [weather],
  toolChoice: { name: 'weather' },
  parallelToolCalls: false,
  responseFormat: { type: 'json_schema', name: 'answer', description: null, schema: emptySchema, strict: true },
  reasoningEffort: 'medium',
  endUser: 'customer-1',
}

// ------------------------------------------------------------------------------------------------ the wire's schema

const nonEmpty = { type: 'string', minLength: 1 }
const nonEmptyList = (items: object, more: object = {}) => ({ type: 'array', minItems: 1, items, ...more })
const parts = nonEmptyList({
  oneOf: [
    closed({ type: { const: 'text' }, text: { type: 'string' } }, ['type', 'text']),
    closed(
      {
        type: { const: 'image_url' },
        image_url: closed({ url: nonEmpty, detail: { enum: ['auto', 'low', 'high'] } }, ['url']),
      },
      ['type', 'image_url'],
    ),
  ],
})
const toolCall = closed(
  {
    id: nonEmpty,
    type: { const: 'function' },
    function: closed({ name: nonEmpty, arguments: nonEmpty }, ['name', 'arguments']),
  },
  ['id', 'type', 'function'],
)
const message = {
  oneOf: [
    closed({ role: { enum: ['system', 'developer'] }, content: { type: 'string' } }, ['role', 'content']),
    closed({ role: { const: 'user' }, content: { anyOf: [{ type: 'string' }, parts] }, name: nonEmpty }, [
      'role',
      'content',
    ]),
    {
      ...closed(
        {
          role: { const: 'assistant' },
          content: { type: ['string', 'null'] },
          reasoning_content: { type: 'string' },
          name: nonEmpty,
          tool_calls: nonEmptyList(toolCall),
        },
        ['role', 'content'],
      ),
      if: { properties: { content: { type: 'null' } } },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own word
      then: { required: ['tool_calls'] },
    },
    closed({ role: { const: 'tool' }, tool_call_id: nonEmpty, content: { type: 'string' } }, [
      'role',
      'tool_call_id',
      'content',
    ]),
  ],
}
const unit = { type: 'number', minimum: -2, maximum: 2 }
const offeredTool = closed(
  {
    name: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
    description: { type: 'string' },
    parameters: { type: 'object' },
    strict: { type: 'boolean' },
  },
  ['name'],
)
const outputSchema = closed(
  { name: nonEmpty, description: { type: 'string' }, schema: { type: 'object' }, strict: { type: 'boolean' } },
  ['name', 'schema'],
)
const requestSchema = {
  ...closed(
    {
      model: nonEmpty,
      messages: { type: 'array', items: message },
      stream: { const: true },
      stream_options: closed({ include_usage: { const: true }, include_obfuscation: { const: false } }),
      max_tokens: { type: 'integer', minimum: 1 },
      max_completion_tokens: { type: 'integer', minimum: 1 },
      temperature: { type: 'number', minimum: 0, maximum: 2 },
      top_p: { type: 'number', minimum: 0, maximum: 1 },
      presence_penalty: unit,
      frequency_penalty: unit,
      seed: { type: 'integer' },
      logit_bias: { type: 'object', additionalProperties: { type: 'number', minimum: -100, maximum: 100 } },
      logprobs: { const: true },
      top_logprobs: { type: 'integer', minimum: 0, maximum: 20 },
      stop: nonEmptyList(nonEmpty, { maxItems: 4 }),
      n: { type: 'integer', minimum: 2, maximum: 128 },
      tools: nonEmptyList(closed({ type: { const: 'function' }, function: offeredTool }, ['type', 'function'])),
      tool_choice: {
        oneOf: [
          { enum: ['auto', 'none', 'required'] },
          closed({ type: { const: 'function' }, function: closed({ name: nonEmpty }, ['name']) }, ['type', 'function']),
        ],
      },
      parallel_tool_calls: { type: 'boolean' },
      response_format: {
        oneOf: [
          closed({ type: { const: 'json_object' } }, ['type']),
          closed({ type: { const: 'json_schema' }, json_schema: outputSchema }, ['type', 'json_schema']),
        ],
      },
      reasoning_effort: { enum: [...reasoningEfforts] },
      safety_identifier: { type: 'string', maxLength: 128 },
      user: { type: 'string' },
      verbosity: { enum: ['low', 'medium', 'high'] },
      service_tier: { type: 'string' },
      store: { type: 'boolean' },
    },
    ['model', 'messages'],
  ),
  oneOf: [{ required: ['max_tokens'] }, { required: ['max_completion_tokens'] }],
  dependentRequired: {
    stream_options: ['stream'],
    tool_choice: ['tools'],
    parallel_tool_calls: ['tools'],
    top_logprobs: ['logprobs'],
  },
}
const valid = new Ajv({ allErrors: true, strict: false }).compile(requestSchema)

function expectValid(body: Json): void {
  expect(valid(body) ? null : valid.errors).toBeNull()
}

describe('OpenAI request', () => {
  test('contains only model, messages and reserved cap for a plain prompt', () => {
    const request = requestFor({})
    expect(request).toStrictEqual({
      body: '{"model":"gpt-5.5","messages":[{"role":"user","content":"Hello"}],"max_completion_tokens":1000}',
      droppedParameters: [],
      headers: { accept: 'application/json', authorization: 'Bearer key', 'content-type': 'application/json' },
      url: 'https://api.openai.com/v1/chat/completions',
    })
  })

  test('contains everything that a permissive model accepts', () => {
    const request = requestFor({ request: fullAsk, stream: true })
    expect(request.droppedParameters).toEqual([])
    expect(JSON.parse(request.body)).toStrictEqual({
      frequency_penalty: 0.2,
      logit_bias: { 50256: -100 },
      logprobs: true,
      max_completion_tokens: 1000,
      messages: [{ role: 'user', content: 'Hello' }],
      model: 'gpt-5.5',
      n: 2,
      parallel_tool_calls: false,
      presence_penalty: 0.1,
      reasoning_effort: 'medium',
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          schema: { type: 'object', additionalProperties: false, properties: {} },
          strict: true,
        },
      },
      safety_identifier: 'customer-1',
      seed: 7,
      stop: ['END'],
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      temperature: 0.7,
      tool_choice: { type: 'function', function: { name: 'weather' } },
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'Weather of a city',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
      top_logprobs: 5,
      top_p: 0.9,
    })
  })

  test('drops and reports what a strict model rejects', () => {
    const request = requestFor({
      request: { ...fullAsk, extras: { verbosity: 'low', web_search_options: {} } },
      rules: strictRules,
      stream: true,
    })
    expect(request.droppedParameters).toStrictEqual([
      'n',
      'seed',
      'logprobs',
      'top_logprobs',
      'logit_bias',
      'presence_penalty',
      'frequency_penalty',
      'temperature',
      'top_p',
      'stop',
      'tool_choice',
      'parallel_tool_calls',
      'response_format',
      'web_search_options',
    ])
    expect(JSON.parse(request.body)).toStrictEqual({
      max_completion_tokens: 1000,
      messages: [
        { role: 'developer', content: 'Answer by calling the tool `weather`.' },
        { role: 'user', content: 'Hello' },
      ],
      model: 'gpt-5.5',
      reasoning_effort: 'medium',
      safety_identifier: 'customer-1',
      stream: true,
      tool_choice: 'auto',
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'Weather of a city',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
      verbosity: 'low',
    })
  })

  test('satisfies the parameter rules for any chat request', () => {
    const rules = fc.record({
      sampling: fc.constantFrom(
        'accepted' as const,
        'rejected' as const,
        'only_with_effort_none' as const,
        'accepted_when_thinking_disabled' as const,
      ),
      maximumTemperature: fc.constantFrom(1, 1.5, 2),
      temperatureWithTopP: fc.boolean(),
      penalties: fc.boolean(),
      seed: fc.boolean(),
      logitBias: fc.boolean(),
      logprobs: fc.boolean(),
      maximumTopLogprobs: fc.constantFrom(0, 5, 20),
      maximumStops: fc.constantFrom(0, 1, 4),
      maximumChoices: fc.constantFrom(1, 8, 128),
      outputCapField: fc.constantFrom('max_completion_tokens' as const, 'max_tokens' as const),
      systemRole: fc.constantFrom('system' as const, 'developer' as const),
      forcedToolChoice: fc.constantFrom('accepted' as const, 'rejected' as const, 'rejected_when_thinking' as const),
      toolsNeedEffortNone: fc.boolean(),
      efforts: fc.subarray([...reasoningEfforts]),
      streamOptions: fc.boolean(),
      parallelToolCalls: fc.boolean(),
      responseFormat: fc.constantFrom('json_schema' as const, 'json_object' as const, 'none' as const),
      passExtras: fc.boolean(),
    })
    fc.assert(
      fc.property(
        anyRequest({ schema: fc.constant({}), callId: fc.string({ minLength: 1, maxLength: 50 }) }),
        rules,
        fc.boolean(),
        fc.boolean(),
        (chatRequest, given, stream, isOfficial) => {
          const request = requestFor({
            request: chatRequest,
            rules: given,
            stream,
            provider: isOfficial ? official : compatible,
          })
          const body = JSON.parse(request.body) as Json
          expectValid(body)
          expect(request.body.isWellFormed() && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(request.body)).toBe(true)
          expect(body.model).toBe('gpt-5.5')
          expect(body[given.outputCapField]).toBe(1000)
          expect(Number(body.temperature ?? 0)).toBeLessThanOrEqual(given.maximumTemperature)
          expect((body.stop as string[] | undefined)?.length ?? 0).toBeLessThanOrEqual(given.maximumStops)
          expect(Number(body.n ?? 1)).toBeLessThanOrEqual(given.maximumChoices)
          if (given.sampling === 'rejected') expect(body).not.toContainKeys(['temperature'])
          if (given.sampling === 'only_with_effort_none' && body.reasoning_effort !== 'none')
            expect(body.temperature).toBeUndefined()
          if (chatRequest.tools.length > 0 && given.toolsNeedEffortNone) expect(body.reasoning_effort).toBe('none')
          else if (body.reasoning_effort !== undefined) expect(given.efforts).toContain(body.reasoning_effort as 'low')
          if (body.response_format !== undefined) expect(given.responseFormat).not.toBe('none')
          if ((body.response_format as Json | undefined)?.type === 'json_object')
            expect(JSON.stringify(body.messages)).toMatch(/json/i)
          if (chatRequest.temperature !== null && body.temperature === undefined)
            expect(request.droppedParameters).toContain('temperature')
        },
      ),
      { numRuns: 300 },
    )
  })

  test('joins the URL without duplication and adds `/v1` only without a version', () => {
    const getAddress = (baseUrl: string) => requestFor({ baseUrl, provider: compatible }).url
    expect(getAddress('https://api.openai.com/v1')).toBe('https://api.openai.com/v1/chat/completions')
    expect(getAddress('https://api.openai.com/v1/')).toBe('https://api.openai.com/v1/chat/completions')
    expect(getAddress('http://127.0.0.1:11434')).toBe('http://127.0.0.1:11434/v1/chat/completions')
    expect(getAddress('https://api.groq.com/openai/')).toBe('https://api.groq.com/openai/v1/chat/completions')
    expect(getAddress('https://openrouter.ai/api/v1')).toBe('https://openrouter.ai/api/v1/chat/completions')
    expect(getAddress('https://host/v1beta/openai/')).toBe('https://host/v1beta/openai/chat/completions')
    expect(getAddress('https://v1.host')).toBe('https://v1.host/v1/chat/completions')
    expect(getAddress('https://host/chat/completions')).toBe('https://host/chat/completions')
    expect(getAddress('https://x.openai.azure.com/openai/deployments/d?api-version=1')).toBe(
      'https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1',
    )
  })

  test('sends the key as bearer, on Azure as `api-key`, and not at all without a key', () => {
    expect(requestFor({}).headers.authorization).toBe('Bearer key')
    const azure = requestFor({ provider: compatible, baseUrl: 'https://x.openai.azure.com/openai/v1' }).headers
    expect([azure['api-key'], azure.authorization]).toEqual(['key', undefined])
    expect(requestFor({ apiKey: null }).headers).not.toContainKeys(['authorization'])
  })

  test('requests usage in every stream if the server supports it', () => {
    expect(bodyFor({ stream: true }).stream_options).toEqual({ include_usage: true, include_obfuscation: false })
    expect(bodyFor({ stream: true, baseUrl: 'https://models.example/v1' }).stream_options).toEqual({
      include_usage: true,
    })
    expect(bodyFor({ stream: true, rules: { streamOptions: false } })).not.toContainKeys(['stream_options'])
    expect(bodyFor({ stream: false })).not.toContainKeys(['stream_options'])
  })

  test('uses the nearest supported effort, the higher of two', () => {
    const getEffort = (reasoningEffort: ChatRequest['reasoningEffort'], efforts: ParameterRules['efforts']) =>
      bodyFor({ request: { reasoningEffort }, rules: { efforts } }).reasoning_effort
    expect(getEffort('max', ['low', 'medium', 'high'])).toBe('high')
    expect(getEffort('none', ['minimal', 'low'])).toBe('minimal')
    expect(getEffort('minimal', ['none', 'low'])).toBe('low')
    expect(getEffort('medium', ['medium'])).toBe('medium')
    expect(getEffort('low', [])).toBeUndefined()
    expect(getEffort(null, ['low'])).toBeUndefined()
  })

  test('falls back to json_object with the schema in the messages when it is not supported', () => {
    const request = {
      messages: [{ role: 'system' as const, text: 'Be kind.' }, hello],
      responseFormat: fullAsk.responseFormat,
    }
    const body = bodyFor({ request: request as Partial<ChatRequest>, rules: { responseFormat: 'json_object' } })
    expect(body.response_format).toEqual({ type: 'json_object' })
    expect(body.messages).toEqual([
      {
        role: 'system',
        content:
          'Be kind.\n\nAnswer with one JSON object that follows this JSON schema: {"type":"object","properties":{},"additionalProperties":false}',
      },
      { role: 'user', content: 'Hello' },
    ])
  })

  test('adds the word JSON to the messages for json_object only if missing', () => {
    const responseFormat = { type: 'json_object' } as const
    expect(bodyFor({ request: { responseFormat } }).messages).toEqual([
      { role: 'system', content: 'Answer with one JSON object.' },
      { role: 'user', content: 'Hello' },
    ])
    const named: Message = { role: 'user', content: [{ type: 'text', text: 'As Json, please' }], name: null }
    expect(bodyFor({ request: { responseFormat, messages: [named] } }).messages).toEqual([
      { role: 'user', content: 'As Json, please' },
    ])
  })

  test('omits a tool choice without tools', () => {
    expect(bodyFor({ request: { toolChoice: 'required', parallelToolCalls: true } })).not.toContainKeys([
      'tools',
      'tool_choice',
      'parallel_tool_calls',
    ])
  })

  test('never lets extras override own fields; OpenAI gets its own, compatible servers listed ones, strict models none', () => {
    const extras = {
      model: 'evil',
      messages: [],
      stream: true,
      n: 50,
      user: 'x',
      metadata: { a: 'b' },
      verbosity: 'low',
      top_k: 5,
      min_p: null,
      'bad\r\nname': 1,
    }
    const atOpenai = requestFor({ request: { extras } })
    expect(JSON.parse(atOpenai.body)).toEqual({
      verbosity: 'low',
      model: 'gpt-5.5',
      messages: [{ role: 'user', content: 'Hello' }],
      max_completion_tokens: 1000,
    })
    expect(atOpenai.droppedParameters).toEqual(['top_k'])
    const elsewhere = bodyFor({ request: { extras: { ...extras, __proto__: null } }, provider: compatible })
    expect(elsewhere).toMatchObject({ top_k: 5, verbosity: 'low', model: 'gpt-5.5' })
    expect(elsewhere).not.toContainKeys(['user', 'metadata', 'stream', 'n'])
    const strict = requestFor({ request: { extras }, provider: compatible, rules: { passExtras: false } })
    expect(strict.droppedParameters).toEqual(['verbosity', 'top_k'])
  })

  test('omits for OpenAI what its models reject with 400', () => {
    const extras = { web_search_options: {}, prompt_cache_retention: '24h', modalities: ['text', 'audio'], audio: {} }
    const dropped: readonly string[] = requestFor({ request: { extras }, id: 'gpt-6-luna' }).droppedParameters
    expect(dropped).toEqual(Object.keys(extras))
    expect(bodyFor({ request: { extras }, id: 'gpt-5.5' }).prompt_cache_retention).toBe('24h')
  })

  test('never requests a service tier above the billed price', () => {
    const sentTo = (id: string) => (service_tier: string) => {
      const model = catalog.find(item => item.id === id)
      if (model === undefined) throw new Error(`no ${id} in the catalog`)
      const request = askWith({ extras: { service_tier } })
      const access = { baseUrl: 'https://api.openai.com/v1', apiKey: 'key' }
      return JSON.parse(official.toRequest({ request, model, outputCap: 1000, stream: false }, access).body)
        .service_tier
    }
    const tiers = ['auto', 'default', 'flex', 'priority', 'fast', 'scale']
    expect(tiers.map(sentTo('gpt-5.5'))).toEqual(['auto', 'default', 'flex', undefined, undefined, undefined])
    expect(tiers.map(sentTo('gpt-4.1'))).toEqual(['auto', 'default', undefined, undefined, undefined, undefined])
    expect(requestFor({ request: { extras: { service_tier: 'priority' } } }).droppedParameters).toEqual([
      'service_tier',
    ])
  })

  test('keeps order and parts of a conversation with images and tools', () => {
    const messages: Message[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', url: 'data:image/png;base64,AA==', detail: 'low' },
        ],
        name: 'Ann',
      },
      {
        role: 'assistant',
        text: '',
        reasoning: 'hm',
        toolCalls: [
          { id: 'c1', name: 'weather', arguments: '', signature: 's' },
          { id: 'c2', name: 'weather', arguments: '{bad', signature: null },
        ],
        name: null,
      },
      { role: 'tool', callId: 'c1', text: 'sunny' },
      { role: 'assistant', text: null, reasoning: null, toolCalls: [], name: 'white space' },
    ]
    expect(bodyFor({ request: { messages } }).messages).toStrictEqual([
      {
        role: 'user',
        name: 'Ann',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { detail: 'low', url: 'data:image/png;base64,AA==' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { type: 'function', id: 'c1', function: { name: 'weather', arguments: '{}' } },
          { type: 'function', id: 'c2', function: { name: 'weather', arguments: '{bad' } },
        ],
      },
      { role: 'tool', content: 'sunny', tool_call_id: 'c1' },
      { role: 'tool', content: 'The tool gave no result.', tool_call_id: 'c2' },
      { role: 'assistant', content: '' },
    ])
    const elsewhere = bodyFor({ request: { messages }, provider: compatible }).messages as Json[]
    expect(elsewhere[1]?.reasoning_content).toBe('hm')
  })

  test('keeps text parts for OpenAI and joins them for servers with plain text only', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ] as const
    const request = { messages: [{ role: 'user', content, name: null }] as Message[] }
    expect((bodyFor({ request }).messages as Json[])[0]?.content).toHaveLength(2)
    expect((bodyFor({ request, provider: compatible }).messages as Json[])[0]?.content).toBe('a\nb')
  })

  test('renames tool call IDs that the server would reject, consistently', () => {
    const id = 'x'.repeat(41)
    const messages: Message[] = [
      {
        role: 'assistant',
        text: null,
        reasoning: null,
        toolCalls: [{ id, name: 'weather', arguments: '{}', signature: null }],
        name: null,
      },
      { role: 'tool', callId: id, text: 'sunny' },
    ]
    const getIds = (situation: Situation) =>
      (
        bodyFor({ ...situation, request: { messages } }).messages as {
          tool_calls?: { id: string }[]
          tool_call_id?: string
        }[]
      ).map(({ tool_calls: calls, tool_call_id: result }) => calls?.[0]?.id ?? result)
    expect(getIds({})).toEqual(['call00001', 'call00001'])
    expect(getIds({ provider: compatible, baseUrl: 'https://api.mistral.ai/v1' })).toEqual(['call00001', 'call00001'])
    expect(getIds({ provider: compatible })).toEqual([id, id])
  })

  test('sends a thought signature only to Google', () => {
    const call = { id: 'c', name: 'weather', arguments: '{}', signature: 'sig' }
    const messages: Message[] = [{ role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null }]
    const sentTo = (baseUrl: string) => requestFor({ request: { messages }, provider: compatible, baseUrl }).body
    expect(sentTo('https://generativelanguage.googleapis.com/v1beta/openai/')).toContain(
      '"extra_content":{"google":{"thought_signature":"sig"}}',
    )
    expect(sentTo('https://host/v1')).not.toContain('sig')
  })

  test('never contains unpaired surrogates, but keeps text that spells their escape', () => {
    const text = 'a\ud83d b \\ud83d c 😀'
    const body = bodyFor({ request: { messages: [{ role: 'system', text }] } })
    expect(body.messages).toEqual([{ role: 'system', content: 'a\ufffd b \\ud83d c 😀' }])
  })
})

// ------------------------------------------------------------------------------------------------ reading answers

const getChunk = (fields: Json) => `data: ${JSON.stringify({ id: 'a1', model: 'm', choices: [], ...fields })}\n\n`
const getDelta = (delta: unknown, finish: unknown = null, index: unknown = 0) =>
  getChunk({ choices: [{ index, delta, finish_reason: finish }] })
const done = 'data: [DONE]\n\n'

function read(text: string, provider = compatible, choices?: number): AnswerPart[] {
  return readRecording(provider.streamReader(choices), new TextEncoder().encode(text))
}

/** Removes the parts that most cases ignore. */
function getContent(answer: readonly AnswerPart[]): AnswerPart[] {
  return answer.filter(part => part.type !== 'served')
}

function failureIn(answer: readonly AnswerPart[]) {
  return answer.flatMap(part => (part.type === 'failure' ? [part.failure] : []))[0]
}

const text = (value: string, choice = 0): AnswerPart => ({ type: 'text', choice, text: value })
const finish = (reason: 'stop' | 'length' | 'tool_calls' | 'content_filter', choice = 0): AnswerPart => ({
  type: 'finish',
  choice,
  reason,
})
const ended: AnswerPart = { type: 'end' }

/** Returns the calls from the parts, and checks that each is opened once, in order, before its arguments. */
function callsIn(answer: readonly AnswerPart[]): { id: string; name: string; arguments: string }[] {
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const part of answer) {
    if (part.type === 'tool_call') {
      expect(part.index).toBe(calls.length)
      calls.push({ id: part.id, name: part.name, arguments: '' })
    }
    if (part.type === 'tool_arguments') {
      const call = calls[part.index]
      expect(call).toBeDefined()
      if (call !== undefined) call.arguments += part.text
    }
  }
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
  return calls
}

const callDelta = (...calls: Json[]) => getDelta({ tool_calls: calls })

describe('OpenAI stream end', () => {
  test('ends at `[DONE]` after a finish reason and reads nothing after it', () => {
    expect(
      getContent(read(getDelta({ content: 'Hi' }) + getDelta({}, 'stop') + done + getDelta({ content: 'more' }))),
    ).toEqual([text('Hi'), finish('stop'), ended])
  })

  test('ends with the body after a finish reason without `[DONE]`', () => {
    expect(getContent(read(getDelta({ content: 'Hi' }, 'stop')))).toEqual([text('Hi'), finish('stop'), ended])
  })

  test('accepts `[DONE]` without any finish reason, but not with only some missing', () => {
    expect(getContent(read(getDelta({ content: 'Hi' }) + done))).toEqual([text('Hi'), finish('stop'), ended])
    expect(getContent(read(done))).toEqual([finish('stop'), ended])
    const oneOfTwo = getDelta({ content: 'a' }, 'stop', 0) + getDelta({ content: 'b' }, null, 1)
    for (const answer of [
      read(getDelta({ content: 'Hi' }) + done, official),
      read(done, official),
      read(oneOfTwo + done),
    ])
      expect(failureIn(answer)?.kind).toBe('truncated')
  })

  test('requires all requested choices before the end of the body', () => {
    const first = getDelta({ content: 'a' }, 'stop', 0)
    expect(getContent(read(first, official, 2))).toEqual([text('a')])
    expect(read(first + done, official, 2).at(-1)).toEqual(ended)
    expect(read(first + getDelta({ content: 'b' }, 'stop', 1), official, 2).at(-1)).toEqual(ended)
  })

  test('reports truncation without `[DONE]` and finish reason', () => {
    expect(getContent(read(getDelta({ content: 'Hi' })))).toEqual([text('Hi')])
    expect(getContent(read(getDelta({ content: 'Hi' }, '')))).toEqual([text('Hi')])
    expect(read('')).toEqual([])
    const oneOfTwo = getDelta({ content: 'a' }, 'stop', 0) + getDelta({ content: 'b' }, null, 1)
    expect(getContent(read(oneOfTwo))).toEqual([text('a'), text('b', 1)])
    const message = getChunk({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: null }] })
    expect(getContent(read(message))).toEqual([text('Hi')])
  })

  test('accepts a complete completion as one event', () => {
    const whole = {
      id: 'w',
      model: 'm',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    }
    const answer: AnswerPart[] = getContent(read(`data: ${JSON.stringify(whole)}\n\n`))
    expect(answer.slice(1)).toEqual([text('Hi'), finish('stop'), ended])
  })

  test('ignores a final message that repeats the deltas', () => {
    const last = getChunk({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] })
    expect(getContent(read(getDelta({ content: 'Hi' }) + last))).toEqual([text('Hi'), finish('stop'), ended])
  })
})

describe('OpenAI chunks', () => {
  test('take ID and model from the first chunk that has them, ignoring chunks without choices [15]', () => {
    const answer = read(
      getChunk({ id: '', model: '', prompt_filter_results: [] }) +
        getChunk({ id: 'x', model: '' }) +
        getDelta({ content: 'Hi' }) +
        getChunk({}) +
        done,
    )
    expect(answer).toEqual([{ type: 'served', id: 'x', model: 'm' }, text('Hi'), finish('stop'), ended])
  })

  test('carry usage in the last or finish chunk, the choice or x_groq; the last one counts [16]', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2 }
    const places = [
      getDelta({}, 'stop') + getChunk({ usage }),
      getChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }),
      getChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] }),
      getChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { usage } }),
      getChunk({ usage: { prompt_tokens: 3, completion_tokens: 1 } }) + getChunk({ usage: null }) + getChunk({ usage }),
    ]
    for (const place of places) {
      expect(read(place + done).find(part => part.type === 'usage')).toEqual({
        type: 'usage',
        usage: { inputTokens: 3, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 2, reasoningTokens: 0 },
      })
    }
    expect(read(getChunk({ usage: {} }) + done).some(part => part.type === 'usage')).toBe(false)
  })

  test('without delta or with an empty one yield nothing [18]', () => {
    const silent = [
      {},
      { content: '' },
      { content: null },
      { role: '' },
      { role: 'assistant', tool_calls: [] },
      { tool_calls: null },
      null,
      undefined,
    ]
    expect(getContent(read(silent.map(delta => getDelta(delta)).join('') + done))).toEqual([finish('stop'), ended])
  })

  test('keep the first finish reason, map unusual ones, and read unknown ones as stop [19, 20]', () => {
    const findReason = (...reasons: unknown[]) =>
      getContent(read(reasons.map(reason => getDelta({ content: 'x' }, reason)).join('') + done))[1]
    expect(findReason('length', 'stop')).toEqual(finish('length'))
    expect(findReason('null', 'length')).toEqual(finish('length'))
    for (const reason of [
      'stop',
      'eos',
      'eos_token',
      'end',
      'COMPLETE',
      'brand_new',
      '',
      'null',
      null,
      7,
      'constructor',
      '__proto__',
    ])
      expect(findReason(reason)).toEqual(finish('stop'))
    for (const reason of ['max_tokens', 'model_length', 'MAX_TOKENS'])
      expect(findReason(reason)).toEqual(finish('length'))
    for (const reason of ['content_filter', 'sensitive', 'content_filter: PROHIBITED_CONTENT'])
      expect(findReason(reason)).toEqual(finish('content_filter'))
  })

  test('with a failing finish reason end the response [20]', () => {
    for (const reason of ['error', 'network_error', 'function_call_filter: MALFORMED_FUNCTION_CALL']) {
      const answer = read(getDelta({ content: 'x' }) + getDelta({}, reason) + done)
      expect(failureIn(answer)).toMatchObject({ kind: 'generation_failed', blame: 'upstream', retryable: true })
      expect(answer.at(-1)?.type).toBe('failure')
    }
  })

  test('without text are valid when reasoning used up the cap [21]', () => {
    expect(getContent(read(getDelta({ content: '' }, 'length') + done))).toEqual([finish('length'), ended])
  })

  test('derive tool_calls from the calls sent, whatever the finish reason [22]', () => {
    const call = callDelta({ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } })
    expect(read(call + getDelta({}, 'stop') + done)).toContainEqual(finish('tool_calls'))
    expect(read(getDelta({ content: 'x' }, 'tool_calls') + done)).toContainEqual(finish('stop'))
    expect(read(call + getDelta({}, 'length') + done)).toContainEqual(finish('length'))
  })

  const piece = (index: unknown, id: unknown, name: unknown, args: unknown, rest: Json = {}) => ({
    index,
    id,
    type: 'function',
    function: { name, arguments: args },
    ...rest,
  })
  const two = [
    { id: 'a', name: 'f', arguments: '{"x":1}' },
    { id: 'b', name: 'g', arguments: '{"y":2}' },
  ]
  const shapes: Readonly<Record<string, [stream: string, calls: { id: string; name: string; arguments: string }[]]>> = {
    'as OpenAI sends them': [
      callDelta(piece(0, 'a', 'f', '')) +
        callDelta(piece(0, undefined, undefined, '{"x"')) +
        callDelta(piece(0, undefined, undefined, ':1}')) +
        callDelta(piece(1, 'b', 'g', '')) +
        callDelta(piece(1, undefined, undefined, '{"y":2}')),
      two,
    ],
    'all under index 0, told apart by id': [
      callDelta(piece(0, 'a', 'f', '{"x":1}')) +
        callDelta(piece(0, 'b', 'g', '{"y"')) +
        callDelta(piece(0, 'b', 'g', ':2}')),
      two,
    ],
    'all under index 0 with the same name, told apart by id': [
      callDelta(piece(0, 'a', 'f', '{}')) + callDelta(piece(0, 'b', 'f', '{}')),
      [
        { id: 'a', name: 'f', arguments: '{}' },
        { id: 'b', name: 'f', arguments: '{}' },
      ],
    ],
    'without an index': [
      callDelta(piece(undefined, 'a', 'f', '{"x":1}')) + callDelta(piece(undefined, 'b', 'g', '{"y":2}')),
      two,
    ],
    'without an index, in pieces': [
      callDelta(piece(undefined, 'a', 'f', '{"x"')) +
        callDelta(piece(undefined, undefined, undefined, ':1}')) +
        callDelta(piece(undefined, 'b', 'g', '{"y":2}')),
      two,
    ],
    'without an index, several begun at once and continued in the same order': [
      callDelta(piece(undefined, 'a', 'f', ''), piece(undefined, 'b', 'g', '')) +
        callDelta(piece(undefined, undefined, undefined, '{"x"'), piece(undefined, undefined, undefined, '{"y"')) +
        callDelta(piece(undefined, undefined, undefined, ':1}'), piece(undefined, undefined, undefined, ':2}')),
      two,
    ],
    'without an index at first, with one later': [
      callDelta(piece(undefined, 'a', 'f', '{"x"'), piece(undefined, 'b', 'g', '{"y"')) +
        callDelta(piece(1, undefined, undefined, ':2}'), piece(0, undefined, undefined, ':1}')),
      two,
    ],
    'without ids and indexes, several at once': [
      callDelta(piece(undefined, undefined, 'f', ''), piece(undefined, undefined, 'g', '')) +
        callDelta(
          piece(undefined, undefined, undefined, '{"x":1}'),
          piece(undefined, undefined, undefined, '{"y":2}'),
        ) +
        callDelta(piece(undefined, undefined, 'f', '{}'), piece(undefined, undefined, 'f', '{"x":3}')),
      [
        { ...two[0], id: 'call_a1_0' },
        { ...two[1], id: 'call_a1_1' },
        { id: 'call_a1_2', name: 'f', arguments: '{}' },
        { id: 'call_a1_3', name: 'f', arguments: '{"x":3}' },
      ] as typeof two,
    ],
    'from index 1 with a hole': [
      callDelta(piece(1, 'a', 'f', '{"x":1}')) + callDelta(piece(5, 'b', 'g', '{"y":2}')),
      two,
    ],
    interleaved: [
      callDelta(piece(0, 'a', 'f', '{"x"'), piece(1, 'b', 'g', '{"y"')) +
        callDelta(piece(1, undefined, undefined, ':2}'), piece(0, undefined, undefined, ':1}')),
      two,
    ],
    'both in one chunk': [callDelta(piece(0, 'a', 'f', '{"x":1}'), piece(1, 'b', 'g', '{"y":2}')), two],
    'the name after the arguments': [
      callDelta(piece(0, 'a', undefined, '{"x"')) +
        callDelta(piece(0, undefined, '', ':1}')) +
        callDelta(piece(0, undefined, 'f', '')) +
        callDelta(piece(1, 'b', 'g', '{"y":2}')),
      two,
    ],
    'the name on every chunk': [
      callDelta(piece(0, 'a', 'f', '')) +
        callDelta(piece(0, 'a', 'f', '{"x"')) +
        callDelta(piece(0, 'a', 'f', ':1}')) +
        callDelta(piece(1, 'b', 'g', '{"y":2}')),
      two,
    ],
    'the name in pieces': [
      callDelta(piece(0, 'a', 'get_', '')) +
        callDelta(piece(0, undefined, 'time', '')) +
        callDelta(piece(0, undefined, undefined, '{}')),
      [{ id: 'a', name: 'get_time', arguments: '{}' }],
    ],
    'the name growing': [
      callDelta(piece(0, 'a', 'get', '')) +
        callDelta(piece(0, 'a', 'get_time', '')) +
        callDelta(piece(0, undefined, undefined, '{}')),
      [{ id: 'a', name: 'get_time', arguments: '{}' }],
    ],
    'no id': [
      callDelta(piece(0, undefined, 'f', '{"x":1}')) + callDelta(piece(1, '', 'g', '{"y":2}')),
      [
        { ...two[0], id: 'call_a1_0' },
        { ...two[1], id: 'call_a1_1' },
      ] as typeof two,
    ],
    'neither id nor index, one call per chunk': [
      callDelta(piece(undefined, '', 'f', '{"x":1}')) +
        callDelta(piece(undefined, '', 'f', '{"x":2}')) +
        callDelta(piece(undefined, '', 'f', '{"x":2}')),
      [
        { id: 'call_a1_0', name: 'f', arguments: '{"x":1}' },
        { id: 'call_a1_1', name: 'f', arguments: '{"x":2}' },
        { id: 'call_a1_2', name: 'f', arguments: '{"x":2}' },
      ],
    ],
    'the same id for all': [
      callDelta(piece(0, '0', 'f', '{"x":1}')) + callDelta(piece(1, '0', 'g', '{"y":2}')),
      [
        { ...two[0], id: '0' },
        { ...two[1], id: '0_1' },
      ] as typeof two,
    ],
    'null arguments': [
      callDelta(piece(0, 'a', 'f', null)) + callDelta(piece(0, null, null, null)),
      [{ id: 'a', name: 'f', arguments: '{}' }],
    ],
    'empty arguments': [callDelta(piece(0, 'a', 'f', '')), [{ id: 'a', name: 'f', arguments: '{}' }]],
    'arguments as an object': [callDelta(piece(0, 'a', 'f', { x: 1 })), [{ id: 'a', name: 'f', arguments: '{"x":1}' }]],
    'no type, and text that looks complete early': [
      callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }) +
        callDelta({ index: 0, function: { arguments: ' ' } }),
      [{ id: 'a', name: 'f', arguments: '{"x":1} ' }],
    ],
    'the whole call once more at the end': [
      callDelta(piece(0, 'a', 'f', '{"x"')) +
        callDelta(piece(0, undefined, undefined, ':1}')) +
        callDelta(piece(0, 'a', 'f', '{"x":1}')),
      [two[0]] as typeof two,
    ],
    'noise that is no call': [
      callDelta(piece(0, 'a', 'f', '{"x":1}')) + callDelta(piece(1, undefined, undefined, '')),
      [two[0]] as typeof two,
    ],
    'the legacy function_call': [
      getDelta({ function_call: { name: 'f', arguments: '' } }) + getDelta({ function_call: { arguments: '{"x":1}' } }),
      [{ ...two[0], id: 'call_a1_0' }] as typeof two,
    ],
    'an emoji cut in its middle': [
      callDelta(piece(0, 'a', 'f', '{"x":"\ud83d')) + callDelta(piece(0, undefined, undefined, '\ude00"}')),
      [{ id: 'a', name: 'f', arguments: '{"x":"😀"}' }],
    ],
  }
  for (const [shape, [stream, calls]] of Object.entries(shapes)) {
    test(`support tool calls: ${shape} [23–26]`, () => {
      expect(callsIn(read(stream + getDelta({}, 'tool_calls') + done))).toEqual(calls)
    })
  }

  test('fail for arguments without a name, and for too many calls [23]', () => {
    expect(failureIn(read(callDelta(piece(0, 'a', '', '{}')) + done))?.kind).toBe('bad_answer')
    const many = Array.from({ length: 200 }, (_, index) => callDelta(piece(index, `c${index}`, 'f', '{}'))).join('')
    expect(failureIn(read(many + done))?.kind).toBe('bad_answer')
  })

  test('keep text before, between and after calls in order [27]', () => {
    const stream =
      getDelta({ content: 'a' }) +
      callDelta(piece(0, 'a', 'f', '')) +
      getDelta({ content: 'b' }) +
      callDelta(piece(0, undefined, undefined, '{"x":1}')) +
      getDelta({ content: 'c' }, 'tool_calls') +
      done
    expect(getContent(read(stream)).map(part => ('text' in part ? part.text : part.type))).toEqual([
      'a',
      'tool_call',
      'b',
      '{"x":1}',
      'c',
      'finish',
      'end',
    ])
  })

  test("read one of two equal reasoning fields, and Mistral's thinking parts [28]", () => {
    const reasoning = (value: string): AnswerPart => ({ type: 'reasoning', choice: 0, text: value })
    expect(
      getContent(
        read(
          getDelta({ reasoning_content: 'hm', reasoning: 'hm', content: '' }) +
            getDelta({ reasoning: ' so' }) +
            getDelta({ content: 'Hi' }) +
            done,
        ),
      ).slice(0, 2),
    ).toEqual([reasoning('hm so'), text('Hi')])
    expect(
      getContent(
        read(
          getDelta({
            reasoning_details: [
              { type: 'reasoning.summary', summary: 'hm' },
              { type: 'reasoning.encrypted', data: 'x' },
            ],
          }) + done,
        ),
      )[0],
    ).toEqual(reasoning('hm'))
    expect(
      getContent(
        read(
          getDelta({
            content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }, { type: 'text', text: 'Hi' }, 5],
          }) + done,
        ),
      ).slice(0, 2),
    ).toEqual([reasoning('hm'), text('Hi')])
  })

  test('read inline <think> at the start as reasoning for any split, except from OpenAI [28]', () => {
    const inline = '\n<think>why < not</think>\n\nAnswer <think>x'
    for (let size = 1; size <= inline.length; size += 1) {
      const pieces = inline.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      const stream = pieces.map(content => getDelta({ content })).join('') + done
      expect(getContent(read(stream)).slice(0, 2)).toEqual([
        { type: 'reasoning', choice: 0, text: 'why < not' },
        text('Answer <think>x'),
      ])
      expect(getContent(read(stream, official))[0]).toEqual(text(inline))
    }
  })

  test('read several <think> blocks at the start as reasoning for any split', () => {
    const inline = '<think>a</think>\n\n<think>b</think><thought>c</thought> \n Answer </think> <think>d</think>'
    for (let size = 1; size <= inline.length; size += 1) {
      const pieces = inline.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      expect(getContent(read(pieces.map(content => getDelta({ content })).join('') + done)).slice(0, 2)).toEqual([
        { type: 'reasoning', choice: 0, text: 'abc' },
        // In the middle of an answer, a tag is what the answer is about.
        text('Answer </think> <think>d</think>'),
      ])
    }
    const many = `${'<think></think>'.repeat(100_000)}Answer`
    expect(getContent(read(getDelta({ content: many }) + done))[0]).toEqual(text('Answer'))
    for (const end of ['<think>a</think>', '<think>a</think> \n', '<think>a</think><think>'])
      expect(getContent(read(getDelta({ content: end }) + done))[0]).toEqual({
        type: 'reasoning',
        choice: 0,
        text: 'a',
      })
    expect(getContent(read(getDelta({ content: '<think>a</think> <thi' }) + done)).slice(0, 2)).toEqual([
      { type: 'reasoning', choice: 0, text: 'a' },
      text('<thi'),
    ])
  })

  test.each([
    ['a name from vLLM', { stop_reason: 'END' }, 'END'],
    ['a name from SGLang', { matched_stop: 'END' }, 'END'],
    ['a token', { stop_reason: 128_009, matched_stop: 2 }, undefined],
    ['none', { stop_reason: null }, undefined],
    ['one without a name from OpenRouter', { native_finish_reason: 'stop_sequence' }, null],
    ['one without a name from TGI', { finish_reason: 'stop_sequence' }, null],
  ])('read the matched stop sequence: %s', (_, fields, stopSequence) => {
    const wire = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop', ...fields }] }
    const finish = read(`data: ${JSON.stringify(wire)}\n\n${done}`).find(part => part.type === 'finish')
    expect(finish).toEqual({
      type: 'finish',
      choice: 0,
      reason: 'stop',
      ...(stopSequence === undefined ? {} : { stopSequence }),
    })
  })

  test("read Google's thought tag, closed only by its own end [28]", () => {
    const inline = '<thought>why</think></thought>Answer'
    for (let size = 1; size <= inline.length; size += 1) {
      const pieces = inline.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      expect(getContent(read(pieces.map(content => getDelta({ content })).join('') + done)).slice(0, 2)).toEqual([
        { type: 'reasoning', choice: 0, text: 'why</think>' },
        text('Answer'),
      ])
    }
  })

  test('read an incomplete tag as text and an unclosed thought as reasoning [28]', () => {
    for (const content of ['<', '<thin', '  <thinking>', '<thoughts>', ' '.repeat(100)])
      expect(getContent(read(getDelta({ content }) + done))[0]).toEqual(text(content))
    expect(getContent(read(getDelta({ content: '<think>a</thi' }) + done))[0]).toEqual({
      type: 'reasoning',
      choice: 0,
      text: 'a</thi',
    })
    // Cut there, it is no text: the model that continues the output begins a tag of its own.
    expect(getContent(read(getDelta({ content: '<thi' })))).toEqual([])
  })

  test('keep interleaved choices apart, each with its own finish [31]', () => {
    const stream =
      getDelta({ content: 'a' }, null, 0) +
      getDelta({ content: 'b' }, null, 1) +
      getDelta({ content: 'c' }, 'stop', 0) +
      getDelta({}, 'length', 1) +
      done
    expect(getContent(read(stream))).toEqual([
      text('a'),
      text('b', 1),
      text('c'),
      finish('stop'),
      finish('length', 1),
      ended,
    ])
  })

  test('stream a refusal and ignore `false` and empty ones [32]', () => {
    const stream =
      getDelta({ refusal: false }) +
      getDelta({ refusal: '' }) +
      getDelta({ refusal: 'No' }) +
      getDelta({ refusal: ', sorry' }, 'stop') +
      done
    expect(getContent(read(stream))).toEqual([{ type: 'refusal', choice: 0, text: 'No, sorry' }, finish('stop'), ended])
  })

  test('carry log probabilities per token [33]', () => {
    const token = { token: 'Hi', logprob: -0.5, bytes: [72, 105] }
    const content = [{ ...token, top_logprobs: [{ ...token, extra: 1 }, null] }, { token: 5 }]
    const stream =
      getChunk({ choices: [{ index: 0, delta: { content: 'Hi' }, logprobs: { content } }] }) +
      getChunk({ choices: [{ index: 0, delta: {}, logprobs: { content: null } }] }) +
      done
    expect(getContent(read(stream))[1]).toEqual({
      type: 'logprobs',
      choice: 0,
      tokens: [{ ...token, top_logprobs: [token] }],
    })
  })

  test('hold back an unpaired surrogate and replace it without its other half [34]', () => {
    expect(getContent(read(getDelta({ content: 'a\ud83d' }) + getDelta({ content: '\ude00b' }) + done))[0]).toEqual(
      text('a😀b'),
    )
    expect(getContent(read(getDelta({ content: 'a\ud83d' }) + getDelta({ content: 'b\udc00' }) + done))[0]).toEqual(
      text('a\ufffdb\ufffd'),
    )
    expect(getContent(read(getDelta({ content: 'a\ud83d' }, 'stop') + done))[0]).toEqual(text('a\ufffd'))
  })
})

describe('OpenAI failure in a response', () => {
  test('comes from an error frame of any form, and keeps its usage for billing', () => {
    const beside = getChunk({
      error: { code: 502, message: 'secret' },
      choices: [{ index: 0, delta: { content: '' } }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    })
    expect(getContent(read(getDelta({ content: 'x' }) + beside + done)).map(part => part.type)).toEqual([
      'text',
      'usage',
      'failure',
    ])
    for (const stream of [
      'data: {"error":"secret"}\n\n',
      'data: {"error":{}}\n\n',
      'data: {"object":"error","message":"secret","code":500}\n\n',
      'data: [{"error":{"message":"secret"}}]\n\n',
      'data: {"detail":"secret"}\n\n',
      'event: error\ndata: {"error":{"message":"secret"}}\n\n',
      'event: error\ndata: {"message":"secret"}\n\n',
      'event: error\ndata: secret\n\n',
    ]) {
      const answer = read(stream + getDelta({ content: 'x' }) + done)
      expect(failureIn(answer)).toMatchObject({ blame: 'upstream', retryable: true })
      expect(answer).toHaveLength(1)
      expect(JSON.stringify(answer)).not.toContain('secret')
    }
  })

  test('has the kind of its code or wording', () => {
    const findKind = (error: unknown) => failureIn(read(`data: ${JSON.stringify({ error })}\n\n`))
    expect(findKind({ code: 429, message: '' })?.kind).toBe('rate_limited')
    expect(findKind({ type: 'overloaded_error' })?.kind).toBe('overloaded')
    expect(findKind({ code: 400, message: 'no' })).toMatchObject({
      kind: 'generation_failed',
      blame: 'upstream',
      detail: '200 400',
    })
    expect(findKind({ message: "This model's maximum context length is 10" })).toMatchObject({
      kind: 'context_overflow',
      blame: 'caller',
    })
    expect(findKind({ code: 'content_filter' })).toMatchObject({ kind: 'content_filtered', retryable: false })
    const choice = { index: 0, finish_reason: 'error', error: { code: 429, message: '' } }
    for (const answer of [read(getChunk({ choices: [choice] }) + done), partsIn(compatible, { choices: [choice] })])
      expect(failureIn(answer)?.kind).toBe('rate_limited')
  })

  test('has kind bad_answer for a frame that is not a JSON object, ignoring other named events and blank data', () => {
    for (const data of ['{bad', 'null', '5', '"x"', '[]', '<html>'])
      expect(failureIn(read(`data: ${data}\n\n${done}`))?.kind).toBe('bad_answer')
    expect(
      getContent(
        read(
          `event: ping\ndata: x\n\nevent: ping\ndata: {}\n\ndata: \n\nevent: message\n${getDelta({ content: 'Hi' })}${done}`,
        ),
      )[0],
    ).toEqual(text('Hi'))
  })

  test('has kind bad_answer for a body that is not a completion', () => {
    for (const body of [
      null,
      undefined,
      'x',
      5,
      [],
      {},
      { choices: [] },
      { choices: null, id: 'x' },
      { choices: [null] },
    ]) {
      expect(failureIn(partsIn(official, body))?.kind).toBe('bad_answer')
    }
    expect(failureIn(partsIn(compatible, { error: { code: 503 } }))?.kind).toBe('overloaded')
  })

  test('does not occur for a complete response, which is read in full', () => {
    const body = {
      id: 'r1',
      model: 'm-2',
      choices: [
        {
          index: 0,
          message: {
            content: 'Hi',
            tool_calls: [
              { id: '', function: { name: 'f', arguments: '' } },
              {
                id: '',
                function: { name: 'f', arguments: '' },
                extra_content: { google: { thought_signature: 'sig' } },
              },
            ],
          },
          finish_reason: 'stop',
        },
        { index: 1, finish_reason: 'content_filter' },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    }
    expect(partsIn(official, body)).toStrictEqual([
      { type: 'served', id: 'r1', model: 'm-2' },
      {
        type: 'usage',
        usage: { cacheWriteTokens: 0, cachedInputTokens: 0, inputTokens: 1, outputTokens: 2, reasoningTokens: 0 },
      },
      { type: 'text', choice: 0, text: 'Hi' },
      { type: 'tool_call', id: 'call_r1_0', choice: 0, index: 0, name: 'f', signature: null },
      { type: 'tool_call', id: 'call_r1_1', choice: 0, index: 1, name: 'f', signature: 'sig' },
      { type: 'tool_arguments', choice: 0, index: 0, text: '{}' },
      { type: 'tool_arguments', choice: 0, index: 1, text: '{}' },
      { type: 'finish', choice: 0, reason: 'tool_calls' },
      { type: 'finish', choice: 1, reason: 'content_filter' },
      { type: 'end' },
    ])
  })
})

describe('OpenAI token counts', () => {
  const findUsage = (usage: unknown): ReportedUsage | undefined =>
    read(getChunk({ usage }) + done).flatMap(part => (part.type === 'usage' ? [part.usage] : []))[0]

  test('include cached and written input in the input, and reasoning in the output', () => {
    expect(
      findUsage({
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
    ).toEqual({ inputTokens: 100, cachedInputTokens: 60, cacheWriteTokens: 30, outputTokens: 50, reasoningTokens: 20 })
  })

  test('read the cache counts of DeepSeek, Kimi and Mistral', () => {
    expect(
      findUsage({ prompt_tokens: 10, completion_tokens: 1, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 })
        ?.cachedInputTokens,
    ).toBe(4)
    expect(findUsage({ prompt_tokens: 10, completion_tokens: 1, cached_tokens: 3 })?.cachedInputTokens).toBe(3)
    expect(findUsage({ prompt_tokens: 10, completion_tokens: 1, num_cached_tokens: 2 })?.cachedInputTokens).toBe(2)
  })

  test('add reasoning that neither sum includes to the output', () => {
    expect(
      findUsage({
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
    ).toMatchObject({ outputTokens: 25, reasoningTokens: 20 })
    expect(findUsage({ prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 })).toMatchObject({
      outputTokens: 74,
      reasoningTokens: 62,
    })
  })

  test('stay non-negative integers, with no part above its total', () => {
    const count = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(null, 'x', '7', 1e308, -1, {}, []))
    const counts = fc.record(
      {
        prompt_tokens: count,
        completion_tokens: count,
        total_tokens: count,
        cached_tokens: count,
        prompt_tokens_details: fc.oneof(
          fc.constant(null),
          fc.record({ cached_tokens: count, cache_write_tokens: count }),
        ),
        completion_tokens_details: fc.oneof(fc.constant(null), fc.record({ reasoning_tokens: count })),
      },
      { requiredKeys: [] },
    )
    expect(findUsage({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })).toEqual({
      inputTokens: 0,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 0,
      reasoningTokens: 0,
    })
    fc.assert(
      fc.property(counts, wire => {
        const usage = findUsage(wire)
        if (usage === undefined) return
        for (const value of Object.values(usage))
          expect(value === null || (Number.isSafeInteger(value) && value >= 0 && value <= 1e9)).toBe(true)
        if (usage.inputTokens !== null)
          expect(usage.cachedInputTokens + usage.cacheWriteTokens).toBeLessThanOrEqual(usage.inputTokens)
        if (usage.outputTokens !== null) expect(usage.reasoningTokens).toBeLessThanOrEqual(usage.outputTokens)
      }),
    )
  })

  test('derive the third of three counts, and treat missing or invalid ones as unknown', () => {
    const [prompt, completion, total] = ['prompt_tokens', 'completion_tokens', 'total_tokens']
    for (const [wire, input, output] of [
      [{ [prompt]: 9, [total]: 14 }, 9, 5],
      [{ [completion]: 5, [total]: 14 }, 9, 5],
      [{ [prompt]: 9 }, 9, null],
      [{ [prompt]: 9, [total]: 9 }, 9, null],
      [{ [completion]: 5, [total]: 5 }, null, 5],
      [{ [prompt]: 9, [completion]: 0, [total]: 9 }, 9, 0],
      ...[-1, 2e9, '5x', null, {}].flatMap(nonsense => [
        [{ [prompt]: 9, [completion]: nonsense }, 9, null],
        [{ [prompt]: nonsense, [completion]: 5 }, null, 5],
      ]),
    ] as [Record<string, unknown>, number | null, number | null][])
      expect({ wire, usage: findUsage(wire) }).toMatchObject({ usage: { inputTokens: input, outputTokens: output } })
    expect(findUsage({ [total]: 14 })).toBeUndefined()
    expect(findUsage({ [prompt]: 9, completion_tokens_details: { reasoning_tokens: 7 } })).toMatchObject({
      outputTokens: null,
      leastOutputTokens: 7,
      reasoningTokens: 7,
    })
  })

  test('treat a count that later output exceeds as a lower bound until it is updated', () => {
    const early = { prompt_tokens: 9, completion_tokens: 1 }
    const last = (stream: string) => read(stream).findLast(part => part.type === 'usage')?.usage
    const rest = getDelta({ content: 'more' }) + getDelta({}, 'stop')
    expect(last(getChunk({ usage: early }) + rest + done)).toMatchObject({
      inputTokens: 9,
      outputTokens: null,
      leastOutputTokens: 1,
    })
    const whole = getChunk({ usage: { ...early, completion_tokens: 2 } })
    expect(last(getChunk({ usage: early }) + rest + whole + done)).toMatchObject({ outputTokens: 2 })
    expect(last(rest + whole + getDelta({}) + done)).toMatchObject({ outputTokens: 2 })
  })
})

describe('OpenAI error response', () => {
  const refused = (status: number, body: unknown = '', headers: Record<string, string> = {}) =>
    official.readFailure(status, new Headers(headers), typeof body === 'string' ? body : JSON.stringify(body))

  test('has the kind and blame of its status', () => {
    const rows = [
      400, 401, 402, 403, 404, 405, 407, 408, 409, 413, 421, 422, 429, 431, 451, 499, 500, 502, 503, 504, 529, 302,
    ].map(status => {
      const { kind, blame, retryable } = refused(status, '<html>')
      return `${status} ${kind} ${blame}${retryable ? ' retryable' : ''}`
    })
    expect(rows).toStrictEqual([
      '400 request_refused caller',
      '401 credential_refused us retryable',
      '402 quota_exhausted us retryable',
      '403 credential_refused us retryable',
      '404 model_missing upstream retryable',
      '405 unavailable upstream retryable',
      '407 unavailable upstream retryable',
      '408 timeout upstream retryable',
      '409 unavailable upstream retryable',
      '413 request_too_large caller',
      '421 unavailable upstream retryable',
      '422 request_refused caller',
      '429 rate_limited upstream retryable',
      '431 unavailable upstream retryable',
      '451 unavailable upstream retryable',
      '499 unavailable upstream retryable',
      '500 unavailable upstream retryable',
      '502 unavailable upstream retryable',
      '503 overloaded upstream retryable',
      '504 timeout upstream retryable',
      '529 overloaded upstream retryable',
      '302 bad_answer upstream retryable',
    ])
  })

  test('prefers a type or code to the status', () => {
    const getKind = (status: number, error: Json) => refused(status, { error }).kind
    expect(getKind(429, { type: 'insufficient_quota', code: 'insufficient_quota' })).toBe('quota_exhausted')
    expect(getKind(429, { code: 'rate_limit_exceeded', message: 'Limit reached on tokens per day (TPD)' })).toBe(
      'quota_exhausted',
    )
    expect(getKind(429, { code: 'rate_limit_exceeded', message: 'on tokens per min (TPM), see account/billing' })).toBe(
      'rate_limited',
    )
    expect(getKind(413, { code: 'rate_limit_exceeded', message: 'reduce your message size' })).toBe('rate_limited')
    expect(getKind(429, { type: 'exceeded_current_quota_error', message: 'suspended' })).toBe('quota_exhausted')
    expect(getKind(429, { code: 'project_spend_limit_exceeded' })).toBe('quota_exhausted')
    expect(getKind(400, { message: 'API key not valid.' })).toBe('credential_refused')
    expect(refused(400, { code: 'bad argument', error: 'Incorrect API key provided: x' })).toMatchObject({
      blame: 'us',
    })
    expect(getKind(400, { code: 'content_policy_violation' })).toBe('content_filtered')
    expect(getKind(403, { code: 403, message: 'flagged', metadata: { flagged_input: 'x' } })).toBe('content_filtered')
    expect(getKind(400, { code: 'data_inspection_failed' })).toBe('content_filtered')
    expect(getKind(400, { code: 'model_decommissioned' })).toBe('model_missing')
    expect(getKind(400, { code: 'constructor', type: '__proto__' })).toBe('request_refused')
  })

  test("recognizes a context overflow in each server's wording", () => {
    for (const message of [
      "This model's maximum context length is 8192 tokens",
      'Please reduce the length of the messages or completion',
      'the request exceeds the available context size, try increasing it',
      'prompt too long; exceeded max context length by 5 tokens',
    ]) {
      expect(refused(400, { error: { message } })).toMatchObject({
        kind: 'context_overflow',
        blame: 'caller',
        retryable: true,
      })
    }
    expect(refused(400, { object: 'error', message: 'maximum context length', code: 400 }).kind).toBe(
      'context_overflow',
    )
    expect(refused(429, { error: { message: 'context length' } }).kind).toBe('rate_limited')
  })

  test('reads the wait time as milliseconds, seconds, fractions or a date, never negative', () => {
    const wait = (headers: Record<string, string>) => refused(429, '', headers).retryAfterMs
    expect(wait({})).toBeNull()
    expect(wait({ 'retry-after': '2' })).toBe(2000)
    expect(wait({ 'retry-after': '0.25' })).toBe(250)
    expect(wait({ 'retry-after': '0' })).toBe(0)
    expect(wait({ 'retry-after': '-5' })).toBe(0)
    expect(wait({ 'retry-after': '7', 'retry-after-ms': '120.5' })).toBe(121)
    expect(wait({ 'retry-after': '1', 'retry-after-ms': '0' })).toBe(1000)
    expect(wait({ 'retry-after': 'soon' })).toBeNull()
    expect(wait({ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' })).toBeNull()
    expect(wait({ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT', date: 'Fri, 20 Nov 2026 10:00:00 GMT' })).toBe(30_000)
    expect(wait({ 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT', date: 'Fri, 20 Nov 2026 10:00:00 GMT' })).toBe(0)
  })

  test('keeps upstream text out of the detail for any body', () => {
    const secret = 'Key sk-SECRET and prompt'
    const bodies = [
      secret,
      `<html>${secret}`,
      { error: secret },
      { detail: secret },
      { message: secret },
      [{ error: { message: secret } }],
      { error: { message: secret, type: secret, code: secret } },
      { error: { code: 'x'.repeat(65) } },
      null,
      5,
    ]
    for (const body of bodies) expect(refused(400, body).detail).toBe('400')
    expect(refused(400, { error: { type: 'invalid_request_error', code: 'unsupported_value' } }).detail).toBe(
      '400 invalid_request_error unsupported_value',
    )
    expect(refused(401, { error: { code: 401 } }).detail).toBe('401')
  })
})

describe('OpenAI reader on any input', () => {
  const json = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(
        null,
        true,
        false,
        0,
        1,
        -1,
        1.5,
        '',
        'a',
        '{}',
        '{"a":1}',
        '<think>',
        '</think>',
        'stop',
        '\ud83d',
      ),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('value'), { maxLength: 3 }),
    object: fc.dictionary(
      fc.constantFrom(
        'id',
        'index',
        'choices',
        'delta',
        'message',
        'content',
        'tool_calls',
        'function',
        'name',
        'arguments',
        'finish_reason',
        'usage',
        'text',
        'thinking',
        'type',
        'reasoning',
        'logprobs',
        'error',
        'extra_content',
        'google',
        '__proto__',
      ),
      tie('value'),
      { maxKeys: 6, noNullPrototype: true },
    ),
  })).value
  const optional = (value: fc.Arbitrary<unknown>) => fc.oneof(value, fc.constant(undefined), json)
  const name = fc.constantFrom('f', 'g', '', null)
  const call = fc.record({
    index: optional(fc.nat(3)),
    id: optional(fc.constantFrom('a', 'b', '')),
    function: fc.record({
      name: optional(name),
      arguments: optional(fc.constantFrom('', '{', '}', '{}', '"a"', '{"b":1}')),
    }),
  })
  const delta = fc.record(
    {
      content: optional(fc.constantFrom('a', '<', 'think>', '</think>', ' ', '\ud83d', '\ude00')),
      tool_calls: optional(fc.array(call, { maxLength: 3 })),
      reasoning: optional(fc.constant('r')),
    },
    { requiredKeys: [] },
  )
  const choice = fc.record(
    {
      index: optional(fc.nat(2)),
      delta: optional(delta),
      finish_reason: optional(fc.constantFrom(null, 'stop', 'length')),
    },
    { requiredKeys: [] },
  )
  const event = fc.record({
    name: fc.constantFrom('', '', '', '', 'message', 'ping', 'error'),
    data: fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .record({ id: fc.constantFrom('x', ''), choices: fc.array(choice, { maxLength: 3 }) })
          .map(value => JSON.stringify(value)),
      },
      { weight: 2, arbitrary: json.map(value => JSON.stringify(value) ?? '') },
      fc.constantFrom('[DONE]', '{', ' '),
    ),
  })

  test('never throws, stops after an end or failure, and opens calls in order with unique IDs', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.boolean(), (events, isOfficial) => {
        const reader = recorded((isOfficial ? official : compatible).streamReader())
        const answer = [...events.flatMap(item => reader.read(item)), ...reader.finish()]
        const last = answer.findIndex(part => part.type === 'end' || part.type === 'failure')
        expect(last === -1 || last === answer.length - 1).toBe(true)
        const ids = answer.flatMap(part => (part.type === 'tool_call' ? [part.id] : []))
        expect(new Set(ids).size).toBe(ids.length)
        for (const part of answer) if ('text' in part) expect(part.text !== '' && part.text.isWellFormed()).toBe(true)
        for (const index of [0, 1, 2]) {
          const own = answer.filter(part => 'choice' in part && part.choice === index)
          const calls = callsIn(own)
          if (answer.at(-1)?.type === 'end')
            for (const { name: called, arguments: given } of calls) expect(called !== '' && given !== '').toBe(true)
          expect(own.filter(part => part.type === 'finish').length).toBeLessThanOrEqual(1)
        }
        expect(reader.finish()).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test('ends any body with one end or one failure', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          json,
          fc.record({ choices: fc.array(fc.oneof(json, fc.record({ message: delta })), { maxLength: 3 }) }),
        ),
        body => {
          const answer = partsIn(compatible, body)
          expect(answer.filter(part => part.type === 'end' || part.type === 'failure')).toHaveLength(1)
          expect(['end', 'failure']).toContain(answer.at(-1)?.type ?? '')
        },
      ),
      { numRuns: 300 },
    )
  })

  test('reads any error body', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 300, max: 599 }),
        fc.oneof(
          fc.string(),
          json.map(value => JSON.stringify(value) ?? ''),
        ),
        (status, body) => {
          const failure = official.readFailure(status, new Headers(), body)
          expect(failure.detail).toMatch(/^[a-z0-9_. -]+$/)
        },
      ),
    )
  })
})

// ------------------------------------------------------------------------------------------------ recorded traffic

type Expected = {
  texts: Record<number, string>
  reasoning: Record<number, string>
  calls: Record<string, { name: string; arguments: string }>
  finished: Record<number, string | null>
  usage: [number, number] | null
  failed: boolean
  done: boolean
}

/** As in the recordings; servers may omit fields. */
type RecordedUsage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }
type RecordedPart = { text?: string; thinking?: { text: string }[] }
type RecordedFunction = { name?: string; arguments?: string | null }
type RecordedMessage = {
  content?: string | RecordedPart[] | null
  reasoning_content?: string | null
  reasoning?: string | null
  tool_calls?: { index?: number; function: RecordedFunction }[] | null
  function_call?: RecordedFunction
}
type RecordedChoice = {
  index: number
  delta?: RecordedMessage
  message?: RecordedMessage
  finish_reason?: string | null
}
type RecordedPayload = {
  usage?: RecordedUsage | null
  x_groq?: { usage?: RecordedUsage }
  error?: unknown
  choices?: RecordedChoice[]
}

/** Reads recorded payloads naively as a reference; the recorded servers number their calls. */
function getExpected(payloads: readonly unknown[]): Expected {
  const expected: Expected = {
    texts: {},
    reasoning: {},
    calls: {},
    finished: {},
    usage: null,
    failed: false,
    done: false,
  }
  for (const raw of payloads) {
    if (raw === '[DONE]') {
      expected.done = true
      continue
    }
    const payload = raw as RecordedPayload
    const usage = payload.usage ?? payload.x_groq?.usage
    if (usage)
      expected.usage = [
        usage.prompt_tokens,
        Math.max(usage.completion_tokens, usage.total_tokens - usage.prompt_tokens),
      ]
    if (payload.error) expected.failed = true
    for (const choice of payload.choices ?? []) {
      const { index } = choice
      const message = choice.delta ?? choice.message ?? {}
      const pieces: RecordedPart[] =
        typeof message.content === 'string' ? [{ text: message.content }] : (message.content ?? [])
      for (const part of pieces) {
        expected.texts[index] = (expected.texts[index] ?? '') + (part.text ?? '')
        for (const thought of part.thinking ?? [])
          expected.reasoning[index] = (expected.reasoning[index] ?? '') + thought.text
      }
      expected.reasoning[index] =
        (expected.reasoning[index] ?? '') + (message.reasoning_content ?? message.reasoning ?? '')
      const calls = [
        ...(message.tool_calls ?? []),
        ...(message.function_call ? [{ function: message.function_call }] : []),
      ]
      for (const [position, called] of calls.entries()) {
        const key = `${index}.${called.index ?? position}`
        expected.calls[key] ??= { name: '', arguments: '' }
        const known = expected.calls[key]
        known.name ||= called.function.name ?? ''
        known.arguments += called.function.arguments ?? ''
      }
      expected.finished[index] ??= choice.finish_reason ?? null
    }
  }
  return expected
}

function getPayloads({ text: body }: Pick<Recording, 'text'>): unknown[] {
  return body
    .split('\n')
    .filter(line => line.startsWith('data:'))
    .map(line => line.slice(5).trim())
    .map(data => (data === '[DONE]' ? data : JSON.parse(data)))
}

function expectAsRecorded(answer: readonly AnswerPart[], expected: Expected): void {
  const joined = (type: 'text' | 'reasoning', choice: number) =>
    answer.map(part => (part.type === type && part.choice === choice ? part.text : '')).join('')
  for (const [index, value] of Object.entries(expected.texts)) expect(joined('text', Number(index))).toBe(value)
  for (const [index, value] of Object.entries(expected.reasoning))
    expect(joined('reasoning', Number(index))).toBe(value)
  if (expected.failed) expect(answer.at(-1)?.type).toBe('failure')
  else {
    const calls = callsIn(answer).map(({ name, arguments: given }) => ({ name, arguments: given }))
    expect(calls).toEqual(
      Object.values(expected.calls).map(called => ({ ...called, arguments: called.arguments || '{}' })),
    )
    expect(answer.at(-1)).toEqual(ended)
    expect(answer.filter(part => part.type === 'finish')).toHaveLength(Object.keys(expected.finished).length)
  }
  const usage = answer.flatMap(part => (part.type === 'usage' ? [part.usage] : []))[0]
  expect(usage === undefined ? null : [usage.inputTokens, usage.outputTokens]).toEqual(expected.usage)
}

/** Some recordings under OpenAI's URL come from other servers. */
function getAdapter({ provider, name }: Recording) {
  return provider === 'openai' && !name.startsWith('compat-') ? official : compatible
}

for (const folder of ['openai', 'compat'] as const) {
  const all = recordings(folder)
  const streams = all.filter(({ kind }) => kind === 'stream')

  describe(`OpenAI recording of ${folder}`, () => {
    for (const recording of streams) {
      const { name, bytes } = recording
      const provider = getAdapter(recording)
      test(`${name}: reads the stream correctly for any split`, () => {
        const whole = readRecording(provider.streamReader(), bytes)
        expectAsRecorded(whole, getExpected(getPayloads(recording)))
        for (const at of cutOffsets(bytes, bytes.length <= 8000 ? 8000 : 150)) {
          if (!Bun.deepEquals(readRecording(provider.streamReader(), bytes, [at]), whole))
            expect(`cut at ${at}`).toBe('read alike')
        }
        expect(readRecording(provider.streamReader(), bytes, everyByte(bytes))).toEqual(whole)
      })

      test(`${name}: reports no end when truncated before it`, () => {
        const events = collected(new SseSplitter()).push(bytes)
        for (let count = 0; count < events.length; count += 1) {
          const reader = recorded(provider.streamReader())
          const kept = events.slice(0, count)
          const answer = mergeParts([...kept.flatMap(event => reader.read(event)), ...reader.finish()])
          const { finished, done: closed } = getExpected(
            kept.map(({ data }) => (data === '[DONE]' ? data : JSON.parse(data))),
          )
          const reasons = Object.values(finished)
          const evident = closed || (reasons.length > 0 && reasons.every(Boolean))
          if (!evident) expect(answer).not.toContainEqual(ended)
        }
      })
    }

    for (const recording of all.filter(({ kind }) => kind === 'json')) {
      const provider = getAdapter(recording)
      const body: unknown = JSON.parse(recording.text)
      if (recording.status >= 400) {
        test(`${recording.name}: reads the error without its text`, () => {
          const failure = provider.readFailure(recording.status, recording.headers, recording.text)
          expect(failure.detail).toMatch(/^\d{3}(?: [a-z0-9_.-]{1,64}){0,2}$/)
          const blames = { 400: 'caller', 401: 'us', 404: 'upstream', 429: 'upstream' } as const
          // The model generated the call that this server rejected.
          const ofTheModel = recording.name === 'groq-error-400-tool'
          expect(failure.blame).toBe(ofTheModel ? 'upstream' : blames[recording.status as keyof typeof blames])
        })
      } else if (recording.name === 'invalid-200-body') {
        test('invalid-200-body: reports bad_answer', () => {
          expect(failureIn(partsIn(provider, body))?.kind).toBe('bad_answer')
        })
      } else {
        test(`${recording.name}: reads the response correctly`, () => {
          expectAsRecorded(mergeParts(partsIn(provider, body)), getExpected([body]))
        })
      }
    }
  })
}
