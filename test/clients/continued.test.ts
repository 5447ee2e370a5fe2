/** A text that its upstream cuts and another attempt continues, as the clients of each API form put it together. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { ChatAnthropic } from '@langchain/anthropic'
import { ChatOpenAI } from '@langchain/openai'
import { type LanguageModel, streamText as streamWithSdk } from 'ai'
import OpenAI from 'openai'
import { eventStream, formats, getFrames, models, type Rig, startRig, streamText } from '../faults/support.ts'

const before = 'The 😀 fox jumps over the lazy dog, and t'
const whole = `${before}hen it runs into the wood. 世界!`

let rig: Rig
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  rig = await startRig()
  for (const format of formats)
    rig.play(format, ({ body }) => {
      const isSecond = body.includes('lazy dog')
      const frames = getFrames(format, isSecond ? [before.slice(-20), whole.slice(before.length)] : [before])
      return {
        headers: eventStream,
        framing: 'chunked',
        pieces: [streamText(isSecond ? frames : { ...frames, closing: [] })],
      }
    })
}, 240_000)
afterAll(() => rig.stop())

const prompt = 'Say something.'
const user = { role: 'user', content: prompt } as const

const withSdk = async (model: LanguageModel) => {
  const { text, finishReason } = streamWithSdk({ model, prompt, maxRetries: 0 })
  return [await text, await finishReason]
}

const clients: Readonly<
  Record<string, (access: { url: string; key: string }, model: string) => Promise<readonly unknown[]>>
> = {
  'openai, Chat Completions': async ({ url, key }, model) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
    const completion = await client.chat.completions.stream({ model, messages: [user] }).finalChatCompletion()
    return [completion.choices[0]?.message.content, completion.choices[0]?.finish_reason]
  },
  'openai, Responses': async ({ url, key }, model) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
    const { output_text, status, output } = await client.responses.stream({ model, input: prompt }).finalResponse()
    expect(output).toHaveLength(1)
    return [output_text, status === 'completed' ? 'stop' : status]
  },
  '@anthropic-ai/sdk': async ({ url, key }, model) => {
    const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 })
    const message = await client.messages.stream({ model, max_tokens: 8192, messages: [user] }).finalMessage()
    expect(message.content.map(({ type }) => type)).toEqual(['text'])
    const [block] = message.content
    return [block?.type === 'text' ? block.text : '', message.stop_reason === 'end_turn' ? 'stop' : message.stop_reason]
  },
  'AI SDK, compatible': ({ url, key }, model) =>
    withSdk(createOpenAICompatible({ name: 'gateway', baseURL: `${url}/v1`, apiKey: key })(model)),
  'AI SDK, OpenAI': ({ url, key }, model) => withSdk(createOpenAI({ baseURL: `${url}/v1`, apiKey: key })(model)),
  'AI SDK, Anthropic': ({ url, key }, model) => withSdk(createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model)),
  '@google/genai': async ({ url, key }, model) => {
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } })
    const frames = await Array.fromAsync(await client.models.generateContentStream({ model, contents: prompt }))
    const ends = frames.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? [])
    return [frames.map(({ text }) => text ?? '').join(''), ends.join() === 'STOP' ? 'stop' : ends.join()]
  },
  'AI SDK, Google': ({ url, key }, model) => withSdk(createGoogle({ baseURL: `${url}/v1beta`, apiKey: key })(model)),
  'LangChain, OpenAI': async ({ url, key }, model) => {
    const chat = new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` } })
    const chunks = await Array.fromAsync(await chat.stream(prompt))
    const reasons = chunks.map(({ response_metadata }) => response_metadata.finish_reason).filter(Boolean)
    return [chunks.map(({ text }) => text).join(''), reasons.join()]
  },
  'LangChain, Anthropic': async ({ url, key }, model) => {
    const chat = new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: url, maxTokens: 8192, maxRetries: 0 })
    const chunks = await Array.fromAsync(await chat.stream(prompt))
    return [chunks.map(({ text }) => text).join(''), 'stop']
  },
}

test.each(Object.entries(clients))(
  'continued text: %s gets it once and as finished',
  async (_, send) => {
    for (const format of formats) {
      rig.heal()
      expect([format, ...(await send(rig.gateway, models[format]))]).toEqual([format, whole, 'stop'])
    }
  },
  60_000,
)
