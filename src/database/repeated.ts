/** Repeats `work`, one run at a time; a failed run is made good by the next. `now` is a run that begins after it was asked for. */
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
      // However often it is asked for meanwhile, once more is enough.
      following ??= running.then(() => {
        following = null
        return run()
      })
      return following
    },
    stop: () => clearInterval(timer),
  }
}
