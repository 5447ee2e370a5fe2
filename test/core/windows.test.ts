import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLimiter, type LimiterRules, taken, waitMs } from '../../src/core/windows.ts'

const rules: LimiterRules = {
  each: { perMinute: 20, burst: 5 },
  together: { perMinute: 60, burst: 30 },
  maximumAddresses: 100,
}

describe('a limiter by address', () => {
  test('lets a burst through, then one request each three seconds, and says how long to wait', () => {
    const limiter = createLimiter(rules)
    for (let count = 0; count < 5; count += 1) expect(limiter.take('one', 0)).toBe(0)
    expect(limiter.take('one', 0)).toBe(3_000)
    expect(limiter.take('one', 2_000)).toBe(1_000)
    expect(limiter.take('one', 3_000)).toBe(0)
    expect(limiter.take('one', 3_000)).toBe(3_000)
  })

  test('keeps addresses apart', () => {
    const limiter = createLimiter(rules)
    for (let count = 0; count < 5; count += 1) limiter.take('one', 0)
    expect(limiter.take('one', 0)).toBeGreaterThan(0)
    expect(limiter.take('other', 0)).toBe(0)
  })

  test('stops everybody together at the common limit, without spending what the address has', () => {
    const limiter = createLimiter(rules)
    for (let count = 0; count < 30; count += 1) expect(limiter.take(`address ${count}`, 0)).toBe(0)
    expect(limiter.take('late', 0)).toBe(1_000)
    for (let count = 0; count < 5; count += 1) expect(limiter.take('late', 30_000)).toBe(0)
  })

  test('forgets addresses not heard of for long, and nobody who keeps asking', () => {
    const limiter = createLimiter({ ...rules, together: { perMinute: 1e9, burst: 1e9 }, maximumAddresses: 2 })
    for (let count = 0; count < 5; count += 1) limiter.take('oldest', 0)
    for (let count = 0; count < 5; count += 1) limiter.take('kept', 0)
    for (let count = 0; count < 10; count += 1) {
      limiter.take(`new ${count}`, 0)
      expect(limiter.take('kept', 0)).toBeGreaterThan(0)
    }
    expect(limiter.take('oldest', 0)).toBe(0)
  })

  test('within any stretch of time passes no more than a burst and what was refilled', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5_000), { maxLength: 200 }), steps => {
        const limiter = createLimiter({ ...rules, together: { perMinute: 1e9, burst: 1e9 } })
        let now = 0
        let passed = 0
        for (const step of steps) {
          now += step
          if (limiter.take('one', now) === 0) passed += 1
        }
        expect(passed).toBeLessThanOrEqual(5 + (now * 20) / 60_000 + 1e-6)
      }),
    )
  })

  test('a request made after the wait it was told is let through', () => {
    fc.assert(
      fc.property(fc.nat(120_000), fc.integer({ min: 1, max: 600 }), fc.nat(8), (nowMs, perMinute, requests) => {
        const rule = { perMinute, burst: 3 }
        let fullAtMs = 0
        for (let count = 0; count < requests; count += 1)
          if (waitMs(fullAtMs, rule, nowMs) === 0) fullAtMs = taken(fullAtMs, rule, nowMs)
        expect(waitMs(fullAtMs, rule, nowMs + waitMs(fullAtMs, rule, nowMs))).toBe(0)
      }),
    )
  })

  test('a clock that was put back by a day locks nobody out for longer than an empty bucket would', () => {
    const limiter = createLimiter(rules)
    const day = 86_400_000
    for (let count = 0; count < 6; count += 1) limiter.take('one', day)
    expect(limiter.take('one', 0)).toBeLessThanOrEqual(3_000)
  })
})
