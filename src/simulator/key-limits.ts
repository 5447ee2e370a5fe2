/** Rate limits per API key, as the providers keep and report them: a bucket of requests and one of tokens per key. */
import type { RawRequest } from './request.ts'
import type { Failure, SimulatedFormat, SimulatedResponse } from './wire-format.ts'

type Bucket = { left: number; at: number }
type KeyUse = { readonly requests: Bucket; readonly tokens: Bucket }
type Limits = { readonly rpm: number | null; readonly tpm: number | null }

/** A request that passed or failed the limits of its key, and the headers of its response. */
export type KeyVerdict = { readonly failure: Failure | null; readonly headers: Readonly<Record<string, string>> }

const maximumKeys = 10_000

/** Returns the API key of a request; empty = it has none. */
export function keyOf({ headers }: RawRequest): string {
  return headers.authorization?.replace(/^Bearer +/i, '') ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? ''
}

/** Creates the limits of all keys. A key's buckets begin full. `now` in epoch milliseconds. */
export function createKeyLimits(now: () => number) {
  const uses = new Map<string, KeyUse>()

  return (key: string, face: SimulatedFormat, turn: SimulatedResponse): KeyVerdict => {
    const { rpm = null, tpm = null } = turn.directives
    if (rpm === null && tpm === null) return { failure: null, headers: {} }
    const limits = { rpm, tpm }
    const at = now()
    if (uses.size > maximumKeys) uses.clear()
    const use = uses.get(key) ?? { requests: { left: rpm ?? 0, at }, tokens: { left: tpm ?? 0, at } }
    uses.set(key, use)
    if (rpm !== null) refill(use.requests, rpm, at)
    if (tpm !== null) refill(use.tokens, tpm, at)
    const tokens = tokensOf(turn)
    const missing = [
      rpm === null ? 0 : waitMs(use.requests, rpm, 1),
      // A request above the whole limit is rejected as long as the bucket is not full.
      tpm === null ? 0 : waitMs(use.tokens, tpm, Math.min(tokens, tpm)),
    ] as const
    const wait = Math.max(...missing)
    if (wait === 0) {
      use.requests.left -= 1
      use.tokens.left = Math.max(0, use.tokens.left - tokens)
    }
    const unit =
      missing[0] >= missing[1] ? `requests per min (RPM): Limit ${rpm}` : `tokens per min (TPM): Limit ${tpm}`
    const failure: Failure = {
      kind: 'by_status',
      status: 429,
      message: `Rate limit reached for ${turn.question.model} on ${unit}. Please try again in ${wait}ms.`,
      param: null,
      retryAfterSeconds: Math.ceil(wait / 1_000),
    }
    return { failure: wait === 0 ? null : failure, headers: headersOf(face, limits, use, at) }
  }
}

function refill(bucket: Bucket, perMinute: number, at: number): void {
  bucket.left = Math.min(perMinute, bucket.left + ((at - bucket.at) * perMinute) / 60_000)
  bucket.at = at
}

function waitMs({ left }: Bucket, perMinute: number, amount: number): number {
  return left + 1e-9 >= amount ? 0 : Math.ceil(((amount - left) * 60_000) / perMinute)
}

/** The tokens that the response will have used. */
function tokensOf({ usage, question }: SimulatedResponse): number {
  const counted = [usage?.input, usage?.output].map(count => (typeof count === 'number' ? count : 0))
  return counted.reduce((sum, count) => sum + count, 0) || question.inputTokens
}

/** Google sends no such headers. */
function headersOf(
  { provider }: SimulatedFormat,
  { rpm, tpm }: Limits,
  { requests, tokens }: KeyUse,
  at: number,
): Readonly<Record<string, string>> {
  if (provider === 'google') return {}
  const pairs: Record<string, string> = provider === 'anthropic' ? { date: new Date(at).toUTCString() } : {}
  for (const [unit, perMinute, { left }] of [
    ['requests', rpm, requests],
    ['tokens', tpm, tokens],
  ] as const) {
    if (perMinute === null) continue
    const remaining = String(Math.floor(left))
    const resetMs = Math.ceil(((perMinute - left) * 60_000) / perMinute)
    if (provider === 'anthropic') {
      pairs[`anthropic-ratelimit-${unit}-limit`] = String(perMinute)
      pairs[`anthropic-ratelimit-${unit}-remaining`] = remaining
      pairs[`anthropic-ratelimit-${unit}-reset`] = new Date(at + resetMs).toISOString()
    } else {
      pairs[`x-ratelimit-limit-${unit}`] = String(perMinute)
      pairs[`x-ratelimit-remaining-${unit}`] = remaining
      pairs[`x-ratelimit-reset-${unit}`] = `${resetMs}ms`
    }
  }
  return pairs
}
