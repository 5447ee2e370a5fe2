/** LangChain's `ChatOpenAI`, configured with `/v1` like its users. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai'
import { newAccount } from '../harness/account.ts'
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
  gateway = await startOnServiceDay()
}, 240_000)
afterAll(() => gateway.stop())

function chat(model: string, fields: ChatOpenAIFields = {}, fetch?: ReturnType<typeof countingFetch>['fetch']) {
  const configuration = {
    baseURL: `${gateway.url}/v1`,
    logLevel: 'off',
    ...(fetch === undefined ? {} : { fetch }),
  } as const
  return new ChatOpenAI({ model, apiKey: gateway.key, configuration, ...fields })
}

const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Weather of a place', parameters: placeSchema },
} as const

type Usage = { readonly total_tokens: number; readonly output_token_details?: { readonly reasoning?: number } }
/** The library's own types omit it. */
const findUsage = (message: { readonly usage_metadata?: unknown }) => message.usage_metadata as Usage | undefined

describe('LangChain chat', () => {
  test.each([...allModels])('%s returns the same complete and streamed, with usage', async model => {
    const whole = await chat(model).invoke([
      ['system', 'Be brief.'],
      ['human', 'Say hello'],
    ])
    expect(whole.content).toContain('You asked: “Say hello”.')
    expect(whole.response_metadata).toMatchObject({ finish_reason: 'stop' })
    expect(findUsage(whole)?.total_tokens).toBeGreaterThan(0)
    expect(whole.id).toStartWith('req_')
    const chunks = await Array.fromAsync(
      await chat(model).stream([
        ['system', 'Be brief.'],
        ['human', 'Say hello'],
      ]),
    )
    const all = chunks.reduce((sum, chunk) => sum.concat(chunk))
    expect(all.content).toBe(whole.content)
    expect(all.usage_metadata).toEqual(whole.usage_metadata)
    expect(all.response_metadata).toMatchObject({
      finish_reason: 'stop',
      model_name: whole.response_metadata.model_name,
    })
  })

  test('passes settings to the model: cap, stop sequence, temperature, image', async () => {
    for (const model of namedModels) {
      const capped = await chat(model, { maxTokens: 20 }).invoke('Tell me [[sim:tokens=200]]')
      expect(capped.response_metadata).toMatchObject({ finish_reason: 'length' })
      const stopped = await chat(model, { stop: ['STOP'], temperature: 0.2 }).invoke('Say STOP now')
      expect(stopped.content).toEndWith('“Say ')
      const seen = await chat(model).invoke([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: pixel } },
          ],
        },
      ])
      expect(seen.content).toContain('You sent an image')
    }
  })

  test('supports a batch and several choices', async () => {
    const answers = await chat(oneEach[1]).batch(['One', 'Two', 'Three'])
    expect(answers.map(({ content }) => /One|Two|Three/.exec(String(content))?.[0])).toEqual(['One', 'Two', 'Three'])
    const { generations } = await chat('openai/gpt-4.1', { n: 2, logprobs: true }).generate([
      [['human', 'Hi'] as never],
    ])
    expect(generations[0]).toHaveLength(2)
  })

  test('keeps reasoning beside the text', async () => {
    const reasoner = chat('anthropic/claude-sonnet-4-6', { reasoning: { effort: 'low' } })
    const whole = await reasoner.invoke('Think [[sim:reasoning=20]]')
    expect(whole.additional_kwargs.reasoning_content).toContain('The question is read')
    expect(findUsage(whole)?.output_token_details?.reasoning).toBeGreaterThan(0)
    const chunks = await Array.fromAsync(await reasoner.stream('Think [[sim:reasoning=20]]'))
    const all = chunks.reduce((sum, chunk) => sum.concat(chunk))
    expect(all.additional_kwargs.reasoning_content).toBe(whole.additional_kwargs.reasoning_content)
  })
})

describe('LangChain tools', () => {
  test.each([...allModels])(
    '%s calls tools in parallel, also streamed, and answers with their results',
    async model => {
      const bound = chat(model).bindTools([weather])
      const question = { role: 'user', content: 'Weather? [[sim:parallel=2]]' } as const
      const whole = await bound.invoke([question])
      const chunks = await Array.fromAsync(await bound.stream([question]))
      const streamed = chunks.reduce((sum, chunk) => sum.concat(chunk))
      for (const { tool_calls } of [whole, streamed]) {
        expect(tool_calls?.map(({ name, args }) => ({ name, args }))).toEqual(
          Array(2).fill({ name: 'weather', args: simulatedPlace }),
        )
      }
      for (const reply of [whole, streamed]) {
        const results = (reply.tool_calls ?? []).map(({ id = '' }) => ({
          role: 'tool' as const,
          tool_call_id: id,
          content: '18 degrees',
        }))
        const last = await bound.invoke([question, reply, ...results])
        expect(last.content).toContain('18 degrees')
        expect(last.tool_calls).toEqual([])
      }
    },
  )

  test('support a forced tool, also for a model that only gets an instruction', async () => {
    for (const model of [...oneEach, 'anthropic/claude-sonnet-5-5']) {
      for (const tool_choice of ['weather', 'any'] as const) {
        const reply = await chat(model).bindTools([weather], { tool_choice }).invoke('Weather?')
        expect(reply.tool_calls).toHaveLength(1)
      }
    }
  })
})

describe('LangChain structured output', () => {
  test.each([...allModels])('%s matches the schema by each of the three methods', async model => {
    for (const method of ['jsonSchema', 'functionCalling', 'jsonMode'] as const) {
      const place = await chat(model).withStructuredOutput<Place>(placeSchema, { method }).invoke('Where, in JSON?')
      if (method === 'jsonMode') expect(place).toMatchObject({ simulated: true })
      else expect(place).toEqual(simulatedPlace)
    }
  })
})

describe('LangChain failures', () => {
  test('keep status, code and field after one request', async () => {
    for (const [fields, model, status, code] of [
      [{ apiKey: 'sk-wrong' }, oneEach[0], 401, 'invalid_api_key'],
      [{}, 'gpt-nobody', 404, 'model_not_found'],
      [{ temperature: 3 }, oneEach[0], 400, 'invalid_request'],
    ] as const) {
      const { seen, fetch } = countingFetch()
      const error = await chat(model, fields, fetch)
        .invoke('Hi')
        .catch((cause: unknown) => cause)
      expect(error).toMatchObject({ status, code })
      expect(seen.requests).toBe(1)
    }
  })

  test('send one request when the daily limit is reached', async () => {
    const { key } = await newAccount(gateway, { dailyTokens: 1 })
    const { seen, fetch } = countingFetch()
    const error = await chat(oneEach[0], { apiKey: key }, fetch)
      .invoke('Hi')
      .catch((cause: unknown) => cause)
    expect(error).toMatchObject({ status: 429, code: 'daily_tokens_exceeded' })
    expect(seen.requests).toBe(1)
  })

  test('recognize a context overflow by the message', async () => {
    const error = await chat(oneEach[0], { modelKwargs: { fallback: false } })
      .invoke('Hi [[sim:context_overflow]]')
      .catch((cause: unknown) => cause)
    expect(error).toMatchObject({ name: 'ContextOverflowError' })
  })

  test('throw a stream failure after the received text', async () => {
    for (const model of oneEach) {
      const { seen, fetch } = countingFetch()
      let text = ''
      const scan = (async () => {
        const bound = chat(model, { modelKwargs: { fallback: false } }, fetch)
        for await (const chunk of await bound.stream('Tell me [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]'))
          text += chunk.content
      })()
      expect(await scan.catch((cause: unknown) => cause)).toMatchObject({ code: 'upstream_failed' })
      expect(text).toStartWith('[simulated')
      expect(seen.requests).toBe(1)
    }
  })

  test('abort the upstream call and release the reservation on an abort in mid-stream', async () => {
    for (const model of oneEach) {
      const before = leavings(gateway)
      const abort = new AbortController()
      const scan = (async () => {
        const stream = await chat(model).stream('Talk [[sim:pace_ms=20, tokens=4000]]', { signal: abort.signal })
        for await (const chunk of stream) if (chunk.content !== '') abort.abort()
      })()
      expect(await scan.catch((cause: unknown) => cause)).toBeInstanceOf(Error)
      await eventually(() => leavings(gateway).aborted === before.aborted + 1)
      await eventually(() => leavings(gateway).reservationsTaken === 0)
    }
  })
})
