import { getDigest } from '../core/accounts/api-keys.ts'
import {
  countIfAllowed,
  createRateCounter,
  intervalMs,
  type LimitRule,
  type RateLimiterFactory,
} from '../core/limits/rate-limits.ts'
import { type Script, script } from '../core/limits/redis.ts'
import type { Clock } from '../core/ports.ts'
import type { Redis } from './redis.ts'

type SharedLimitsOptions = {
  readonly redis: Pick<Redis, 'evaluate'>
  /** Epoch milliseconds of this process, for its own counts. */
  readonly clock: Pick<Clock, 'now'>
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
        const key = `limit:${title}:${getDigest(name)}`
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

/**
 * Rate limiters in Redis, one key per name. KEYS[1] is the name's state; ARGV begins with the time (empty = the
 * server's own). Replies the milliseconds to wait, 0 = the request was counted. The rules are those of
 * `core/limits/rate-limits.ts`.
 */

const begin = `
local call, key, now, first, second = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/** ARGV 2…: milliseconds per refill, burst. The key holds when the bucket is full again. */
const bucketScript = script(`${begin}
local interval, burst = first, second
local missing = math.min(math.max(0, (tonumber(call('GET', key)) or 0) - now), burst * interval)
local wait = math.max(0, math.ceil(missing - (burst - 1) * interval))
if wait == 0 then
  call('SET', key, string.format('%.17g', now + missing + interval), 'PX', math.ceil(missing + interval))
end
return wait
`)

/**
 * ARGV 2…: allowed requests, milliseconds of the window. The key lists the times of the last requests, oldest first.
 */
const windowScript = script(`${begin}
local allowed, window = first, second
now = math.max(now, tonumber(call('LINDEX', key, -1)) or 0)
local wait = (tonumber(call('LINDEX', key, -allowed)) or 0) + window - now
if wait > 0 then return wait end
call('RPUSH', key, string.format('%.0f', now))
call('LTRIM', key, -allowed, -1)
call('PEXPIRE', key, window)
return 0
`)

export const limitScripts = [bucketScript, windowScript]
