import { expect, test } from 'bun:test'
import { createCounter, createHistogram, exposition, type Labels } from '../../src/observability/instruments.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { Progress } from '../../src/request/progress.ts'
import { scrape } from '../harness/prometheus.ts'
import { recordWith } from '../harness/reply.ts'

test('instruments: keep their values when the first axis grows', () => {
  const models: Labels[] = [{}, { model: 'a' }]
  const sides = ['in', 'out'].map(side => ({ side }))
  const counter = createCounter({ name: 'things_total', help: 'Things.', axes: [models, sides] })
  const histogram = createHistogram({ name: 'took_seconds', help: 'Time.', axes: [models, sides], bounds: [1, 2] })
  counter.add(3, 1, 1)
  histogram.observe(1.5, 1, 0)
  models.push({ model: 'b' })
  counter.add(5, 2, 0)
  histogram.observe(0.5, 2, 1)
  const { sum } = scrape(exposition([counter.family(), histogram.family()]))
  expect(sum('things_total', { model: 'a', side: 'out' })).toBe(3)
  expect(sum('things_total', { model: 'b', side: 'in' })).toBe(5)
  expect(sum('things_total')).toBe(8)
  expect(sum('took_seconds_sum', { model: 'a', side: 'in' })).toBe(1.5)
  expect(sum('took_seconds_bucket', { model: 'b', side: 'out', le: '1' })).toBe(1)
})

test('metrics: name a model that the catalog has only since a reload, and no other', () => {
  const models = [{ provider: 'openai', id: 'old' }]
  const metrics = createMetrics(() => models)
  const settle = (model: string) => {
    const reservation = {
      requestId: 'req_1',
      accountId: 'acc_1',
      outputCap: 1,
      reservedTokens: 1,
      reservedMicrocents: 1,
      day: 0,
    }
    const progress = new Progress(reservation, { route: 0, admit: 0 })
    progress.attempts.push({ model: `openai/${model}`, outcome: 'served', startedAt: 0, durationMs: 1 })
    const record = recordWith({
      provider: 'openai',
      model,
      input_tokens: 10,
      output_tokens: 5,
      billed_microcents: 100_000_000,
      hedge_microcents: 25_000_000,
      latency_ms: 20,
      first_token_ms: 10,
    })
    const request = { startedAt: 0, startedMonotonic: 0, trace: null }
    metrics.settled({ request, progress, response: null, record })
  }
  settle('old')
  models.push({ provider: 'openai', id: 'new' })
  settle('new')
  settle('unknown')
  const { sum } = scrape(exposition(metrics.families()))
  for (const model of ['old', 'new']) {
    expect(sum('gateway_requests_total', { model })).toBe(1)
    expect(sum('gateway_attempts_total', { model, outcome: 'served' })).toBe(1)
    expect(sum('gateway_request_duration_seconds_count', { model })).toBe(1)
    expect(sum('gateway_cost_usd_total', { model, part: 'model' })).toBe(0.75)
    expect(sum('gateway_cost_usd_total', { model, part: 'hedge' })).toBe(0.25)
  }
  expect([sum('gateway_requests_total'), sum('gateway_requests_total', { model: 'unknown' })]).toEqual([3, 0])
})
