/** Rate limits that do not belong to an account: per IP address or per email address. */

import { countIfAllowed, type RateCounter } from './rate-counter.ts'
import { createSlidingWindows, type WindowRule } from './sliding-windows.ts'
import { type BucketRule, createTokenBuckets } from './token-buckets.ts'

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
export function createLocalRateLimiters(clock: { now(): number }): RateLimiterFactory {
  return (_, rule) => {
    const counter = createRateCounter(rule)
    return { take: name => countIfAllowed(counter, name, clock.now()) }
  }
}

/** Creates an empty in-memory counter for a rule. */
export function createRateCounter(rule: LimitRule): RateCounter {
  return 'burst' in rule ? createTokenBuckets({ ...rule, names }) : createSlidingWindows({ ...rule, names })
}
