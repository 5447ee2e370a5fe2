/**
 * Load shedding for chat requests (decision 0002). Each turn of the event loop starts a few requests; turns are short while
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
const burstWaiting = 1_024
const overload = { waiting: 16, waitMs: 50 } as const
/** An overload ends when no request had to wait for this long. */
const calmMs = 1_000

type StartQueueOptions = {
  /** A queue that has not been empty for this long is an overload and not a burst. */
  readonly burstMs: number
  readonly monotonic: () => number
  /** Processor time of this thread in milliseconds. */
  readonly used: () => number
  /** Runs `action` in the next turn of the event loop. */
  readonly nextTurn: (action: () => void) => void
}

type Waiter = { readonly since: number; readonly resolve: (mayStart: boolean) => void }

/** The requests that wait for their turn. It does nothing in turns without requests, and owns no timer. */
export class StartQueue {
  /** Oldest first. */
  private readonly waiters: Waiter[] = []
  private started = 0
  private isTurnAwaited = false
  private turnSince = 0
  /**
   * Processor time at the end of the last turn; null unless that turn was long, since the measurement costs
   * microseconds.
   */
  private usedBefore: number | null = null
  /** Whether the last turn was too long, or may have been: the next one is then measured before any request starts. */
  private isLate = false
  /** Start of the current period in which requests wait; null = none waits. */
  private waitingSince: number | null = null
  private waitedAt = 0
  private isOverloaded = false

  constructor(private readonly options: StartQueueOptions) {}

  /**
   * Returns true = start now, false = rejected; otherwise a promise of one of them. A request that may not wait starts
   * immediately, unless there is an overload.
   */
  enter(mayWait: () => boolean): boolean | Promise<boolean> {
    const now = this.options.monotonic()
    if (!this.isTurnAwaited) {
      this.turnSince = now
      this.awaitTurn()
    }
    if (!this.isLate && this.started < startsPerTurn && this.waiters.length === 0) {
      this.started++
      return true
    }
    if (this.isFull()) return false
    // Such a body would arrive before it is reserved. Without an overload, the body budget bounds it sufficiently.
    if (!mayWait()) return !this.isOverloaded
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.waiters.push({ since: now, resolve })
    this.detectOverload(now)
    return promise
  }

  /** Returns whether `enter` would reject now. */
  isFull(): boolean {
    return this.waiters.length >= this.bounds().waiting
  }

  private bounds() {
    return this.isOverloaded ? overload : { waiting: burstWaiting, waitMs: this.options.burstMs }
  }

  private awaitTurn(): void {
    this.isTurnAwaited = true
    this.options.nextTurn(this.begin)
  }

  private readonly begin = (): void => {
    const now = this.options.monotonic()
    this.isTurnAwaited = false
    const usedNow = now - this.turnSince > longestTurnMs ? this.options.used() : null
    this.isLate = usedNow !== null && (this.usedBefore === null || usedNow - this.usedBefore > longestTurnMs)
    this.usedBefore = usedNow
    this.turnSince = now
    this.started = 0
    this.detectOverload(now)
    const { waiting, waitMs } = this.bounds()
    for (let oldest = this.waiters[0]; oldest !== undefined; oldest = this.waiters[0]) {
      if (this.waiters.length <= waiting && now - oldest.since <= waitMs) break
      this.waiters.shift()?.resolve(false)
    }
    while (!this.isLate && this.started < startsPerTurn && this.waiters.length > 0) {
      this.started++
      this.waiters.pop()?.resolve(true)
    }
    if (this.waiters.length > 0 || this.started > 0 || this.isLate) this.awaitTurn()
  }

  private detectOverload(now: number): void {
    if (this.waiters.length > 0) {
      this.waitingSince ??= now
      this.waitedAt = now
      if (now - this.waitingSince > this.options.burstMs) this.isOverloaded = true
    } else {
      this.waitingSince = null
      if (now - this.waitedAt > calmMs) this.isOverloaded = false
    }
  }
}
