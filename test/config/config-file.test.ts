/** Effects of the operator's configuration file for clients. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-file-'))
let gateway: Gateway

beforeAll(async () => {
  const path = join(folder, 'gateway.json')
  const models = [
    { provider: 'openai', id: 'gpt-5.5', pricing: { input_per_mtok: 1, output_per_mtok: 1_000 } },
    {
      provider: 'anthropic',
      id: 'claude-opus-6',
      like: 'claude-opus-5-5',
      pricing: { input_per_mtok: 0, output_per_mtok: 0 },
    },
  ]
  writeFileSync(path, JSON.stringify({ models, plans: { evaluation: { requests_per_minute: 77, daily_cost_usd: 3 } } }))
  gateway = await startGateway({ GATEWAY_CONFIG: path, TRUSTED_PROXIES: '127.0.0.1' })
})

afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

type Priced = { usage: { output_tokens: number; cost_usd: number }; model_used: string }

test('configuration file: shows and bills a changed price', async () => {
  const { body } = await sendRequest<{ data: { id: string; pricing: object }[] }>(gateway, 'GET', '/api/v1/models')
  const shown = body.data.find(({ id }) => id.endsWith('gpt-5.5'))
  expect(shown?.pricing).toMatchObject({ input_per_mtok: 1, output_per_mtok: 1_000 })
  const answer = await gateway.post('/api/v1/chat', { prompt: 'Hi', model: 'gpt-5.5', max_output_tokens: 50 })
  const { usage } = (await answer.json()) as Priced
  expect(usage.cost_usd).toBeGreaterThanOrEqual(usage.output_tokens / 1_000)
})

test('configuration file: serves an added model under its name at its price', async () => {
  const answer = await gateway.post('/api/v1/chat', { prompt: 'Hi', model: 'claude-opus-6', max_output_tokens: 50 })
  expect(await answer.json()).toMatchObject({ model_used: 'anthropic/claude-opus-6', usage: { cost_usd: 0 } })
})

test('configuration file: applies and shows changed plan limits', async () => {
  const who = { email: 'plan@example.com', password: 'a long enough password 7' }
  const { body: signedIn } = await sendRequest<{ token: string; account: object }>(
    gateway,
    'POST',
    '/api/v1/auth/register',
    {
      body: who,
    },
  )
  const { token } = signedIn
  const limits = { requests_per_minute: 77, daily_tokens: 20_000, daily_cost_usd: 3 }
  expect(signedIn.account).toMatchObject({ plan: 'evaluation', limits })
  expect((await sendRequest(gateway, 'GET', '/api/v1/account', { token })).body).toMatchObject({ limits })
  const { body } = await sendRequest<{ key: string }>(gateway, 'POST', '/api/v1/keys', { token, body: { name: 'k' } })
  const { headers } = await gateway.post('/api/v1/chat', {}, { authorization: `Bearer ${body.key}` })
  expect(headers.get('x-ratelimit-limit-requests')).toBe('77')
  expect(headers.get('x-gateway-budget-remaining-usd')).toBe('3')
})
