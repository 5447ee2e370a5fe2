/**
 * Repeats `work`, one run at a time; the next run compensates for a failed one. `now` resolves after a run that started
 * after the call.
 */
export function repeated(periodMs: number, work: () => Promise<void>): { now(): Promise<void>; stop(): void } {
  let running: Promise<void> | null = null
  let following: Promise<void> | null = null
  const run = () => {
    running = work()
      .catch(() => {})
      .finally(() => {
        running = null
      })
    return running
  }
  const timer = setInterval(() => {
    if (running === null) void run()
  }, periodMs)
  timer.unref()
  return {
    now() {
      if (running === null) return run()
      // All calls during a run share the next one.
      following ??= running.then(() => {
        following = null
        return run()
      })
      return following
    },
    stop: () => clearInterval(timer),
  }
}
