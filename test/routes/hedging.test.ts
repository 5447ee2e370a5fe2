/** Hedged first tokens behind a whole gateway: one model at two hosts, and one with two keys, on the simulator. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { eventually, untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { createKeyFor, owner, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

let simulator: Simulator
let gateway: Gateway

beforeAll(async () => {
  simulator = await startSimulator({ clock: systemClock, random: Math.random })
  const model = (id: string) => ({
    id,
    pricing: { input_per_mtok: 1, output_per_mtok: 2 },
    capabilities: { streaming: true },
  })
  const server = { base_url: simulator.urls.openai }
  const providers = [
    { id: 'own', ...server, api_key_env: 'OWN_KEY', models: [model('shared')] },
    { id: 'mirror', ...server, api_key_env: 'MIRROR_KEY', hosts: [{ model: 'own/shared' }] },
    {
      id: 'pool',
      ...server,
      keys: [
        { name: 'a', api_key_env: 'KEY_A', weight: 1_000 },
        { name: 'b', api_key_env: 'KEY_B' },
      ],
      models: [model('pooled')],
    },
  ]
  const keys = { OWN_KEY: 'key-own', MIRROR_KEY: 'key-mirror', KEY_A: 'key-a', KEY_B: 'key-b' }
  gateway = await startGateway(keys, { file: { providers, routing: { hedge_share: 1 } } })
  // Enough measurements for a p95: 50 ms, the lowest bound.
  for (const key of ['own/shared', 'mirror/shared', 'pool/pooled'])
    for (let count = 0; count < 30; count++) gateway.deps.health.report(key, { outcome: 'ok', firstTokenMs: 20 })
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const hedgeOn = { 'x-gateway-hedge': 'on' }
const slow = (...keys: string[]) => keys.map(key => `[[sim:only=${key}, first_ms=8000]]`).join(' ')

const usageSchema = Type.Object({
  usage: Type.Object({ cost_usd: Type.Number(), hedge_cost_usd: Type.Optional(Type.Number()) }),
})
function chat(model: string, prompt: string, fields: object = {}, headers: Record<string, string> = hedgeOn) {
  const body = { model, max_tokens: 20, messages: [{ role: 'user', content: `${prompt} Say hello.` }], ...fields }
  return gateway.post('/v1/chat/completions', body, headers)
}

async function getUsage(response: Response): Promise<Static<typeof usageSchema>['usage']> {
  return Value.Parse(usageSchema, await response.json()).usage
}

/** Resolves when the simulator has noticed `count` canceled requests. */
async function untilCanceled(count: number): Promise<void> {
  const canceled = () => simulator.stats().exchanges.filter(({ outcome }) => outcome === 'aborted').length
  await eventually(() => canceled() >= count)
}

test('hedging: another host of the same model serves a JSON client, the first call is canceled, and both costs are shown', async () => {
  const response = await chat('own/shared', slow('key-own'))
  expect([response.status, response.headers.get('x-gateway-hedge')]).toEqual([200, 'won'])
  const usage = await getUsage(response)
  expect(usage.hedge_cost_usd).toBeGreaterThan(0)
  expect(usage.cost_usd).toBeGreaterThan(usage.hedge_cost_usd ?? 0)
  expect(Number(response.headers.get('x-gateway-hedge-cost-usd'))).toBeCloseTo(usage.hedge_cost_usd ?? 0, 10)
  expect(Number(response.headers.get('x-gateway-cost-usd'))).toBeCloseTo(usage.cost_usd, 10)
  await untilCanceled(1)
  const id = response.headers.get('x-request-id')
  const log = async () => {
    const [row] = await gateway.deps.database.run(
      ({ sql }) => sql<{ cost: number; hedge: number; tried: string[][] }[]>`
        select billed_microcents::float8 as cost, hedge_microcents::float8 as hedge, tried
        from usage_records where request_id = ${id}`,
    )
    return row
  }
  const row = await untilFound(log)
  expect([row.cost / 1e8, row.hedge / 1e8]).toEqual([usage.cost_usd, usage.hedge_cost_usd ?? 0])
  expect(row.tried.map(([model, outcome]) => `${model} ${outcome}`)).toEqual([
    'own/shared hedge_lost',
    'own/shared served',
  ])
})

test('hedging: another key of the same model serves a stream, whose last chunk has both costs', async () => {
  const response = await chat('pool/pooled', slow('key-a'), { stream: true, stream_options: { include_usage: true } })
  expect(response.headers.get('x-gateway-hedge')).toBe('won')
  const text = await response.text()
  expect(text).toContain('"hedge_cost_usd":')
  expect(text).toEndWith('data: [DONE]\n\n')
  await untilCanceled(2)
})

test('hedging: reports `unused` when the first content arrives in time, and nothing without a request for it', async () => {
  // A pause of a busy machine must not be a late first content.
  for (let count = 0; count < 200; count++)
    gateway.deps.health.report('pool/pooled', { outcome: 'ok', firstTokenMs: 20_000 })
  const inTime = await chat('pool/pooled', '')
  expect([inTime.headers.get('x-gateway-hedge'), (await getUsage(inTime)).hedge_cost_usd]).toEqual([
    'unused',
    undefined,
  ])
  const without = await chat('pool/pooled', '', {}, {})
  expect([without.headers.get('x-gateway-hedge'), without.status]).toEqual([null, 200])
  await without.body?.cancel()
  const invalid = await chat('pool/pooled', '', {}, { 'x-gateway-hedge': 'maybe' })
  expect(invalid.status).toBe(400)
  await invalid.body?.cancel()
})

test('hedging: a client that leaves during a hedge cancels both calls and releases its reservation', async () => {
  const before = simulator.stats().exchanges.filter(({ outcome }) => outcome === 'aborted').length
  const leaving = new AbortController()
  const body = { model: 'own/shared', messages: [{ role: 'user', content: `${slow('key-own', 'key-mirror')} Hi.` }] }
  const calls = () => simulator.stats().exchanges.filter(({ outcome }) => outcome === 'open').length
  const leave = gateway.post('/v1/chat/completions', body, hedgeOn, leaving.signal).catch(() => null)
  await eventually(() => calls() === 2)
  leaving.abort()
  await leave
  await untilCanceled(before + 2)
  const { meter } = gateway.deps
  const limits = { requestsPerMinute: 1, concurrentRequests: 10, dailyTokens: 1, dailyCostMicrocents: 1 }
  await eventually(() => meter.quotaStatus(gateway.accountId, limits)?.reservations.remaining === 10)
})

test('hedging: an account turns it on for all of its requests, and a request turns it off', async () => {
  const person = await owner(gateway)
  const { key } = await createKeyFor(gateway, person)
  const changed = await sendRequest(gateway, 'PATCH', '/api/v1/account', { token: person.token, body: { hedge: true } })
  expect([changed.status, changed.body.hedge]).toEqual([200, true])
  const send = async (headers: Record<string, string>) => {
    const body = { model: 'own/shared', max_tokens: 20, messages: [{ role: 'user', content: 'Hi.' }] }
    const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}`, ...headers })
    await response.body?.cancel()
    return response.headers.get('x-gateway-hedge')
  }
  await eventually(async () => (await send({})) !== null)
  expect(await send({ 'x-gateway-hedge': 'off' })).toBeNull()
})
