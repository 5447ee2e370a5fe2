/** Rate limits that do not belong to an account: per IP address or per email address. */

import type { Clock } from '../ports.ts'
import { createRecentMap } from '../text/recent-map.ts'

export type LimitRule = BucketRule | WindowRule

export type RateLimiter = {
  /**
   * Counts one request for `name` and returns 0. If the limit is reached, counts nothing and returns the milliseconds
   * to wait. Returns synchronously if limits are kept in this process. Never throws.
   */
  take(name: string): number | Promise<number>
}

/** Creates a rate limiter. Gateway instances that share limits count limiters of the same title together. */
export type RateLimiterFactory = (title: string, rule: LimitRule) => RateLimiter

/** At least this many names are remembered, the most recent ones. */
const names = 10_000

/** Creates rate limiters that count in this process only. */
export function createLocalRateLimiters(clock: Pick<Clock, 'now'>): RateLimiterFactory {
  return (_, rule) => {
    const counter = createRateCounter(rule)
    return { take: name => countIfAllowed(counter, name, clock.now()) }
  }
}

/** Creates an empty in-memory counter for a rule. */
export function createRateCounter(rule: LimitRule): RateCounter {
  return 'burst' in rule ? createTokenBuckets({ ...rule, names }) : createSlidingWindows({ ...rule, names })
}

/** Requests counted per key. */
export type RateCounter = {
  /** Returns the milliseconds until `name` may have one more request; 0 = now. */
  waitMs(name: string, now: number): number
  count(name: string, now: number): void
}

/**
 * Counts one request for `name` and returns 0. If the limit is reached, counts nothing and returns the milliseconds to
 * wait.
 */
export function countIfAllowed(counter: RateCounter, name: string, now: number): number {
  const wait = counter.waitMs(name, now)
  if (wait === 0) counter.count(name, now)
  return wait
}

/**
 * A sliding window kept as a log of times. Unlike two-bucket counters it is exact, also about when it opens again.
 * Stored as a ring that grows as needed. Times are milliseconds; if the clock steps back, time counts as unchanged.
 */
export type SlidingWindowLog = {
  /** Returns how many added times lie in the window that ends at `now` (later than `now - windowMs`). */
  count(now: number): number
  add(now: number): void
  /** Returns the milliseconds from `now` until fewer than `limit` times are in the window; 0 if that is already so. */
  waitUntilUnder(limit: number, now: number): number
  /** Returns the milliseconds from `now` until the window is empty. */
  waitUntilEmpty(now: number): number
}

/** Creates an empty log over a window of `windowMs`. */
export function createWindowLog(windowMs: number): SlidingWindowLog {
  let ring = new Float64Array(8)
  let first = 0
  let size = 0
  let newest = Number.NEGATIVE_INFINITY

  const at = (index: number) => ring[(first + index) % ring.length] ?? 0
  const settle = (now: number) => {
    newest = Math.max(newest, now)
    while (size > 0 && at(0) <= newest - windowMs) {
      first = (first + 1) % ring.length
      size--
    }
    return newest
  }
  const grow = () => {
    const larger = new Float64Array(ring.length * 2)
    for (let index = 0; index < size; index++) larger[index] = at(index)
    ring = larger
    first = 0
  }

  return {
    count(now) {
      settle(now)
      return size
    },
    add(now) {
      const time = settle(now)
      if (size === ring.length) grow()
      ring[(first + size) % ring.length] = time
      size++
    },
    waitUntilUnder(limit, now) {
      const time = settle(now)
      // A limit of 0 never has room. A whole window is the longest wait that can be reported.
      if (limit <= 0) return windowMs
      return size < limit ? 0 : at(size - limit) + windowMs - time
    },
    waitUntilEmpty(now) {
      const time = settle(now)
      return size === 0 ? 0 : at(size - 1) + windowMs - time
    },
  }
}

/** At most `allowed` requests in any `windowMs`, however they are spread. */
type WindowRule = { readonly allowed: number; readonly windowMs: number }

/** Creates one exact in-memory sliding window per name. Keeps at least the `names` most recently used. */
export function createSlidingWindows(rule: WindowRule & { readonly names: number }): RateCounter {
  const logs = createRecentMap<SlidingWindowLog>(rule.names)
  return {
    waitMs(name, now) {
      const log = logs.get(name)
      if (log === undefined) return 0
      // Inserted again, so that a name in use is not evicted.
      logs.set(name, log)
      return log.waitUntilUnder(rule.allowed, now)
    },
    count(name, now) {
      const log = logs.get(name) ?? createWindowLog(rule.windowMs)
      logs.set(name, log)
      log.add(now)
    },
  }
}

/**
 * Token buckets that hold `burst` requests and refill at `perMinute`. A bucket is stored as one number, the time at
 * which it is full again. This is exact and needs no list of past requests.
 */

type BucketRule = { readonly perMinute: number; readonly burst: number }

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
