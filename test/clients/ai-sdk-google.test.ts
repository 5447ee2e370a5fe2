/** The Vercel AI SDK with its Google provider; the base URL is `/v1beta` of the gateway. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createGoogle } from '@ai-sdk/google'
import { APICallError, embedMany, generateText, isStepCount, jsonSchema, Output, streamText, tool } from 'ai'
import type { Gateway } from '../harness/gateway.ts'
import { oneEach, type Place, pixel, placeSchema, simulatedPlace, startOnServiceDay } from './support.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  gateway = await startOnServiceDay()
})
afterAll(() => gateway.stop())

const provider = (apiKey = gateway.key) => createGoogle({ baseURL: `${gateway.url}/v1beta`, apiKey })
const place = jsonSchema<Place>(placeSchema)

test.each([...oneEach])(
  '@ai-sdk/google with %s: returns the same text as JSON and as a stream, with usage',
  async name => {
    // The SDK leaves `models/` out of the path of an ID with a slash.
    const model = provider()(name)
    const whole = await generateText({ model, prompt: 'Say hello' })
    expect(whole.text).toContain('You asked: “Say hello”.')
    expect(whole.finishReason).toBe('stop')
    expect(whole.usage.inputTokens).toBeGreaterThan(0)
    const streamed = streamText({ model, prompt: 'Say hello' })
    expect((await Array.fromAsync(streamed.textStream)).join('')).toBe(whole.text)
    expect(await streamed.finishReason).toBe('stop')
  },
)

test.each([...oneEach])(
  '@ai-sdk/google with %s: calls two tools at once and completes in two steps, with thinking',
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
    const options = {
      model: provider()(name),
      tools: { weather, climate: weather },
      stopWhen: isStepCount(3),
      prompt: 'Weather? [[sim:reasoning=20, parallel=2]]',
      providerOptions: { google: { thinkingConfig: { includeThoughts: true } } },
    }
    const { text, steps } = await generateText(options)
    expect(asked).toEqual([simulatedPlace, simulatedPlace])
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
    expect(text).toContain('18')
    const streamed = streamText(options)
    expect(await streamed.text).toContain('18')
    expect((await streamed.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
  },
)

test('@ai-sdk/google: returns an object that matches the schema from each provider, also about an image', async () => {
  for (const name of oneEach) {
    const { output } = await generateText({
      model: provider()(name),
      output: Output.object({ schema: place }),
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Where?' },
            { type: 'image', image: pixel },
          ],
        },
      ],
    })
    expect(output).toEqual(simulatedPlace)
  }
})

test('@ai-sdk/google: embeds one text and several', async () => {
  const model = provider().embedding('gemini-embedding-001')
  const { embeddings } = await embedMany({ model, values: ['a cat', 'a dog'] })
  expect(embeddings.map(({ length }) => length)).toEqual([3072, 3072])
  const [first] = (await embedMany({ model, values: ['a cat'] })).embeddings
  expect(first).toEqual(embeddings[0])
})

test('@ai-sdk/google: throws APICallError with status and message, and an error for a truncated stream', async () => {
  const prompt = 'Tell me [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]'
  const asking = generateText({ model: provider('gw_wrong')('openai/gpt-5.4-mini'), prompt, maxRetries: 0 })
  const error: unknown = await asking.catch((thrown: unknown) => thrown)
  expect(APICallError.isInstance(error) && [error.statusCode, error.message]).toEqual([
    401,
    expect.stringContaining('API key'),
  ])
  for (const name of oneEach) {
    const errors: unknown[] = []
    const streamed = streamText({
      model: provider()(name),
      prompt,
      maxRetries: 0,
      headers: { 'x-gateway-continue': 'off' },
      onError: ({ error: thrown }) => void errors.push(thrown),
    })
    const parts = await Array.fromAsync(streamed.fullStream)
    expect([name, errors.length, parts.some(({ type }) => type === 'error')]).toEqual([name, 1, true])
    expect(parts.find(part => part.type === 'finish')?.finishReason ?? 'error').toBe('error')
  }
})
