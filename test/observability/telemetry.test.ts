/** Telemetry over real sockets: scrapes, a collector, the log. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gauges } from '../../src/observability/telemetry.ts'
import { type CollectedSpan, type Collector, startCollector } from '../harness/collector.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { type Scraped, scrape } from '../harness/prometheus.ts'

setDefaultTimeout(240_000)

/** Secrets that must not appear: each occurs where its name says, and nowhere else. */
const canaries = {
  prompt: 'canary-prompt-kiwi',
  answer: 'canary-answer-mango',
  providerKey: 'sk-canary-key-papaya',
  metadata: 'canary-metadata-guava',
  upstreamError: 'canary-error-lychee',
  password: 'canary-password-quince',
  collectorSecret: 'canary-collector-fig',
  metricsToken: 'canary-metrics-token-plum',
}
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callersSpan = '00f067aa0ba902b7'

let collector: Collector
let provider: ReturnType<typeof startProvider>
let gateway: Gateway
let scraped: Scraped
let scrapedText = ''
let requestId = ''

beforeAll(async () => {
  collector = startCollector()
  provider = startProvider()
  gateway = await startGateway(
    {
      OPENAI_API_KEY: canaries.providerKey,
      OPENAI_BASE_URL: `http://127.0.0.1:${provider.port}/v1`,
      METRICS_TOKEN: canaries.metricsToken,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Basic%20${canaries.collectorSecret}`,
      OTEL_TRACES_SAMPLER_ARG: '0',
    },
    { limits: { requestsPerMinute: 5 } },
  )
  const body = {
    prompt: `Say hello. ${canaries.prompt}`,
    max_output_tokens: 100,
    metadata: { note: canaries.metadata },
    web: 'off',
  }
  const traceparent = (flags: string) => ({ traceparent: `00-${traceId}-${callersSpan}-${flags}` })
  // Has one fallback, and is traced because its client is.
  const answered = await gateway.post('/api/v1/chat', body, traceparent('01'))
  expect(answered.status).toBe(200)
  const answer = await answered.text()
  expect(answer).toContain(canaries.answer)
  requestId = answered.headers.get('x-request-id') ?? ''
  // Not traced: one client decides so, the other leaves it to a ratio of 0.
  expect((await gateway.post('/api/v1/chat', { ...body, stream: true }, traceparent('00'))).status).toBe(200)
  expect((await gateway.post('/api/v1/chat', { ...body, temperature: 'hot' })).status).toBe(400)
  expect((await gateway.post('/api/v1/chat', body, { authorization: `Bearer ${canaries.prompt}` })).status).toBe(401)
  expect(
    (await gateway.post('/api/v1/chat', { prompt: `http://malware.testing.google.test/ ${canaries.prompt}` })).status,
  ).toBe(400)
  const login = { email: 'nobody@example.com', password: canaries.password }
  expect((await gateway.post('/api/v1/auth/login', login)).status).toBe(401)
  for (let statuses = [200]; !statuses.includes(429); )
    statuses = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const response = await gateway.post('/api/v1/chat', body)
        await response.text()
        return response.status
      }),
    )
  // A stream's client receives its last event before the gateway has settled.
  do {
    scrapedText = await (await fetch(`${gateway.url}/metrics`)).text()
    scraped = scrape(scrapedText)
  } while (scraped.sum('gateway_requests_in_flight') > 0)
  await gateway.stop()
})
afterAll(async () => {
  await collector.stop()
  await provider.stop(true)
})

/** Answers every second request; the others fail with secrets in their text. */
function startProvider() {
  let requests = 0
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const seen = `${canaries.upstreamError} ${request.headers.get('authorization')} ${await request.text()}`
      if (requests++ % 2 === 0)
        return Response.json({ error: { message: seen, type: seen, code: seen, param: seen } }, { status: 500 })
      return Response.json({
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'unknown-model',
        choices: [{ index: 0, message: { role: 'assistant', content: canaries.answer }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      })
    },
  })
}

describe('telemetry: contains no canary [L1]', () => {
  const told = {
    'the log': () => gateway.logLines.join(''),
    'the metrics': () => scrapedText,
    'traces and metrics that are sent': () => collector.requests.map(({ body }) => body).join(''),
  }
  for (const [where, text] of Object.entries(told))
    test(`in ${where}`, () => {
      expect(text().length).toBeGreaterThan(500)
      for (const canary of [...Object.values(canaries), gateway.key]) expect(text()).not.toContain(canary)
    })

  test('in metric labels: no account, key, user or request', () => {
    for (const name of [gateway.accountId, requestId, 'acc_', 'key_', 'usr_', 'req_', 'example.com'])
      expect(scrapedText).not.toContain(name)
  })
})

describe('scrape', () => {
  test('counts requests, attempts, errors and costs', () => {
    const { sum } = scraped
    const requests = sum('gateway_requests_total')
    expect(requests).toBeGreaterThanOrEqual(2)
    expect(sum('gateway_requests_total', { status: 'completed', streamed: 'false', routing: 'auto' })).toBeGreaterThan(
      0,
    )
    expect(sum('gateway_request_duration_seconds_count')).toBe(requests)
    expect(sum('gateway_attempts_total', { outcome: 'served' })).toBe(
      sum('gateway_requests_total', { status: 'completed' }),
    )
    expect(sum('gateway_attempts_total', { outcome: 'unavailable' })).toBeGreaterThan(0)
    expect(sum('gateway_fallbacks_total', { reason: 'unavailable' })).toBeGreaterThan(0)
    expect(sum('gateway_tokens_total', { kind: 'input', provider: 'openai' })).toBeGreaterThanOrEqual(11)
    expect(sum('gateway_cost_usd_total', { part: 'model' })).toBeGreaterThan(0)
    expect(sum('gateway_overhead_seconds_count')).toBeGreaterThan(0)
    expect(sum('gateway_limits_hit_total', { limit: 'requests_per_minute_exceeded' })).toBeGreaterThan(0)
    expect(sum('gateway_limits_hit_total')).toBe(sum('gateway_errors_total', { surface: 'chat', status: '429' }))
    expect(sum('gateway_errors_total', { code: 'invalid_request', surface: 'chat', status: '400' })).toBe(1)
    expect(sum('gateway_content_blocked_total', { layer: 'urls' })).toBe(1)
    expect(sum('gateway_errors_total', { code: 'invalid_api_key', status: '401' })).toBe(1)
    expect(sum('gateway_errors_total', { code: 'invalid_credentials', surface: 'other' })).toBe(1)
  })

  test('shows no open request and no reservation when idle', () => {
    for (const name of ['gateway_requests_in_flight', 'gateway_reserved_tokens', 'gateway_reserved_usd'])
      expect(scraped.values.get(name)).toBe(0)
  })

  test('contains only catalog models and closed label sets', () => {
    const { catalog, embeddingCatalog } = gateway.deps
    const names = new Set([...catalog.list, ...embeddingCatalog.list].map(({ id }) => id))
    for (const series of scraped.values.keys())
      for (const [, model = ''] of series.matchAll(/[{,]model="([^"]*)"/g)) expect(names).toContain(model)
    expect(scraped.values.size).toBeLessThan(1_000)
  })
})

describe('trace', () => {
  const attribute = (span: CollectedSpan | undefined, key: string) =>
    Object.values(span?.attributes.find(item => item.key === key)?.value ?? {})[0]
  const root = () => collector.spans().find(({ parentSpanId }) => parentSpanId === callersSpan)

  test("continues the client's trace and covers only sampled requests", () => {
    expect(new Set(collector.spans().map(span => span.traceId))).toEqual(new Set([traceId]))
    expect(collector.spans().filter(({ parentSpanId }) => parentSpanId === callersSpan)).toHaveLength(1)
  })

  test('uses the names of the conventions for generative AI', () => {
    expect(root()).toMatchObject({ name: 'chat gateway-ai', kind: 2 })
    expect(attribute(root(), 'gen_ai.operation.name')).toBe('chat')
    expect(attribute(root(), 'gen_ai.provider.name')).toBe('openai')
    expect(attribute(root(), 'gen_ai.request.model')).toBe('gateway-ai')
    expect(attribute(root(), 'gen_ai.usage.input_tokens')).toBe('11')
    expect(attribute(root(), 'gen_ai.usage.output_tokens')).toBe('7')
    expect(attribute(root(), 'gen_ai.response.finish_reasons')).toEqual({ values: [{ stringValue: 'stop' }] })
    expect(attribute(root(), 'gen_ai.response.id')).toBe(requestId)
  })

  test('contains every step in order, and each attempt with its outcome', () => {
    const all = collector.spans()
    const children = all.filter(({ parentSpanId }) => parentSpanId === root()?.spanId)
    expect(children).toHaveLength(all.length - 1)
    const steps = children.filter(({ kind }) => kind === 1)
    expect(steps.map(({ name }) => name)).toEqual(['route', 'admit', 'moderate', 'enhance', 'enrich', 'call', 'settle'])
    expect(steps[0]?.startTimeUnixNano).toBe(root()?.startTimeUnixNano ?? '')
    for (const [index, step] of steps.entries())
      if (index > 0) expect(step.startTimeUnixNano).toBe(steps[index - 1]?.endTimeUnixNano ?? '')
    expect(steps.at(-1)?.endTimeUnixNano).toBe(root()?.endTimeUnixNano ?? '')
    const attempts = children.filter(({ kind }) => kind === 3)
    expect(attempts.map(span => [attribute(span, 'gateway.attempt.outcome'), span.status?.code ?? 0])).toEqual([
      ['unavailable', 2],
      ['served', 0],
    ])
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of all)
      expect(Number(to)).toBeGreaterThanOrEqual(Number(from))
  })
})

test('exporter: sends the configured headers and every metric of a scrape', () => {
  for (const { headers } of collector.requests) {
    expect(headers.get('authorization')).toBe(`Basic ${canaries.collectorSecret}`)
    expect(headers.get('content-type')).toBe('application/json')
  }
  expect([...collector.metrics()].sort()).toEqual([...scraped.types.keys()].sort())
})

test('log: contains one line per admitted request with its outcome', () => {
  const settled = gateway.logLines.map(line => JSON.parse(line)).filter(({ event }) => event === 'request_settled')
  expect(settled).toHaveLength(scraped.sum('gateway_requests_total'))
  expect(settled.find(line => line.request_id === requestId)).toMatchObject({ status: 'completed', output_tokens: 7 })
})

describe('monitoring files', () => {
  const file = (name: string) => readFileSync(join(resolve(import.meta.dir, '../../deploy'), name), 'utf8')
  const known = () =>
    new Set([
      ...scraped.types.keys(),
      // Metrics of a gateway with Redis.
      ...gauges(
        {
          version: '',
          models: [],
          getHealth: () => 'healthy',
          isReady: () => true,
          usage: { backlog: () => 0, aside: () => 0, fill: () => 0.25, lagMs: () => 0 },
          sharedLimits: () => 1,
          moderation: () => ({ blockedHosts: 0, moderation: { asked: 0, blocked: 0, failed: 0, passedOver: 0 } }),
        },
        [],
      ).map(({ name }) => name),
    ])
  const namedIn = (expression: string) =>
    [...expression.matchAll(/\b(?:gateway|process)_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))

  test('query existing metrics of all requests in the dashboard', () => {
    const dashboard = JSON.parse(file('grafana.json'))
    const expressions: string[] = dashboard.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
      (panel.targets ?? []).map(({ expr }) => expr),
    )
    expect(expressions.length).toBeGreaterThan(20)
    for (const expression of expressions) {
      expect(namedIn(expression)).not.toEqual([])
      for (const name of namedIn(expression)) expect(known()).toContain(name)
    }
    const asked = new Set(expressions.flatMap(namedIn))
    for (const name of scraped.types.keys()) if (!/telemetry|trace_spans/.test(name)) expect(asked).toContain(name)
    const ids = dashboard.panels.map(({ id }: { id: number }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('use existing metrics in the alerts', () => {
    const { groups } = Bun.YAML.parse(file('alerts.yaml')) as {
      groups: { rules: { alert: string; expr: string; labels: object; annotations: { summary: string } }[] }[]
    }
    const rules = groups.flatMap(group => group.rules)
    expect(rules.length).toBeGreaterThan(8)
    for (const { alert, expr, annotations } of rules) {
      expect(alert).toMatch(/^[A-Z][A-Za-z]+$/)
      expect(annotations.summary.length).toBeGreaterThan(20)
      if (!expr.startsWith('up{')) expect(namedIn(expr)).not.toEqual([])
      for (const name of namedIn(expr)) expect(known()).toContain(name)
    }
  })

  test('match docs/telemetry.md, which names every metric', () => {
    const page = readFileSync(resolve(import.meta.dir, '../../docs/telemetry.md'), 'utf8')
    expect([...known()].filter(name => !page.includes(`\`${name}\``))).toEqual([])
  })
})
