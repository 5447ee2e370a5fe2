import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bucketCount, durationBoundsMs, latencyQuantile } from '../../../src/core/usage/latency-histogram.ts'

/** Counts like Postgres: a bound belongs to the bucket above it. */
function counted(times: readonly number[]): number[] {
  const counts = Array.from({ length: bucketCount }, () => 0)
  for (const time of times) {
    const slot = durationBoundsMs.filter(bound => bound <= time).length
    counts[slot] = (counts[slot] ?? 0) + 1
  }
  return counts
}

test('durationBoundsMs: ascend from 10 ms to more than a request may take', () => {
  expect(durationBoundsMs).toEqual([...durationBoundsMs].sort((left, right) => left - right))
  expect([durationBoundsMs[0], durationBoundsMs.at(-1)]).toEqual([10, 680_000])
})

test('latencyQuantile: returns null without counts, and the last bound for longer times', () => {
  expect([latencyQuantile([], 0.5), latencyQuantile(counted([]), 0.95)]).toEqual([null, null])
  expect(latencyQuantile(counted([3_600_000]), 0.5)).toBe(680_000)
})

test('latencyQuantile: stays within 50% of the true value and increases with the share', () => {
  const times = fc.array(fc.integer({ min: 10, max: 600_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(times, fc.double({ min: 0.01, max: 1, noNaN: true }), (some, share) => {
      const sorted = some.toSorted((left, right) => left - right)
      const exact = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0
      const told = latencyQuantile(counted(some), share) ?? 0
      expect(told / exact).toBeWithin(0.66, 1.52)
      expect(latencyQuantile(counted(some), Math.min(1, share * 1.5)) ?? 0).toBeGreaterThanOrEqual(told)
    }),
  )
})
