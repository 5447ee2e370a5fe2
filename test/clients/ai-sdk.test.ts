/** The Vercel AI SDK with its provider for compatible servers, configured with `/v1` like its users. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  APICallError,
  generateObject,
  generateText,
  isStepCount,
  jsonSchema,
  Output,
  streamObject,
  streamText,
  tool,
} from 'ai'
import { eventually } from '../harness/eventually.ts'
import type { Gateway } from '../harness/gateway.ts'
import {
  allModels,
  countingFetch,
  leavings,
  namedModels,
  oneEach,
  type Place,
  pixel,
  placeSchema,
  simulatedPlace,
  startOnServiceDay,
} from './support.ts'

let gateway: Gateway
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  gateway = await startOnServiceDay()
}, 240_000)
afterAll(() => gateway.stop())

function providerWith(key: string) {
  const { seen, fetch } = countingFetch()
  const provider = createOpenAICompatible({
    name: 'gateway',
    baseURL: `${gateway.url}/v1`,
    apiKey: key,
    includeUsage: true,
    supportsStructuredOutputs: true,
    fetch,
  })
  return { provider, seen }
}
const getModel = (name: string) => providerWith(gateway.key).provider(name)

const placeOutput = jsonSchema<Place>(placeSchema)
const weatherIn = (asked: Place[]) =>
  tool({
    description: 'Weather of a place',
    inputSchema: placeOutput,
    execute: (place: Place) => {
      asked.push(place)
      return { degrees: 18, city: place.city }
    },
  })

describe('AI SDK text', () => {
  test.each([...allModels])('%s returns the same complete and streamed, with usage', async name => {
    const model = getModel(name)
    const whole = await generateText({ model, prompt: 'Say hello' })
    expect(whole.text).toContain('You asked: “Say hello”.')
    expect(whole.finishReason).toBe('stop')
    expect(whole.usage.totalTokens).toBeGreaterThan(0)
    const streamed = streamText({ model, prompt: 'Say hello' })
    expect((await Array.fromAsync(streamed.textStream)).join('')).toBe(whole.text)
    expect(await streamed.finishReason).toBe('stop')
    expect(await streamed.usage).toMatchObject({
      inputTokens: whole.usage.inputTokens ?? 0,
      outputTokens: whole.usage.outputTokens ?? 0,
    })
    const response = await streamed.response
    expect(response.id).toStartWith('req_')
    if (name !== 'gateway-ai') expect(response.modelId).toBe(name)
  })

  test('returns reasoning as a separate part', async () => {
    for (const name of ['anthropic/claude-sonnet-4-6', 'google/gemini-3.5-flash']) {
      const asked = {
        model: getModel(name),
        prompt: 'Think [[sim:reasoning=20]]',
        providerOptions: { gateway: { reasoningEffort: 'low' } },
      }
      const whole = await generateText(asked)
      expect(whole.reasoningText).toContain('The question is read')
      expect(whole.usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(0)
      const streamed = streamText(asked)
      expect(await streamed.reasoningText).toBe(whole.reasoningText)
      expect(await streamed.text).toBe(whole.text)
    }
  })

  test('passes settings to the model: cap, stop sequences, system prompt, image', async () => {
    for (const name of namedModels) {
      const model = getModel(name)
      const capped = await generateText({ model, prompt: 'Tell me [[sim:tokens=200]]', maxOutputTokens: 20 })
      expect(capped.finishReason).toBe('length')
      const stopped = await generateText({
        model,
        prompt: 'Say STOP now',
        stopSequences: ['STOP'],
        instructions: 'Be brief.',
      })
      expect(stopped.text).toEndWith('“Say ')
      const seen = await generateText({
        model,
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'What is this?' },
              { type: 'file', mediaType: 'image/png', data: pixel },
            ],
          },
        ],
      })
      expect(seen.text).toContain('You sent an image')
    }
  })
})

describe('AI SDK tools', () => {
  test.each([...allModels])('%s calls tools in parallel and answers with their results step by step', async name => {
    const asked: Place[] = []
    const options = {
      model: getModel(name),
      prompt: 'Weather? [[sim:parallel=2]]',
      tools: { weather: weatherIn(asked) },
      stopWhen: isStepCount(4),
    }
    const whole = await generateText(options)
    expect(whole.steps.map(step => step.finishReason)).toEqual(['tool-calls', 'stop'])
    expect(whole.steps[0]?.toolCalls.map(call => call.input)).toEqual([simulatedPlace, simulatedPlace])
    expect(whole.text).toContain('18')

    const streamed = streamText(options)
    const kinds = new Set<string>()
    for await (const { type } of streamed.stream) kinds.add(type)
    expect([...kinds]).toEqual(
      expect.arrayContaining(['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result']),
    )
    expect(kinds.has('error')).toBe(false)
    expect((await streamed.steps).map(step => step.finishReason)).toEqual(['tool-calls', 'stop'])
    expect(await streamed.text).toContain('18')
    expect(asked).toEqual(Array(4).fill(simulatedPlace))
  })

  test("keep Google's thought signature between steps", async () => {
    const { steps } = await generateText({
      model: getModel('google/gemini-3.8-flash'),
      prompt: 'Weather? [[sim:parallel=1]]',
      tools: { weather: weatherIn([]) },
      stopWhen: isStepCount(4),
      include: { requestBody: true },
    })
    const signature = steps[0]?.toolCalls[0]?.providerMetadata?.gateway?.thoughtSignature
    expect(typeof signature).toBe('string')
    expect(String(steps[1]?.request.body)).toContain(`"thought_signature":"${signature}"`)
    expect(steps[1]?.finishReason).toBe('stop')
  })

  test('include a required tool', async () => {
    for (const name of oneEach) {
      const { toolCalls } = await generateText({
        model: getModel(name),
        prompt: 'Weather?',
        tools: { weather: weatherIn([]) },
        toolChoice: 'required',
      })
      expect(toolCalls).toHaveLength(1)
    }
  })
})

describe('AI SDK objects', () => {
  test.each([...allModels])('%s returns an object of the schema', async name => {
    const model = getModel(name)
    const prompt = 'Where?'
    const output = Output.object({ schema: placeOutput })
    expect((await generateText({ model, prompt, output })).output).toEqual(simulatedPlace)
    expect(await streamText({ model, prompt, output }).output).toEqual(simulatedPlace)
    expect((await generateObject({ model, prompt, schema: placeOutput })).object).toEqual(simulatedPlace)
    const partials = await Array.fromAsync(streamObject({ model, prompt, schema: placeOutput }).partialObjectStream)
    expect(partials.at(-1)).toEqual(simulatedPlace)
    expect((await generateText({ model, prompt, output: Output.json() })).output).toMatchObject({ simulated: true })
  })

  test('support an array of objects and an enum', async () => {
    for (const name of oneEach) {
      const model = getModel(name)
      const list = await generateText({ model, prompt: 'Where?', output: Output.array({ element: placeOutput }) })
      expect(list.output).toEqual([simulatedPlace])
      const choice = await generateText({ model, prompt: 'Which?', output: Output.choice({ options: ['a', 'b'] }) })
      expect(choice.output).toBe('a')
    }
  })
})

describe('AI SDK failures', () => {
  test('throw an APICallError with status, message and body after one request', async () => {
    for (const [key, name, status, code] of [
      ['sk-wrong', oneEach[0], 401, 'invalid_api_key'],
      [gateway.key, 'gpt-nobody', 404, 'model_not_found'],
    ] as const) {
      const { provider, seen } = providerWith(key)
      const error = await generateText({ model: provider(name), prompt: 'Hi' }).catch((cause: unknown) => cause)
      if (!APICallError.isInstance(error)) throw error
      expect(error.statusCode).toBe(status)
      expect(error.data).toMatchObject({ error: { code, message: error.message } })
      expect(error.isRetryable).toBe(false)
      expect(error.responseHeaders?.['x-request-id']).toStartWith('req_')
      expect(seen.requests).toBe(1)
    }
  })

  test('add an error part after the received text without an end', async () => {
    for (const model of oneEach) {
      const streamed = streamText({
        model: getModel(model),
        prompt: 'Tell me [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]',
        headers: { 'X-Gateway-No-Fallback': 'true' },
        onError: () => {},
      })
      let text = ''
      const errors: unknown[] = []
      for await (const part of streamed.stream) {
        if (part.type === 'text-delta') text += part.text
        if (part.type === 'error') errors.push(part.error)
      }
      expect(text).toStartWith('[simulated ')
      expect(errors).toHaveLength(1)
      expect(JSON.stringify(errors[0])).toContain('upstream_failed')
      expect(await streamed.finishReason).toBe('error')
    }
  })

  test('abort the upstream call and release the reservation on an abort in mid-stream', async () => {
    for (const model of oneEach) {
      const before = leavings(gateway)
      const abort = new AbortController()
      const streamed = streamText({
        model: getModel(model),
        prompt: 'Talk [[sim:pace_ms=20, tokens=4000]]',
        abortSignal: abort.signal,
      })
      let isAborted = false
      for await (const part of streamed.stream) {
        if (part.type === 'text-delta') abort.abort()
        if (part.type === 'abort') isAborted = true
      }
      expect(isAborted).toBe(true)
      await eventually(() => leavings(gateway).aborted === before.aborted + 1)
      await eventually(() => leavings(gateway).reservationsTaken === 0)
    }
  })
})
