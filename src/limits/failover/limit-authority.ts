/**
 * Who decides limits. One row in Postgres names the holder, Redis or Postgres, and an epoch. A gateway that sees Redis away, or
 * emptied, raises the epoch; every gateway then registers its requests in Postgres, and admits again once the epoch is open: when
 * all have registered that had a heartbeat within 3 s. While Postgres is away the holder cannot change.
 *
 *   unknown ──beat──> registering ──all registered──> open (redis | postgres) ──a newer epoch──> registering
 */
import { GatewayError } from '../../core/validation/errors.ts'
import type { LimitRedis } from '../ports.ts'
import type { Beat, PostgresStore, Registered } from '../postgres/store.ts'
import type { PartitionState, RedisStore } from '../redis/store.ts'
import type { Epoch } from './epoch.ts'

export type AuthorityOptions = {
  readonly postgres: Pick<PostgresStore, 'beat' | 'change' | 'leave' | 'open' | 'register'>
  readonly redis: Pick<LimitRedis, 'failedConnections' | 'isReady'>
  readonly store: Pick<RedisStore, 'partitions'>
  /** Milliseconds that never run backwards. */
  readonly monotonic: () => number
  /** This gateway's requests that count besides the ledger, to be registered for a new epoch. */
  readonly registered: () => readonly Registered[]
  /** Called when an epoch ends for this gateway: what Redis holds may be lost. */
  readonly onLeave: () => void
  /** Receives the oldest entry of each partition's stream while Redis decides. */
  readonly onVerified?: (partitions: readonly PartitionState[]) => void
  readonly onEvent?: (event: string, detail: string) => void
  readonly returnAfterMs?: number
}

/** Postgres gives way to a Redis that has answered for so long. */
const defaultReturnAfterMs = 2_000
const steadyMs = 500
const changingMs = 25
/**
 * What it takes for Redis to count as away: failed connections, and steps without one. Steps are at least `changingMs` apart, and a
 * busy loop makes none.
 */
const connectionsAway = 2
const stepsAway = 8

export class LimitAuthority {
  /** The epoch that decisions are made under; null = it is changing, or unknown. */
  current: Epoch | null = null
  /** Gateways that were alive at the last heartbeat. */
  living: readonly string[] = []
  /** Whether Postgres answered the last heartbeat; before the first one it is taken to be there. */
  isPostgresThere = true
  private number = 0
  private registeredFor = 0
  private away = 0
  private readySince: number | null = null
  private isClosed = false
  private isHurried = false
  private wake: () => void = () => {}
  private readonly waiters = new Set<() => void>()
  private readonly running: Promise<void>

  constructor(private readonly options: AuthorityOptions) {
    this.running = this.run()
  }

  /** Resolves with the open epoch, at once or when there is one; null after `waitMs`. */
  async ready(waitMs: number): Promise<Epoch | null> {
    if (this.current !== null) return this.current
    this.hurry()
    const until = this.options.monotonic() + waitMs
    while (this.current === null && !this.isClosed) {
      const leftMs = until - this.options.monotonic()
      if (leftMs <= 0) return null
      await this.changed(leftMs)
    }
    return this.current
  }

  /** Resolves after the next step, or after `waitMs`. */
  changed(waitMs: number): Promise<void> {
    this.hurry()
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

  /** A store does not decide under `epoch` any more. */
  stale(epoch: Epoch): void {
    if (this.current === epoch) this.current = null
    this.hurry()
  }

  /** Makes the next step come soon. */
  hurry(): void {
    this.isHurried = true
    this.wake()
  }

  /** Ends the steps, and this gateway's heartbeat. */
  async close(): Promise<void> {
    this.isClosed = true
    this.wake()
    await this.running
    if (this.isPostgresThere) await this.options.postgres.leave().catch(() => {})
  }

  private async run(): Promise<void> {
    while (!this.isClosed) {
      this.isHurried = false
      await this.step().catch((cause: unknown) => {
        if (!(cause instanceof GatewayError) && !this.isClosed)
          this.options.onEvent?.('limit_authority_failed', cause instanceof Error ? cause.message : 'unknown')
      })
      for (const waiter of [...this.waiters]) waiter()
      await this.pause()
    }
  }

  private pause(): Promise<void> {
    if (this.isClosed) return Promise.resolve()
    return new Promise(done => {
      let timer: ReturnType<typeof setTimeout>
      let isSoon = false
      const soon = () => {
        // Once: requests that wait hurry it again and again, and would put it off for as long as they come.
        if (isSoon) return
        isSoon = true
        clearTimeout(timer)
        timer = setTimeout(end, changingMs)
      }
      const end = () => {
        clearTimeout(timer)
        this.wake = () => {}
        done()
      }
      timer = setTimeout(
        end,
        this.current === null || !this.options.redis.isReady() || this.isHurried ? changingMs : steadyMs,
      )
      this.wake = () => (this.isClosed ? end() : soon())
    })
  }

  private async step(): Promise<void> {
    const { postgres, redis, monotonic, returnAfterMs = defaultReturnAfterMs } = this.options
    const isReady = redis.isReady()
    if (isReady) this.away = 0
    else if (redis.failedConnections() >= connectionsAway) this.away++
    this.readySince = isReady ? (this.readySince ?? monotonic()) : null
    const seesRedis = this.readySince !== null && monotonic() - this.readySince >= returnAfterMs
    let beat: Beat
    try {
      beat = await postgres.beat(this.registeredFor, seesRedis)
      this.isPostgresThere = true
    } catch (cause) {
      this.isPostgresThere = false
      // Who decides cannot change now. Redis goes on, as long as it is the Redis that this epoch knows.
      if (this.current?.holder === 'redis' && isReady) await this.verify(this.current.number, false)
      throw cause
    }
    this.living = beat.living
    if (beat.epoch !== this.number) this.leave(beat.epoch)
    if (this.registeredFor < beat.epoch) return this.register(beat.epoch)
    if (beat.holder === 'postgres')
      this.enter(beat.isOpen ? { number: beat.epoch, holder: 'postgres', keys: [] } : null)
    else if (this.away >= stepsAway) await this.change(beat.epoch, 'postgres', 'Redis does not answer')
    else if (isReady) await this.decideInRedis(beat)
  }

  private async decideInRedis(beat: Beat): Promise<void> {
    const isToBeSet = !beat.isOpen && beat.isComplete
    if (!beat.isOpen && !isToBeSet) return
    const keys = await this.verify(beat.epoch, isToBeSet)
    if (keys === null) return
    if (isToBeSet) await this.options.postgres.open(beat.epoch)
    this.enter({ number: beat.epoch, holder: 'redis', keys })
  }

  /** Returns the partitions' keys if all hold this epoch. If one has lost it, a new epoch begins. */
  private async verify(number: number, isToBeSet: boolean): Promise<readonly string[] | null> {
    const partitions = await this.options.store.partitions(number, isToBeSet)
    if (partitions.every(({ state }) => state === 1)) {
      this.options.onVerified?.(partitions)
      return partitions.map(({ text }) => text)
    }
    this.current = null
    const newest = Math.max(...partitions.map(({ state, text }) => (state === 2 ? Number.parseInt(text, 10) : 0)))
    await this.change(number, 'redis', 'Redis has lost its counters', newest + 1)
    return null
  }

  private async change(known: number, holder: Epoch['holder'], reason: string, atLeast = 0): Promise<void> {
    this.hurry()
    await this.options.postgres.change(known, holder, atLeast)
    this.options.onEvent?.('limit_authority_changed', `${holder} decides: ${reason}`)
  }

  private async register(epoch: number): Promise<void> {
    this.hurry()
    if (await this.options.postgres.register(epoch, this.options.registered())) this.registeredFor = epoch
  }

  private leave(epoch: number): void {
    this.current = null
    this.number = epoch
    this.options.onLeave()
  }

  /** The same epoch stays the same object: a request compares it after each reply. */
  private enter(epoch: Epoch | null): void {
    const isSame = epoch !== null && this.current !== null && epoch.number === this.current.number
    if (!isSame) this.current = epoch
  }
}
