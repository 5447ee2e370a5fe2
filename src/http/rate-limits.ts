import type { RateLimiter, RateLimiterFactory } from '../core/limits/rate-limits.ts'
import { fixedLimit, GatewayError } from '../core/validation/errors.ts'

/**
 * Counts one use of a free endpoint by an account. `perMinute` and `what` (such as "token counts") name the limit in the error;
 * `setting` is the variable that sets it, if any.
 * Throws 429 `requests_per_minute_exceeded` if it is reached.
 */
export async function enforceAccountLimit(
  limiter: RateLimiter,
  accountId: string,
  { perMinute, what, setting }: { readonly perMinute: number; readonly what: string; readonly setting?: string },
): Promise<void> {
  const retryAfterMs = await limiter.take(accountId)
  if (retryAfterMs === 0) return
  const message = `Rate limit reached: ${perMinute} ${what} per minute. Retry after the time in the retry-after header.`
  const remedy =
    setting === undefined ? fixedLimit : `The operator of this gateway can change it: the variable \`${setting}\`.`
  throw new GatewayError('requests_per_minute_exceeded', message, { retryAfterMs, remedy })
}

/** Counts one call of a token-counting endpoint for an account. Throws 429 `requests_per_minute_exceeded` if the limit is reached. */
export type TokenCountLimit = (accountId: string) => Promise<void>

/** A client that shows the parts of its context counts a dozen of them concurrently. */
const tokenCountBurst = 60

/** Creates the one limit of all endpoints that count tokens: a count is free and uses up none of the account's limits. */
export function createTokenCountLimit(limits: RateLimiterFactory, perMinute: number): TokenCountLimit {
  const limiter = limits('token_counts', { perMinute, burst: Math.min(tokenCountBurst, perMinute) })
  return accountId =>
    enforceAccountLimit(limiter, accountId, {
      perMinute,
      what: 'token counts',
      setting: 'TOKEN_COUNTS_PER_MINUTE',
    })
}

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

/**
 * Runs work after the response, so that the response time does not reveal whether there was work. Bounded: beyond
 * `maximum` concurrent tasks the work is dropped, as if its email had been lost.
 */
export function createBehindAnswer(maximum: number, failed: () => void): (work: () => Promise<unknown>) => void {
  let running = 0
  return work => {
    if (running >= maximum) return
    running++
    work()
      .catch(failed)
      .finally(() => {
        running--
      })
  }
}
