import { createRecentMap } from '../text/recent-map.ts'
import type { RateCounter } from './rate-counter.ts'
import { createWindowLog, type SlidingWindowLog } from './sliding-window-log.ts'

/** At most `allowed` in any `windowMs`, however they are spread. */
export type WindowRule = { readonly allowed: number; readonly windowMs: number }

/** A sliding window for each name: exact, in memory, of the `names` heard of last at least. */
export function createSlidingWindows(rule: WindowRule & { readonly names: number }): RateCounter {
  const logs = createRecentMap<SlidingWindowLog>(rule.names)
  return {
    waitMs(name, now) {
      const log = logs.get(name)
      if (log === undefined) return 0
      // Set anew: who comes again is not to be forgotten.
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
