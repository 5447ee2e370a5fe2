/**
 * Load shedding for chat requests (ADR 0021). Each turn of the event loop starts a few requests; turns are short while
 * the process has capacity, so the loop itself measures the capacity. Other requests wait, newest first. A burst may
 * wait for long; under overload few requests wait, briefly, and all others are rejected unread.
 */

/** Requests started per turn. Each runs in about six turns, so some 50 share the processor. */
const startsPerTurn = 8
/**
 * Processor time of a turn after which no new request starts: open streams need the whole process. The time of other
 * processes does not count.
 */
const longestTurnMs = 100
const burst = { waiting: 1_024, waitMs: 5_000 } as const
const overload = { waiting: 16, waitMs: 50 } as const
/** A queue that has not been empty for this long is an overload and not a burst. */
const longestBurstMs = 5_000
/** An overload ends when no request had to wait for this long. */
const calmMs = 1_000

export type StartQueue = {
  /**
   * Returns true = start now, false = rejected; otherwise a promise of one of them. A request that may not wait starts
   * immediately, unless there is an overload.
   */
  enter(mayWait: () => boolean): boolean | Promise<boolean>
  /** Returns whether `enter` would reject now. */
  isFull(): boolean
}

type StartQueueOptions = {
  readonly monotonic: () => number
  /** Processor time of this thread in milliseconds. */
  readonly used: () => number
  /** Runs `action` in the next turn of the event loop. */
  readonly nextTurn: (action: () => void) => void
}

type Waiter = { readonly since: number; readonly resolve: (mayStart: boolean) => void }

/** Returns an empty queue. It does nothing in turns without requests, and owns no timer. */
export function createStartQueue({ monotonic, used, nextTurn }: StartQueueOptions): StartQueue {
  /** Oldest first. */
  const waiters: Waiter[] = []
  let started = 0
  let isTurnAwaited = false
  let turnSince = 0
  /**
   * Processor time at the end of the last turn; null unless that turn was long, since the measurement costs
   * microseconds.
   */
  let usedBefore: number | null = null
  /** Whether the last turn was too long, or may have been: the next one is then measured before any request starts. */
  let isLate = false
  /** Start of the current period in which requests wait; null = none waits. */
  let waitingSince: number | null = null
  let waitedAt = 0
  let isOverloaded = false

  const awaitTurn = () => {
    isTurnAwaited = true
    nextTurn(begin)
  }

  const look = (now: number) => {
    if (waiters.length > 0) {
      waitingSince ??= now
      waitedAt = now
      if (now - waitingSince > longestBurstMs) isOverloaded = true
    } else {
      waitingSince = null
      if (now - waitedAt > calmMs) isOverloaded = false
    }
  }

  const begin = () => {
    const now = monotonic()
    isTurnAwaited = false
    const usedNow = now - turnSince > longestTurnMs ? used() : null
    isLate = usedNow !== null && (usedBefore === null || usedNow - usedBefore > longestTurnMs)
    usedBefore = usedNow
    turnSince = now
    started = 0
    look(now)
    const { waiting, waitMs } = isOverloaded ? overload : burst
    for (let oldest = waiters[0]; oldest !== undefined; oldest = waiters[0]) {
      if (waiters.length <= waiting && now - oldest.since <= waitMs) break
      waiters.shift()?.resolve(false)
    }
    while (!isLate && started < startsPerTurn && waiters.length > 0) {
      started++
      waiters.pop()?.resolve(true)
    }
    if (waiters.length > 0 || started > 0 || isLate) awaitTurn()
  }

  const isFull = () => waiters.length >= (isOverloaded ? overload : burst).waiting

  return {
    enter(mayWait) {
      const now = monotonic()
      if (!isTurnAwaited) {
        turnSince = now
        awaitTurn()
      }
      if (!isLate && started < startsPerTurn && waiters.length === 0) {
        started++
        return true
      }
      if (isFull()) return false
      // Such a body would arrive before it is reserved. Without an overload, the body budget bounds it sufficiently.
      if (!mayWait()) return !isOverloaded
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiters.push({ since: now, resolve })
      look(now)
      return promise
    },
    isFull,
  }
}
