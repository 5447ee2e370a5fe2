import { digestOf } from '../core/accounts/api-keys.ts'
import { countIfAllowed } from '../core/limits/rate-counter.ts'
import { createRateCounter, type LimitRule, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { Script } from '../core/limits/script.ts'
import { intervalMs } from '../core/limits/token-buckets.ts'
import type { Redis } from './redis.ts'
import { bucketScript, windowScript } from './scripts/limits.ts'

type SharedLimitsOptions = {
  readonly redis: Pick<Redis, 'evaluate'>
  /** Epoch milliseconds of this process, for its own counts. */
  readonly clock: { now(): number }
  /** For tests: the time used in Redis instead of its own. */
  readonly time?: () => number
}

/**
 * Creates rate limiters shared by all gateway instances on one Redis: one key per name, hashed so that no IP address is
 * stored. This process also counts what it has admitted: names at their limit are rejected without a call, and while
 * Redis is unavailable or too slow only this count applies.
 */
export function sharedLimits({ redis, clock, time }: SharedLimitsOptions): RateLimiterFactory {
  return (title, rule) => {
    const counter = createRateCounter(rule)
    const { script, values } = inRedis(rule)
    return {
      async take(name) {
        // Time before the call: the local count must not expire later than Redis' count.
        const now = clock.now()
        const known = counter.waitMs(name, now)
        if (known > 0) return known
        const key = `limit:${title}:${digestOf(name)}`
        const wait = await redis.evaluate(script, [key], [String(time?.() ?? ''), ...values]).catch(() => null)
        if (wait === null) return countIfAllowed(counter, name, now)
        if (wait === 0) counter.count(name, now)
        return Number(wait)
      },
    }
  }
}

function inRedis(rule: LimitRule): { readonly script: Script; readonly values: readonly string[] } {
  return 'burst' in rule
    ? { script: bucketScript, values: [String(intervalMs(rule)), String(rule.burst)] }
    : { script: windowScript, values: [String(rule.allowed), String(rule.windowMs)] }
}
