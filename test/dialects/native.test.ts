/** `POST /api/v1/chat` over a real socket, with simulated providers. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// The start of a gateway takes seconds while other tests run.
setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const post = (body: object, headers: Record<string, string> = {}) => gateway.post('/api/v1/chat', body, headers)

type Done = {
  type: string
  request_id: string
  output?: string
  model_used: string
  finish_reason: string
  tool_calls: { function: { name: string; arguments: string } }[]
  usage: Record<string, number | object>
  routing: { mode: string; strategy: string | null; attempts: { model: string; outcome: string }[] }
  error?: { code: string }
}
type Delta = { type: 'delta'; content: string; tool_calls?: object[] }

const getEvents = (text: string) =>
  text
    .split('\n\n')
    .filter(block => block.startsWith('data: '))
    .map(block => JSON.parse(block.slice(6)) as Done | Delta)

const lookTool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }

describe('POST /api/v1/chat', () => {
  test('returns a body with every documented field', async () => {
    const answer = await post({ prompt: 'Hi', model: 'gpt-5.5' })
    const body = (await answer.json()) as Done
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(Object.keys(body)).toEqual([
      'request_id',
      'output',
      'model_used',
      'finish_reason',
      'tool_calls',
      'usage',
      'routing',
      'enhancement',
      'web',
    ])
    expect(Object.keys(body.usage)).toEqual([
      'input_tokens',
      'output_tokens',
      'total_tokens',
      'cost_usd',
      'cached_input_tokens',
      'reasoning_tokens',
      'estimated',
      'cost',
    ])
    expect(body).toMatchObject({ model_used: 'openai/gpt-5.5', finish_reason: 'stop', tool_calls: [] })
    expect(body.routing).toMatchObject({ mode: 'manual', attempts: [{ model: 'openai/gpt-5.5', outcome: 'served' }] })
    expect(body.output).toContain('[simulated')
  })

  test('routes with the requested strategy without a model or with `gateway-ai`', async () => {
    for (const fields of [{}, { model: 'gateway-ai' }, { mode: 'gateway-ai' }, { strategy: 'cost' }]) {
      const { routing, model_used } = (await (await post({ prompt: 'Hi', ...fields })).json()) as Done
      expect([routing.mode, model_used.includes('/')]).toEqual(['auto', true])
    }
    const byHeader = await post({ prompt: 'Hi', strategy: 'cost' }, { 'x-gateway-strategy': 'quality' })
    expect(((await byHeader.json()) as Done).routing.strategy).toBe('quality')
  })

  test('returns a complete tool call', async () => {
    const body = (await (await post({ prompt: '[[sim:tool=look]]', tools: [lookTool] })).json()) as Done
    expect([body.finish_reason, body.tool_calls[0]?.function.name]).toEqual(['tool_calls', 'look'])
    expect(() => JSON.parse(body.tool_calls[0]?.function.arguments ?? '')).not.toThrow()
  })

  test('reports failed and serving models after a fallback', async () => {
    const answer = await post({ prompt: '[[sim:status=503,only=openai]] Hi', model: 'gpt-5.5' })
    const { routing, model_used } = (await answer.json()) as Done
    expect(routing.attempts[0]).toEqual({ model: 'openai/gpt-5.5', outcome: routing.attempts[0]?.outcome ?? '' })
    expect(routing.attempts.map(({ outcome }) => outcome === 'served')).toEqual([false, true])
    expect([routing.attempts[1]?.model, model_used.startsWith('openai/')]).toEqual([model_used, false])
  })

  test('returns 502 without a fallback for `fallback: false`', async () => {
    for (const [fields, headers] of [
      [{ fallback: false }, {}],
      [{}, { 'x-gateway-no-fallback': 'true' }],
    ] as const) {
      const answer = await post({ prompt: '[[sim:status=500]] Hi', model: 'claude-haiku-4-5', ...fields }, headers)
      expect(answer.status).toBe(502)
    }
  })
})

describe('POST /api/v1/chat as a stream', () => {
  for (const stream_mode of ['buffered', 'realtime'])
    test(`sends deltas, then one \`done\` without the text, in ${stream_mode} mode`, async () => {
      const answer = await post({ prompt: '[[sim:tokens=40,chunk=5]] Hi', stream_mode })
      expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const events = getEvents(await answer.text())
      const done = events.at(-1) as Done
      expect(events.map(({ type }) => type === 'done').lastIndexOf(true)).toBe(events.length - 1)
      expect(events.slice(0, -1).every(({ type }) => type === 'delta')).toBe(true)
      expect(Object.keys(done)).not.toContain('output')
      expect(done.request_id).toBe(answer.headers.get('x-request-id') ?? '')
      expect(events.map(event => ('content' in event ? event.content : '')).join('')).toContain('[simulated')
    })

  test('streams a tool call, which `done` repeats', async () => {
    const events = getEvents(
      await (await post({ prompt: '[[sim:tool=look]]', tools: [lookTool], stream: true })).text(),
    )
    const done = events.at(-1) as Done
    expect([done.finish_reason, done.tool_calls[0]?.function.name]).toEqual(['tool_calls', 'look'])
    expect(events.some(event => 'content' in event && event.tool_calls !== undefined)).toBe(true)
  })

  test.each(['cut_after=3', 'reset_after=3', 'error_after=3', 'malformed_after=3', 'no_terminal'])(
    'ends with one `error` and no `done` after a truncated upstream stream (%s)',
    async directive => {
      const prompt = `[[sim:tokens=40,chunk=8,pace_ms=60,${directive}]] Hi`
      const events = getEvents(await (await post({ prompt, model: 'gpt-4.1', stream_mode: 'realtime' })).text())
      const kinds = events.map(({ type }) => type).filter(type => type !== 'delta')
      expect(kinds).toEqual(['error'])
      expect((events.at(-1) as Done).error?.code).toBe('upstream_failed')
    },
  )

  test('returns an error status for a failure before the first text delta', async () => {
    const answer = await post({ prompt: '[[sim:status=500]] Hi', stream: true, model: 'gpt-4.1-mini' })
    expect([answer.status >= 400, answer.headers.get('content-type')]).toEqual([true, 'application/json'])
  })
})
