/**
 * Whether Redis does its work for one partition, and the generation of the counters there. Away: a reply of an admission
 * is an error, the connection is closed and a new one failed, or no answer in time. Back: it has worked for `returnMs`.
 * Before Redis decides, this instance reports to a partition that has lost its counters.
 */
import { RedisUnavailableError } from '../core/limits/redis.ts'
import { lookMs, returnMs } from './constants.ts'
import type { LimitRedis, RedisStore } from './redis.ts'

type PresenceOptions = {
  readonly redis: LimitRedis
  readonly partition: number
  readonly store: Pick<RedisStore, 'begin' | 'checkService'>
  /** Reports what this instance has to a new generation. Returns false if it is too late for that. */
  readonly report: () => Promise<boolean>
  /** Settles requests that ended while Redis was away. */
  readonly settle: () => Promise<void>
  readonly monotonic: () => number
  readonly reportGraceMs: number
  readonly returnAfterMs?: number | undefined
  readonly onEvent?: ((event: string, detail: string) => void) | undefined
}

export class Presence {
  /** `opening`: not verified since the connection; requests wait for that, and are decided from allowances while `away`. */
  private state: 'opening' | 'here' | 'away' = 'opening'
  private known: string | null = null
  /** A generation to which this instance reported too late, so that another one must begin. */
  private over = ''
  private isReported = false
  private isFirst = true
  private worksSince: number | null = null
  private loadableAt = 0
  private isClosed = false
  private readonly waiters = new Set<() => void>()
  private readonly running: Promise<void>

  constructor(private readonly options: PresenceOptions) {
    options.redis.onChange(isReady => {
      if (!isReady) this.open()
      this.notify()
    })
    this.running = this.run()
  }

  isHere(): boolean {
    return this.state === 'here'
  }

  /** Returns the generation of the counters. Throws `RedisUnavailableError` while it is unknown. */
  generation(): string {
    if (this.known === null) throw new RedisUnavailableError('its counters are unknown')
    return this.known
  }

  /** Resolves with true if Redis decides; false if it is away or is not verified within `waitMs`. */
  async here(waitMs: number): Promise<boolean> {
    const until = this.options.monotonic() + waitMs
    while (this.state === 'opening' && !this.isClosed) {
      const leftMs = until - this.options.monotonic()
      if (leftMs <= 0) return false
      await this.change(leftMs)
    }
    return this.state === 'here'
  }

  /** Resolves when accounts can be loaded, or after `waitMs`. */
  async ready(waitMs: number): Promise<void> {
    const until = this.options.monotonic() + waitMs
    if (!(await this.here(waitMs))) return
    await Bun.sleep(Math.max(0, Math.min(until, this.loadableAt) - this.options.monotonic()))
  }

  /** Reports a failed call. A closed connection that can be opened again is no outage. */
  failed(cause: unknown): void {
    const { redis } = this.options
    if (!redis.isReady() && redis.failedConnections() === 0) this.open()
    else this.leave(cause instanceof Error ? cause.message : 'unknown')
    this.notify()
  }

  /** Reports that Redis has lost the counters. */
  lost(): void {
    this.isReported = false
    this.open()
    this.notify()
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.notify()
    await this.running
  }

  private open(): void {
    this.worksSince = null
    if (this.state === 'here') this.state = 'opening'
  }

  private leave(reason: string): void {
    this.worksSince = null
    if (this.state === 'away') return
    this.state = 'away'
    this.options.onEvent?.('limits_redis_away', `${reason}; each instance admits from its allowances`)
  }

  private async run(): Promise<void> {
    while (!this.isClosed) {
      if (this.state !== 'here') await this.look().catch((cause: unknown) => this.failed(cause))
      this.notify()
      if (!this.isClosed) await this.change(this.isHere() ? null : lookMs)
    }
  }

  private async look(): Promise<void> {
    const { redis, partition, store, monotonic, returnAfterMs = returnMs } = this.options
    if (!redis.isReady()) {
      this.worksSince = null
      if (redis.failedConnections() > 0) this.leave('no connection')
      return
    }
    const wasAway = this.state === 'away'
    if (wasAway) await store.checkService(partition)
    await this.verify()
    this.worksSince ??= monotonic()
    if (!this.isReported || this.worksSince === null) return
    if (wasAway && monotonic() - this.worksSince < returnAfterMs) return
    await this.options.settle()
    // A call may have failed meanwhile.
    if (!this.isReported || this.worksSince === null) return
    this.state = 'here'
    if (wasAway) this.options.onEvent?.('limits_redis_back', 'Redis decides')
  }

  /** Reads the generation. If it is new for this instance, reports to it what the instance has. */
  private async verify(): Promise<void> {
    const { partition, store, report, monotonic, reportGraceMs } = this.options
    const { text, ageMs } = await store.begin(partition, this.over)
    this.over = ''
    if (text === this.known && this.isReported) return
    this.isReported = false
    this.known = text
    this.loadableAt = Math.max(this.loadableAt, monotonic() + reportGraceMs - ageMs)
    // A new process adopts counters that have everything of its predecessor.
    if ((this.isFirst && ageMs >= reportGraceMs) || (await report())) this.isReported = true
    else this.over = text
    this.isFirst = false
  }

  private notify(): void {
    for (const waiter of [...this.waiters]) waiter()
  }

  /** Resolves at the next change, or after `waitMs`. */
  private async change(waitMs: number | null): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.waiters.add(resolve)
    const timer = waitMs === null ? null : setTimeout(resolve, waitMs)
    await promise
    this.waiters.delete(resolve)
    if (timer !== null) clearTimeout(timer)
  }
}
