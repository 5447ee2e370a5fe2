/** The official `@anthropic-ai/sdk` with the gateway as its base URL. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { type MessagesRig, relayAnswer, startMessagesRig } from './messages-support.ts'

setDefaultTimeout(240_000)

let rig: MessagesRig
let client: Anthropic

beforeAll(async () => {
  rig = await startMessagesRig()
  client = new Anthropic({ baseURL: rig.gateway.url, apiKey: rig.gateway.key, maxRetries: 0, logLevel: 'off' })
})
afterAll(() => rig.stop())

type Param = Anthropic.MessageParam
type Params = Anthropic.MessageCreateParamsNonStreaming

const weather = {
  name: 'weather',
  description: 'Weather of a place',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}
const user = (content: string): Param => ({ role: 'user', content })

/** The newest request that a provider got. */
const sent = () => {
  const request = rig.sent.at(-1)
  if (request === undefined) throw new Error('no provider was asked')
  return { ...request, body: JSON.parse(request.text) }
}

/** Both ways to ask: as one body, and as a stream that the SDK puts together. */
const ways = [
  ['JSON', (params: Params) => client.messages.create(params)],
  ['stream', (params: Params) => client.messages.stream(params).finalMessage()],
] as const

const item = {
  anthropic: 'claude-haiku-5-5',
  openai: 'openai/gpt-5.4-mini',
  google: 'google/gemini-3.8-flash',
} as const

describe.each([...ways])('%s', (_way, send) => {
  test.each(Object.values(item))('%s completes a conversation with a system prompt', async model => {
    const answer = await send({
      model,
      max_tokens: 300,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [user('One'), { role: 'assistant', content: 'Two' }, user('Three')],
    })
    expect(answer).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'end_turn', stop_sequence: null })
    expect(answer.content.map(({ type }) => type)).toEqual(['text'])
    expect(answer.model).toEndWith(model)
    expect(answer.usage.input_tokens).toBeGreaterThan(0)
    expect(answer.usage.output_tokens).toBeGreaterThan(0)
  })

  test.each(Object.values(item))(
    '%s calls two tools and reads their results, with the right stop reasons',
    async model => {
      const messages = [user('Weather? [[sim:parallel=2, preamble]]')]
      const params = { model, max_tokens: 4_000, tools: [weather, { ...weather, name: 'clock' }], messages }
      const called = await send(params)
      expect(called.stop_reason).toBe('tool_use')
      const calls = called.content.filter(block => block.type === 'tool_use')
      expect(calls.map(({ name, input }) => [name, input])).toEqual([
        ['weather', { city: 'simulated city' }],
        ['clock', { city: 'simulated city' }],
      ])
      const results = calls.map(({ id }, index) => ({
        type: 'tool_result' as const,
        tool_use_id: id,
        ...(index === 0
          ? { content: [{ type: 'text' as const, text: 'sunny' }] }
          : { content: 'gone', is_error: true }),
      }))
      const turns: Param[] = [
        ...messages,
        { role: 'assistant', content: called.content },
        { role: 'user', content: results },
      ]
      const answered = await send({ ...params, messages: turns })
      expect(answered.stop_reason).toBe('end_turn')
      expect(JSON.stringify(answered.content)).toContain('sunny')
      // Only Anthropic has a flag for a result that is an error: elsewhere the text says so.
      expect(sent().text).toContain(model === item.anthropic ? '"is_error":true' : 'Error: gone')
    },
  )

  test.each(Object.values(item))(
    '%s ends at the cap with `max_tokens`, and at a stop sequence with its text',
    async model => {
      const capped = await send({ model, max_tokens: 20, messages: [user('Tell me [[sim:tokens=200]]')] })
      expect(capped.stop_reason).toBe('max_tokens')
      const stopped = await send({ model, max_tokens: 900, stop_sequences: ['STOP'], messages: [user('Say STOP now')] })
      expect(['end_turn', 'stop_sequence']).toContain(stopped.stop_reason ?? '')
      if (model === item.anthropic)
        expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'STOP' })
    },
  )

  test('reports cache reads and writes separately from the input', async () => {
    const { usage } = await send({
      model: item.anthropic,
      max_tokens: 300,
      messages: [user(`${'word '.repeat(200)} [[sim:cached=40, cache_write=30]]`)],
    })
    expect(usage).toMatchObject({ cache_read_input_tokens: 40, cache_creation_input_tokens: 30 })
    const { usage: other } = await send({
      model: item.openai,
      max_tokens: 300,
      messages: [user(`${'word '.repeat(200)} [[sim:cached=40]]`)],
    })
    expect(other).toMatchObject({ cache_read_input_tokens: 40, cache_creation_input_tokens: 0 })
  })

  test('returns a tool that ran at Anthropic with result and citation', async () => {
    const answer = await send({
      model: item.anthropic,
      max_tokens: 300,
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      messages: [user('Search [[sim:server_tool]]')],
    })
    expect(answer.stop_reason).toBe('end_turn')
    const [use, result, text] = answer.content
    expect(use).toMatchObject({
      type: 'server_tool_use',
      name: 'web_search',
      input: { query: 'Search [[sim:server_tool]]' },
    })
    expect(result).toMatchObject({ type: 'web_search_tool_result' })
    expect(text).toMatchObject({
      type: 'text',
      citations: [{ type: 'web_search_result_location', title: 'Example Domain' }],
    })
    // All of it can be sent back.
    await send({
      model: item.anthropic,
      max_tokens: 300,
      messages: [user('Search'), { role: 'assistant', content: answer.content }, user('Thanks')],
    })
    expect(sent().body.messages[1].content).toEqual(answer.content)
  })
})

/** Five turns, each with a call and its result, as an agent has them: whatever the answer held goes back as it came. */
async function fiveTurns(
  params: Omit<Params, 'messages' | 'tools'>,
  send: (params: Params) => Promise<Anthropic.Message>,
) {
  const messages: Param[] = []
  const answers: Anthropic.Message[] = []
  for (let turn = 0; turn < 5; turn++) {
    messages.push(user(`Turn ${turn} [[sim:reasoning=30, parallel=1]]`))
    const called = await send({ ...params, tools: [weather], messages: [...messages] })
    const calls = called.content.filter(block => block.type === 'tool_use')
    expect(called.stop_reason).toBe('tool_use')
    messages.push({ role: 'assistant', content: called.content })
    messages.push({
      role: 'user',
      content: calls.map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'mild' })),
    })
    const said = await send({ ...params, tools: [weather], messages: [...messages] })
    messages.push({ role: 'assistant', content: said.content })
    answers.push(called, said)
  }
  return { messages, answers }
}

const getThinking = (answers: readonly Anthropic.Message[]) =>
  answers.flatMap(({ content }) => content.filter(({ type }) => type === 'thinking' || type === 'redacted_thinking'))

describe.each([...ways])('thinking over five turns, %s', (_way, send) => {
  test.each([
    ['claude-haiku-4-5', { type: 'enabled', budget_tokens: 1_024 }],
    ['claude-sonnet-4-6', { type: 'adaptive' }],
  ] as const)('%s receives its own signatures byte for byte', async (model, thinking) => {
    const { messages, answers } = await fiveTurns({ model, max_tokens: 3_000, thinking }, send)
    expect(getThinking(answers)).toHaveLength(10)
    expect(getThinking(answers).every(block => block.type === 'thinking' && block.signature.startsWith('Sim'))).toBe(
      true,
    )
    // The simulated provider refuses a signature that is not over the very text.
    expect(sent().text).toContain(JSON.stringify(messages.slice(0, -1)).slice(1, -1))
  })

  test('returns redacted thinking unchanged and keeps the signature of thinking without text', async () => {
    const params = { model: 'claude-sonnet-4-6', max_tokens: 3_000, thinking: { type: 'adaptive' } } as const
    const question = user('Hm [[sim:reasoning=20, redacted]]')
    const hidden = await send({ ...params, messages: [question] })
    expect(hidden.content[0]?.type).toBe('redacted_thinking')
    await send({ ...params, messages: [question, { role: 'assistant', content: hidden.content }, user('And?')] })
    expect(sent().body.messages[1].content).toEqual(hidden.content)
    const silent = { ...params, model: 'claude-opus-5-5' }
    const unshown = await send({ ...silent, messages: [user('Hm [[sim:reasoning=20]]')] })
    expect(unshown.content[0]).toMatchObject({ type: 'thinking', thinking: '' })
    await send({ ...silent, messages: [user('Hm'), { role: 'assistant', content: unshown.content }, user('And?')] })
    expect(sent().body.messages[1].content).toEqual(unshown.content)
  })

  test('sends Google’s signatures to Google and not to Anthropic', async () => {
    const thinking = { type: 'adaptive' } as const
    const { messages } = await fiveTurns({ model: item.google, max_tokens: 3_000, thinking }, send)
    const calls = sent().body.contents.flatMap(
      (turn: { parts: { functionCall?: object; thoughtSignature?: string }[] }) =>
        turn.parts.filter(part => part.functionCall !== undefined),
    )
    expect(calls).toHaveLength(5)
    for (const { thoughtSignature } of calls) expect(thoughtSignature).toMatch(/^(?!skip_)[\w+/=-]{16,}$/)
    const moved = await send({
      model: 'claude-sonnet-4-6',
      max_tokens: 3_000,
      thinking,
      tools: [weather],
      messages: [...messages, user('Go on')],
    })
    expect(moved.type).toBe('message')
    expect(sent().text).not.toContain('gwr1.')
  })

  test('sends reasoning of an OpenAI-compatible model to it and not to Anthropic', async () => {
    rig.script = request => relayAnswer(request, 'I reason.', JSON.parse(request.body).messages.at(-1).role === 'user')
    const thinking = { type: 'enabled', budget_tokens: 1_024 } as const
    const { messages, answers } = await fiveTurns({ model: 'relay/thinker', max_tokens: 3_000, thinking }, send)
    expect(getThinking(answers)).toHaveLength(10)
    for (const block of getThinking(answers)) expect(block).toMatchObject({ type: 'thinking', thinking: 'I reason.' })
    const replayed: { role: string; reasoning_content?: string }[] = sent().body.messages
    const own = replayed.filter(({ role }) => role === 'assistant')
    expect(own.map(({ reasoning_content }) => reasoning_content)).toEqual(Array(9).fill('I reason.'))
    const moved = await send({
      model: 'claude-haiku-4-5',
      max_tokens: 3_000,
      thinking,
      tools: [weather],
      messages: [...messages, user('Go on')],
    })
    expect(moved.type).toBe('message')
    expect(sent().text).not.toContain('gwr1.')
    // In the middle of a turn of calls that Anthropic did not think about, it cannot be asked for thinking.
    await send({
      model: 'claude-haiku-4-5',
      max_tokens: 3_000,
      thinking,
      tools: [weather],
      messages: messages.slice(0, -1),
    })
    expect(sent().body.thinking).toBeUndefined()
  })

  test('sends OpenAI’s encrypted reasoning to OpenAI and not to Anthropic', async () => {
    const thinking = { type: 'adaptive' } as const
    const { messages, answers } = await fiveTurns({ model: item.openai, max_tokens: 3_000, thinking }, send)
    expect(getThinking(answers)).toHaveLength(10)
    const items: { type: string; encrypted_content?: string }[] = sent().body.input
    const replayed = items.filter(({ type }) => type === 'reasoning')
    expect(replayed).toHaveLength(9)
    for (const { encrypted_content } of replayed) expect(encrypted_content).toMatch(/^(?!gwr1\.)./)
    const moved = await send({
      model: 'claude-sonnet-4-6',
      max_tokens: 3_000,
      thinking,
      tools: [weather],
      messages: [...messages, user('Go on')],
    })
    expect(moved.type).toBe('message')
    expect(sent().text).not.toContain('gwr1.')
  })

  test('completes every turn at OpenAI after reasoning of another provider', async () => {
    const { messages } = await fiveTurns(
      { model: 'claude-haiku-4-5', max_tokens: 3_000, thinking: { type: 'enabled', budget_tokens: 1_024 } },
      send,
    )
    const moved = await send({
      model: item.openai,
      max_tokens: 3_000,
      tools: [weather],
      messages: [...messages, user('Go on')],
    })
    expect(moved.type).toBe('message')
    expect(sent().text).not.toContain('Sim')
    await fiveTurns({ model: item.openai, max_tokens: 3_000, thinking: { type: 'adaptive' } }, send)
  })
})

describe('body for Anthropic', () => {
  test('has the bytes of the client except for the model, with its beta header', async () => {
    const body = `{ "messages":[{"role":"user","content":[{"type":"text","text":"H\\u00e9 \\ud83d\\ude00","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],
      "temperature":1.0, "max_tokens":200,"model":"anthropic/claude-haiku-4-5",  "context_management":{"edits":[]},
      "web":"off", "unread": null, "metadata":{"user_id":"{\\"device\\":1}"} ,"stream":false }`
    const answer = await rig.gateway.post('/v1/messages?beta=true', body, {
      'anthropic-beta': 'context-management-2025-06-27,something-new-2027-01-01',
      'anthropic-version': '2023-06-01',
    })
    expect(answer.status).toBe(200)
    expect(sent().text).toBe(
      body
        .replace('"anthropic/claude-haiku-4-5"', '"claude-haiku-4-5"')
        .replace(',\n      "web":"off", "unread": null', ''),
    )
    expect(sent().headers.get('anthropic-beta')).toBe('context-management-2025-06-27')
    expect(answer.headers.get('x-gateway-dropped-params')).toBe('anthropic-beta.something-new-2027-01-01')
  })

  test('drops and reports beta header and fields for another provider', async () => {
    const answer = await rig.gateway.post(
      '/v1/messages',
      {
        model: item.openai,
        max_tokens: 100,
        messages: [user('Hi')],
        context_management: { edits: [] },
        tools: [weather, { type: 'web_search_20250305', name: 'web_search' }],
      },
      { 'anthropic-beta': 'context-management-2025-06-27' },
    )
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-gateway-dropped-params')).toBe(
      'context_management, tools.web_search_20250305, anthropic-beta',
    )
    expect(sent().headers.get('anthropic-beta')).toBeNull()
  })

  test('changes only `stream` when a long JSON response is streamed from Anthropic', async () => {
    await client.messages.create({ model: item.anthropic, max_tokens: 2_000, messages: [user('Hi')] })
    expect(sent().body).toEqual({ model: item.anthropic, max_tokens: 2_000, messages: [user('Hi')], stream: true })
  })
})

describe('token counts', () => {
  test('come from Anthropic for its own models, with an unchanged body', async () => {
    const { data, response } = await client.messages
      .countTokens({ model: 'claude-haiku-4-5', messages: [user('Why is the sky blue?')], tools: [weather] })
      .withResponse()
    expect(data.input_tokens).toBeGreaterThan(5)
    expect(response.headers.get('x-gateway-estimated')).toBeNull()
    expect(sent().url).toEndWith('/v1/messages/count_tokens')
    expect(sent().body.model).toBe('claude-haiku-4-5')
  })

  test.each(['openai/gpt-5.4-mini', 'gateway-ai'])('have the estimate for %s without an upstream call', async model => {
    const before = rig.sent.length
    const { data, response } = await client.messages
      .countTokens({ model, messages: [user('Why is the sky blue?')] })
      .withResponse()
    expect(data.input_tokens).toBeGreaterThan(5)
    expect(response.headers.get('x-gateway-estimated')).toBe('true')
    expect(rig.sent.length).toBe(before)
  })

  test('have an estimate when Anthropic fails', async () => {
    const messages = [user('Hi [[sim:status=529]]')]
    const { response } = await client.messages.countTokens({ model: 'claude-haiku-4-5', messages }).withResponse()
    expect(response.headers.get('x-gateway-estimated')).toBe('true')
  })
})

describe('Anthropic SDK errors', () => {
  const fails = async (params: Partial<Params>, asked = client): Promise<unknown> => {
    try {
      return await asked.messages.create({ model: item.openai, max_tokens: 100, messages: [user('Hi')], ...params })
    } catch (thrown) {
      return thrown
    }
  }

  test.each([
    ['an unknown model', { model: 'claude-none' }, Anthropic.NotFoundError, 'not_found_error'],
    ['a missing field', { max_tokens: 0 }, Anthropic.BadRequestError, 'invalid_request_error'],
  ] as const)('have their own class for %s', async (_name, params, kind, type) => {
    const error = await fails(params)
    expect(error).toBeInstanceOf(kind)
    expect(error).toMatchObject({ type, requestID: expect.stringMatching(/^req_/) })
  })

  test('report a wrong key as authentication_error, also for token counts', async () => {
    const unauthenticated = client.withOptions({ apiKey: 'gw_wrong' })
    const refused = { status: 401, type: 'authentication_error' }
    expect(await fails({}, unauthenticated)).toMatchObject(refused)
    const counted = unauthenticated.messages.countTokens({ model: item.openai, messages: [user('Hi')] })
    expect(await counted.catch((error: unknown) => error)).toMatchObject(refused)
  })

  test('repeat the request once without thinking whose signature Anthropic refuses', async () => {
    const content = [
      { type: 'thinking' as const, thinking: 'Forged', signature: 'forged' },
      { type: 'text' as const, text: 'x' },
    ]
    const body = {
      model: 'claude-haiku-4-5',
      max_tokens: 100,
      messages: [user('Hi'), { role: 'assistant', content }, user('Go on')],
    }
    const before = rig.sent.length
    const answer = await rig.gateway.post('/v1/messages', body)
    expect(answer.status).toBe(200)
    expect(rig.sent.slice(before).map(({ text }) => text.includes('forged'))).toEqual([true, false])
  })

  test('repeat the response of Anthropic about the request byte for byte', async () => {
    const body = { model: 'claude-haiku-4-5', max_tokens: 100, messages: [user('Hi')], context_management: {} }
    const answer = await rig.gateway.post('/v1/messages', body)
    expect(answer.status).toBe(400)
    expect(JSON.parse(await answer.text())).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'context_management: Extra inputs are not permitted' },
    })
    expect(answer.headers.get('request-id')).toMatch(/^req_/)
  })

  test.each(Object.values(item))('say “prompt is too long” when the context of %s overflows', async model => {
    const error = await fails({ model, messages: [user('Hi [[sim:context_overflow]]')] })
    expect(error).toBeInstanceOf(Anthropic.BadRequestError)
    expect(String(error)).toContain('prompt is too long')
  })

  test('have status 529 without a provider, 502 for a failed one, and end a truncated stream', async () => {
    rig.script = () => ({ status: 429 })
    expect(await fails({ messages: [user('Hi [[sim:status=429]]')] })).toMatchObject({
      status: 529,
      type: 'overloaded_error',
    })
    rig.script = () => ({ status: 500 })
    expect(await fails({ messages: [user('Hi [[sim:status=500]]')] })).toMatchObject({ status: 502, type: 'api_error' })
    const stream = client.messages.stream({
      model: item.anthropic,
      max_tokens: 2_000,
      messages: [user('Hi [[sim:tokens=400, error_after=20, pace_ms=20]]')],
    })
    const events: string[] = []
    stream.on('streamEvent', event => events.push(event.type))
    await expect(stream.finalMessage()).rejects.toThrow()
    expect(events).toContain('content_block_delta')
    expect(events).not.toContain('message_stop')
  })
})
