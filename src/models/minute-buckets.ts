/**
 * Upstream quotas per minute as buckets that refill continuously. A bucket is one number, the time at which it is full
 * again; a full one holds one minute of its rate. Exact for a quota that refills, and at most one refused request per
 * wait for one that restarts each minute: its 429 pauses the account.
 */

/** Requests and tokens per minute; null = not limited. */
export type Quota = { readonly requests: number | null; readonly tokens: number | null }

/** Times in milliseconds at which the two buckets of an account are full again. 0 = full. */
export type QuotaUse = { readonly requests: number; readonly tokens: number }

export const unusedQuota: QuotaUse = { requests: 0, tokens: 0 }

const minuteMs = 60_000
/** Tolerance: more than rounding errors of the arithmetic, less than the time of one request at any quota. */
const epsilonMs = 1e-6

/** Returns the milliseconds until the quota has room for one request of `tokens`; 0 = now. */
export function quotaWaitMs(quota: Quota, use: QuotaUse, tokens: number, now: number): number {
  return Math.max(
    bucketWaitMs(quota.requests, use.requests, 1, now),
    bucketWaitMs(quota.tokens, use.tokens, tokens, now),
  )
}

/** An amount above the whole quota waits for a full bucket: its estimate is a bound, and it would never be sent. */
function bucketWaitMs(perMinute: number | null, fullAt: number, amount: number, now: number): number {
  if (perMinute === null) return 0
  const wait = usedMs(fullAt, now) + costMs(perMinute, amount) - minuteMs
  return wait <= epsilonMs ? 0 : Math.ceil(wait)
}

/** Returns the use after one request of `tokens`. */
export function drawQuota(quota: Quota, use: QuotaUse, tokens: number, now: number): QuotaUse {
  return {
    requests: quota.requests === null ? 0 : now + usedMs(use.requests, now) + costMs(quota.requests, 1),
    tokens: quota.tokens === null ? 0 : now + usedMs(use.tokens, now) + costMs(quota.tokens, tokens),
  }
}

/** Buckets that an upstream reports as empty. */
export type Shortage = { readonly requests: boolean; readonly tokens: boolean }

export const completeShortage: Shortage = { requests: true, tokens: true }

/** Returns the use of a quota whose buckets are empty. */
export function emptyQuota(quota: Quota, use: QuotaUse, { requests, tokens }: Shortage, now: number): QuotaUse {
  return {
    requests: requests && quota.requests !== null ? now + minuteMs : use.requests,
    tokens: tokens && quota.tokens !== null ? now + minuteMs : use.tokens,
  }
}

/** Returns the use after `tokens` of a request were given back; negative = it used more than it drew. */
export function correctQuota(quota: Quota, use: QuotaUse, tokens: number, now: number): QuotaUse {
  if (quota.tokens === null) return use
  const used = usedMs(use.tokens, now) - (tokens * minuteMs) / quota.tokens
  return { ...use, tokens: now + Math.min(minuteMs, Math.max(0, used)) }
}

/** Returns the smaller remaining share of the two buckets, 0–1. */
export function remainingShare(quota: Quota, use: QuotaUse, now: number): number {
  const used = Math.max(
    quota.requests === null ? 0 : usedMs(use.requests, now),
    quota.tokens === null ? 0 : usedMs(use.tokens, now),
  )
  return 1 - Math.min(1, used / minuteMs)
}

/** Returns a quota divided among processes that do not know each other's use. */
export function dividedQuota({ requests, tokens }: Quota, processes: number): Quota {
  return {
    requests: requests === null ? null : requests / processes,
    tokens: tokens === null ? null : tokens / processes,
  }
}

function usedMs(fullAt: number, now: number): number {
  return Math.min(minuteMs, Math.max(0, fullAt - now))
}

function costMs(perMinute: number, amount: number): number {
  return Math.min(minuteMs, (amount * minuteMs) / perMinute)
}
