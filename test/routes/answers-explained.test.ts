/**
 * Responses of both chat endpoints when no model answered, and when the gateway's own cap truncated the output: real
 * sockets, simulated providers.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { newAccount } from '../harness/account.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ DEFAULT_MAX_OUTPUT_TOKENS: '40000' })
})
afterAll(() => gateway.stop())

const endpoints = ['/api/v1/chat', '/v1/chat/completions'] as const
type Endpoint = (typeof endpoints)[number]

type Told = {
  readonly type?: string
  readonly error?: { readonly code: string; readonly attempts?: readonly object[] }
  readonly finish_reason?: string
  readonly output_cap?: object
  readonly choices?: readonly { readonly finish_reason: string | null }[]
}

/** The last JSON object of a response, and its headers. */
async function send(path: Endpoint, prompt: string, fields: object, headers: Record<string, string> = {}) {
  const answer = await gateway.post(path, { messages: [{ role: 'user', content: prompt }], ...fields }, headers)
  const text = await answer.text()
  const last = text.startsWith('data: ')
    ? (text
        .split('\n\n')
        .filter(frame => frame.startsWith('data: {'))
        .at(-1)
        ?.slice(6) ?? '{}')
    : text
  const told: Told = JSON.parse(last)
  return { status: answer.status, headers: answer.headers, told }
}

describe.each([...endpoints])('%s', path => {
  test.each([false, true])('lists the attempts in the error when all candidates fail, stream: %p', async stream => {
    const { status, headers, told } = await send(path, '[[sim:status=500]] Hi', { model: 'gpt-6.1-sol', stream })
    expect([status, told.error?.code]).toEqual([502, 'upstream_failed'])
    const attempts = told.error?.attempts ?? []
    expect(attempts).toHaveLength(3)
    expect(attempts[0]).toEqual({
      model: 'openai/gpt-6.1-sol',
      outcome: 'unavailable',
      duration_ms: expect.any(Number),
    })
    for (const attempt of attempts)
      expect(attempt).toEqual({
        model: expect.stringMatching(/^\w+\/[\w.-]+$/),
        outcome: 'unavailable',
        duration_ms: expect.any(Number),
      })
    expect(headers.get('x-gateway-attempts')).toBe('3')
    expect(headers.get('x-should-retry')).toBe('false')
  })

  test('lists one attempt when the client allows no fallback, and none when no model was called', async () => {
    const alone = await send(path, '[[sim:status=503]] Hi', { model: 'gpt-5.4-mini', fallback: false })
    expect(alone.told.error?.attempts).toEqual([
      { model: 'openai/gpt-5.4-mini', outcome: 'overloaded', duration_ms: expect.any(Number) },
    ])
    expect(alone.headers.get('x-gateway-attempts')).toBe('1')
    const unknown = await send(path, 'Hi', { model: 'no-such-model' })
    expect([unknown.told.error?.code, unknown.told.error?.attempts]).toEqual(['model_not_found', undefined])
    expect(unknown.headers.get('x-gateway-attempts')).toBeNull()
  })

  test.each([
    ['default', 'openai/gpt-6.1-sol', {}, 40_000],
    ['model_limit', 'openai/gpt-4.1', {}, 32_768],
    ['account_remaining', 'openai/gpt-6.1-sol', { dailyTokens: 5_000, concurrentRequests: 2 }, null],
  ] as const)('reports the cap as the %s when it truncated the output', async (reason, model, limits, tokens) => {
    const account = await newAccount(gateway, { dailyTokens: 1_000_000, dailyCostMicrocents: 1e12, ...limits })
    for (const stream of [false, true]) {
      const { headers, told } = await send(
        path,
        '[[sim:finish=length,tokens=9]] Hi',
        { model, stream },
        account.headers,
      )
      const told_cap = Number(headers.get('x-gateway-output-cap') ?? Number.NaN)
      if (path === '/api/v1/chat') {
        expect(told).toMatchObject({ finish_reason: 'length', output_cap: { limited_by: reason } })
        if (tokens !== null) expect(told.output_cap).toEqual({ tokens, limited_by: reason })
      }
      expect(headers.get('x-gateway-output-cap-reason')).toBe(reason)
      if (tokens === null) expect(told_cap).toBeWithin(1_000, 2_501)
      else expect(told_cap).toBe(tokens)
    }
  })

  test('reports no cap that the client set, nor one in a complete JSON response', async () => {
    const model = 'openai/gpt-6.1-sol'
    for (const [prompt, fields] of [
      ['[[sim:finish=length]] Hi', { model, max_output_tokens: 50 }],
      ['Hi', { model }],
    ] as const) {
      const { headers, told } = await send(path, prompt, fields)
      expect([headers.get('x-gateway-output-cap'), told.output_cap]).toEqual([null, undefined])
    }
    const streamed = await send(path, 'Hi', { model, max_output_tokens: 50, stream: true })
    expect(streamed.headers.get('x-gateway-output-cap')).toBeNull()
  })
})
