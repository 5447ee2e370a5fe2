import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type AttemptSample,
  addAttemptSample,
  blendWithCatalog,
  emptyStats,
} from '../../src/models/live-model-stats.ts'

const published = { quality: 0.7, firstTokenMs: 20_000, tokensPerSecond: 80, estimated: false }
const hour = 3_600_000
const answer: AttemptSample = { failed: false, firstTokenMs: 400, tokensPerSecond: 160 }

function after(tries: readonly AttemptSample[], at = 0) {
  const live = emptyStats(0)
  for (const attemptSample of tries) addAttemptSample(live, attemptSample, at)
  return live
}

test('blendWithCatalog: returns the catalog without measurements, approaching them as they grow', () => {
  const at = (count: number) => blendWithCatalog(published, after(Array(count).fill(answer)), 0)
  expect(at(0)).toMatchObject({ firstTokenMs: 20_000, tokensPerSecond: 80, errorRate: 0, tries: 0 })
  expect(at(5).firstTokenMs).toBeCloseTo(Math.sqrt(400 * 20_000), 3)
  expect(at(5_000).firstTokenMs).toBeCloseTo(400, -1)
  expect(at(5_000).tokensPerSecond).toBeCloseTo(160, 0)
})

test('blendWithCatalog: decays measurements hourly back to the catalog', () => {
  const live = after(Array(40).fill(answer))
  const at = (hours: number) => blendWithCatalog(published, live, hours * hour)
  expect(at(1).tries).toBeCloseTo(20, 6)
  expect(at(1).firstTokenMs).toBeGreaterThan(at(0).firstTokenMs)
  expect(at(40).firstTokenMs).toBeCloseTo(published.firstTokenMs, 0)
})

test('addAttemptSample: counts failures relative to attempts and the prior', () => {
  const failed: AttemptSample = { failed: true, firstTokenMs: null, tokensPerSecond: null }
  expect(blendWithCatalog(published, after([failed]), 0).errorRate).toBeCloseTo(1 / 11, 9)
  expect(blendWithCatalog(published, after(Array(990).fill(failed)), 0).errorRate).toBeCloseTo(0.99, 2)
  expect(blendWithCatalog(published, after([failed]), 0).firstTokenMs).toBe(published.firstTokenMs)
})

test('addAttemptSample: keeps figures within bounds for any samples and clock steps', () => {
  const figure = fc.option(fc.double({ noNaN: true }), { nil: null })
  const measured = fc.record({ failed: fc.boolean(), firstTokenMs: figure, tokensPerSecond: figure })
  fc.assert(
    fc.property(fc.array(fc.tuple(measured, fc.integer({ min: -10, max: 10 * hour })), { maxLength: 30 }), tries => {
      const live = emptyStats(0)
      for (const [item, at] of tries) addAttemptSample(live, item, at)
      const figures = blendWithCatalog(published, live, 0)
      expect(figures.errorRate >= 0 && figures.errorRate < 1).toBe(true)
      expect(figures.firstTokenMs >= 1 && figures.firstTokenMs <= 600_000).toBe(true)
      expect(figures.tokensPerSecond >= 1 && figures.tokensPerSecond <= 5_000).toBe(true)
    }),
  )
})
