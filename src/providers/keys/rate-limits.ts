/**
 * Limits of an upstream: read from `x-ratelimit-*` (OpenAI and compatible servers) and `anthropic-ratelimit-*`, and
 * counted between two responses. Google sends none.
 */

/** Requests and tokens per minute; null = not limited. */
export type Quota = { readonly requests: number | null; readonly tokens: number | null }

/** What an upstream reports about one quota. */
type ReportedQuota = {
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the whole limit is available again. */
  readonly resetMs: number
}

export type ReportedQuotas = { readonly requests: ReportedQuota | null; readonly tokens: ReportedQuota | null }

const usualResetMs = 60_000
/** A daily limit is no quota per minute, and a wrong header must not stop a key for long. */
const maximumResetMs = 600_000

/** Returns the reported quotas; null = the response has no such headers. */
export function readRateHeaders(headers: Headers): ReportedQuotas | null {
  const prefix =
    headers.has('x-ratelimit-remaining-requests') || headers.has('x-ratelimit-remaining-tokens')
      ? 'x-ratelimit-'
      : 'anthropic-ratelimit-'
  const quotas = { requests: readQuota(headers, prefix, 'requests'), tokens: readQuota(headers, prefix, 'tokens') }
  return quotas.requests === null && quotas.tokens === null ? null : quotas
}

function readQuota(headers: Headers, prefix: string, unit: 'requests' | 'tokens'): ReportedQuota | null {
  const isAnthropic = prefix.startsWith('anthropic')
  const named = (part: string) => headers.get(isAnthropic ? `${prefix}${unit}-${part}` : `${prefix}${part}-${unit}`)
  const remaining = findCount(named('remaining'))
  if (remaining === null) return null
  const limit = Math.max(remaining, findCount(named('limit')) ?? remaining)
  const reset = isAnthropic ? untilTime(named('reset'), headers.get('date')) : durationMs(named('reset'))
  return { limit, remaining, resetMs: Math.min(maximumResetMs, reset ?? usualResetMs) }
}

function findCount(value: string | null): number | null {
  return value !== null && /^\s*\d{1,15}\s*$/.test(value) ? Number(value) : null
}

/** RFC 3339 relative to the response's own date, since an adapter has no clock. */
function untilTime(value: string | null, date: string | null): number | null {
  const wait = Date.parse(value ?? '') - Date.parse(date ?? '')
  return Number.isFinite(wait) ? Math.max(0, wait) : null
}

const unitMs: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** `6m0s`, `120ms`, `1.5s`; a bare number is seconds. Null = not readable. */
function durationMs(value: string | null): number | null {
  const text = value?.trim() ?? ''
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return Number(text) * 1_000
  if (!/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d)){1,5}$/.test(text)) return null
  let milliseconds = 0
  for (const [, amount, unit = ''] of text.matchAll(/([\d.]+)(ms|[smhd])/g))
    milliseconds += Number(amount) * (unitMs.get(unit) ?? 0)
  return milliseconds
}

/** An amount per minute as upstreams reported it, and what remains now; null = not reported. */
export type ReportedLimit = { readonly limit: number; readonly remaining: number } | null

const minuteMs = 60_000
/** More than rounding errors of the arithmetic, less than one request of any quota. */
const roundingError = 1e-6

/** An amount per minute that refills continuously, as one number: the time at which it is full again. */
class Bucket {
  constructor(
    readonly limit: number,
    private readonly perUnitMs: number,
    private fullAt: number,
  ) {}

  static ofReport({ limit, remaining, resetMs }: ReportedQuota, now: number): Bucket {
    const used = resetMs === 0 ? 0 : limit - remaining
    return new Bucket(limit, used > 0 ? resetMs / used : minuteMs / Math.max(1, limit), used > 0 ? now + resetMs : 0)
  }

  /** Returns a bucket of a configured amount, which is full unless a reload replaces an `older` one. */
  static perMinute(limit: number, older: Bucket | null): Bucket {
    return new Bucket(limit, minuteMs / limit, older?.fullAt ?? 0)
  }

  used(now: number): number {
    return Math.min(this.limit, Math.max(0, (this.fullAt - now) / this.perUnitMs))
  }

  /** An amount above the whole limit waits for a full bucket: it is an upper bound, and would otherwise never be sent. */
  waitMs(amount: number, now: number): number {
    const missing = (this.used(now) + Math.min(amount, this.limit) - this.limit) * this.perUnitMs
    return missing <= roundingError ? 0 : Math.ceil(missing - roundingError)
  }

  share(now: number): number {
    return this.limit === 0 ? 1 : 1 - this.used(now) / this.limit
  }

  /** Negative = gives back. */
  draw(amount: number, now: number): void {
    const used = Math.min(this.limit, Math.max(0, this.used(now) + amount))
    this.fullAt = now + used * this.perUnitMs
  }
}

/** Requests and tokens per minute of one account, for one model or for all; null = not limited. */
export class RateLimits {
  constructor(
    readonly requests: Bucket | null,
    readonly tokens: Bucket | null,
  ) {}

  /** Creates configured limits. They are full, or as used as the `older` ones that they replace. */
  static ofQuota({ requests, tokens }: Quota = { requests: null, tokens: null }, older: RateLimits): RateLimits {
    return new RateLimits(
      requests === null ? null : Bucket.perMinute(requests, older.requests),
      tokens === null ? null : Bucket.perMinute(tokens, older.tokens),
    )
  }

  static ofReport({ requests, tokens }: ReportedQuotas, now: number): RateLimits {
    return new RateLimits(requests && Bucket.ofReport(requests, now), tokens && Bucket.ofReport(tokens, now))
  }

  /** Returns the milliseconds until there is room for one request of `tokens`; 0 = now. */
  waitMs(tokens: number, now: number): number {
    return Math.max(this.requests?.waitMs(1, now) ?? 0, this.tokens?.waitMs(tokens, now) ?? 0)
  }

  /** Returns the smaller remaining share, 0–1. */
  share(now: number): number {
    return Math.min(this.requests?.share(now) ?? 1, this.tokens?.share(now) ?? 1)
  }

  /** Draws one request of `tokens`. */
  draw(tokens: number, now: number): void {
    this.requests?.draw(1, now)
    this.tokens?.draw(tokens, now)
  }
}

export const noLimits = new RateLimits(null, null)

/** Returns the sum of the reported amounts at `now`; null = none is reported. */
export function sumOfLimits(limits: readonly RateLimits[], unit: 'requests' | 'tokens', now: number): ReportedLimit {
  const known = limits.map(entry => entry[unit]).filter(bucket => bucket !== null)
  if (known.length === 0) return null
  return {
    limit: known.reduce((sum, { limit }) => sum + limit, 0),
    remaining: Math.floor(known.reduce((sum, bucket) => sum + bucket.limit - bucket.used(now), roundingError)),
  }
}

/** Returns which quotas the upstream reports as too small for a request; both if it reports none. */
export function getShortage(reported: ReportedQuotas | null, tokens: number) {
  const isRequests = reported?.requests != null && reported.requests.remaining < 1
  const isTokens = reported?.tokens != null && reported.tokens.remaining < tokens
  return { requests: isRequests || !isTokens, tokens: isTokens || !isRequests }
}

/** Returns the milliseconds until an exhausted quota is available again; null = none is reported as exhausted. */
export function findReset(reported: ReportedQuotas | null): number | null {
  const resets = [reported?.requests, reported?.tokens].flatMap(quota =>
    quota != null && quota.remaining === 0 ? [quota.resetMs] : [],
  )
  return resets.length === 0 ? null : Math.max(...resets)
}
