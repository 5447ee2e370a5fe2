/**
 * Load shedding for chat requests (ADR 0021). Each turn of the event loop starts a few of them; a turn is short while the process
 * has time, so the loop itself is the clock that tells how many it can take. The others wait, newest first. A burst may wait for
 * long; under overload few wait, and briefly, and the rest is rejected before anything of it was read.
 */

/** Requests that a turn starts. Each takes part in about six turns, so some 50 share the processor at a time. */
const startsPerTurn = 8
/**
 * Processor time of a turn that leaves none for new requests: streams have more to send than the process can. Time in which other
 * processes had the processor says nothing of this one's work.
 */
const longestTurnMs = 100
const burst = { waiting: 1_024, waitMs: 5_000 } as const
const overload = { waiting: 16, waitMs: 50 } as const
/** Requests that have been waiting for so long on end are no burst. */
const longestBurstMs = 5_000
/** An overload is over when nobody had to wait for so long. */
const calmMs = 1_000

export type StartQueue = {
  /**
   * True = start now, false = rejected; else resolves with whether the request may start. One that may not wait starts at once,
   * unless there is an overload.
   */
  enter(mayWait: () => boolean): boolean | Promise<boolean>
  /** Whether `enter` would reject now. */
  isFull(): boolean
}

type StartQueueOptions = {
  readonly monotonic: () => number
  /** Milliseconds of processor time that this thread has used. */
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
  /** Processor time at the end of the last turn; null unless that turn was long, since asking takes some microseconds. */
  let usedBefore: number | null = null
  /** Whether the last turn was too long, or may have been: then the next one is measured before anything starts. */
  let isLate = false
  /** Since when requests have been waiting without a pause; null = none waits. */
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
      // It would arrive before it is reserved. Until there is an overload the budget of bodies is bound enough.
      if (!mayWait()) return !isOverloaded
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiters.push({ since: now, resolve })
      look(now)
      return promise
    },
    isFull,
  }
}
