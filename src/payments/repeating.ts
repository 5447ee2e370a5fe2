/** A background job on a timer, one run at a time. The next run compensates for a failed one. */

export type Repeating = {
  /**
   * Resolves after a run that started after this call. Calls during a run share the next one: the present run may have
   * looked for work before the caller's was stored.
   */
  run(): Promise<void>
  /** Stops the timer and waits for the current run. */
  close(): Promise<void>
}

/**
 * Starts a job every `everyMs`. `onFailure` receives the count of failed runs in a row, from 1. The job stops early when
 * `isClosed()` returns true. The timer does not keep the process alive.
 */
export function startRepeating(
  everyMs: number,
  work: (isClosed: () => boolean) => Promise<void>,
  onFailure: (failures: number, error: unknown) => void,
): Repeating {
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  let closed = false
  let failures = 0
  const start = () => {
    running = work(() => closed).finally(() => {
      running = null
    })
    return running
  }
  const startNext = () => {
    next = null
    return closed ? Promise.resolve() : start()
  }
  const run = () => {
    if (running === null) return start()
    next ??= running.then(startNext, startNext)
    return next
  }
  const timer = setInterval(() => {
    if (running !== null) return
    start().then(
      () => {
        failures = 0
      },
      error => onFailure(++failures, error),
    )
  }, everyMs)
  timer.unref()
  return {
    run,
    async close() {
      closed = true
      clearInterval(timer)
      await running?.catch(() => {})
    },
  }
}
