import type { Limits } from '../core/limits/plans.ts'
import type { Clock } from '../core/ports.ts'
import { maximumAccounts, setBounded } from '../core/text/recent-map.ts'
import { dayMs, formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../core/usage/usage-record.ts'
import type { QuotaStatus, Reservation } from './meter.ts'

/**
 * Counters of an account as last replied by a store: `at` by this process's clock, and the remaining minute and day.
 */
export type CachedStatus = DailyUsage & {
  readonly at: number
  readonly day: number
  readonly requests: number
  readonly resetMs: number
  readonly reservations: number
  readonly dayEndsInMs: number
}

/** Cache of accounts' last counters, so that the quota status needs no round trip. */
type StatusCache = {
  note(accountId: string, noted: CachedStatus): void
  /** Returns the counters as replied; null = none. */
  last(accountId: string): CachedStatus | null
  /** Returns the quota status now; null = no counters were replied. */
  now(accountId: string, limits: Limits): QuotaStatus | null
}

const minuteMs = 60_000

/** Creates an empty cache. The least recently updated accounts are evicted first. */
export function createStatusCache(clock: Pick<Clock, 'now'>): StatusCache {
  const memory = new Map<string, CachedStatus>()
  return {
    note: (accountId, noted) => setBounded(memory, accountId, noted, maximumAccounts),
    last: accountId => memory.get(accountId) ?? null,
    now(accountId, limits) {
      const noted = memory.get(accountId)
      return noted === undefined ? null : quotaStatusAfter(noted, clock.now() - noted.at, limits)
    },
  }
}

/** Counters of an account at `at`, the store's time, after it has settled a request. */
type SettledCounters = DailyUsage & { readonly day: number; readonly reservations: number; readonly at: number }

/** Returns the counters after a settlement. The store does not return the requests of the minute. */
export function afterSettlement(noted: CachedStatus | null, settled: SettledCounters, now: number): CachedStatus {
  const day = formatDay(settled.at)
  // The store may still hold the previous day; the next admission updates it.
  const used = settled.day === day ? settled : nothing
  return {
    at: now,
    day,
    requests: noted?.requests ?? 0,
    resetMs: noted === null ? 0 : Math.max(0, noted.resetMs - (now - noted.at)),
    tokens: used.tokens,
    microcents: used.microcents,
    reservations: settled.reservations,
    dayEndsInMs: dayMs - (settled.at % dayMs),
  }
}

/** Returns the counters after the release of a reservation whose reply contains no counters. */
export function afterRelease(noted: CachedStatus, reservation: Reservation, spent: DailyUsage): CachedStatus {
  const isToday = noted.day === reservation.day
  return {
    ...noted,
    reservations: Math.max(0, noted.reservations - 1),
    tokens: isToday ? noted.tokens - reservation.reservedTokens + spent.tokens : noted.tokens,
    microcents: isToday ? noted.microcents - reservation.reservedMicrocents + spent.microcents : noted.microcents,
  }
}

/** Returns the quota status of an account without usage. */
export function untouched(limits: Limits): QuotaStatus {
  return {
    requests: { limit: limits.requestsPerMinute, remaining: limits.requestsPerMinute, resetMs: 0 },
    tokens: { limit: limits.dailyTokens, remaining: limits.dailyTokens, resetMs: minuteMs },
    costMicrocents: { limit: limits.dailyCostMicrocents, remaining: limits.dailyCostMicrocents },
    reservations: { limit: limits.concurrentRequests, remaining: limits.concurrentRequests },
  }
}

function quotaStatusAfter(noted: CachedStatus, elapsed: number, limits: Limits): QuotaStatus {
  const sameDay = elapsed < noted.dayEndsInMs
  const resetMs = Math.max(0, noted.resetMs - elapsed)
  return {
    requests: {
      limit: limits.requestsPerMinute,
      remaining: left(limits.requestsPerMinute, resetMs === 0 ? 0 : noted.requests),
      resetMs,
    },
    tokens: {
      limit: limits.dailyTokens,
      remaining: left(limits.dailyTokens, sameDay ? noted.tokens : 0),
      resetMs: sameDay ? noted.dayEndsInMs - elapsed : dayMs - ((elapsed - noted.dayEndsInMs) % dayMs),
    },
    costMicrocents: {
      limit: limits.dailyCostMicrocents,
      remaining: left(limits.dailyCostMicrocents, sameDay ? noted.microcents : 0),
    },
    reservations: { limit: limits.concurrentRequests, remaining: left(limits.concurrentRequests, noted.reservations) },
  }
}

const left = (limit: number, used: number) => Math.max(0, limit - used)
