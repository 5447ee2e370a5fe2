/**
 * Background jobs, one run at a time: on a timer (alerts, webhooks, billing), or when there is work (flushes, retries). At
 * rest only the first kind runs, so it is no faster than once per second. No timer keeps the process alive.
 */

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

/** The timer of this machine. */
export const intervalTimer: RepeatTimer = (everyMs, action) => {
  const interval = setInterval(action, everyMs)
  interval.unref()
  return () => clearInterval(interval)
}

/**
 * Starts a job every `everyMs`; the next run compensates for a failed one. `onFailure` receives the count of failed runs in a row, from 1. The job stops early when
 * `isClosed()` returns true.
 */
export function startRepeating(
  everyMs: number,
  work: (isClosed: () => boolean) => Promise<void>,
  onFailure: (failures: number, error: unknown) => void,
  timer: RepeatTimer = intervalTimer,
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

type WhenNeeded = {
  /** Runs the job `afterMs` after the first call since its last start. Further calls until then change nothing. */
  need(): void
  /** Cancels a run that has not started, and waits for the current one. */
  close(): Promise<void>
}

/** Creates a job that runs only after `need`. A failed run is not repeated, unless the job itself needs another one. */
export function whenNeeded(afterMs: number, work: () => unknown): WhenNeeded {
  let timer: Timer | null = null
  let running: Promise<unknown> | null = null
  let closed = false
  const start = () => {
    timer = null
    if (running !== null) return need()
    const result = work()
    if (!(result instanceof Promise)) return
    running = result
      .catch(() => {})
      .finally(() => {
        running = null
      })
  }
  const need = () => {
    if (timer !== null || closed) return
    timer = setTimeout(start, afterMs)
    timer.unref()
  }
  return {
    need,
    async close() {
      closed = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
  }
}

const leastOftenMs = 60_000

/**
 * Starts a job that reads what is written to a store: `everyMs` after the first of some writes if the store reports
 * them (`onWrite`), and once per minute; every `everyMs` otherwise.
 */
export function startFollowing(
  everyMs: number,
  work: () => Promise<void>,
  onWrite: ((listener: () => void) => void) | undefined,
): Repeating {
  if (onWrite === undefined) return startRepeating(everyMs, work, () => {})
  const job = startRepeating(leastOftenMs, work, () => {})
  const following = whenNeeded(everyMs, () => job.run().catch(() => following.need()))
  onWrite(following.need)
  following.need()
  return {
    run: job.run,
    async close() {
      await Promise.all([following.close(), job.close()])
    },
  }
}

/** Returns the running call of a key, or starts one. */
export function runOnce<T>(running: Map<string, Promise<T>>, key: string, start: () => Promise<T>): Promise<T> {
  const same = running.get(key)
  if (same !== undefined) return same
  const started = start().finally(() => running.delete(key))
  running.set(key, started)
  return started
}
