import type { RateLimiter } from '../core/limits/rate-limits.ts'
import { GatewayError } from '../core/validation/errors.ts'

/** The refusal of an address that asks too often; `shouldRetry` as client libraries are told, null = as they see fit. */
export function ipRateLimitedError(retryAfterMs: number, shouldRetry: boolean | null = null): GatewayError {
  return new GatewayError(
    'ip_rate_limited',
    'Too many requests from this IP address. Retry after the time in the retry-after header.',
    { retryAfterMs, shouldRetry },
  )
}

/** Counts one request of an address. Throws `ip_rate_limited` where it has had its fill. */
export async function enforceDryRunLimit(limit: RateLimiter, address: string): Promise<void> {
  const wait = await limit.take(address)
  if (wait > 0) throw ipRateLimitedError(wait)
}
