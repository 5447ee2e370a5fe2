import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { buildCatalog, fullName, type Model } from '../../src/core/models/models.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { systemClock } from '../../src/database/clock.ts'
import { catalog } from '../../src/models/catalog.ts'
import { createTracer } from '../../src/observability/traces.ts'
import { Progress } from '../../src/request/progress.ts'
import type { SettledRequest } from '../../src/request/record.ts'
import { summaryWith } from '../harness/reply.ts'

const model = firstModel()

function firstModel(): Model {
  const [first] = buildCatalog(catalog).list
  if (first === undefined) throw new Error('the catalogue has models')
  return first
}

const reservation = {
  requestId: 'req_1',
  accountId: 'acc_1',
  outputCap: 1,
  reservedTokens: 1,
  reservedMicrocents: 1,
  day: 0,
}

function settled(change: Partial<UsageRecord> = {}, trace: SettledRequest['request']['trace'] = null): SettledRequest {
  const startedAt = systemClock.now()
  const startedMonotonic = systemClock.monotonic()
  const progress = new Progress(reservation, { route: startedMonotonic, admit: systemClock.monotonic() })
  progress.stages.moderate = systemClock.monotonic()
  progress.stages.settle = systemClock.monotonic()
  const blocked = { status: 'blocked', error_code: 'content_blocked', metadata: { canary: 'canary' } } as const
  const summary = summaryWith({ record: { provider: '', model: '', at_ms: startedAt, ...blocked, ...change } })
  const plan = { ...summary.plan, mode: 'manual', first: { model }, choices: 1 } as const
  return { ...summary, request: { startedAt, startedMonotonic, trace }, plan, progress, response: null }
}

function tracer(ratio: number, random = Math.random) {
  return createTracer({ ratio, random, randomBytes, monotonic: systemClock.monotonic })
}

test('tracer: samples the configured share of requests', () => {
  let state = 1
  const random = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  const item = tracer(0.25, random)
  for (let index = 0; index < 2_000; index++) item.take(settled())
  const roots = item.drain(100_000).filter(({ kind }) => kind === 'server').length
  expect(roots).toBeGreaterThan(430)
  expect(roots).toBeLessThan(570)
})

test("tracer: follows the decision of a client's trace for any ratio", () => {
  const parent = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
  const [never, always] = [tracer(0), tracer(1)]
  never.take(settled({}, { ...parent, sampled: true }))
  always.take(settled({}, { ...parent, sampled: false }))
  expect(never.drain(100)[0]).toMatchObject({ traceId: parent.traceId, parentId: parent.spanId })
  expect(always.drain(100)).toEqual([])
})

test("tracer: creates distinct IDs of the protocol's length", () => {
  const item = tracer(1)
  for (let index = 0; index < 100; index++) item.take(settled())
  const spans = item.drain(100_000)
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(100)
  for (const { traceId, spanId } of spans) expect(`${traceId}-${spanId}`).toMatch(/^[0-9a-f]{32}-[0-9a-f]{16}$/)
})

test('tracer: records step, code and requested model of a rejected request', () => {
  const item = tracer(1)
  item.take(settled())
  const [root, ...steps] = item.drain(100)
  expect(root).toMatchObject({ name: `chat ${model.id}`, error: 'content_blocked', parentId: null })
  expect(root?.attributes).toMatchObject({ 'gen_ai.provider.name': model.provider, 'gateway.status': 'blocked' })
  expect(steps.map(({ name }) => name)).toEqual(['route', 'admit', 'moderate', 'settle'])
  expect(JSON.stringify([root, ...steps])).not.toContain('canary')
  expect(JSON.stringify([root, ...steps])).not.toMatch(/acc_1|key_1/)
})

test('tracer: ends a failed attempt at its failure and the serving one at the settlement', () => {
  const item = tracer(1)
  const request = settled({ status: 'completed', error_code: null, provider: model.provider, model: model.id })
  const { attempts } = request.progress
  const startedAt = request.request.startedMonotonic
  attempts.push({ model: fullName(model), outcome: 'timeout', startedAt, durationMs: 0.25 })
  attempts.push({ model: fullName(model), outcome: 'served', startedAt, durationMs: 0.25 })
  item.take(request)
  const spans = item.drain(100)
  const [failed, served] = spans.filter(({ kind }) => kind === 'client')
  expect((failed?.endedAt ?? 0) - (failed?.startedAt ?? 0)).toBeCloseTo(0.25, 2)
  expect(served?.endedAt).toBe(spans.find(({ name }) => name === 'settle')?.startedAt ?? 0)
  expect([failed?.error, served?.error]).toEqual(['timeout', null])
})

test('tracer: drops and counts spans when full, and recovers', () => {
  const item = tracer(1)
  for (let index = 0; index < 5_000; index++) item.take(settled())
  const dropped = item.dropped()
  expect(dropped).toBeGreaterThan(0)
  const left = item.drain(100_000)
  expect(left.length + dropped).toBe(5_000 * 5)
  item.take(settled())
  expect(item.drain(100)).toHaveLength(5)
  expect(item.dropped()).toBe(dropped)
})
