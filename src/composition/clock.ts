import type { RepeatTimer } from '../core/jobs/repeating.ts'
import type { Clock } from '../core/ports/clock.ts'

/** Clocks and timers of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: milliseconds => Bun.sleep(milliseconds),
  after(milliseconds, action) {
    const timer = setTimeout(action, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** The timer of background jobs. It does not keep the process alive. */
export const intervalTimer: RepeatTimer = (everyMs, action) => {
  const interval = setInterval(action, everyMs)
  interval.unref()
  return () => clearInterval(interval)
}
