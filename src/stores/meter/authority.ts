/**
 * Which partitions this gateway admits in Redis, and which it decides without: said in Postgres (`claims.ts`) before it acts
 * on it, and heard of the others four times a second. One gateway that must do without Redis makes all do without, since two
 * authorities would hand out the same twice.
 *
 * Where Postgres does not answer nobody can be given a claim, so Redis may be used without asking; a gateway that must do
 * without both hands out shares.
 */
import type { Claims, HandedOut, Others, Saying } from './claims.ts'
import { partitionsIn } from './partitions.ts'

export type AuthorityOptions = {
  readonly claims: Claims
  readonly monotonic: () => number
  readonly seesRedis: () => boolean
  /** All that this gateway has out of the accounts of these partitions. */
  readonly outOf: (partitions: number) => readonly HandedOut[]
  /** What was out has been put down. */
  readonly left: (accountIds: readonly string[]) => void
  /** Another must do without Redis: this gateway has to leave it, too. */
  readonly mustLeave: (partition: number) => void
}

export type Authority = {
  /** From here on a partition is decided without Redis; resolves once that is said, or cannot be. */
  leave(partition: number): Promise<void>
  isWithout(partition: number): boolean
  /** This gateway has told Redis all it knows and decides nothing until Redis does. */
  standAside(partition: number): Promise<void>
  /** Whether Redis may decide from here on: false while another gateway must do without it. */
  mayEnter(partition: number): Promise<boolean>
  /** Another gateway that does not see Redis decides without it: there is no use in trying. */
  isBarred(partition: number): boolean
  /** `soon` = others may not have spoken yet since Postgres is there. */
  readiness(): 'ready' | 'soon' | 'away'
  /**
   * A wait where this process slept so long that others may take it for dead, and decide without Redis what it would decide
   * there; null = it did not.
   */
  overslept(): Promise<void> | null
  /** Postgres has answered someone else here. */
  answered(): void
  /** Says at once what has changed. */
  speak(): void
  /** Alive when last heard of, this one included. */
  gateways(): number
  /** The others that may be alive; null = Postgres does not say. */
  living(): readonly string[] | null
  close(): Promise<void>
}

const calmBeatMs = 250
/** While somebody must do without Redis. */
const busyBeatMs = 100
/** A call that was late once may have been slow, and shares are handed out on the word that Postgres is away. */
const failuresUntilAway = 2
/** A call that takes so long ends at its deadline; one that Postgres refuses, or cannot be reached for, fails sooner. */
const deadlineAboutMs = 900
/** A process whose own timers were so late in the course of a call has missed its deadline itself. */
const starvedMs = 250
/** However starved: a Postgres that has not been heard of for so long is away. */
const silentMs = 3000
/** Others take a gateway for dead after 3 s, by Postgres' clock. */
const oversleptMs = 2500
/** After Postgres was away, so long as it takes every gateway to speak twice. */
const steadyAfterMs = 600

/** Starts speaking. The timer does not keep the process alive. */
export function startAuthority({ claims, monotonic, ...options }: AuthorityOptions): Authority {
  let inRedis = 0
  let without = 0
  /** Left, and not said yet. */
  let unsaid = 0
  /** Of these, what was left after the call that is under way had looked at what is out: it must be said again. */
  let leftSince = 0
  let others: Others = { count: 0, without: 0, barred: 0, living: [] }
  let hasHeard = false
  /** Calls that failed since one was answered. */
  let failures = 0
  let steadyFrom = monotonic() + steadyAfterMs
  let last: Promise<unknown> = Promise.resolve()
  let leaving: Promise<void> | null = null
  let entering: { wanted: number; readonly entered: Promise<void> } | null = null
  let isBeating = false
  let beating: Promise<void> = Promise.resolve()
  let beatAt = Number.NEGATIVE_INFINITY
  /** When the last sign of life that Postgres took was sent. */
  let signAt = monotonic()
  let answeredAt = monotonic()
  let tickedAt = monotonic()
  /** How late the timer was, all told. */
  let lateBeforeMs = 0

  const saying = (): Saying => ({ inRedis, without, seesRedis: options.seesRedis() })
  /** One call after the other: what is said later must be heard later. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }
  const isAway = () => failures >= failuresUntilAway
  const answered = () => {
    if (isAway()) steadyFrom = monotonic() + steadyAfterMs
    answeredAt = monotonic()
    failures = 0
  }
  const lateMs = () => lateBeforeMs + Math.max(0, monotonic() - tickedAt - busyBeatMs)

  /** What Postgres answers; of failures those count that are not this process' own. */
  const asked = async <T>(work: () => Promise<T>): Promise<T> => {
    const [askedAt, lateUntil] = [monotonic(), lateMs()]
    try {
      const answer = await work()
      answered()
      return answer
    } catch (cause) {
      const isOwn = monotonic() - askedAt >= deadlineAboutMs && lateMs() - lateUntil > starvedMs
      if (!isOwn || monotonic() - answeredAt > silentMs) failures++
      throw cause
    }
  }

  const leaveAll = (): Promise<void> => {
    leaving ??= inTurn(async () => {
      leaving = null
      const leftNow = unsaid
      leftSince = 0
      const all = options.outOf(leftNow)
      try {
        await asked(() => claims.leave(saying(), leftNow, all))
        unsaid &= ~leftNow | leftSince
        options.left(all.map(({ accountId }) => accountId))
      } catch {
        // The next beat says it again.
      }
    })
    return leaving
  }

  const beat = (): Promise<void> => {
    if (!isBeating) beating = beatNow()
    return beating
  }
  const beatNow = async () => {
    isBeating = true
    beatAt = monotonic()
    try {
      others = await inTurn(() => {
        beatAt = monotonic()
        return asked(() => claims.beat(saying()))
      })
      signAt = beatAt
      hasHeard = true
      if (unsaid !== 0) await leaveAll()
      for (const partition of partitionsIn(others.without & inRedis)) options.mustLeave(partition)
    } catch {
      // Counted; the next one is due soon.
    } finally {
      isBeating = false
    }
  }
  const timer = setInterval(() => {
    lateBeforeMs = lateMs()
    tickedAt = monotonic()
    const everyMs = (without | others.without) === 0 ? calmBeatMs : busyBeatMs
    if (monotonic() - beatAt >= everyMs - busyBeatMs / 2) void beat()
  }, busyBeatMs)
  timer.unref()
  void beat()

  return {
    async leave(partition) {
      const bit = 1 << partition
      if ((without & bit) === 0) {
        inRedis &= ~bit
        without |= bit
        unsaid |= bit
        leftSince |= bit
      }
      if ((unsaid & bit) !== 0 && !isAway()) await leaveAll()
    },
    isWithout: partition => (without & (1 << partition)) !== 0,
    async standAside(partition) {
      const bit = 1 << partition
      without &= ~bit
      if ((inRedis & bit) !== 0) {
        unsaid |= bit
        leftSince |= bit
      }
      inRedis &= ~bit
      if (!isAway()) await leaveAll()
    },
    async mayEnter(partition) {
      const bit = 1 << partition
      if (isAway()) {
        inRedis |= bit & ~without
        return (inRedis & bit) !== 0
      }
      if (entering === null) {
        const wish = { wanted: 0, entered: Promise.resolve() }
        wish.entered = inTurn(async () => {
          entering = null
          try {
            const found = await asked(() => claims.enter(saying(), wish.wanted))
            inRedis |= found & ~without
          } catch {
            if (isAway()) inRedis |= wish.wanted & ~without
          }
        })
        entering = wish
      }
      entering.wanted |= bit
      await entering.entered
      return (inRedis & bit) !== 0
    },
    isBarred: partition => (others.barred & (1 << partition)) !== 0,
    readiness: () => (isAway() ? 'away' : unsaid !== 0 || monotonic() < steadyFrom ? 'soon' : 'ready'),
    overslept: () => (inRedis !== 0 && failures === 0 && monotonic() - signAt > oversleptMs ? beat() : null),
    answered,
    speak: () => void beat(),
    gateways: () => others.count + 1,
    living: () => (hasHeard && failures === 0 && monotonic() >= steadyFrom ? others.living : null),
    async close() {
      clearInterval(timer)
      await inTurn(() => claims.end()).catch(() => {})
    },
  }
}
