/**
 * Reads the rate-limit headers of a response: `x-ratelimit-*` (OpenAI and compatible servers) and
 * `anthropic-ratelimit-*`. Google sends none.
 */

/** What an upstream reports about one quota. */
export type ReportedQuota = {
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
  const remaining = countOf(named('remaining'))
  if (remaining === null) return null
  const limit = Math.max(remaining, countOf(named('limit')) ?? remaining)
  const reset = isAnthropic ? untilTime(named('reset'), headers.get('date')) : durationMs(named('reset'))
  return { limit, remaining, resetMs: Math.min(maximumResetMs, reset ?? usualResetMs) }
}

function countOf(value: string | null): number | null {
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
