import { createRecentMap } from '../text/recent-map.ts'
import type { RateCounter } from './rate-counter.ts'
import { createWindowLog, type SlidingWindowLog } from './sliding-window-log.ts'

/** At most `allowed` requests in any `windowMs`, however they are spread. */
export type WindowRule = { readonly allowed: number; readonly windowMs: number }

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
