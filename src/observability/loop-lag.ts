import { intervalTimer } from '../core/jobs/repeating.ts'
import { createHistogram, type Family } from './instruments.ts'

/** Interval of the measurement. */
const everyMs = 1_000

/** Upper bounds in seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

type LoopLag = { family(): Family; close(): void }

/** Starts measuring how late a timer fires, once per second. Does not keep the process alive. */
export function watchLoopLag(monotonic: () => number): LoopLag {
  const lag = createHistogram({
    name: 'gateway_event_loop_lag_seconds',
    help: 'Delay of a timer of one second: time that every request waits while the event loop is blocked.',
    axes: [],
    bounds,
    showsZeros: true,
  })
  let due = monotonic() + everyMs
  const close = intervalTimer(everyMs, () => {
    const now = monotonic()
    lag.observe(Math.max(0, now - due) / 1000)
    due = now + everyMs
  })
  return { family: lag.family, close }
}
