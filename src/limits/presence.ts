/**
 * Whether Redis does its work, and the generation of its counters. Away: a reply of an admission is an error, the
 * connection is closed and a new one failed, or no answer in time. Back: it has worked for `returnMs`. Before Redis
 * decides, this instance reports to each partition that has lost its counters.
 */
import { RedisUnavailableError } from '../core/limits/redis.ts'
import { returnMs } from './constants.ts'
import type { LimitRedis, RedisStore } from './redis.ts'

type PresenceOptions = {
  readonly redis: LimitRedis
  readonly partitions: readonly number[]
  readonly begin: RedisStore['begin']
  /** Reports what this instance has to a new generation. Returns false if it is too late for that. */
  readonly report: (partition: number, isFirst: boolean) => Promise<boolean>
  /** Settles what ended while Redis was away. */
  readonly settle: () => Promise<void>
  readonly monotonic: () => number
  readonly reportGraceMs: number
  readonly returnAfterMs?: number | undefined
  readonly onEvent?: ((event: string, detail: string) => void) | undefined
}

const stepMs = 100

export class Presence {
  /** `opening`: not verified since the connection; requests wait for that, and are decided from allowances while `away`. */
  private state: 'opening' | 'here' | 'away' = 'opening'
  private readonly generations = new Map<number, string>()
  private readonly over = new Map<number, string>()
  private readonly unreported: Set<number>
  private readonly isKnown = new Set<number>()
  private worksSince: number | null = null
  private loadableAt = 0
  private isClosed = false
  private wake = (_isAtOnce = false) => {}
  private readonly waiters = new Set<() => void>()
  private readonly running: Promise<void>

  constructor(private readonly options: PresenceOptions) {
    this.unreported = new Set(options.partitions)
    options.redis.onChange(isReady => {
      if (!isReady && this.state === 'here') this.state = 'opening'
      if (!isReady) this.worksSince = null
      this.wake(true)
    })
    this.running = this.run()
  }

  isHere(): boolean {
    return this.state === 'here'
  }

  generation(partition: number): string {
    const text = this.generations.get(partition)
    if (text === undefined) throw new RedisUnavailableError('its counters are unknown')
    return text
  }

  /** Resolves with true if Redis decides; false if it is away or is not verified within `waitMs`. */
  async here(waitMs: number): Promise<boolean> {
    const until = this.options.monotonic() + waitMs
    while (this.state === 'opening' && !this.isClosed) {
      const leftMs = until - this.options.monotonic()
      if (leftMs <= 0) return false
      await this.changed(leftMs)
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
    if (!redis.isReady() && redis.failedConnections() === 0) {
      if (this.state === 'here') this.state = 'opening'
    } else this.leave(cause instanceof Error ? cause.message : 'unknown')
    this.wake()
  }

  /** Reports that a partition has lost its counters. */
  stale(partition: number): void {
    this.unreported.add(partition)
    if (this.state === 'here') this.state = 'opening'
    this.wake(true)
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.wake()
    this.tell()
    await this.running
  }

  private leave(reason: string): void {
    this.worksSince = null
    if (this.state === 'away') return
    this.state = 'away'
    this.tell()
    this.options.onEvent?.('limits_redis_away', `${reason}; each instance admits from its allowances`)
  }

  private async run(): Promise<void> {
    while (!this.isClosed) {
      if (this.state !== 'here') await this.step().catch((cause: unknown) => this.failed(cause))
      this.tell()
      await this.pause()
    }
  }

  private async step(): Promise<void> {
    const { redis, partitions, monotonic, returnAfterMs = returnMs } = this.options
    if (!redis.isReady()) {
      this.worksSince = null
      if (redis.failedConnections() > 0) this.leave('no connection')
      return
    }
    const wasAway = this.state === 'away'
    await Promise.all(partitions.map(partition => this.verify(partition)))
    this.worksSince ??= monotonic()
    if (this.unreported.size > 0 || !redis.isReady()) return
    if (wasAway && monotonic() - this.worksSince < returnAfterMs) return
    await this.options.settle()
    this.state = 'here'
    if (wasAway) this.options.onEvent?.('limits_redis_back', 'Redis decides')
  }

  /** Reads the generation of a partition. If it is new for this instance, reports to it what the instance has. */
  private async verify(partition: number): Promise<void> {
    const { begin, report, monotonic, reportGraceMs } = this.options
    const { text, ageMs } = await begin(partition, this.over.get(partition) ?? '')
    this.over.delete(partition)
    if (text === this.generations.get(partition) && !this.unreported.has(partition)) return
    this.unreported.add(partition)
    this.generations.set(partition, text)
    this.loadableAt = Math.max(this.loadableAt, monotonic() + reportGraceMs - ageMs)
    // A new process adopts counters that have everything of its predecessor.
    const isFirst = !this.isKnown.has(partition) && ageMs >= reportGraceMs
    if (await report(partition, isFirst)) this.unreported.delete(partition)
    else this.over.set(partition, text)
    this.isKnown.add(partition)
  }

  private tell(): void {
    for (const waiter of [...this.waiters]) waiter()
  }

  private changed(waitMs: number): Promise<void> {
    return new Promise(done => {
      const end = () => {
        clearTimeout(timer)
        this.waiters.delete(end)
        done()
      }
      const timer = setTimeout(end, waitMs)
      this.waiters.add(end)
    })
  }

  /** Until a change while Redis decides; short otherwise. */
  private pause(): Promise<void> {
    if (this.isClosed) return Promise.resolve()
    return new Promise(done => {
      let timer: ReturnType<typeof setTimeout> | null = null
      const end = () => {
        if (timer !== null) clearTimeout(timer)
        this.wake = () => {}
        done()
      }
      if (this.state !== 'here') timer = setTimeout(end, stepMs)
      this.wake = isAtOnce => {
        if (isAtOnce || this.isClosed) end()
        else if (this.state !== 'here') timer ??= setTimeout(end, stepMs)
      }
    })
  }
}
