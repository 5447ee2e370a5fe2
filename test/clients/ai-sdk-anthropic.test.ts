/** The Vercel AI SDK with its Anthropic provider; the base URL is `/v1` of the gateway. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { APICallError, generateText, isStepCount, jsonSchema, Output, streamText, tool } from 'ai'
import type { Gateway } from '../harness/gateway.ts'
import { oneEach, type Place, placeSchema, simulatedPlace, startOnServiceDay } from './support.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  gateway = await startOnServiceDay()
})
afterAll(() => gateway.stop())

const getModel = (name: string, key = gateway.key) =>
  createAnthropic({ baseURL: `${gateway.url}/v1`, apiKey: key })(name)
const place = jsonSchema<Place>(placeSchema)

test.each([...oneEach])(
  '@ai-sdk/anthropic with %s: returns the same text as JSON and as a stream, with usage',
  async name => {
    const model = getModel(name)
    const whole = await generateText({ model, prompt: 'Say hello', maxOutputTokens: 300 })
    expect(whole.text).toContain('You asked: “Say hello”.')
    expect(whole.finishReason).toBe('stop')
    expect(whole.usage.inputTokens).toBeGreaterThan(0)
    const streamed = streamText({ model, prompt: 'Say hello', maxOutputTokens: 300 })
    expect((await Array.fromAsync(streamed.textStream)).join('')).toBe(whole.text)
    expect(await streamed.finishReason).toBe('stop')
  },
)

test.each([...oneEach])(
  '@ai-sdk/anthropic with %s: calls a tool and completes in two steps, with thinking',
  async name => {
    const asked: Place[] = []
    const weather = tool({
      description: 'Weather of a place',
      inputSchema: place,
      execute: (at: Place) => {
        asked.push(at)
        return { degrees: 18 }
      },
    })
    const { text, steps } = await generateText({
      model: getModel(name),
      tools: { weather },
      stopWhen: isStepCount(3),
      prompt: 'Weather? [[sim:reasoning=20, parallel=1]]',
      maxOutputTokens: 3_000,
      providerOptions: { anthropic: { thinking: { type: 'adaptive' } } },
    })
    expect(asked).toEqual([simulatedPlace])
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
    expect(text).toContain('18')
  },
)

test('@ai-sdk/anthropic: returns an object that matches the schema from each provider', async () => {
  for (const name of oneEach) {
    const { output } = await generateText({
      model: getModel(name),
      output: Output.object({ schema: place }),
      prompt: 'Where?',
      maxOutputTokens: 500,
    })
    expect(output).toEqual(simulatedPlace)
  }
})

test('@ai-sdk/anthropic: throws APICallError with status 401 for a wrong key', async () => {
  const asking = generateText({ model: getModel('openai/gpt-5.4-mini', 'gw_wrong'), prompt: 'Hi', maxRetries: 0 })
  const error: unknown = await asking.catch((thrown: unknown) => thrown)
  expect(APICallError.isInstance(error) && error.statusCode).toBe(401)
})
