import { digestOf } from '../core/accounts/api-keys.ts'
import { countIfAllowed } from '../core/limits/rate-counter.ts'
import { createRateCounter, type LimitRule, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { Script } from '../core/limits/script.ts'
import { intervalMs } from '../core/limits/token-buckets.ts'
import type { Redis } from './redis.ts'
import { bucketScript, windowScript } from './scripts/limits.ts'

export type SharedLimitsOptions = {
  readonly redis: Pick<Redis, 'evaluate'>
  /** Epoch milliseconds of this process, for what it remembers. */
  readonly clock: { now(): number }
  /** What is counted in Redis is timed by it, unless this says otherwise. */
  readonly time?: () => number
}

/**
 * Limits of all gateways on one Redis: one key for each name, which is hashed, so that nobody's address stands there. What this
 * process has let through it remembers too: whoever has had its fill of that is refused without asking, and while Redis is
 * away, or slower than a command may be, that alone is what counts.
 */
export function sharedLimits({ redis, clock, time }: SharedLimitsOptions): RateLimiterFactory {
  return (title, rule) => {
    const tally = createRateCounter(rule)
    const { script, values } = inRedis(rule)
    return {
      async take(name) {
        // Of before the question: what is remembered here must not outlast what is remembered there.
        const now = clock.now()
        const known = tally.waitMs(name, now)
        if (known > 0) return known
        const key = `limit:${title}:${digestOf(name)}`
        const wait = await redis.evaluate(script, [key], [String(time?.() ?? ''), ...values]).catch(() => null)
        if (wait === null) return countIfAllowed(tally, name, now)
        if (wait === 0) tally.count(name, now)
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
