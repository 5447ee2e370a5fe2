/** Clocks: this machine's, and one that shows the database's time. */
import { intervalTimer } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { Database } from './database.ts'
import { databaseTime } from './statement.ts'

/** Clocks and timers of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: milliseconds => Bun.sleep(milliseconds),
  after(milliseconds, action) {
    const timer = setTimeout(action, milliseconds)
    return () => clearTimeout(timer)
  },
}

type SharedClock = {
  readonly clock: Clock
  /**
   * Follows the database's clock until the returned function is called. Call `measure` when the database is available; it
   * never rejects.
   */
  follow(database: Database, log: Pick<Log, 'warn'>): { measure(): Promise<void>; stop(): void }
}

const askEveryMs = 5_000

/**
 * Creates a clock that shows the database's time, so that gateways with different clocks agree on expiry and on the
 * current day. Durations and timers use this machine's clock, as does the time before the first sample.
 */
export function createSharedClock(): SharedClock {
  const offset = createClockOffset()
  return {
    clock: { ...systemClock, now: () => systemClock.now() + offset.milliseconds() },
    follow(database, log) {
      let asking: Promise<void> | null = null
      const askNow = async () => {
        const before = offset.milliseconds()
        const askedAt = systemClock.now()
        const told = await databaseTime(database)
        offset.take({ askedAt, told: told.getTime(), answeredAt: systemClock.now() })
        const after = offset.milliseconds()
        if (after === before) return
        const detail = `the database’s clock counts, which differs from this machine’s by ${after} ms`
        log.warn('clock_offset_changed', { detail })
      }
      const measure = () => {
        asking ??= askNow()
          // The next poll follows soon; until then the last offset applies.
          .catch(() => {})
          .finally(() => {
            asking = null
          })
        return asking
      }
      return { measure, stop: intervalTimer(askEveryMs, measure) }
    },
  }
}

/**
 * One time query to another clock. All values are epoch milliseconds: when our clock sent and received it, and the time
 * that the other clock reported.
 */
type ClockSample = { readonly askedAt: number; readonly told: number; readonly answeredAt: number }

type ClockOffset = {
  /** Milliseconds to add to our own clock to get the other clock's time; 0 before the first sample. */
  milliseconds(): number
  take(answer: ClockSample): void
}

/** The other clock is ahead by `ahead` ± `margin`, both in milliseconds. */
type Estimate = { readonly ahead: number; readonly margin: number }

/** Smaller differences between synchronized clocks are ignored. */
const ignoredMs = 1_000
const keptEstimates = 8

/**
 * Creates an estimate of another clock's offset from ours, based on the fastest of the latest samples. The estimate
 * changes only if samples contradict it by at least 1 s, so that time does not jitter with each round trip.
 */
export function createClockOffset(): ClockOffset {
  let latest: readonly Estimate[] = []
  let offset = 0
  return {
    milliseconds: () => offset,
    take({ askedAt, told, answeredAt }) {
      // Our own clock was set back during the query.
      if (answeredAt < askedAt) return
      const estimate = { ahead: told - (askedAt + answeredAt) / 2, margin: (answeredAt - askedAt) / 2 }
      // If two samples cannot both be true, a clock was set in between, and the older samples are useless.
      const agrees = latest.every(other => distance(other, estimate) <= other.margin + estimate.margin + ignoredMs)
      latest = [...(agrees ? latest.slice(1 - keptEstimates) : []), estimate]
      const best = latest.reduce((least, item) => (item.margin <= least.margin ? item : least))
      const error = Math.abs(best.ahead - offset)
      if (error < ignoredMs || error <= best.margin) return
      offset = Math.abs(best.ahead) < ignoredMs ? 0 : Math.round(best.ahead)
    },
  }
}

function distance(estimate: Estimate, other: Estimate): number {
  return Math.abs(estimate.ahead - other.ahead)
}
