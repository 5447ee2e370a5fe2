/** All time constants of limits, in milliseconds, the sizes of calls, and what must hold between them. */

import { usualDeadlines } from '../core/request/deadlines.ts'

/** The window of requests per minute. */
export const minuteMs = 60_000
/** How long an instance waits for Redis' answer, in the time of its own event loop. */
export const answerMs = 1_000
/** Interval at which an instance renews its leases and its allowances. */
export const renewMs = 2_000
/** A lease that is not renewed for this long ends: its instance is dead. */
export const leaseMs = 8_000
/** Without any renewal for this long, Redis was away itself: it ends no lease before all had time to be renewed. */
export const silenceMs = 5_000
/** How long Redis must do its work after an outage before it decides again. */
export const returnMs = 2_000
/** Within this time after Redis lost its counters, each instance reports what it holds. Accounts load afterwards. */
export const reportGraceMs = 3_000
/** Use of this long is what an allowance covers, and an allowance of an account without use goes back after it. */
export const useMs = 10_000
/** An allowance that is not renewed for this long is free for others: its instance is dead. */
export const allowanceMs = 600_000
/** Its instance stops to use it this much earlier, since the two clocks differ. */
export const allowanceMarginMs = 30_000
/** A reservation without a settlement ends after this time in process: longer than the longest request. */
export const abandonedMs = 900_000
/** Usage of open requests is written to disk this long after the first report of it. */
export const checkpointAfterMs = 250
/** A record must be durable after this time. */
export const durableMs = 2_000
/** Interval of looking whether Redis does its work again. */
export const lookMs = 100
/** The wait that a rejection names if another request has to end first. */
export const retryMs = 1_000
/** An account without requests for this long may leave the memory of a process without Redis. */
export const idleMs = 600_000
/** Failures of accounts and calls are logged at most once in this time. */
export const failuresLoggedEveryMs = 1_000
/** Redis forgets an account without requests after this time. */
export const keepMs = 172_800_000

/** Redis forgets the notes of an account's conversations after this time without a new one. */
export const notesKeptMs = 12 * 3_600_000

/** Accounts in one call of a report: Redis is blocked for about 5 ms by as many. */
export const accountsPerCall = 100
/** Requests in one call of a report: Redis is blocked for about 20 ms by as many. */
export const requestsPerCall = 1_000

const inequalities = {
  'a decision waits longer than the answer that tells that Redis is away': usualDeadlines.limitsMs > answerMs,
  'a lease outlives two renewals without an answer': leaseMs > 2 * (renewMs + answerMs),
  'one renewal that is missing is no silence': silenceMs > 2 * renewMs,
  'each lease can be renewed after a silence': leaseMs > renewMs + answerMs,
  'each instance notices lost counters before accounts load': reportGraceMs >= renewMs + answerMs,
  'an allowance outlives its last use by its instance': allowanceMarginMs > renewMs + answerMs,
  'an allowance covers an outage from its last renewal on': allowanceMs - allowanceMarginMs > useMs + renewMs,
  'a return takes more than one look': returnMs > lookMs,
  'an idle account has no open request': idleMs > minuteMs,
  'an account outlives its day, its minute and its leases': keepMs > 86_400_000 + minuteMs + leaseMs,
}
for (const [inequality, holds] of Object.entries(inequalities))
  if (!holds) throw new Error(`limits/constants.ts: not true that ${inequality}`)
