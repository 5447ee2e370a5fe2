import type { Limits } from '../core/limits/plans.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import { maximumAccounts, setBounded } from '../core/text/bounded-map.ts'
import { dayMs } from '../core/text/utc-days.ts'
import type { QuotaStatus } from './meter.ts'

/** Counters of an account as a store last replied them: `at`, by this process' clock, and what is left of minute and day. */
export type CachedStatus = DailyUsage & {
  readonly at: number
  readonly day: number
  readonly requests: number
  readonly resetMs: number
  readonly seats: number
  readonly dayEndsInMs: number
}

/** The last counters of accounts, so that the quota status takes no round trip. */
export type Standings = {
  note(accountId: string, noted: CachedStatus): void
  /** The counters as they were replied; null = never. */
  last(accountId: string): CachedStatus | null
  /** The quota status now; null = no counters were replied. */
  now(accountId: string, limits: Limits): QuotaStatus | null
}

const minuteMs = 60_000

/** Returns an empty memory. It forgets the accounts that were noted longest ago first. */
export function createStandings(clock: { now(): number }): Standings {
  const memory = new Map<string, CachedStatus>()
  return {
    note: (accountId, noted) => setBounded(memory, accountId, noted, maximumAccounts),
    last: accountId => memory.get(accountId) ?? null,
    now(accountId, limits) {
      const noted = memory.get(accountId)
      return noted === undefined ? null : standingAfter(noted, clock.now() - noted.at, limits)
    },
  }
}

/** Returns the quota status of an account without usage. */
export function untouched(limits: Limits): QuotaStatus {
  return {
    requests: { limit: limits.requestsPerMinute, remaining: limits.requestsPerMinute, resetMs: 0 },
    tokens: { limit: limits.dailyTokens, remaining: limits.dailyTokens, resetMs: minuteMs },
    costMicrocents: { limit: limits.dailyCostMicrocents, remaining: limits.dailyCostMicrocents },
    seats: { limit: limits.concurrentRequests, remaining: limits.concurrentRequests },
  }
}

function standingAfter(noted: CachedStatus, elapsed: number, limits: Limits): QuotaStatus {
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
    seats: { limit: limits.concurrentRequests, remaining: left(limits.concurrentRequests, noted.seats) },
  }
}

const left = (limit: number, used: number) => Math.max(0, limit - used)
