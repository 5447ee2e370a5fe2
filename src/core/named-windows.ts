import { createRecent } from './recent.ts'
import { createWindowLog, type WindowLog } from './windows-log.ts'

export type NamedWindows = {
  /** Counts one of a name's. Returns 0, or where it has had its fill, and then uncounted, the milliseconds to wait. */
  waitMs(name: string, now: number): number
}

/** At most `allowed` of each name in any `windowMs`: exact, in memory, of the `names` heard of last at least. */
export function createNamedWindows(rule: {
  readonly allowed: number
  readonly windowMs: number
  readonly names: number
}): NamedWindows {
  const logs = createRecent<WindowLog>(rule.names)
  return {
    waitMs(name, now) {
      const log = logs.get(name) ?? createWindowLog(rule.windowMs)
      // Set anew: who comes again is not to be forgotten.
      logs.set(name, log)
      const wait = log.waitUntilUnder(rule.allowed, now)
      if (wait === 0) log.add(now)
      return wait
    },
  }
}
