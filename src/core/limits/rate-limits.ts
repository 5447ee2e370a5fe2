/** How often somebody may ask, where it is not an account's requests that are counted: by address, by mailbox. */
import { type BucketRule, createNamedBuckets } from './token-buckets.ts'
import { createNamedWindows, type WindowRule } from './sliding-windows.ts'
import { type Tally, takeFrom } from './rate-counter.ts'

export type LimitRule = BucketRule | WindowRule

export type Limit = {
  /**
   * Takes one of what a name may have. Returns 0, or where it has had its fill, and then uncounted, the milliseconds to wait;
   * at once where limits are kept in this process. Never throws.
   */
  take(name: string): number | Promise<number>
}

/** Opens a limit. Where gateways share them, those of one title count together. */
export type OpenLimit = (title: string, rule: LimitRule) => Limit

/** So many names at least are remembered, those heard of last. */
const names = 10_000

/** Limits of this process alone, forgotten with it. */
export function localLimits(clock: { now(): number }): OpenLimit {
  return (_, rule) => {
    const tally = createTally(rule)
    return { take: name => takeFrom(tally, name, clock.now()) }
  }
}

/** An empty tally under a rule, in memory. */
export function createTally(rule: LimitRule): Tally {
  return 'burst' in rule ? createNamedBuckets({ ...rule, names }) : createNamedWindows({ ...rule, names })
}
