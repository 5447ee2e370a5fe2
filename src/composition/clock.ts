/** Time as a value: everything that waits or stamps is handed one of these, so that tests move it instead of sleeping. */

export type Clock = {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds that never run backwards; for durations. */
  monotonic(): number
  sleep(milliseconds: number): Promise<void>
  /** Runs `action` once, later; the returned function takes it back. */
  after(milliseconds: number, action: () => void): () => void
}

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
