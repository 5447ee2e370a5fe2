/** LangChain's `ChatAnthropic` for JavaScript, whose base URL is the gateway's origin. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { ChatAnthropic } from '@langchain/anthropic'
import { tool } from '@langchain/core/tools'
import type { Gateway } from '../harness/gateway.ts'
import { oneEach, placeSchema, simulatedPlace, startOnServiceDay } from './support.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startOnServiceDay()
})
afterAll(() => gateway.stop())

const getModel = (model: string) =>
  new ChatAnthropic({ model, apiKey: gateway.key, anthropicApiUrl: gateway.url, maxTokens: 1_000 })

test.each([...oneEach])('ChatAnthropic with %s: returns the same text as JSON and as a stream', async name => {
  const model = getModel(name)
  const whole = await model.invoke('Say hello')
  expect(whole.text).toContain('You asked: “Say hello”.')
  expect(whole).toHaveProperty('usage_metadata.input_tokens', expect.any(Number))
  const chunks = await Array.fromAsync(await model.stream('Say hello'))
  expect(chunks.map(({ text }) => text).join('')).toBe(whole.text)
})

test.each([...oneEach])('ChatAnthropic with %s: calls a tool, reads its result, and keeps to a schema', async name => {
  const weather = tool(() => '18 degrees', { name: 'weather', description: 'Weather of a place', schema: placeSchema })
  const agent = getModel(name).bindTools([weather])
  const called = await agent.invoke('Weather? [[sim:parallel=1]]')
  expect(called.tool_calls?.map(({ args }) => args)).toEqual([{ ...simulatedPlace }])
  const result = { role: 'tool', content: '18 degrees', tool_call_id: called.tool_calls?.[0]?.id ?? '' }
  const said = await agent.invoke([{ role: 'user', content: 'Weather?' }, called, result])
  expect(said.text).toContain('18 degrees')
  expect(await getModel(name).withStructuredOutput(placeSchema).invoke('Where?')).toEqual({ ...simulatedPlace })
})
