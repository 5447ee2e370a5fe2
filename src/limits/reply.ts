/** Reply to an admission: the same numbers in the same order from Redis' script and Postgres' function. */

import { untilNextMonth } from '../core/limits/scopes.ts'
import { dayMs, formatDay } from '../core/text/utc-days.ts'
import type { AdmissionRequest, LimitErrorCode, Reservation } from './meter.ts'
import type { CachedStatus } from './quota-status-cache.ts'

export type Numbers = readonly [
  ...(readonly [number, number, number, number, number, number, number]),
  ...(readonly [number, number, number, number, number, number, number]),
  number,
]

/** The store does not decide under the given epoch. */
export class StaleEpoch extends Error {
  constructor() {
    super('another epoch of the limit authority')
    this.name = 'StaleEpoch'
  }
}

const refusals: readonly (LimitErrorCode | null)[] = [
  null,
  null,
  'requests_per_minute_exceeded',
  'concurrent_requests_exceeded',
  'daily_tokens_exceeded',
  'daily_cost_exceeded',
  'monthly_cost_exceeded',
]

/** Returns a reply as numbers; missing ones are 0. */
export function getNumbers(reply: readonly unknown[]): Numbers {
  const at = (index: number) => Number(reply[index] ?? 0)
  return [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11), at(12), at(13), at(14)]
}

/** Returns a store's decision on `request` and the account's counters after it. `now` is this process's time in ms. */
export function getDecision(request: AdmissionRequest, numbers: Numbers, now: number) {
  const { requestId, accountId, scopes } = request
  const [status, wait, outputCap, reservedTokens, reservedMicrocents, day, , , , , , at, , , place] = numbers
  const code = refusals[status] ?? null
  // The stores know no calendar beyond the present month.
  const waitMs = code === 'monthly_cost_exceeded' ? untilNextMonth(at) : wait
  const scope = scopes?.[place - 1]?.name ?? null
  const reservation: Reservation = { requestId, accountId, outputCap, reservedTokens, reservedMicrocents, day }
  return {
    code,
    scope,
    retryAfterMs: Math.max(1, Math.ceil(waitMs)),
    reservation,
    noted: getCachedStatus(numbers, now),
  }
}

/** Returns the status to cache for the account of a reply. `now` is this process's time in ms. */
export function getCachedStatus(numbers: Numbers, now: number): CachedStatus {
  const [, , , , , , requests, resetMs, tokens, microcents, reservations, at] = numbers
  return {
    at: now,
    day: formatDay(at),
    requests,
    resetMs,
    tokens,
    microcents,
    reservations,
    dayEndsInMs: dayMs - (at % dayMs),
  }
}
