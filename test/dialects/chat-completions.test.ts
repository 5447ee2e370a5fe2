/** `POST /v1/chat/completions` over a real socket, with simulated providers. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// The start of a gateway takes seconds while other tests run.
setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const send = (content: string, fields: object = {}) => ({
  model: 'gpt-4.1',
  messages: [{ role: 'user', content }],
  ...fields,
})
const post = (body: object, headers: Record<string, string> = {}) => gateway.post('/v1/chat/completions', body, headers)

type Choice = {
  index: number
  finish_reason: string | null
  message: { content: string | null; tool_calls?: { function: { name: string } }[]; function_call?: { name: string } }
  delta: { role?: string; content?: string; tool_calls?: { index: number; id?: string }[] }
}
type Chunk = {
  id: string
  object: string
  model: string
  choices: Choice[]
  usage?: Record<string, unknown> | null
  error?: { code: string }
}

const read = async (answer: Response) => (await answer.json()) as Chunk
const getFrames = (text: string) =>
  text
    .split('\n\n')
    .filter(block => block.startsWith('data: '))
    .map(block => block.slice(6))
const getChunks = (text: string) =>
  getFrames(text)
    .filter(frame => frame !== '[DONE]')
    .map(frame => JSON.parse(frame) as Chunk)

const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
})

describe('POST /v1/chat/completions', () => {
  test('returns a chat completion with the serving model', async () => {
    const answer = await post(send('Hi'))
    const body = await read(answer)
    expect(Object.keys(body)).toEqual([
      ...['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint', 'choices', 'usage'],
    ])
    expect(body).toMatchObject({ object: 'chat.completion', model: 'gpt-4.1' })
    expect(body.choices[0]).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null })
    expect(body.usage).toMatchObject({ cost_usd: Number(answer.headers.get('x-gateway-cost-usd')) })
  })

  test('returns `n` choices, or 400 if the provider does not support `n`', async () => {
    const body = await read(await post(send('Hi', { n: 3 })))
    expect(body.choices.map(({ index }) => index)).toEqual([0, 1, 2])
    const refused = await post(send('Hi', { n: 3, model: 'claude-haiku-4-5' }))
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('"param":"n"')
  })

  test('returns parallel tool calls, and one `function_call` for deprecated functions', async () => {
    const parallel = await read(await post(send('[[sim:parallel=2]]', { tools: [tool('one'), tool('two')] })))
    expect(parallel.choices[0]?.finish_reason).toBe('tool_calls')
    expect(parallel.choices[0]?.message.tool_calls?.map(call => call.function.name)).toEqual(['one', 'two'])
    const legacy = await read(await post(send('[[sim:tool=one]]', { functions: [{ name: 'one' }] })))
    expect(legacy.choices[0]).toMatchObject({
      finish_reason: 'function_call',
      message: { function_call: { name: 'one' } },
    })
  })

  test('accepts a string as prompt, and fields of the gateway in body and headers', async () => {
    expect((await post({ messages: 'Hi' })).status).toBe(200)
    expect(
      (await post({ prompt: 'Hi', strategy: 'cost', test_mode: true, web: 'off', enhance_prompt: false })).status,
    ).toBe(200)
    const headers = {
      'x-gateway-stream-mode': 'realtime',
      'x-gateway-strategy': 'speed',
      'x-gateway-test-mode': 'true',
    }
    const streamed = await post({ messages: [{ role: 'user', content: 'Hi' }], stream: true }, headers)
    expect(streamed.headers.get('content-type')).toStartWith('text/event-stream')
    expect(await streamed.text()).toEndWith('data: [DONE]\n\n')
  })
})

describe('POST /v1/chat/completions as a stream', () => {
  for (const stream_mode of ['buffered', 'realtime'])
    test(`starts with a role and ends with one finish, requested usage and [DONE] in ${stream_mode} mode`, async () => {
      for (const include_usage of [false, true]) {
        const fields = { stream: true, stream_mode, stream_options: { include_usage } }
        const text = await (await post(send('[[sim:tokens=40,chunk=5]] Hi', fields))).text()
        const chunks = getChunks(text)
        expect(getFrames(text).at(-1)).toBe('[DONE]')
        expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
        expect(chunks.filter(({ choices }) => choices[0]?.finish_reason === 'stop')).toHaveLength(1)
        expect(new Set(chunks.map(({ id, model, object }) => [id, model, object].join())).size).toBe(1)
        const withUsage = chunks.filter(({ usage }) => usage != null)
        expect(withUsage.map(({ choices }) => choices.length)).toEqual(include_usage ? [0] : [])
      }
    })

  test('opens each parallel call once', async () => {
    const text = await (
      await post(send('[[sim:parallel=2]]', { stream: true, tools: [tool('one'), tool('two')] }))
    ).text()
    const opened = getChunks(text)
      .flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      .filter(({ id }) => id !== undefined)
    expect(opened.map(({ index }) => index)).toEqual([0, 1])
  })

  test.each(['cut_after=3', 'reset_after=3', 'error_after=3', 'malformed_after=3', 'no_terminal'])(
    'ends with an error, without finish and [DONE], after a truncated upstream stream (%s)',
    async directive => {
      const text = await (
        await post(
          send(`[[sim:tokens=40,chunk=8,pace_ms=60,${directive}]] Hi`, { stream: true, stream_mode: 'realtime' }),
        )
      ).text()
      const chunks = getChunks(text)
      expect(text).not.toContain('[DONE]')
      expect(chunks.at(-1)?.error?.code).toBe('upstream_failed')
      expect(chunks.some(({ choices }) => choices?.[0]?.finish_reason != null)).toBe(false)
    },
  )
})
