/**
 * Load shedding for chat requests. Each turn of the event loop starts a few of them; a turn is short while the process has time, so
 * the loop itself is the clock that tells how many it can take. The others wait, newest first; those that find the queue full, or
 * waited too long, are rejected before anything of them was read. Newest first keeps the wait short of those that do start.
 */

/** Requests that a turn starts. Each takes part in about six turns, so some 24 share the processor at a time. */
const startsPerTurn = 4
/** A turn that took longer leaves no time for new requests: streams have more to send than the process can. */
const longestTurnMs = 100
const maximumWaiting = 1_024
const maximumWaitMs = 2_000

export type StartQueue = {
  /**
   * True = start now. Else resolves with true when the request may start, or with false if it is rejected; at once for one that
   * may not wait.
   */
  enter(mayWait: () => boolean): boolean | Promise<boolean>
  /** Whether `enter` would reject now. */
  isFull(): boolean
}

export type StartQueueOptions = {
  readonly monotonic: () => number
  /** Runs `action` in the next turn of the event loop. */
  readonly nextTurn: (action: () => void) => void
}

type Waiter = { readonly since: number; readonly resolve: (mayStart: boolean) => void }

/** Returns an empty queue. It does nothing in turns without requests, and owns no timer. */
export function createStartQueue({ monotonic, nextTurn }: StartQueueOptions): StartQueue {
  /** Oldest first. */
  const waiters: Waiter[] = []
  let started = 0
  let isTurnMeasured = false
  let measuredSince = 0
  /** Whether the last turn that was measured was too long. */
  let isLate = false

  const measureTurn = (now: number) => {
    if (isTurnMeasured) return
    isTurnMeasured = true
    measuredSince = now
    nextTurn(begin)
  }

  const begin = () => {
    const now = monotonic()
    isTurnMeasured = false
    isLate = now - measuredSince > longestTurnMs
    started = 0
    while (waiters[0] !== undefined && now - waiters[0].since > maximumWaitMs) waiters.shift()?.resolve(false)
    while (!isLate && started < startsPerTurn && waiters.length > 0) {
      started++
      waiters.pop()?.resolve(true)
    }
    if (waiters.length > 0 || started > 0) measureTurn(now)
  }

  return {
    enter(mayWait) {
      const now = monotonic()
      measureTurn(now)
      if (!isLate && started < startsPerTurn && waiters.length === 0) {
        started++
        return true
      }
      if (waiters.length >= maximumWaiting || !mayWait()) return false
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiters.push({ since: now, resolve })
      return promise
    },
    isFull: () => waiters.length >= maximumWaiting,
  }
}
