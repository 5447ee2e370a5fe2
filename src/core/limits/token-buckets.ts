/**
 * Token buckets that hold `burst` requests and refill at `perMinute`. A bucket is stored as one number, the time at
 * which it is full again. This is exact and needs no list of past requests.
 */
import { createRecentMap } from '../text/recent-map.ts'
import type { RateCounter } from './rate-counter.ts'

export type BucketRule = { readonly perMinute: number; readonly burst: number }

/**
 * Creates one in-memory bucket per name. Keeps at least the `names` most recently used; an evicted name starts with a
 * full bucket.
 */
export function createTokenBuckets(rule: BucketRule & { readonly names: number }): RateCounter {
  const fullAt = createRecentMap<number>(rule.names)
  return {
    waitMs(name, now) {
      const own = fullAt.get(name)
      if (own === undefined) return 0
      // Inserted again although unchanged, so that a name in use is not evicted.
      fullAt.set(name, own)
      return waitMs(own, rule, now)
    },
    count: (name, now) => fullAt.set(name, afterRequest(fullAt.get(name) ?? 0, rule, now)),
  }
}

/** Returns the milliseconds until the bucket holds a request; 0 = now. `fullAtMs` is 0 for an unused bucket. */
export function waitMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  const held = (rule.burst - 1) * intervalMs(rule)
  return Math.max(0, Math.ceil(missingMs(fullAtMs, rule, nowMs) - held))
}

/** Returns when the bucket is full again after one more request. */
export function afterRequest(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return nowMs + missingMs(fullAtMs, rule, nowMs) + intervalMs(rule)
}

/** Never more than an empty bucket lacks. Otherwise a clock that was set back would block a name for as long. */
function missingMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return Math.min(Math.max(0, fullAtMs - nowMs), rule.burst * intervalMs(rule))
}

/** Returns how long the refill of one request takes, in milliseconds. */
export function intervalMs(rule: BucketRule): number {
  return 60_000 / rule.perMinute
}
