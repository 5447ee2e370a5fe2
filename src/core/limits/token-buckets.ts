/**
 * A bucket holds `burst` requests and is refilled at `perMinute`. It is kept as one number, the time at which it will be full
 * again: exact, and no list of past requests.
 */
import { createRecentMap } from '../text/recent-map.ts'
import type { RateCounter } from './rate-counter.ts'

export type BucketRule = { readonly perMinute: number; readonly burst: number }

/** A bucket for each name, in memory: of the `names` heard of last at least; who is forgotten has a full one. */
export function createTokenBuckets(rule: BucketRule & { readonly names: number }): RateCounter {
  const fullAt = createRecentMap<number>(rule.names)
  return {
    waitMs(name, now) {
      const own = fullAt.get(name)
      if (own === undefined) return 0
      // Set anew even so: who keeps asking is not to be forgotten.
      fullAt.set(name, own)
      return waitMs(own, rule, now)
    },
    count: (name, now) => fullAt.set(name, afterRequest(fullAt.get(name) ?? 0, rule, now)),
  }
}

/** Milliseconds until the bucket holds a request; 0 = it does. `fullAtMs` of one never used is 0. */
export function waitMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  const held = (rule.burst - 1) * intervalMs(rule)
  return Math.max(0, Math.ceil(missingMs(fullAtMs, rule, nowMs) - held))
}

/** When the bucket will be full again after one request more. */
export function afterRequest(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return nowMs + missingMs(fullAtMs, rule, nowMs) + intervalMs(rule)
}

/** Never more than an empty bucket lacks: a clock that was put back must not lock anybody out for as long. */
function missingMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return Math.min(Math.max(0, fullAtMs - nowMs), rule.burst * intervalMs(rule))
}

/** How long the refill of one request takes. */
export function intervalMs(rule: BucketRule): number {
  return 60_000 / rule.perMinute
}
