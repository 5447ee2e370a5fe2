/**
 * Load shedding for chat requests (decision 0002). Each turn of the event loop starts a few requests; turns are short while
 * the process has capacity, so the loop itself measures the capacity. Other requests wait for as long as a client tolerates. A
 * request that has not started by then is rejected unread: its wait is also what keeps clients that retry at once from filling
 * the loop with rejections.
 */
import { bodyLimits } from './body.ts'

/** Requests started per turn. Each runs in about six turns, so some 50 share the processor. */
const startsPerTurn = 8
/** Rejections per turn: more at once would delay the frames of open streams. */
const rejectionsPerTurn = 32
/**
 * Processor time of a turn after which no new request starts: open streams need the whole process. The time of other
 * processes does not count.
 */
const longestTurnMs = 100
/** The server buffers the body of a waiting request, so both bounds limit memory. */
const mostWaiting = 8_192
const mostWaitingBytes = 67_108_864
/**
 * Wait after which a request is not started during an overload: fresh ones use the capacity, and it would only be slow. It
 * keeps its place, because its wait for the rejection slows clients that retry at once.
 */
const freshMs = 25
/**
 * An overload ends when no request was rejected for this long from a queue longer than half of what starts in `waitMs`:
 * starting the newest first rejects some of a shorter one too, without end. Only the clock ends it, also at rest.
 */
const calmMs = 1_000

type StartQueueOptions = {
  /** Maximum wait of a request. */
  readonly waitMs: number
  /** Processor time of this thread in milliseconds. */
  readonly used: () => number
  readonly monotonic: () => number
  /** Runs `action` in the next turn of the event loop. */
  readonly nextTurn: (action: () => void) => void
}

type Waiter = {
  /** Time of the queue when the request came. */
  readonly since: number
  /** Requests that had started then. */
  readonly started: number
  readonly bytes: number
  readonly resolve: (mayStart: boolean) => void
}

/** The requests that wait for their turn. It does nothing in turns without requests, and owns no timer. */
export class StartQueue {
  /** Oldest first. */
  private readonly waiters: Waiter[] = []
  private waitingBytes = 0
  private started = 0
  private startedBeforeTurn = 0
  private isTurnAwaited = false
  private turnSince = 0
  /** Milliseconds of all turns. A long turn counts as `longestTurnMs`, so that a paused process rejects no short queue. */
  private time = 0
  /**
   * Processor time at the end of the last turn; null unless that turn was long, since the measurement costs
   * microseconds.
   */
  private usedBefore: number | null = null
  /** Whether the last turn was too long, or may have been: the next one is then measured before any request starts. */
  private isLate = false
  private rejectedAt = Number.NEGATIVE_INFINITY

  constructor(private readonly options: StartQueueOptions) {}

  /**
   * Returns true = start now, false = rejected; otherwise a promise of one of them. `now` is monotonic. A request whose body
   * is large or of unknown length does not wait, because its body would arrive before it is reserved: it starts
   * immediately, unless there is an overload.
   */
  enter(headers: Pick<Headers, 'get'>, now: number): boolean | Promise<boolean> {
    if (!this.isTurnAwaited) {
      this.turnSince = now
      this.awaitTurn()
    }
    if (this.waiters.length === 0 && this.mayStartMore()) {
      this.started++
      return true
    }
    const bytes = Number(headers.get('content-length') ?? Number.NaN)
    // Without an overload, the body budget bounds such bodies sufficiently.
    if (!(bytes <= bodyLimits.other)) return !this.isOverloaded(now)
    if (this.waiters.length >= mostWaiting || this.waitingBytes + bytes > mostWaitingBytes) {
      this.rejectedAt = now
      return false
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.waitingBytes += bytes
    const since = this.time + Math.min(now - this.turnSince, longestTurnMs)
    this.waiters.push({ since, started: this.started, bytes, resolve })
    return promise
  }

  private mayStartMore(): boolean {
    return !this.isLate && this.started - this.startedBeforeTurn < startsPerTurn
  }

  private isOverloaded(now: number): boolean {
    return now - this.rejectedAt <= calmMs
  }

  private awaitTurn(): void {
    this.isTurnAwaited = true
    this.options.nextTurn(this.begin)
  }

  private readonly begin = (): void => {
    const now = this.options.monotonic()
    const turnMs = now - this.turnSince
    this.isTurnAwaited = false
    const usedNow = turnMs > longestTurnMs ? this.options.used() : null
    this.isLate = usedNow !== null && (this.usedBefore === null || usedNow - this.usedBefore > longestTurnMs)
    this.usedBefore = usedNow
    this.time += Math.min(turnMs, longestTurnMs)
    this.turnSince = now
    this.startedBeforeTurn = this.started
    if (this.waiters.length > 0) this.decide(now)
    if (this.waiters.length > 0 || this.started > this.startedBeforeTurn || this.isLate) this.awaitTurn()
  }

  /**
   * Starts the oldest requests, and the newest under an overload: the oldest would then all be answered just before
   * their clients give up. Rejects requests that have waited for too long.
   */
  private decide(now: number): void {
    const { waiters } = this
    const isOverloaded = this.isOverloaded(now)
    const mayStart = () => {
      const newest = waiters.at(-1)
      return newest !== undefined && !(isOverloaded && this.time - newest.since > freshMs)
    }
    for (; this.mayStartMore() && mayStart(); this.started++)
      this.release(isOverloaded ? waiters.pop() : waiters.shift(), true)
    for (let rejections = 0; rejections < rejectionsPerTurn; rejections++) {
      const [oldest] = waiters
      if (oldest === undefined || this.time - oldest.since <= this.options.waitMs) break
      if (2 * waiters.length > this.started - oldest.started) this.rejectedAt = now
      this.release(waiters.shift(), false)
    }
  }

  private release(waiter: Waiter | undefined, mayStart: boolean): void {
    if (waiter === undefined) return
    this.waitingBytes -= waiter.bytes
    waiter.resolve(mayStart)
  }
}
