/** Clocks: this machine's, and one that shows the database's time. */
import { intervalTimer } from '../core/jobs/repeating.ts'
import { createClockOffset } from '../core/limits/clock-offset.ts'
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
export function createSharedClock(machine: Clock): SharedClock {
  const offset = createClockOffset()
  return {
    clock: { ...machine, now: () => machine.now() + offset.milliseconds() },
    follow(database, log) {
      let asking: Promise<void> | null = null
      const askNow = async () => {
        const before = offset.milliseconds()
        const askedAt = machine.now()
        const told = await databaseTime(database)
        offset.take({ askedAt, told: told.getTime(), answeredAt: machine.now() })
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
