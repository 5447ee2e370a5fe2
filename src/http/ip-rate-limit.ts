import type { RateLimiter } from '../core/limits/rate-limits.ts'
import { GatewayError } from '../core/validation/errors.ts'

/** Error for an IP address over its limit, or for all. `shouldRetry` is the hint for client libraries, null = they decide. */
export function ipRateLimitedError(
  retryAfterMs: number,
  shouldRetry: boolean | null = null,
  source: 'from this IP address' | 'of all clients' = 'from this IP address',
): GatewayError {
  return new GatewayError(
    'ip_rate_limited',
    `Too many requests ${source}. Retry after the time in the retry-after header.`,
    { retryAfterMs, shouldRetry },
  )
}

/** Counts one request of an IP address. Throws `ip_rate_limited` if its limit is reached. */
export async function enforceIpLimit(limit: RateLimiter, address: string): Promise<void> {
  const wait = await limit.take(address)
  if (wait > 0) throw ipRateLimitedError(wait)
}
