import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { afterRequest, countIfAllowed, createTokenBuckets, waitMs } from '../../../src/core/limits/rate-limits.ts'

const rule = { perMinute: 20, burst: 5, names: 100 }

describe('createTokenBuckets', () => {
  test('allows a burst, then one request per 3 s with the exact wait, per name', () => {
    const buckets = createTokenBuckets(rule)
    const take = (now: number) => countIfAllowed(buckets, 'one', now)
    expect([0, 0, 0, 0, 0, 0, 2_000, 3_000, 3_000].map(take)).toEqual([0, 0, 0, 0, 0, 3_000, 1_000, 0, 3_000])
    expect(countIfAllowed(buckets, 'other', 3_000)).toBe(0)
  })

  test('evicts unused names and keeps active ones', () => {
    const buckets = createTokenBuckets({ ...rule, names: 2 })
    for (let count = 0; count < 5; count += 1) countIfAllowed(buckets, 'oldest', 0)
    for (let count = 0; count < 5; count += 1) countIfAllowed(buckets, 'kept', 0)
    for (let count = 0; count < 10; count += 1) {
      countIfAllowed(buckets, `new ${count}`, 0)
      expect(countIfAllowed(buckets, 'kept', 0)).toBeGreaterThan(0)
    }
    expect(countIfAllowed(buckets, 'oldest', 0)).toBe(0)
  })

  test('allows at most the burst plus the refill in any interval', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5_000), { maxLength: 200 }), steps => {
        const buckets = createTokenBuckets(rule)
        let now = 0
        let passed = 0
        for (const step of steps) {
          now += step
          if (countIfAllowed(buckets, 'one', now) === 0) passed += 1
        }
        expect(passed).toBeLessThanOrEqual(5 + (now * 20) / 60_000 + 1e-6)
      }),
    )
  })

  test('allows a request after the reported wait', () => {
    fc.assert(
      fc.property(fc.nat(120_000), fc.integer({ min: 1, max: 600 }), fc.nat(8), (nowMs, perMinute, requests) => {
        const small = { perMinute, burst: 3 }
        let fullAtMs = 0
        for (let count = 0; count < requests; count += 1)
          if (waitMs(fullAtMs, small, nowMs) === 0) fullAtMs = afterRequest(fullAtMs, small, nowMs)
        expect(waitMs(fullAtMs, small, nowMs + waitMs(fullAtMs, small, nowMs))).toBe(0)
      }),
    )
  })

  test('limits the wait to one full bucket when the clock is set back by a day', () => {
    const buckets = createTokenBuckets(rule)
    for (let count = 0; count < 6; count += 1) countIfAllowed(buckets, 'one', 86_400_000)
    expect(countIfAllowed(buckets, 'one', 0)).toBeLessThanOrEqual(3_000)
  })
})
