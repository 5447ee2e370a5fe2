/** Savings behind a whole gateway: per request, and their sums by every way that reads them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { csvRows } from '../../src/core/text/csv.ts'
import { changeAccount } from '../../src/database/repositories/accounts.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const plenty = { requestsPerMinute: 1_000_000, concurrentRequests: 1_000, dailyTokens: 1e12, dailyCostMicrocents: 1e15 }
const baseline = 'openai/gpt-6-astra'

type Sums = { requests: number; routing_saved_usd: number; cache_saved_usd: number }
type Logged = {
  request_id: string
  routing_mode: string
  cost_usd: number
  routing_saved_usd: number | null
  cache_saved_usd: number | null
}
type Body = {
  data: (Sums & Logged)[]
  next_cursor: string | null
  total: Sums
  baseline_model: string | null
  cost: { baseline: { model: string; cost_usd: number } | null }
  error: { param: string }
}

let gateway: Gateway
let person: Person
const keys: string[] = []

const send = (method: string, path: string, body?: unknown) =>
  sendRequest<Body>(gateway, method, `/api/v1${path}`, { token: person.token, body })
const chat = async (key: string, fields: object, tags = 'team=a') => {
  const headers = { authorization: `Bearer ${key}`, 'x-gateway-tags': tags }
  const response = await gateway.post(
    '/api/v1/chat',
    { prompt: 'Say hello.', max_output_tokens: 40, ...fields },
    headers,
  )
  await response.text()
  expect(response.status).toBe(200)
  return response.headers.get('x-request-id') ?? ''
}
/** All requests of the log, over its pages. */
async function readLog(): Promise<Logged[]> {
  const rows: Logged[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await send('GET', `/requests?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`)
    rows.push(...body.data)
    cursor = body.next_cursor
  }
  return rows
}
/** In units of 1e-8 USD, which add up exactly. */
const toUnits = (usd: number | string | null) => Math.round(Number(usd ?? 0) * 1e8)
const sum = (values: readonly (number | string | null)[]) => values.reduce<number>((all, usd) => all + toUnits(usd), 0)

describe('savings of routing', () => {
  beforeAll(async () => {
    gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
    person = await owner(gateway)
    await changeAccount(gateway.deps.database, person.accountId, plenty)
    const changed = await send('PATCH', '/account', { baseline_model: 'gpt-6-astra' })
    expect([changed.status, changed.body.baseline_model]).toEqual([200, baseline])
    for (const name of ['first', 'second']) keys.push((await createKeyFor(gateway, person, name)).key)
    await gateway.deps.keys.look()
    const [first = '', second = ''] = keys
    // A long prompt twice, so that caches are used; a named model; a request that costs more than the baseline.
    const prompt = 'Tell the story of the river again. '.repeat(300)
    await chat(first, { strategy: 'cost' })
    await chat(first, { strategy: 'cost', prompt }, 'team=b')
    await chat(second, { strategy: 'cost', prompt })
    await chat(second, { model: 'openai/gpt-6-astra' })
    await chat(second, { strategy: 'quality' }, 'team=b')
    await eventually(async () => (await send('GET', '/usage')).body.total.requests === 5, 30_000)
  }, 240_000)
  afterAll(() => gateway.stop())

  test('savings: each automatic request has the cost at the baseline minus its own, a named model has none', async () => {
    const log = await readLog()
    expect(log).toHaveLength(5)
    for (const row of log) {
      const { body } = await send('GET', `/requests/${row.request_id}`)
      if (row.routing_mode === 'manual') {
        expect([row.routing_saved_usd, body.cost.baseline]).toEqual([null, null])
        continue
      }
      expect(body.cost.baseline?.model).toBe(baseline)
      expect(toUnits(row.routing_saved_usd)).toBe(toUnits(body.cost.baseline?.cost_usd ?? -1) - toUnits(row.cost_usd))
    }
    expect(log.filter(({ routing_saved_usd: saved }) => (saved ?? 0) > 0).length).toBeGreaterThan(0)
  })

  test('savings: log pages, CSV and the totals by day, hour, month, key, tag and model have the same sums', async () => {
    const log = await readLog()
    const expected = [sum(log.map(row => row.routing_saved_usd)), sum(log.map(row => row.cache_saved_usd))]
    expect(expected[0]).not.toBe(0)
    const csv = await fetch(`${gateway.url}/api/v1/requests/export?format=csv`, {
      headers: { authorization: `Bearer ${person.token}` },
    })
    const [columns = [], ...rows] = csvRows(await csv.text())
    const cells = (name: string) => rows.map(row => row[columns.indexOf(name)] ?? '')
    expect([sum(cells('routing_saved_usd')), sum(cells('cache_saved_usd'))]).toEqual(expected)
    for (const group of ['day', 'hour', 'month', 'key', 'tag', 'model', 'query_type']) {
      const { body } = await send('GET', `/usage?group_by=${group}`)
      const found = [body.data.map(row => row.routing_saved_usd), body.data.map(row => row.cache_saved_usd)].map(sum)
      expect([group, ...found]).toEqual([group, ...expected])
      expect([sum([body.total.routing_saved_usd]), sum([body.total.cache_saved_usd])]).toEqual(expected)
    }
    const today = new Date().toISOString().slice(0, 10)
    const { accountId } = person
    const range = { from: '2020-01-01', to: today, accountId }
    expect(await audit(gateway.deps.database, [], range)).toMatchObject({ isWhole: true, differences: [] })
  })

  test('baseline_model: rejects a model without known prices, and null returns to that of the operator', async () => {
    expect(await send('PATCH', '/account', { baseline_model: 'openai/none' })).toMatchObject({
      status: 400,
      body: { error: { param: 'baseline_model' } },
    })
    expect((await send('PATCH', '/account', { baseline_model: null })).body.baseline_model).toBeNull()
  })
})
