/**
 * Counters of one account in one process: admissions of the last minute, open reservations, and spent plus reserved
 * usage per day.
 */

import type { Limits, QuotaStatus } from '../../core/limits/plans.ts'
import { createWindowLog, type SlidingWindowLog } from '../../core/limits/rate-limits.ts'
import { formatDay, untilMidnight } from '../../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../../core/usage/usage-record.ts'
import type { PendingCheckpoint } from '../checkpoint-batch.ts'
import type { OpenReservation } from '../meter.ts'
import { countInScopes, type ScopeCounters } from './scopes.ts'

export type LocalAccount = {
  readonly requests: SlidingWindowLog
  /** In order of admission. */
  readonly reservations: Map<string, Held>
  lapsedReservations: number
  readonly days: Map<number, Counters>
  /** Limited keys and tags, by name. */
  readonly scopes: Map<string, ScopeCounters>
  usedAt: number
}
type Held = Omit<OpenReservation, keyof PendingCheckpoint> & PendingCheckpoint & { lapsed: boolean }
/** Spent plus reserved usage. */
type Counters = { tokens: number; microcents: number }

const minuteMs = 60_000
const leaseMs = 15 * minuteMs

/** Creates an account without reservations and with `spent` usage of the day. */
export function newAccount(day: number, spent: DailyUsage, now: number): LocalAccount {
  return {
    requests: createWindowLog(minuteMs),
    reservations: new Map(),
    lapsedReservations: 0,
    days: new Map([[day, { ...spent }]]),
    scopes: new Map(),
    usedAt: now,
  }
}

/** Releases reservations of requests that never ended, long after the longest request, with what they reserve. */
export function releaseExpired(account: LocalAccount, now: number): void {
  for (const held of account.reservations.values()) {
    if (held.lapsed) continue
    if (held.admittedAt > now - leaseMs) return
    held.lapsed = true
    account.lapsedReservations++
    releaseReserved(account, held, nothing)
  }
}

/** Replaces what a request reserves by `spent`, in the counters of the account and of its scopes. */
export function releaseReserved(account: LocalAccount, { reservation, scopes }: Held, spent: DailyUsage): void {
  const more = {
    tokens: spent.tokens - reservation.reservedTokens,
    microcents: spent.microcents - reservation.reservedMicrocents,
  }
  addUsage(account, { reservation, scopes }, more)
  countInScopes(account.scopes, scopes, { open: -1 })
}

/** Adds to the counters of a request's day: those of its account and of its scopes. */
export function addUsage(
  account: LocalAccount,
  { reservation, scopes }: Pick<Held, 'reservation' | 'scopes'>,
  more: DailyUsage,
): void {
  const counters = getCounters(account, reservation.day)
  counters.tokens += more.tokens
  counters.microcents += more.microcents
  countInScopes(account.scopes, scopes, { day: reservation.day, more })
}

/**
 * Returns the counters of a day. A new day starts at 0. Earlier days are removed when no reservation can settle on
 * them.
 */
export function getCounters(account: LocalAccount, day: number): Counters {
  const counters = account.days.get(day)
  if (counters !== undefined) return counters
  const held = new Set([...account.reservations.values()].map(reservation => reservation.reservation.day))
  for (const earlier of account.days.keys()) if (!held.has(earlier)) account.days.delete(earlier)
  const fresh = { tokens: 0, microcents: 0 }
  account.days.set(day, fresh)
  return fresh
}

/** Returns the number of open reservations. */
export function countOpenReservations(account: LocalAccount): number {
  return account.reservations.size - account.lapsedReservations
}

export function getQuotaStatus(account: LocalAccount, limits: Limits, now: number): QuotaStatus {
  const counters = account.days.get(formatDay(now))
  return {
    requests: {
      limit: limits.requestsPerMinute,
      remaining: left(limits.requestsPerMinute, account.requests.count(now)),
      resetMs: account.requests.waitUntilEmpty(now),
    },
    tokens: {
      limit: limits.dailyTokens,
      remaining: left(limits.dailyTokens, counters?.tokens ?? 0),
      resetMs: untilMidnight(now),
    },
    costMicrocents: {
      limit: limits.dailyCostMicrocents,
      remaining: left(limits.dailyCostMicrocents, counters?.microcents ?? 0),
    },
    reservations: {
      limit: limits.concurrentRequests,
      remaining: left(limits.concurrentRequests, countOpenReservations(account)),
    },
  }
}

const left = (limit: number, used: number) => Math.max(0, limit - used)
