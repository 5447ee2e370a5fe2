/** How often somebody may ask, where it is not an account's requests that are counted: by address, by mailbox. */

import { countIfAllowed, type RateCounter } from './rate-counter.ts'
import { createSlidingWindows, type WindowRule } from './sliding-windows.ts'
import { type BucketRule, createTokenBuckets } from './token-buckets.ts'

export type LimitRule = BucketRule | WindowRule

export type RateLimiter = {
  /**
   * Takes one of what a name may have. Returns 0, or where it has had its fill, and then uncounted, the milliseconds to wait;
   * at once where limits are kept in this process. Never throws.
   */
  take(name: string): number | Promise<number>
}

/** Opens a limit. Where gateways share them, those of one title count together. */
export type RateLimiterFactory = (title: string, rule: LimitRule) => RateLimiter

/** So many names at least are remembered, those heard of last. */
const names = 10_000

/** Limits of this process alone, forgotten with it. */
export function createLocalRateLimiters(clock: { now(): number }): RateLimiterFactory {
  return (_, rule) => {
    const tally = createRateCounter(rule)
    return { take: name => countIfAllowed(tally, name, clock.now()) }
  }
}

/** An empty tally under a rule, in memory. */
export function createRateCounter(rule: LimitRule): RateCounter {
  return 'burst' in rule ? createTokenBuckets({ ...rule, names }) : createSlidingWindows({ ...rule, names })
}
