/**
 * How often somebody may ask, where no account is there to count by: a bucket that holds `burst` requests and is refilled
 * at `perMinute`. It is kept as one number, the time at which it will be full again: exact, and no list of past requests.
 */
import { createRecent } from './recent.ts'

export type BucketRule = { readonly perMinute: number; readonly burst: number }

/** Milliseconds until the bucket holds a request; 0 = it does. `fullAtMs` of one never used is 0. */
export function waitMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  const held = (rule.burst - 1) * intervalMs(rule)
  return Math.max(0, Math.ceil(missingMs(fullAtMs, rule, nowMs) - held))
}

/** When the bucket will be full again after one request more. */
export function taken(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return nowMs + missingMs(fullAtMs, rule, nowMs) + intervalMs(rule)
}

/** Never more than an empty bucket lacks: a clock that was put back must not lock anybody out for as long. */
function missingMs(fullAtMs: number, rule: BucketRule, nowMs: number): number {
  return Math.min(Math.max(0, fullAtMs - nowMs), rule.burst * intervalMs(rule))
}

function intervalMs(rule: BucketRule): number {
  return 60_000 / rule.perMinute
}

export type LimiterRules = {
  readonly each: BucketRule
  /** For everybody together: many addresses are cheap to come by. */
  readonly together: BucketRule
  /** So many at least are remembered, those heard of last; who is forgotten has a full bucket. */
  readonly maximumAddresses: number
}

export type Limiter = {
  /** Takes one request of the address's and of everybody's bucket, or neither. Returns 0, or the milliseconds to wait. */
  take(address: string, nowMs: number): number
}

/** Limits requests by address, in memory: one process, bounded, forgotten with it. */
export function createLimiter({ each, together, maximumAddresses }: LimiterRules): Limiter {
  const fullAt = createRecent<number>(maximumAddresses)
  let everybodyFullAt = 0

  return {
    take(address, nowMs) {
      const own = fullAt.get(address) ?? 0
      const wait = Math.max(waitMs(own, each, nowMs), waitMs(everybodyFullAt, together, nowMs))
      if (wait === 0) everybodyFullAt = taken(everybodyFullAt, together, nowMs)
      // Set anew even so: who keeps asking is not to be forgotten.
      fullAt.set(address, wait === 0 ? taken(own, each, nowMs) : own)
      return wait
    },
  }
}
