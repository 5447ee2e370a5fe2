/** The official `openai` client, configured with `/v1` like its users. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { LengthFinishReasonError } from 'openai/error'
import { makeParseableResponseFormat } from 'openai/lib/parser'
import type { Gateway } from '../harness/gateway.ts'
import {
  allModels,
  namedModels,
  oneEach,
  type Place,
  pixel,
  placeSchema,
  simulatedPlace,
  startOnServiceDay,
} from './support.ts'

let gateway: Gateway
let client: OpenAI

beforeAll(async () => {
  gateway = await startOnServiceDay()
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0, logLevel: 'off' })
}, 240_000)
afterAll(() => gateway.stop())

const user = (content: string) => ({ role: 'user', content }) as const
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Weather of a place', parameters: placeSchema },
} satisfies OpenAI.ChatCompletionTool
const clock = { type: 'function', function: { name: 'clock' } } satisfies OpenAI.ChatCompletionTool

describe('OpenAI client chat', () => {
  test.each([...allModels])('%s answers', async model => {
    const answer = await client.chat.completions.create({ model, messages: [user('Say hello')] })
    expect(answer.object).toBe('chat.completion')
    expect(answer.id).toStartWith('req_')
    expect(answer.model).toMatch(model === 'gateway-ai' ? /^\w+\/./ : new RegExp(`^${model}$`))
    const [choice] = answer.choices
    expect(choice).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant' } })
    expect(choice?.message.content).toContain('You asked: “Say hello”.')
    expect(choice?.message.refusal).toBeNull()
    expect(answer.usage?.total_tokens).toBe((answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0))
  })

  test('returns the name that the client uses for a model, with or without provider or date', async () => {
    for (const model of ['claude-haiku-5-5', 'anthropic/claude-haiku-5-5', 'Claude-Haiku-5-5']) {
      const { data, response } = await client.chat.completions.create({ model, messages: [user('Hi')] }).withResponse()
      expect(data.model).toBe(model)
      expect(response.headers.get('x-gateway-model')).toBe('anthropic/claude-haiku-5-5')
      for await (const chunk of await client.chat.completions.create({ model, messages: [user('Hi')], stream: true }))
        expect(chunk.model).toBe(model)
    }
  })

  test('accepts a conversation with system prompt and earlier turns', async () => {
    for (const model of oneEach) {
      const answer = await client.chat.completions.create({
        model,
        messages: [
          { role: 'developer', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'One' }], name: 'ada' },
          { role: 'assistant', content: 'Two' },
          user('Three'),
        ],
      })
      expect(answer.choices[0]?.message.content).toContain('Three')
    }
  })

  test.each([...namedModels])('%s accepts an image as a data URL', async model => {
    const answer = await client.chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: pixel, detail: 'low' } },
          ],
        },
      ],
    })
    expect(answer.choices[0]?.message.content).toContain('You sent an image')
  })

  test('finishes with `length` at the cap, and before a stop sequence', async () => {
    for (const model of namedModels) {
      const messages = [user('Tell me [[sim:tokens=200]]')]
      const capped = await client.chat.completions.create({ model, messages, max_tokens: 20 })
      expect(capped.choices[0]?.finish_reason).toBe('length')
      expect(capped.usage?.completion_tokens).toBeLessThanOrEqual(20)
      const newer = await client.chat.completions.create({ model, messages, max_completion_tokens: 20, stream: true })
      const reasons: (string | null)[] = []
      for await (const { choices } of newer) reasons.push(...choices.map(choice => choice.finish_reason))
      expect(reasons.at(-1)).toBe('length')
      const stopped = await client.chat.completions.create({ model, messages: [user('Say STOP now')], stop: ['STOP'] })
      expect(stopped.choices[0]?.message.content).toEndWith('“Say ')
      expect(stopped.choices[0]?.finish_reason).toBe('stop')
    }
  })

  test('returns several choices with log probabilities', async () => {
    const body = { model: 'openai/gpt-4.1', messages: [user('Hi')], n: 2, logprobs: true, top_logprobs: 2 }
    const answer = await client.chat.completions.create(body)
    expect(answer.choices.map(choice => choice.index)).toEqual([0, 1])
    for (const { logprobs, message } of answer.choices) {
      expect(logprobs?.content?.map(({ token }) => token).join('')).toBe(message.content ?? '')
      expect(logprobs?.content?.[0]?.top_logprobs).toHaveLength(2)
    }
    const streamed = await client.chat.completions.stream(body).finalChatCompletion()
    expect(streamed.choices.map(({ message: { content }, logprobs }) => ({ content, logprobs }))).toEqual(
      answer.choices.map(({ message: { content }, logprobs }) => ({ content, logprobs })),
    )
  })

  test.each([...allModels])("%s accepts the client's other parameters", async model => {
    const answer = await client.chat.completions.create({
      model,
      messages: [user('Hi')],
      seed: 7,
      user: 'ada',
      safety_identifier: 'ada',
      metadata: { purpose: 'test' },
      store: false,
      service_tier: 'auto',
      verbosity: 'low',
      prompt_cache_key: 'greetings',
      prediction: { type: 'content', content: 'Hi' },
      modalities: ['text'],
      top_p: 1,
      n: 1,
    })
    expect(answer.choices).toHaveLength(1)
  })

  test('returns an empty output, complete and streamed', async () => {
    for (const model of oneEach) {
      const body = { model, messages: [user('Nothing [[sim:empty, reasoning=0]]')] }
      const options = { headers: { 'X-Gateway-No-Fallback': 'true' } }
      const whole = await client.chat.completions.create(body, options)
      const streamed = await client.chat.completions.stream(body, options).finalChatCompletion()
      for (const { choices } of [whole, streamed]) {
        expect(choices[0]?.message.content).toBe('')
        expect(choices[0]?.finish_reason).toBe('stop')
      }
    }
  })

  test.each(['openai/gpt-5.4-mini', 'anthropic/claude-sonnet-4-6', 'google/gemini-3.5-flash'])(
    '%s uses the requested reasoning effort',
    async model => {
      const send = (reasoning_effort: 'low' | 'high') =>
        client.chat.completions.create({ model, messages: [user('Think')], reasoning_effort })
      const [low, high] = await Promise.all([send('low'), send('high')])
      const tokens = (answer: OpenAI.ChatCompletion) => answer.usage?.completion_tokens_details?.reasoning_tokens ?? 0
      expect(tokens(high)).toBeGreaterThan(tokens(low))
    },
  )
})

describe('OpenAI client streams', () => {
  test.each([...allModels])('%s streams the same as its complete response', async model => {
    const body = { model, messages: [user('Say hello')] }
    const whole = await client.chat.completions.create(body)
    const stream = await client.chat.completions.create({ ...body, stream: true })
    let text = ''
    const ids = new Set<string>()
    const reasons: string[] = []
    for await (const { id, object, choices, usage } of stream) {
      expect(object).toBe('chat.completion.chunk')
      expect(usage).toBeUndefined()
      ids.add(id)
      for (const { delta, finish_reason } of choices) {
        text += delta.content ?? ''
        if (finish_reason !== null) reasons.push(finish_reason)
      }
    }
    expect(text).toBe(whole.choices[0]?.message.content ?? '')
    expect(ids.size).toBe(1)
    expect(reasons).toEqual(['stop'])
  })

  test('contain usage last and only when requested', async () => {
    for (const model of namedModels) {
      const chunks = await Array.fromAsync(
        await client.chat.completions.create({
          model,
          messages: [user('Hi')],
          stream: true,
          stream_options: { include_usage: true },
        }),
      )
      expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
      expect(chunks.at(-1)?.choices).toEqual([])
      expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0)
    }
  })

  test('work with the stream helper, which assembles the completion', async () => {
    for (const model of allModels) {
      const stream = client.chat.completions.stream({
        model,
        messages: [user('Say hello')],
        stream_options: { include_usage: true },
      })
      let text = ''
      stream.on('content.delta', ({ delta }) => {
        text += delta
      })
      const answer = await stream.finalChatCompletion()
      expect(answer.choices[0]?.message.content).toBe(text)
      expect(text).toContain('Say hello')
      expect(answer.choices[0]?.finish_reason).toBe('stop')
      expect((await stream.totalUsage()).total_tokens).toBeGreaterThan(0)
    }
  })

  test('pass through a web stream of lines', async () => {
    const stream = client.chat.completions.stream({ model: oneEach[1], messages: [user('Say hello')] })
    const { ChatCompletionStream } = await import('openai/lib/ChatCompletionStream')
    const read = ChatCompletionStream.fromReadableStream(stream.toReadableStream())
    expect(await read.finalContent()).toContain('Say hello')
    const raw = await client.chat.completions.create({ model: oneEach[2], messages: [user('Hi')], stream: true })
    const lines = (await new Response(raw.toReadableStream()).text()).trim().split('\n')
    expect(lines.every(line => JSON.parse(line).object === 'chat.completion.chunk')).toBe(true)
  })

  test('support two readers of one stream', async () => {
    const stream = await client.chat.completions.create({ model: oneEach[0], messages: [user('Hi')], stream: true })
    const [item, other] = await Promise.all(stream.tee().map(branch => Array.fromAsync(branch)))
    expect(item).toEqual(other ?? [])
  })

  test('carry reasoning beside the text', async () => {
    for (const model of ['anthropic/claude-sonnet-4-6', 'google/gemini-3.5-flash']) {
      const messages = [user('Think [[sim:reasoning=20]]')]
      const whole = await client.chat.completions.create({ model, messages, reasoning_effort: 'low' })
      const stream = client.chat.completions.stream({ model, messages, reasoning_effort: 'low' })
      let reasoning = ''
      // The client's own message keeps only the last part of an unknown field.
      stream.on('chunk', ({ choices }) => {
        reasoning += getReasoning(choices[0]?.delta)
      })
      const message = await stream.finalMessage()
      expect(message.content).toBe(whole.choices[0]?.message.content ?? '')
      expect(reasoning).toContain('question')
      expect(reasoning).toBe(getReasoning(whole.choices[0]?.message))
    }
  })

  test('carry a refusal, complete and streamed', async () => {
    const body = { model: 'openai/gpt-5.4-mini', messages: [user('No [[sim:refusal]]')] }
    const whole = await client.chat.completions.create(body)
    expect(whole.choices[0]?.message.content).toBeNull()
    expect(whole.choices[0]?.message.refusal).toContain('cannot')
    const streamed = await client.chat.completions.stream(body).finalMessage()
    expect(streamed.refusal).toBe(whole.choices[0]?.message.refusal ?? '')
  })
})

describe('OpenAI client tools', () => {
  test.each([...namedModels])('%s calls one and several tools, complete and streamed', async model => {
    for (const [count, tools] of [
      [1, [weather]],
      [3, [weather, clock]],
    ] as const) {
      const body = { model, messages: [user(`Weather? [[sim:parallel=${count}]]`)], tools: [...tools] }
      const whole = await client.chat.completions.create(body)
      const streamed = await client.chat.completions.stream(body).finalChatCompletion()
      for (const { choices } of [whole, streamed]) {
        const calls = functionCalls(choices[0]?.message)
        expect(choices[0]?.finish_reason).toBe('tool_calls')
        expect(choices[0]?.message.content).toBeFalsy()
        expect(calls.map(call => call.function.name)).toEqual(['weather', 'clock', 'weather'].slice(0, count))
        expect(JSON.parse(calls[0]?.function.arguments ?? '')).toEqual(simulatedPlace)
        expect(new Set(calls.map(call => call.id)).size).toBe(count)
      }
    }
  })

  test.each([...allModels])('%s receives the results of its calls and answers in text', async model => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather? [[sim:parallel=2]]')]
    const first = await client.chat.completions.create({ model, messages, tools: [weather, clock] })
    const reply = first.choices[0]?.message
    if (reply === undefined) throw new Error('an answer has a choice')
    messages.push(reply)
    for (const call of functionCalls(reply))
      messages.push({ role: 'tool', tool_call_id: call.id, content: `${call.function.name}: 18 degrees` })
    const second = await client.chat.completions.create({ model, messages, tools: [weather, clock] })
    expect(second.choices[0]?.finish_reason).toBe('stop')
    expect(second.choices[0]?.message.content).toContain('weather: 18 degrees')
    expect(second.choices[0]?.message.content).toContain('clock: 18 degrees')
  })

  test.each([...namedModels])('complete runTools with %s', async model => {
    const asked: unknown[] = []
    const tools = [
      {
        type: 'function' as const,
        function: {
          name: 'weather',
          description: 'Weather of a place',
          parameters: placeSchema,
          parse: (text: string): Place => JSON.parse(text),
          function: (place: Place) => {
            asked.push(place)
            return `18 degrees in ${place.city}`
          },
        },
      },
    ]
    const messages = [user('Weather? [[sim:parallel=2]]')]
    const run = client.chat.completions.runTools({ model, messages, tools })
    expect(await run.finalContent()).toContain('18 degrees in simulated city')
    expect(run.allChatCompletions()).toHaveLength(2)
    const streamed = client.chat.completions.runTools({ model, messages, tools, stream: true })
    expect(await streamed.finalContent()).toContain('18 degrees in simulated city')
    expect(asked).toEqual(Array(4).fill(simulatedPlace))
  })

  test('keep text before the calls', async () => {
    for (const model of namedModels) {
      const body = { model, messages: [user('Weather? [[sim:parallel=2, preamble]]')], tools: [weather] }
      const whole = await client.chat.completions.create(body)
      const streamed = await client.chat.completions.stream(body).finalChatCompletion()
      for (const { choices } of [whole, streamed]) {
        expect(choices[0]?.message.content).toBe('Let me look that up. ')
        expect(functionCalls(choices[0]?.message)).toHaveLength(2)
      }
    }
  })

  test('work with a model that reasons before its calls', async () => {
    for (const model of namedModels.filter(name => name !== 'openai/gpt-4.1')) {
      const body = { model, tools: [weather], reasoning_effort: 'high' as const }
      const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather? [[sim:parallel=2]]')]
      const reply = await client.chat.completions.stream({ ...body, messages }).finalMessage()
      const results = functionCalls(reply).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '18' }) as const)
      const last = await client.chat.completions.create({ ...body, messages: [...messages, reply, ...results] })
      expect(last.choices[0]?.message.content).toContain('18')
      expect(last.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
    }
  })

  test('follow required and none as tool choice', async () => {
    for (const model of namedModels) {
      const body = { model, messages: [user('Weather?')], tools: [weather, clock] }
      const named = await client.chat.completions.create({
        ...body,
        tool_choice: { type: 'function', function: { name: 'clock' } },
      })
      expect(functionCalls(named.choices[0]?.message).map(call => call.function)).toEqual([
        { name: 'clock', arguments: '{}' },
      ])
      const required = await client.chat.completions.create({ ...body, tool_choice: 'required' })
      expect(required.choices[0]?.finish_reason).toBe('tool_calls')
      const none = await client.chat.completions.create({
        ...body,
        messages: [user('Weather? [[sim:parallel=1]]')],
        tool_choice: 'none',
      })
      expect(none.choices[0]?.message.content).toContain('Weather?')
      const { data, response } = await client.chat.completions
        .create({ ...body, messages: [user('Weather? [[sim:parallel=3]]')], parallel_tool_calls: false })
        .withResponse()
      // Google has no such parameter, which is reported to the client.
      const isHeld = !model.startsWith('google/')
      expect(data.choices[0]?.message.tool_calls).toHaveLength(isHeld ? 1 : 3)
      expect(response.headers.get('x-gateway-dropped-params')).toBe(isHeld ? null : 'parallel_tool_calls')
    }
  })

  test('support the deprecated functions with their own fields', async () => {
    for (const model of namedModels) {
      const { function: spoken } = weather
      const body = {
        model,
        // Google cannot be limited to one call: the first one counts.
        messages: [user('Weather? [[sim:parallel=2]]')] as OpenAI.ChatCompletionMessageParam[],
        functions: [spoken],
        function_call: { name: 'weather' },
      }
      const whole = await client.chat.completions.create(body)
      const streamed = await client.chat.completions.stream(body).finalChatCompletion()
      for (const { choices } of [whole, streamed]) {
        expect(choices[0]?.finish_reason).toBe('function_call')
        expect(choices[0]?.message.function_call?.name).toBe('weather')
        expect(JSON.parse(choices[0]?.message.function_call?.arguments ?? '')).toEqual(simulatedPlace)
        expect(choices[0]?.message.tool_calls).toBeUndefined()
      }
      const reply = whole.choices[0]?.message
      if (reply === undefined) throw new Error('an answer has a choice')
      const result = { role: 'function', name: 'weather', content: '18 degrees' } as const
      const last = await client.chat.completions.create({
        model,
        functions: [spoken],
        messages: [...body.messages, reply, result],
      })
      expect(last.choices[0]?.message.content).toContain('18 degrees')
    }
  })
})

describe('OpenAI client JSON', () => {
  test.each([...allModels])('%s returns the requested schema, parsed', async model => {
    const format = makeParseableResponseFormat<Place>(
      { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: placeSchema } },
      text => JSON.parse(text),
    )
    const body = { model, messages: [user('Where?')], response_format: format }
    const whole = await client.chat.completions.parse(body)
    expect(whole.choices[0]?.message.parsed).toEqual(simulatedPlace)
    const streamed = await client.chat.completions.stream(body).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(simulatedPlace)
  })

  test('rejects truncated output', async () => {
    for (const model of oneEach) {
      const request = client.chat.completions.parse({
        model,
        messages: [user('Where?')],
        max_tokens: 2,
        response_format: { type: 'json_schema', json_schema: { name: 'place', schema: placeSchema } },
      })
      expect(await request.catch((cause: unknown) => cause)).toBeInstanceOf(LengthFinishReasonError)
    }
  })

  test.each([...namedModels])('%s returns a JSON object', async model => {
    const answer = await client.chat.completions.create({
      model,
      messages: [user('Some JSON, please')],
      response_format: { type: 'json_object' },
    })
    expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toMatchObject({ simulated: true })
  })
})

describe('OpenAI client web access', () => {
  const prompt = 'Search the web: what is the price of gold today?'
  const isCitation = (item: unknown): item is OpenAI.ChatCompletionMessage.Annotation =>
    typeof item === 'object' && item !== null && 'type' in item && item.type === 'url_citation'
  const getCitations = (message: object) =>
    'annotations' in message && Array.isArray(message.annotations) ? message.annotations.filter(isCitation) : []

  const getSources = (annotations: readonly OpenAI.ChatCompletionMessage.Annotation[]) =>
    annotations.map(({ url_citation: { url, title } }) => ({ url, title }))

  test('returns sources as `annotations` with `url_citation`, and the search cost in a header', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: oneEach[0], messages: [user(prompt)] })
      .withResponse()
    const [choice] = data.choices
    const annotations = choice?.message.annotations ?? []
    expect(annotations.length).toBeGreaterThan(0)
    for (const { type, url_citation } of annotations) {
      expect([type, Object.keys(url_citation).toSorted()]).toEqual([
        'url_citation',
        ['end_index', 'start_index', 'title', 'url'],
      ])
      expect(URL.canParse(url_citation.url)).toBe(true)
      expect(url_citation.end_index).toBeWithin(url_citation.start_index, (choice?.message.content ?? '').length + 1)
    }
    expect(response.headers.get('x-gateway-search-cost-usd')).toBe('0.005')

    const streamed = await client.chat.completions
      .create({ model: oneEach[0], messages: [user(prompt)], stream: true })
      .withResponse()
    expect(streamed.response.headers.get('x-gateway-search-cost-usd')).toBe('0.005')
    const chunks = await Array.fromAsync(streamed.data)
    const told = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => getCitations(delta)))
    expect(getSources(told)).toEqual(getSources(annotations))
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
    const final = await client.chat.completions
      .stream({ model: oneEach[0], messages: [user(prompt)] })
      .finalChatCompletion()
    const [message] = final.choices.map(({ message: whole }) => whole)
    const length = message?.content?.length ?? 0
    const kept = getCitations(message ?? {})
    expect(getSources(kept)).toEqual(getSources(annotations))
    // The simulated output cites nothing.
    for (const { url_citation } of kept)
      expect([url_citation.start_index, url_citation.end_index]).toEqual([length, length])
  })

  test('adds no citation, chunk or header without web access', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: oneEach[0], messages: [user('Hi')] })
      .withResponse()
    expect(data.choices[0]?.message.annotations).toEqual([])
    expect(response.headers.get('x-gateway-search-cost-usd')).toBeNull()
    const stream = await client.chat.completions.create({ model: oneEach[0], messages: [user('Hi')], stream: true })
    const chunks = await Array.fromAsync(stream)
    expect(chunks.every(({ choices }) => choices.every(({ delta }) => !('annotations' in delta)))).toBe(true)
  })
})

describe('OpenAI client models and headers', () => {
  test('list gateway-ai first, and retrieve every entry by its ID', async () => {
    const models = await Array.fromAsync(client.models.list())
    expect(models[0]?.id).toBe('gateway-ai')
    const { catalog, embeddingCatalog } = gateway.deps
    expect(models).toHaveLength(1 + catalog.list.length + embeddingCatalog.list.length)
    for (const model of models) expect(await client.models.retrieve(model.id)).toEqual(model)
  })

  test('find a model under an ID with a slash', async () => {
    const found = await client.models.retrieve('anthropic/claude-haiku-5-5')
    expect(found).toMatchObject({ object: 'model', owned_by: 'anthropic' })
    expect(await client.models.retrieve('claude-haiku-5-5')).toEqual(found)
  })

  test('contain serving model, cost and remaining limits', async () => {
    const { data, response, request_id } = await client.chat.completions
      .create({ model: oneEach[0], messages: [user('Hi')] })
      .withResponse()
    const header = (name: string) => response.headers.get(name)
    expect(request_id).toBe(data.id)
    expect(header('x-gateway-model')).toBe(data.model)
    expect(header('x-gateway-provider')).toBe('openai')
    expect(header('x-gateway-attempts')).toBe('1')
    expect(Number(header('x-gateway-cost-usd'))).toBeGreaterThan(0)
    expect(data.usage).toMatchObject({ cost_usd: Number(header('x-gateway-cost-usd')) })
    expect(Number(header('x-ratelimit-remaining-requests'))).toBeGreaterThan(0)
    expect(header('deprecation')).toBeNull()
    const streamed = await client.chat.completions
      .create({ model: oneEach[0], messages: [user('Hi')], stream: true })
      .withResponse()
    expect(streamed.response.headers.get('x-gateway-model')).toBe(oneEach[0])
    const [first] = await Array.fromAsync(streamed.data)
    expect(first?.id).toBe(streamed.request_id ?? '')
  })

  test('contain the deprecation date of a deprecated model, complete and streamed', async () => {
    const messages = [user('Hi')]
    for (const { response } of [
      await client.chat.completions.create({ model: 'openai/gpt-4.1', messages }).withResponse(),
      await client.chat.completions.create({ model: 'openai/gpt-4.1', messages, stream: true }).withResponse(),
    ]) {
      expect(response.headers.get('deprecation')).toMatch(/^@\d+$/)
      expect(Date.parse(response.headers.get('sunset') ?? '')).toBe(Date.parse('2027-01-14'))
      if (!response.bodyUsed) await response.body?.cancel()
    }
  })

  test("accept the gateway's own headers", async () => {
    const { data, response } = await client.chat.completions
      .create(
        { model: 'gateway-ai', messages: [user('Hi')], stream: true },
        { headers: { 'X-Gateway-Strategy': 'cost', 'X-Gateway-Stream-Mode': 'realtime' } },
      )
      .withResponse()
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect((await Array.fromAsync(data)).length).toBeGreaterThan(2)
  })

  test('return complete responses to a client that always sends stream headers', async () => {
    const paced = client.withOptions({ defaultHeaders: { 'X-Gateway-Stream-Mode': 'realtime' } })
    const whole = await paced.chat.completions.create({ model: 'gateway-ai', messages: [user('Hi')] })
    expect(whole.choices[0]?.message.content).toContain('“Hi”')
  })
})

/** Returns a field that is not official but read by clients of other reasoning models. */
function getReasoning(message: object | undefined): string {
  const text = message !== undefined && 'reasoning_content' in message ? message.reasoning_content : ''
  return typeof text === 'string' ? text : ''
}

function functionCalls(message: OpenAI.ChatCompletionMessage | undefined) {
  return (message?.tool_calls ?? []).filter(call => call.type === 'function')
}
