/** The previous major of each client library that the other files of this folder test: text, a stream, and a tool over two steps. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { generateText, jsonSchema, type LanguageModel, stepCountIs, streamText, tool } from 'ai-6'
import { createAnthropic } from 'ai-sdk-anthropic-3'
import { createOpenAI } from 'ai-sdk-openai-3'
import { createOpenAICompatible } from 'ai-sdk-openai-compatible-2'
import Anthropic from 'anthropic-sdk-0'
import { ChatAnthropic } from 'langchain-anthropic-0'
import { ChatOpenAI } from 'langchain-openai-0'
import OpenAI from 'openai-6'
import type { Gateway } from '../harness/gateway.ts'
import { oneEach, type Place, placeSchema, simulatedPlace, startOnServiceDay } from './support.ts'

setDefaultTimeout(60_000)

let gateway: Gateway
let base: { readonly baseURL: string; readonly apiKey: string }
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  gateway = await startOnServiceDay()
  base = { baseURL: `${gateway.url}/v1`, apiKey: gateway.key }
})
afterAll(() => gateway.stop())

const said = 'You asked: “Say hello”.'

describe('AI SDK 6', () => {
  const providers: Record<string, (name: string) => Exclude<LanguageModel, string>> = {
    '@ai-sdk/openai': name => createOpenAI(base)(name),
    '@ai-sdk/anthropic': name => createAnthropic(base)(name),
    '@ai-sdk/openai-compatible': name => createOpenAICompatible({ name: 'gateway', ...base })(name),
  }

  test.each(Object.keys(providers).flatMap(provider => oneEach.map(name => [provider, name] as const)))(
    '%s with %s: returns the same text whole and streamed, and completes a tool in two steps',
    async (provider, name) => {
      const model = providers[provider]?.(name) ?? name
      const whole = await generateText({ model, prompt: 'Say hello' })
      expect([whole.text.includes(said), whole.finishReason]).toEqual([true, 'stop'])
      const streamed = streamText({ model, prompt: 'Say hello' })
      expect((await Array.fromAsync(streamed.textStream)).join('')).toBe(whole.text)
      const asked: Place[] = []
      const weather = tool({
        description: 'Weather of a place',
        inputSchema: jsonSchema<Place>(placeSchema),
        execute: place => {
          asked.push(place)
          return { degrees: 18 }
        },
      })
      const { text, steps } = await generateText({
        model,
        tools: { weather },
        stopWhen: stepCountIs(3),
        prompt: 'Weather? [[sim:parallel=1]]',
      })
      expect(asked).toEqual([simulatedPlace])
      expect([steps.length, text.includes('18')]).toEqual([2, true])
    },
  )
})

describe('openai 6', () => {
  const client = () => new OpenAI({ ...base, maxRetries: 0, logLevel: 'off' })
  const weather = { name: 'weather', parameters: placeSchema }

  test.each([...oneEach])(
    'with %s: completes Chat Completions and Responses, whole, streamed and with a tool',
    async model => {
      const messages = [{ role: 'user' as const, content: 'Say hello' }]
      const { completions } = client().chat
      const whole = await completions.create({ model, messages })
      expect(whole.choices[0]?.message.content).toContain(said)
      const streamed = await completions.stream({ model, messages }).finalContent()
      expect(streamed).toContain(said)
      const called = await completions
        .stream({
          model,
          messages: [{ role: 'user', content: 'Weather? [[sim:parallel=1]]' }],
          tools: [{ type: 'function', function: weather }],
        })
        .finalMessage()
      expect(called.tool_calls?.[0]).toMatchObject({ function: { arguments: JSON.stringify(simulatedPlace) } })
      const { responses } = client()
      expect((await responses.create({ model, input: 'Say hello' })).output_text).toContain(said)
      const tools = [{ type: 'function' as const, strict: true, ...weather }]
      const response = await responses.stream({ model, input: 'Weather? [[sim:parallel=1]]', tools }).finalResponse()
      expect(response.output.find(({ type }) => type === 'function_call')).toMatchObject({ name: 'weather' })
    },
  )
})

describe('@anthropic-ai/sdk 0', () => {
  test.each([...oneEach])('with %s: completes Messages, whole, streamed and with a tool', async model => {
    const { messages } = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0, logLevel: 'off' })
    const asked = { model, max_tokens: 300, messages: [{ role: 'user' as const, content: 'Say hello' }] }
    expect((await messages.create(asked)).content).toMatchObject([
      { type: 'text', text: expect.stringContaining(said) },
    ])
    expect(await messages.stream(asked).finalText()).toContain(said)
    const called = await messages
      .stream({
        ...asked,
        messages: [{ role: 'user', content: 'Weather? [[sim:parallel=1]]' }],
        tools: [{ name: 'weather', input_schema: placeSchema }],
      })
      .finalMessage()
    expect(called.content.find(({ type }) => type === 'tool_use')).toMatchObject({ input: simulatedPlace })
  })
})

describe('LangChain 0', () => {
  // `ChatAnthropic` 0 always sends a temperature, which the newest models of Anthropic reject.
  test.each(['openai/gpt-5.4-mini', 'anthropic/claude-sonnet-4-6', 'google/gemini-3.8-flash'])(
    'with %s: completes both classes, whole and streamed',
    async model => {
      const quiet = { maxRetries: 0 }
      const configuration = { baseURL: base.baseURL, logLevel: 'off' } as const
      for (const chat of [
        new ChatOpenAI({ model, apiKey: gateway.key, configuration, ...quiet }),
        new ChatAnthropic({ model, apiKey: gateway.key, anthropicApiUrl: gateway.url, ...quiet }),
      ]) {
        expect((await chat.invoke('Say hello')).content).toContain(said)
        const chunks = await Array.fromAsync(await chat.stream('Say hello'))
        expect(chunks.map(({ content }) => content).join('')).toContain(said)
      }
    },
  )
})
