/**
 * Decides which store decides limits. One row in Postgres names the holder (Redis or Postgres) and an epoch. An
 * instance that finds Redis unavailable or emptied increases the epoch; every instance then registers its requests in
 * Postgres and admits again when all instances with a heartbeat within 3 s have registered. While Postgres is
 * unavailable the holder cannot change.
 *
 * unknown ──beat──> registering ──all registered──> open (redis | postgres) ──a newer epoch──> registering
 */
import { GatewayError } from '../../core/validation/errors.ts'
import type { Epoch } from '../epoch.ts'
import type { LimitRedis } from '../ports.ts'
import type { Beat, PostgresStore, Registered } from '../postgres/store.ts'
import type { RedisStore } from '../redis/store.ts'

export type AuthorityOptions = {
  readonly postgres: Pick<PostgresStore, 'beat' | 'change' | 'claim' | 'hasSilent' | 'leave' | 'open' | 'register'>
  readonly redis: Pick<LimitRedis, 'failedConnections' | 'isReady'>
  readonly store: Pick<RedisStore, 'partitions'>
  /** Milliseconds of a monotonic clock. */
  readonly monotonic: () => number
  /** Requests of this instance to register for a new epoch, because their usage is not in the ledger. */
  readonly registered: () => readonly Registered[]
  readonly onEvent?: (event: string, detail: string) => void
  readonly returnAfterMs?: number
}

/** Redis becomes the holder again after it has answered for this long. */
const defaultReturnAfterMs = 2_000
const steadyMs = 500
const changingMs = 25
/**
 * Evidence that Redis is unavailable: failed connections, and steps without a connection. Steps are at least
 * `changingMs` apart, and a busy event loop makes none.
 */
const connectionsAway = 2
const stepsAway = 8
/** Failed checks in a row of a Redis with a connection: a node of its cluster is lost, or it refuses writes. */
const checksAway = 8
/** Time without Redis after such checks, although it has a connection. */
const distrustMs = 30_000
/** Steps until an instance gives up on the one that claimed an epoch: it has ended, or Redis did not answer it. */
const stepsUnopened = 20
/** Other instances open an epoch without this one if its heartbeat is 3 s old. */
const freshMs = 2_500
/** Longest time between two heartbeats, none of them failed, that leaves no doubt that others could write theirs. */
const gapMs = 2_000
/** How long an instance waits for the heartbeats of others after a longer gap or a failed heartbeat. */
const heldBackMs = 3_500

export class LimitAuthority {
  /** The epoch under which decisions are made; null = changing or unknown. */
  current: Epoch | null = null
  /** Instances that were alive at the last heartbeat. */
  living: readonly string[] = []
  /** True if Postgres answered the last heartbeat; initially true. */
  isPostgresThere = true
  /** The epoch of Redis before the connection was lost: in force if the server behind the next one has it. */
  private unverified: Epoch | null = null
  private unopened = 0
  private failedChecks = 0
  private distrustedUntil = Number.NEGATIVE_INFINITY
  private beatAt = Number.NEGATIVE_INFINITY
  /** Time before the last call that confirmed the epoch: a heartbeat, or a check of Redis while Postgres is unavailable. */
  private confirmedAt = Number.NEGATIVE_INFINITY
  private heldBackUntil = Number.NEGATIVE_INFINITY
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

  /** Resolves with the open epoch as soon as there is one; null after `waitMs`. */
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

  /** Reports that a store no longer decides under `epoch`. */
  stale(epoch: Epoch): void {
    if (this.current === epoch) this.current = null
    this.hurry()
  }

  /**
   * Resolves with true if a reply under `epoch` counts. An instance that was stopped may read a reply after others have
   * opened an epoch without it; its own heartbeat then tells, or Redis while this instance does not reach Postgres.
   */
  async holds(epoch: Epoch): Promise<boolean> {
    const until = this.options.monotonic() + freshMs
    while (this.current === epoch && !this.isFresh() && this.options.monotonic() < until) await this.changed(freshMs)
    return this.current === epoch && this.isFresh()
  }

  /** Returns true if the epoch was confirmed so recently that none can have been opened without this instance. */
  isFresh(): boolean {
    return this.options.monotonic() - this.confirmedAt < freshMs
  }

  /** Reports a lost connection to Redis. A promoted replica or a restarted server may have the epoch's key and lack the last admissions. */
  disconnected(): void {
    if (this.current?.holder === 'redis') {
      this.unverified = this.current
      this.current = null
    }
    this.hurry()
  }

  /** Runs the next step soon. */
  hurry(): void {
    this.isHurried = true
    this.wake()
  }

  /** Stops the steps and this instance's heartbeat. */
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
        // Only once: waiting requests call this repeatedly and would postpone the step each time.
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
      const waitMs = this.current === null || !this.options.redis.isReady() || this.isHurried ? changingMs : steadyMs
      timer = setTimeout(end, waitMs)
      this.wake = () => (this.isClosed ? end() : soon())
    })
  }

  private async step(): Promise<void> {
    const { postgres, redis, monotonic, returnAfterMs = defaultReturnAfterMs } = this.options
    const isReady = redis.isReady()
    if (isReady) this.away = 0
    else if (redis.failedConnections() >= connectionsAway) this.away++
    this.readySince = isReady ? (this.readySince ?? monotonic()) : null
    const seesRedis =
      this.readySince !== null && monotonic() - this.readySince >= returnAfterMs && monotonic() >= this.distrustedUntil
    let beat: Beat
    try {
      const sentAt = monotonic()
      if (!this.isPostgresThere || sentAt - this.beatAt > gapMs)
        this.heldBackUntil = (await postgres.hasSilent()) ? sentAt + heldBackMs : sentAt
      beat = await postgres.beat(sentAt < this.heldBackUntil ? 0 : this.registeredFor, seesRedis)
      this.beatAt = this.confirmedAt = sentAt
      this.isPostgresThere = true
    } catch (cause) {
      this.isPostgresThere = false
      // The holder cannot change now. Redis continues if it still has this epoch.
      const epoch = this.current ?? this.unverified
      const askedAt = monotonic()
      if (epoch?.holder === 'redis' && isReady && (await this.verify(epoch.number, false)) !== null) {
        this.confirmedAt = askedAt
        this.enter(epoch)
      }
      throw cause
    }
    this.living = beat.living
    if (beat.epoch !== this.number) this.leave(beat.epoch)
    if (this.registeredFor < beat.epoch) {
      // After an outage of Postgres the first instance would take all others for ended. While it counts as unregistered, no
      // epoch is opened without them.
      return !beat.isOpen && monotonic() < this.heldBackUntil ? undefined : this.register(beat)
    }
    if (beat.holder === 'postgres')
      this.enter(beat.isOpen ? { number: beat.epoch, holder: 'postgres', keys: [] } : null)
    else if (this.away >= stepsAway) await this.change(beat.epoch, 'postgres', 'Redis does not answer')
    else if (this.failedChecks >= checksAway) await this.distrust(beat.epoch)
    else if (isReady) await this.decideInRedis(beat)
  }

  private async distrust(epoch: number): Promise<void> {
    this.failedChecks = 0
    this.distrustedUntil = this.options.monotonic() + distrustMs
    await this.change(epoch, 'postgres', 'Redis does not answer for all of its partitions')
  }

  private async decideInRedis({ epoch, isOpen, isComplete }: Beat): Promise<void> {
    if (!isOpen && !(isComplete && (await this.claim(epoch)))) return
    const keys = await this.verify(epoch, !isOpen)
    if (keys === null) return
    if (isOpen || (await this.options.postgres.open(epoch))) this.enter({ number: epoch, holder: 'redis', keys })
  }

  /**
   * Returns true for the one instance that sets an epoch in Redis, once. A second one could be late: if Redis was emptied
   * after the epoch was opened, it would make the emptied Redis valid.
   */
  private async claim(epoch: number): Promise<boolean> {
    if (await this.options.postgres.claim(epoch)) return true
    if (++this.unopened >= stepsUnopened) await this.change(epoch, 'redis', 'its epoch was claimed and not opened')
    return false
  }

  /** Returns the partitions' keys if all hold this epoch. If one has lost it, starts a new epoch. */
  private async verify(number: number, isToBeSet: boolean): Promise<readonly string[] | null> {
    this.failedChecks++
    const partitions = await this.options.store.partitions(number, isToBeSet)
    this.failedChecks = 0
    if (partitions.every(({ state }) => state === 1)) return partitions.map(({ text }) => text)
    this.current = null
    this.unverified = null
    const newest = Math.max(...partitions.map(({ state, text }) => (state === 2 ? Number.parseInt(text, 10) : 0)))
    await this.change(number, 'redis', 'Redis has lost its counters', newest + 1)
    return null
  }

  private async change(known: number, holder: Epoch['holder'], reason: string, atLeast = 0): Promise<void> {
    this.hurry()
    await this.options.postgres.change(known, holder, atLeast)
    this.options.onEvent?.('limit_authority_changed', `${holder} decides: ${reason}`)
  }

  private async register({ epoch, holder }: Beat): Promise<void> {
    this.hurry()
    const all = this.options.registered()
    // Not by the heartbeat: others may have opened the epoch since, because this instance was late.
    const registered = await this.options.postgres.register(epoch, all)
    if (registered === null) return
    this.registeredFor = epoch
    // Accounts that Redis has already loaded do not have these requests, nor would they count their usage.
    if (registered.isOpen && holder === 'redis' && all.some(item => item.isOpen))
      await this.change(epoch, 'redis', 'an instance with open requests registered late')
  }

  private leave(epoch: number): void {
    this.current = null
    this.unverified = null
    this.unopened = 0
    this.number = epoch
  }

  /** Keeps the object of an unchanged epoch, because requests compare it after each reply. */
  private enter(epoch: Epoch | null): void {
    if (epoch === null || epoch.number !== this.current?.number) this.current = epoch
  }
}
