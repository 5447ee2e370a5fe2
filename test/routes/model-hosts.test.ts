/** A model on several hosts, and the client's own timeout: a whole gateway in front of the simulator. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

let simulator: Simulator
let gateway: Gateway

beforeAll(async () => {
  simulator = await startSimulator({ clock: systemClock, random: Math.random })
  const providers = [
    {
      id: 'mirror',
      base_url: simulator.urls.openai,
      keys: [{ name: 'main', api_key_env: 'MIRROR_KEY' }],
      hosts: [
        {
          model: 'openai/gpt-5.5',
          id: 'mirror-gpt',
          pricing: { input_per_mtok: 1_000, output_per_mtok: 1_000 },
        },
        { model: 'anthropic/claude-haiku-4-5' },
      ],
    },
  ]
  gateway = await startGateway(
    {
      OPENAI_API_KEY: 'key-own',
      OPENAI_BASE_URL: simulator.urls.openai,
      MIRROR_KEY: 'key-mirror',
    },
    { file: { providers } },
  )
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const post = (path: string, body: object, headers: Record<string, string> = {}) => gateway.post(path, body, headers)

const bodySchema = Type.Object({
  usage: Type.Object({ input_tokens: Type.Number(), output_tokens: Type.Number(), cost_usd: Type.Number() }),
  routing: Type.Object({ attempts: Type.Array(Type.Object({ model: Type.String(), outcome: Type.String() })) }),
})

/** Asks a model and no other. Throws if it does not answer. */
async function chat(model: string, prompt: string) {
  const response = await post('/api/v1/chat', { model, prompt, fallback: false, max_output_tokens: 20 })
  const { headers } = response
  const served = [headers.get('x-gateway-model'), headers.get('x-gateway-provider')]
  return { served, ...Value.Parse(bodySchema, await response.json()) }
}

describe('model host', () => {
  test('serves before any other model when the first host fails, also without fallback', async () => {
    const { served, routing, usage } = await chat('openai/gpt-5.5', '[[sim:only=gpt-5.5, status=503]] Say hello.')
    expect(served).toEqual(['openai/gpt-5.5', 'openai'])
    expect(routing.attempts).toEqual([
      { model: 'openai/gpt-5.5', outcome: 'overloaded' },
      { model: 'openai/gpt-5.5', outcome: 'served' },
    ])
    // The prices are the host's: far above those of the catalog.
    const { input_tokens: input, output_tokens: output, cost_usd: cost } = usage
    expect(cost).toBeCloseTo(((input + output) * 1_000) / 1_000_000, 6)
  })

  test('has its own health', async () => {
    const { health } = gateway.deps
    expect([health.getStanding('openai/gpt-5.5').state, health.getStanding('mirror/mirror-gpt').state]).toEqual([
      'unhealthy',
      'healthy',
    ])
    const { routing } = await chat('openai/gpt-5.5', 'Say hello.')
    expect(routing.attempts.at(-1)?.outcome).toBe('served')
  })

  test('offers a model whose own provider is not configured', async () => {
    expect(gateway.deps.catalog.list.map(({ provider }) => provider)).not.toContain('mirror')
    const { served } = await chat('anthropic/claude-haiku-4-5', 'Say hello.')
    expect(served).toEqual(['anthropic/claude-haiku-4-5', 'anthropic'])
  })

  test('names the host and the key in the log, and not the credential', async () => {
    const prompt = '[[sim:only=mirror-gpt|gpt-5.5, status=429]] Say hello.'
    expect((await post('/api/v1/chat', { model: 'openai/gpt-5.5', prompt, fallback: false })).ok).toBe(false)
    const paused = gateway.logLines.map(line => JSON.parse(line)).filter(({ event }) => event === 'key_paused')
    expect(paused.map(({ via }) => via)).toEqual(['mirror#main'])
    expect(gateway.logLines.join('')).not.toContain('key-mirror')
  })
})

describe('client timeout', () => {
  const timeout = (value: string) => ({ 'x-gateway-timeout-ms': value })
  const message = (text: string) => ({
    model: 'anthropic/claude-haiku-4-5',
    max_tokens: 50,
    messages: [{ role: 'user', content: text }],
  })
  const dialects: readonly (readonly [path: string, body: (text: string) => object])[] = [
    ['/api/v1/chat', prompt => ({ prompt, model: 'anthropic/claude-haiku-4-5' })],
    ['/v1/chat/completions', message],
    ['/v1/messages', message],
    ['/v1/responses', input => ({ model: 'anthropic/claude-haiku-4-5', input })],
  ]

  test('rejects a value that is no bounded integer', async () => {
    for (const [path, body] of [...dialects, ['/v1/embeddings', () => embeddings('hello')] as const])
      for (const value of ['0', '-5', '1.5', 'soon', '3600001']) {
        const response = await post(path, body('hello'), timeout(value))
        expect([path, value, response.status]).toEqual([path, value, 400])
      }
  })

  const embeddings = (input: string) => ({ model: 'openai/text-embedding-3-small', input })

  test('ends a request of every dialect with 504 and leaves the health unchanged', async () => {
    for (const [path, body] of [...dialects, ['/v1/embeddings', embeddings] as const]) {
      const response = await post(path, body('[[sim:hang]] Say hello.'), timeout('150'))
      expect([path, response.status]).toEqual([path, 504])
      expect(await response.text()).toContain('150 ms')
    }
    const { health } = gateway.deps
    expect(health.getStanding('mirror/claude-haiku-4-5').state).toBe('healthy')
    expect(health.getStanding('openai/text-embedding-3-small').state).toBe('healthy')
  })

  test('ends a stream with an error event', async () => {
    // The provider falls silent, so that only the first content must come before the deadline.
    const body = { ...message('[[sim:tokens=200, hang_after=20]] Say hello.'), stream: true, max_tokens: 500 }
    const response = await post('/v1/chat/completions', body, timeout('5000'))
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toContain('upstream_timeout')
    expect(text).not.toContain('[DONE]')
  })
})
