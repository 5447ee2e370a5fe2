import { dayMs, dayOf } from '../../core/days.ts'
import type { Limits } from '../../core/plans.ts'
import type { Standing } from '../meter.ts'
import { maximumAccounts, remember } from '../remember.ts'
import type { Settled, Spent } from './spent.ts'

/** What was said of an account: `at`, by this process' clock, and how long minute and day went on from there. */
export type Noted = Spent & {
  readonly at: number
  readonly day: number
  readonly requests: number
  readonly resetMs: number
  readonly seats: number
  readonly dayEndsInMs: number
  readonly settled: Spent
}

/** What Redis last said of accounts, so that asking for a standing is no round trip. */
export type Standings = {
  note(accountId: string, noted: Noted): void
  /** As it was said; null = never. */
  last(accountId: string): Noted | null
  /** What was used of today when it was said; null = never said, or on another day. */
  lastSpent(accountId: string): Spent | null
  /** What was said to be settled of these accounts. */
  lastSettled(isWanted: (accountId: string) => boolean): Map<string, Settled>
  /** As it is by now; null = never heard of. */
  now(accountId: string, limits: Limits): Standing | null
}

const minuteMs = 60_000

/** Those heard of longest ago are forgotten first. */
export function createStandings(clock: { now(): number }): Standings {
  const memory = new Map<string, Noted>()
  return {
    note: (accountId, noted) => remember(memory, accountId, noted, maximumAccounts),
    last: accountId => memory.get(accountId) ?? null,
    lastSpent(accountId) {
      const noted = memory.get(accountId)
      return noted === undefined || noted.day !== dayOf(clock.now()) ? null : noted
    },
    lastSettled(isWanted) {
      const known = new Map<string, Settled>()
      for (const [accountId, { day, settled }] of memory)
        if (isWanted(accountId)) known.set(accountId, { ...settled, day })
      return known
    },
    now(accountId, limits) {
      const noted = memory.get(accountId)
      return noted === undefined ? null : standingAfter(noted, clock.now() - noted.at, limits)
    },
  }
}

/** Of an account that nothing is used of. */
export function untouched(limits: Limits): Standing {
  return {
    requests: { limit: limits.requestsPerMinute, remaining: limits.requestsPerMinute, resetMs: 0 },
    tokens: { limit: limits.dailyTokens, remaining: limits.dailyTokens, resetMs: minuteMs },
    costMicrocents: { limit: limits.dailyCostMicrocents, remaining: limits.dailyCostMicrocents },
    seats: { limit: limits.concurrentRequests, remaining: limits.concurrentRequests },
  }
}

function standingAfter(noted: Noted, elapsed: number, limits: Limits): Standing {
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

/** Of an account that nobody here has heard of. */
export const noStanding: Standing = {
  requests: { limit: 0, remaining: 0, resetMs: 0 },
  tokens: { limit: 0, remaining: 0, resetMs: 0 },
  costMicrocents: { limit: 0, remaining: 0 },
  seats: { limit: 0, remaining: 0 },
}
