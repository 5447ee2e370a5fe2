/** The Responses API through its clients, each told base URL, key and model only: `openai`, the Vercel AI SDK, the Agents SDK. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createOpenAI } from '@ai-sdk/openai'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, tool as agentTool, Runner, setTracingDisabled } from '@openai/agents-core'
import { OpenAIProvider } from '@openai/agents-openai'
import { APICallError, generateText, isStepCount, jsonSchema, type ModelMessage, streamText, tool } from 'ai'
import OpenAI from 'openai'
import type { Gateway } from '../harness/gateway.ts'
import { allModels, oneEach, type Place, pixel, placeSchema, simulatedPlace, startOnServiceDay } from './support.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
let client: OpenAI
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  setTracingDisabled(true)
  gateway = await startOnServiceDay()
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0, logLevel: 'off' })
})
afterAll(() => gateway.stop())

const weather = {
  type: 'function',
  name: 'weather',
  description: 'Weather of a place',
  parameters: placeSchema,
  strict: true,
} as const
const thinking = { effort: 'low', summary: 'auto' } as const
const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content']

/** Items of an answer as the next turn's input, without what only the client library added. */
function replayed(output: readonly OpenAI.Responses.ResponseOutputItem[]): OpenAI.Responses.ResponseInput {
  return JSON.parse(JSON.stringify(output).replaceAll(/,"parsed(?:_arguments)?":null/g, ''))
}
function outputsFor(output: readonly OpenAI.Responses.ResponseOutputItem[]): OpenAI.Responses.ResponseInput {
  return output.flatMap(item =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: `sunny, said ${item.name}` }]
      : [],
  )
}

describe('OpenAI client Responses', () => {
  test.each([...allModels])('%s returns the same output as JSON and as a stream', async model => {
    const asked = { model, input: 'Say hello', store: false }
    const answer = await client.responses.create(asked)
    expect(answer).toMatchObject({ object: 'response', status: 'completed', store: false, error: null })
    expect(answer.output_text).toContain('You asked: “Say hello”.')
    const { input_tokens, output_tokens, total_tokens } = answer.usage ?? {
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 1,
    }
    expect(total_tokens).toBe(input_tokens + output_tokens)
    const streamed = await client.responses.stream(asked).finalResponse()
    expect([streamed.status, streamed.output_text.includes('You asked')]).toEqual(['completed', true])
  })

  test.each([...oneEach])(
    '%s completes five turns with parallel calls, results and returned reasoning',
    async model => {
      const input: OpenAI.Responses.ResponseInput = []
      const tools = [weather, { type: 'function', name: 'clock', parameters: null, strict: null } as const]
      for (let turn = 0; turn < 5; turn++) {
        input.push({ role: 'user', content: `Turn ${turn} [[sim:parallel=2]]` })
        const asked = { model, input, tools, store: false, include, reasoning: thinking }
        const called = await client.responses.stream(asked).finalResponse()
        const calls = called.output.filter(({ type }) => type === 'function_call')
        expect(calls).toMatchObject([{ name: 'weather' }, { name: 'clock' }])
        input.push(...replayed(called.output), ...outputsFor(called.output))
        const answer = await client.responses.create({ ...asked, input })
        expect(answer.output_text).toContain('The tool answered: “sunny, said weather”, “sunny, said clock”.')
        input.push(...replayed(answer.output))
      }
    },
  )

  test('continues a conversation with other providers and drops foreign reasoning without an error', async () => {
    const input: OpenAI.Responses.ResponseInput = []
    for (const model of [...oneEach, ...oneEach]) {
      input.push({ role: 'user', content: `Ask ${model} [[sim:tool=weather]]` })
      const asked = { model, tools: [weather], store: false, include, reasoning: thinking }
      const called = await client.responses.create({ ...asked, input })
      expect(called.output.map(({ type }) => type)).toContain('function_call')
      input.push(...replayed(called.output), ...outputsFor(called.output))
      input.push(...replayed((await client.responses.create({ ...asked, input })).output))
    }
  })

  test('returns an object of the schema with `parse`', async () => {
    const format = { type: 'json_schema', name: 'place', schema: placeSchema, strict: true } as const
    for (const model of oneEach) {
      const answer = await client.responses.parse({ model, input: 'Where?', text: { format } })
      expect<unknown>(answer.output_parsed).toEqual(simulatedPlace)
    }
  })

  test('ends as incomplete at the output cap and accepts images', async () => {
    for (const model of oneEach) {
      const capped = await client.responses.create({
        model,
        input: 'Tell me [[sim:tokens=200]]',
        max_output_tokens: 20,
      })
      expect([capped.status, capped.incomplete_details?.reason]).toEqual(['incomplete', 'max_output_tokens'])
      const content = [
        { type: 'input_text', text: 'What is this?' } as const,
        { type: 'input_image', image_url: pixel, detail: 'low' } as const,
      ]
      const seen = await client.responses.create({ model, input: [{ role: 'user', content }] })
      expect(seen.output_text).toContain('You sent an image')
    }
  })

  test('returns unwrapped input of free-text tools, and separate namespaces', async () => {
    const tools: OpenAI.Responses.Tool[] = [
      {
        type: 'custom',
        name: 'apply_patch',
        description: 'Edits',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
      },
      {
        type: 'namespace',
        name: 'mcp__docs',
        description: 'Docs',
        tools: [{ type: 'function', name: 'search', parameters: {} }],
      },
    ]
    for (const model of oneEach) {
      const { output } = await client.responses
        .stream({ model, input: 'Edit [[sim:parallel=2]]', tools })
        .finalResponse()
      expect(output.filter(({ type }) => type !== 'reasoning')).toMatchObject([
        { type: 'custom_tool_call', name: 'apply_patch', input: expect.any(String) },
        { type: 'function_call', name: 'search', namespace: 'mcp__docs' },
      ])
    }
  })

  test.each([
    ['background', { background: true }],
    ['previous_response_id', { previous_response_id: 'resp_1' }],
    ['conversation', { conversation: 'conv_1' }],
  ])('throws a 400 with the field for %s', async (param, fields) => {
    const refused = client.responses.create({ model: 'gpt-4.1', input: 'Hi', ...fields })
    expect(await refused.catch((error: unknown) => error)).toMatchObject({
      status: 400,
      param,
      code: expect.any(String),
    })
  })

  test('returns 404 with the reason for stored responses and compaction', async () => {
    for (const asked of [
      client.responses.retrieve('resp_1'),
      client.responses.cancel('resp_1'),
      client.responses.inputItems.list('resp_1'),
    ]) {
      const error: unknown = await asked.then(String, (thrown: unknown) => thrown)
      expect(error).toMatchObject({ status: 404, message: expect.stringContaining('not stored here') })
    }
    const compact: unknown = await client.responses
      .compact({ model: 'gpt-5.5', input: 'Hi' })
      .catch((thrown: unknown) => thrown)
    expect(compact).toMatchObject({ status: 404, message: expect.stringContaining('Compaction is not served') })
  })

  test('counts input tokens without an upstream call', async () => {
    const counted = await client.responses.inputTokens.count({ model: 'gpt-4.1', input: 'one two three' })
    expect(counted.object).toBe('response.input_tokens')
    expect(counted.input_tokens).toBeWithin(3, 20)
    const unknown = await client.responses.inputTokens.count({ model: 'none', input: 'one' }).catch(error => error)
    expect(unknown).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
  })

  test('ends a stream that the upstream truncates as failed', async () => {
    for (const model of oneEach) {
      const input = 'Go on [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]'
      const response = await client.responses.stream({ model, input }).finalResponse()
      expect([response.status, response.error?.code]).toEqual(['failed', 'server_error'])
    }
  })
})

describe('AI SDK with openai()', () => {
  const asked: Place[] = []
  const place = tool({
    description: 'Weather of a place',
    inputSchema: jsonSchema<Place>(placeSchema),
    execute: (given: Place) => {
      asked.push(given)
      return { degrees: 18 }
    },
  })
  const openai = () => createOpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key })

  test.each([...oneEach])(
    'with its defaults and %s: continues conversations with reasoning, tools and streams',
    async model => {
      const history: ModelMessage[] = []
      const tools = { weather: place }
      for (const [turn, prompt] of [
        'Say hello',
        'Weather? [[sim:parallel=1]]',
        'Think [[sim:reasoning=20]]',
        'Go on',
      ].entries()) {
        asked.length = 0
        history.push({ role: 'user', content: prompt })
        const options = { model: openai()(model), messages: history, tools, stopWhen: isStepCount(3), maxRetries: 0 }
        const thought = { reasoningEffort: 'low', reasoningSummary: 'auto' }
        const settings = { ...options, providerOptions: { openai: thought } }
        if (turn % 2 === 0) history.push(...(await generateText(settings)).response.messages)
        else {
          const streamed = streamText(settings)
          await streamed.consumeStream()
          history.push(...(await streamed.response).messages)
        }
        if (turn === 1) expect(asked.length).toBeGreaterThan(0)
      }
      const last = await generateText({
        model: openai()(model),
        messages: [...history, { role: 'user', content: 'End' }],
      })
      expect(last.text).toContain('You asked: “End”.')
    },
  )

  test('completes several steps with tools and `store: false`', async () => {
    for (const model of oneEach) {
      asked.length = 0
      const result = await generateText({
        model: openai()(model),
        prompt: 'Weather? [[sim:tool=weather]]',
        tools: { weather: place },
        stopWhen: isStepCount(3),
        providerOptions: { openai: { store: false } },
        maxRetries: 0,
      })
      expect(asked).toEqual([simulatedPlace])
      expect(result.text).toContain('The tool answered')
    }
  })

  test('returns a stream', async () => {
    const { textStream, finishReason } = streamText({ model: openai()('openai/gpt-5.4-mini'), prompt: 'Say hello' })
    const pieces: string[] = []
    for await (const piece of textStream) pieces.push(piece)
    expect(pieces.join('')).toContain('You asked: “Say hello”.')
    expect(await finishReason).toBe('stop')
  })

  test('throws an error with the name of the setting for a stored reference', async () => {
    const stored = generateText({
      model: openai()('openai/gpt-5.4-mini'),
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [{ type: 'text', text: 'Hello', providerOptions: { openai: { itemId: 'msg_1' } } }],
        },
        { role: 'user', content: 'Again' },
      ],
      maxRetries: 0,
    })
    const error: unknown = await stored.catch((thrown: unknown) => thrown)
    expect(APICallError.isInstance(error) && [error.statusCode, error.message]).toEqual([
      404,
      expect.stringContaining('providerOptions.openai.store = false'),
    ])
  })
})

test('Agents SDK: completes a run with a tool', async () => {
  const asked: unknown[] = []
  const lookUp = agentTool({
    name: 'weather',
    description: 'Weather of a place',
    parameters: { ...placeSchema, additionalProperties: false },
    strict: true,
    execute: given => {
      asked.push(given)
      return 'sunny'
    },
  })
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }) })
  for (const model of oneEach) {
    asked.length = 0
    const agent = new Agent({ name: 'forecaster', instructions: 'Be brief.', model, tools: [lookUp] })
    const result = await runner.run(agent, 'Weather? [[sim:tool=weather]]')
    expect(asked).toEqual([simulatedPlace])
    expect(result.finalOutput).toContain('The tool answered: “sunny”.')
  }
})

test('LangChain: uses the Responses API with `useResponsesApi`', async () => {
  const model = new ChatOpenAI({
    model: 'anthropic/claude-haiku-5-5',
    apiKey: gateway.key,
    configuration: { baseURL: `${gateway.url}/v1` },
    useResponsesApi: true,
    maxRetries: 0,
  })
  const answer = await model.invoke('Say hello')
  expect(answer.text).toContain('You asked: “Say hello”.')
  expect(answer.response_metadata).toMatchObject({ model_name: expect.stringContaining('claude') })
  const bound = await model.bindTools([{ type: 'function', function: weather }]).invoke('Go [[sim:tool=weather]]')
  expect(bound.tool_calls?.[0]).toMatchObject({ name: 'weather', args: simulatedPlace })
})
