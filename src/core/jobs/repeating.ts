/** A background job on a timer, one run at a time: alerts, webhooks, billing. The next run compensates for a failed one. */

export type Repeating = {
  /**
   * Resolves after a run that started after this call. Calls during a run share the next one: the present run may have
   * looked for work before the caller's was stored.
   */
  run(): Promise<void>
  /** Stops the timer and waits for the current run. */
  close(): Promise<void>
}

/** Calls `action` every `everyMs`; the returned function ends it. */
export type RepeatTimer = (everyMs: number, action: () => void) => () => void

/**
 * Starts a job every `everyMs`. `onFailure` receives the count of failed runs in a row, from 1. The job stops early when
 * `isClosed()` returns true.
 */
export function startRepeating(
  everyMs: number,
  work: (isClosed: () => boolean) => Promise<void>,
  onFailure: (failures: number, error: unknown) => void,
  timer: RepeatTimer,
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
    // Between two runs, callers of the first one continue before the next one has started.
    if (closed) return Promise.resolve()
    if (next !== null) return next
    if (running === null) return start()
    next = running.then(startNext, startNext)
    return next
  }
  const stopTimer = timer(everyMs, () => {
    if (running !== null) return
    start().then(
      () => {
        failures = 0
      },
      error => onFailure(++failures, error),
    )
  })
  return {
    run,
    async close() {
      closed = true
      stopTimer()
      await running?.catch(() => {})
    },
  }
}
