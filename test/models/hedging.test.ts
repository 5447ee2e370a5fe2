import { describe, expect, test } from 'bun:test'
import { FirstTokenTimes, HedgeBudget, lateAfterMs } from '../../src/models/hedging.ts'

const hourMs = 3_600_000

function getTimes(values: readonly number[], now = 0): FirstTokenTimes {
  const times = new FirstTokenTimes(0)
  for (const value of values) times.add(value, now)
  return times
}

describe('first-token times', () => {
  test('know the p95 of a heavy tail within 15%', () => {
    const values = Array.from({ length: 1_000 }, (_, index) => (index < 940 ? 300 + index / 10 : 4_000))
    const p95 = getTimes(values).quantile(0.95) ?? 0
    expect(p95).toBeGreaterThan(4_000 / 1.15)
    expect(p95).toBeLessThan(4_000 * 1.15)
    const median = getTimes(values).quantile(0.5) ?? 0
    expect(median).toBeGreaterThan(345 / 1.15)
    expect(median).toBeLessThan(345 * 1.15)
  })

  test('forget half of their samples in an hour, also after days', () => {
    const times = getTimes(Array.from({ length: 100 }, () => 300))
    expect(times.samples(hourMs)).toBeCloseTo(50, 9)
    times.add(900, 100 * hourMs)
    expect(times.samples(100 * hourMs)).toBeCloseTo(1, 9)
    expect(times.quantile(0.5)).toBeGreaterThan(800)
  })
})

test.each([
  ['no measurement, and a typical time', null, 700, 2_100],
  ['no measurement, and a short typical time', null, 100, 1_000],
  ['no measurement, and no typical time', null, 0, 10_000],
  ['no measurement, and a long typical time', null, 9_000, 10_000],
  ['too few measurements', getTimes(Array.from({ length: 19 }, () => 5)), 700, 2_100],
  ['measurements below the bound', getTimes(Array.from({ length: 20 }, () => 5)), 700, 50],
  ['measurements above the bound', getTimes(Array.from({ length: 20 }, () => 100_000)), 700, 30_000],
])('hedging: with %s, a first content is late after its bounded time', (_, times, typicalMs, expected) => {
  expect(lateAfterMs(times, typicalMs, 0)).toBe(expected)
})

describe('hedge budget', () => {
  const getHedges = (budget: HedgeBudget, requests: number) => {
    let hedges = 0
    for (let request = 0; request < requests; request++) {
      budget.earn('acc_1')
      if (budget.draw('acc_1')) hedges++
    }
    return hedges
  }

  test.each([
    [0, 0],
    [0.05, 50],
    [0.1, 100],
    [1, 1_000],
  ])('bounds the hedges of 1,000 requests that all are late to the share %p', (share, expected) => {
    expect(getHedges(new HedgeBudget(share), 1_000)).toBeWithin(expected, expected + 2)
  })

  test('saves at most the hedges of 100 requests, and counts each account for itself', () => {
    const budget = new HedgeBudget(0.1)
    for (let request = 0; request < 1_000; request++) budget.earn('acc_1')
    let hedges = 0
    while (budget.draw('acc_1')) hedges++
    expect(hedges).toBe(10)
    expect(budget.draw('acc_2')).toBe(false)
    budget.earn('acc_2')
    expect(budget.draw('acc_2')).toBe(true)
  })
})
