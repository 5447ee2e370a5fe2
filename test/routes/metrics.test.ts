import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { startCollector } from '../harness/collector.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { scrape } from '../harness/prometheus.ts'

setDefaultTimeout(240_000)

const token = 'a-token-for-scrapes-0123456789'
let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ METRICS_TOKEN: token, HOST: '0.0.0.0' })
})
afterAll(() => gateway.stop())

const send = (headers: Record<string, string> = {}) => fetch(`${gateway.url}/metrics`, { headers })

test('GET /metrics: returns the Prometheus format on this machine', async () => {
  const response = await send()
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const { types, sum } = scrape(await response.text())
  expect(types.size).toBeGreaterThan(20)
  expect(sum('gateway_ready')).toBe(1)
  const { catalog, embeddingCatalog } = gateway.deps
  expect(sum('gateway_model_health')).toBe(catalog.list.length + embeddingCatalog.list.length)
})

describe('GET /metrics from another machine or through a proxy [H10]', () => {
  const elsewhere: Record<string, Record<string, string>> = {
    'a proxy on this machine': { 'x-forwarded-for': '203.0.113.9' },
    'a proxy that says so in another way': { forwarded: 'for=203.0.113.9' },
    'a page whose name was bound to loopback': { host: 'evil.example.com' },
  }
  for (const [who, headers] of Object.entries(elsewhere)) {
    test(`${who}: answers 401 without the token`, async () => {
      for (const authorization of ['', 'Bearer ', `Bearer ${token}x`, `Basic ${token}`, `Bearer ${gateway.key}`]) {
        const response = await send({ ...headers, ...(authorization === '' ? {} : { authorization }) })
        expect(response.status).toBe(401)
        expect(await response.text()).not.toContain('gateway_')
      }
    })
    test(`${who}: returns metrics with the token`, async () => {
      const response = await send({ ...headers, authorization: `Bearer ${token}` })
      expect(response.status).toBe(200)
      expect(scrape(await response.text()).sum('gateway_ready')).toBe(1)
    })
  }

  test('answers an error for every credential when no token is configured', async () => {
    const app = createApp({ ...gateway.deps, config: { ...gateway.deps.config, metricsToken: null } })
    for (const authorization of ['', 'Bearer ', 'Bearer null', `Bearer ${token}`]) {
      const headers = { host: 'gateway.example.com', authorization }
      const response = await app.handle(new Request('http://gateway.example.com/metrics', { headers }))
      expect(response.status).toBe(403)
    }
  })
})

test('active request: appears with its reservation until it has ended', async () => {
  const { post } = gateway
  const before = scrape(await (await send()).text())
  expect(before.sum('gateway_requests_in_flight')).toBe(0)
  const leave = new AbortController()
  const response = await post('/api/v1/chat', { prompt: '[[sim:hang_after=1]] Hi', stream: true }, {}, leave.signal)
  const during = scrape(await (await send()).text())
  expect(during.sum('gateway_requests_in_flight')).toBe(1)
  expect(during.sum('gateway_reserved_tokens')).toBeGreaterThan(0)
  expect(during.sum('gateway_reserved_usd')).toBeGreaterThan(0)
  leave.abort()
  await response.text().catch(() => '')
  let after = scrape(await (await send()).text())
  const isOver = () => after.sum('gateway_requests_in_flight') + after.sum('gateway_reserved_tokens') === 0
  await eventually(async () => {
    after = scrape(await (await send()).text())
    return isOver()
  })
  expect(after.sum('gateway_reserved_tokens')).toBe(0)
  expect(after.sum('gateway_requests_total', { status: 'client_closed', streamed: 'true' })).toBe(1)
})

test('telemetry without an endpoint: exports nothing and traces no request', async () => {
  const collector = startCollector()
  const response = await gateway.post('/api/v1/chat', { prompt: 'Hi' })
  expect(response.status).toBe(200)
  const { types } = scrape(await (await send()).text())
  expect([...types.keys()].filter(name => /telemetry|trace/.test(name))).toEqual([])
  expect(collector.requests).toEqual([])
  await collector.stop()
})
