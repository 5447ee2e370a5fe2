/**
 * Whether Redis does its work for one partition, and the generation of the counters there. Away: a reply of an admission
 * is an error, the connection is closed and a new one failed, or no answer in time. Back: it has worked for `returnMs`.
 * Before Redis decides, this instance reports to a partition that has lost its counters.
 */
import { RedisUnavailableError } from '../core/limits/redis.ts'
import { lookMs, reportGraceMs, returnMs } from './constants.ts'
import type { RedisStore, RedisStoreOptions } from './redis.ts'

export type PresenceOptions = Pick<RedisStoreOptions, 'redis' | 'clock' | 'reportGraceMs'> & {
  /** For tests: another time than that of `constants.ts`. */
  readonly returnAfterMs?: number
  readonly onEvent?: (event: string, detail: string) => void
}

type PresenceCalls = {
  readonly partition: number
  readonly store: Pick<RedisStore, 'begin' | 'checkService'>
  /** Reports what this instance has to a new generation. Returns false if it is too late for that. */
  readonly report: () => Promise<boolean>
  /** Settles requests that ended while Redis was away. */
  readonly settle: () => Promise<void>
}

export class Presence {
  /** `opening`: not verified since the connection; requests wait for that, and are decided from allowances while `away`. */
  private state: 'opening' | 'here' | 'away' = 'opening'
  /** The generation of the counters, and the report of this instance to it. After a late one another generation must begin. */
  private known: { readonly text: string; report: 'due' | 'done' | 'late' } | null = null
  private isFirst = true
  private worksSince: number | null = null
  private loadableAt = 0
  private isClosed = false
  private changed = Promise.withResolvers<void>()
  private readonly running: Promise<void>

  constructor(
    private readonly options: PresenceOptions,
    private readonly calls: PresenceCalls,
  ) {
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
    return this.known.text
  }

  /** Resolves when it is known whether Redis decides. */
  async here(): Promise<boolean> {
    while (this.state === 'opening' && !this.isClosed) await this.changed.promise
    return this.state === 'here'
  }

  /** Resolves when accounts can be loaded. */
  async ready(): Promise<void> {
    if (await this.here()) await Bun.sleep(Math.max(0, this.loadableAt - this.options.clock.monotonic()))
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
    if (this.known !== null) this.known.report = 'due'
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
      if (!this.isClosed)
        await (this.isHere() ? this.changed.promise : Promise.race([this.changed.promise, Bun.sleep(lookMs)]))
    }
  }

  private async look(): Promise<void> {
    const { redis, clock, returnAfterMs = returnMs } = this.options
    const { partition, store, settle } = this.calls
    if (!redis.isReady()) {
      this.worksSince = null
      if (redis.failedConnections() > 0) this.leave('no connection')
      return
    }
    const wasAway = this.state === 'away'
    if (wasAway) await store.checkService(partition)
    await this.verify()
    this.worksSince ??= clock.monotonic()
    if (this.known?.report !== 'done' || this.worksSince === null) return
    if (wasAway && clock.monotonic() - this.worksSince < returnAfterMs) return
    await settle()
    // A call may have failed meanwhile.
    if (this.known?.report !== 'done' || this.worksSince === null) return
    this.state = 'here'
    if (wasAway) this.options.onEvent?.('limits_redis_back', 'Redis decides')
  }

  /** Reads the generation. If it is new for this instance, reports to it what the instance has. */
  private async verify(): Promise<void> {
    const { partition, store, report } = this.calls
    const { clock, reportGraceMs: grace = reportGraceMs } = this.options
    const over = this.known?.report === 'late' ? this.known.text : ''
    const { text, ageMs } = await store.begin(partition, over)
    if (text === this.known?.text && this.known.report === 'done') return
    const known: NonNullable<typeof this.known> = { text, report: 'due' }
    this.known = known
    this.loadableAt = Math.max(this.loadableAt, clock.monotonic() + grace - ageMs)
    // A new process adopts counters that have everything of its predecessor.
    const isAdopted = this.isFirst && ageMs >= grace
    this.isFirst = false
    known.report = isAdopted || (await report()) ? 'done' : 'late'
  }

  private notify(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }
}
