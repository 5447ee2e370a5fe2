import type { Clock } from '../core/ports/clock.ts'

/** The machine's own clocks and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: milliseconds => Bun.sleep(milliseconds),
  after(milliseconds, action) {
    const timer = setTimeout(action, milliseconds)
    return () => clearTimeout(timer)
  },
}
