import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { type Exporter, startExporter } from '../../src/observability/exporter.ts'
import type { Span, Tracer } from '../../src/observability/traces.ts'
import { type Collector, startCollector } from '../harness/collector.ts'

setDefaultTimeout(240_000)

const collectors: Collector[] = []
afterEach(() => Promise.all(collectors.splice(0).map(collector => collector.stop())))

function span(index: number): Span {
  const spanId = index.toString(16).padStart(16, '0')
  const traceId = 'a'.repeat(32)
  return {
    traceId,
    spanId,
    parentId: null,
    name: `span ${index}`,
    kind: 'server',
    startedAt: 1_700_000_000_000.5,
    endedAt: 1_700_000_000_001,
    attributes: { text: 'a', whole: 3, part: 0.5, yes: true },
    error: null,
  }
}

function world(spans: number, answers: readonly number[] = []) {
  const collector = startCollector()
  collectors.push(collector)
  collector.statuses.push(...answers)
  let waiting = Array.from({ length: spans }, (_, index) => span(index))
  const tracer: Tracer = {
    take() {},
    drain(maximum) {
      const taken = waiting.slice(0, maximum)
      waiting = waiting.slice(maximum)
      return taken
    },
    dropped: () => 0,
  }
  const warnings: unknown[] = []
  const start = (endpoint = collector.url): Exporter =>
    startExporter({
      endpoint,
      headers: {},
      resource: { 'service.name': 'gateway-ai' },
      fetch: (url, init) => fetch(url, init),
      now: Date.now,
      tracer,
      families: () => [{ name: 'things_total', help: 'Things.', kind: 'counter', samples: [{ labels: {}, value: 2 }] }],
      metricsEveryMs: 60_000,
      log: { warn: (event, fields) => void warnings.push({ event, ...fields }) },
    })
  return { collector, start, warnings }
}

function outcome(exporter: Exporter, signal: string, outcome: string): number {
  const family = exporter.families().find(({ name }) => name === 'gateway_telemetry_exports_total')
  if (family === undefined || family.kind === 'histogram') throw new Error('exports are counted')
  return family.samples.find(({ labels }) => labels.signal === signal && labels.outcome === outcome)?.value ?? 0
}

test('exporter: sends what is left on close in batches, in order and once', async () => {
  const { collector, start } = world(5_000)
  const exporter = start()
  await exporter.close()
  expect(collector.requests.map(({ path }) => path)).toEqual(['/v1/traces', '/v1/traces', '/v1/traces', '/v1/metrics'])
  expect(collector.spans().map(({ name }) => name)).toEqual(Array.from({ length: 5_000 }, (_, at) => `span ${at}`))
  expect(outcome(exporter, 'traces', 'sent')).toBe(3)
})

test('exporter: writes spans as OTLP: 64-bit numbers as text, times in nanoseconds', async () => {
  const { collector, start } = world(1)
  await start().close()
  expect(collector.spans()[0]).toEqual({
    traceId: 'a'.repeat(32),
    spanId: '0'.repeat(16),
    name: 'span 0',
    kind: 2,
    startTimeUnixNano: '1700000000000500000',
    endTimeUnixNano: '1700000000001000000',
    attributes: [
      { key: 'text', value: { stringValue: 'a' } },
      { key: 'whole', value: { intValue: '3' } },
      { key: 'part', value: { doubleValue: 0.5 } },
      { key: 'yes', value: { boolValue: true } },
    ],
  })
})

test('exporter: retries a busy collector until it accepts', async () => {
  const { collector, start, warnings } = world(1, [503])
  const exporter = start()
  await exporter.close()
  expect(collector.requests.filter(({ path }) => path === '/v1/traces')).toHaveLength(2)
  expect(outcome(exporter, 'traces', 'sent')).toBe(1)
  expect(warnings).toEqual([])
})

test('exporter: drops, counts and logs once what a collector rejects', async () => {
  const { collector, start, warnings } = world(1, [400, 400])
  const exporter = start()
  await exporter.close()
  expect(collector.requests).toHaveLength(2)
  expect([outcome(exporter, 'traces', 'dropped'), outcome(exporter, 'metrics', 'dropped')]).toEqual([1, 1])
  expect(warnings).toEqual([
    { event: 'telemetry_export_failed', signal: 'traces', failures: 1, detail: 'the collector answered 400' },
  ])
})

test('exporter: closes without delay when the collector is unreachable', async () => {
  const { collector, start } = world(10_000)
  await collector.stop()
  const exporter = start()
  await exporter.close()
  expect(outcome(exporter, 'traces', 'dropped')).toBe(5)
})

test('exporter: follows no redirect with its secret headers', async () => {
  const other = world(0)
  const redirecting = Bun.serve({ port: 0, fetch: () => Response.redirect(`${other.collector.url}/v1/traces`, 307) })
  const exporter = world(1).start(`http://127.0.0.1:${redirecting.port}`)
  await exporter.close()
  expect(other.collector.requests).toEqual([])
  expect(outcome(exporter, 'traces', 'dropped')).toBe(1)
  await redirecting.stop(true)
})
