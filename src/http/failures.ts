/**
 * Handles an error on its way to the client: logs and counts it, and limits the rate of IP addresses with many failed
 * credentials.
 */
import type { RateLimiter, RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { Log } from '../core/ports.ts'
import type { GatewayError } from '../core/validation/errors.ts'
import { ipRateLimitedError } from './rate-limits.ts'

/**
 * Limit for failed credentials: far above the rate of mistakes and far below that of guessing. Valid credentials are
 * not counted.
 */
const refusedCredentials = { perMinute: 60, burst: 100 }

const rejectionsLoggedEveryMs = 1_000

type FailureDeps = {
  readonly limits: RateLimiterFactory
  readonly clock: { monotonic(): number }
  readonly log: Pick<Log, 'debug' | 'error'>
  /** Counts an error response, of a chat route or of another route. */
  readonly observe: { failed(surface: 'chat' | 'other', error: GatewayError): void }
}

export type Failures = {
  /** Counts unknown credentials per IP address. */
  readonly strangers: RateLimiter
  /** Returns the error that the client receives in place of `error`. */
  toClientError(error: GatewayError, address: () => string): Promise<GatewayError>
  /** Logs and counts an error response. */
  report(surface: 'chat' | 'other', requestId: string, error: GatewayError): void
  /**
   * Counts a rejection. Logs their number at most once per second: a log line per rejection would add to the overload.
   */
  countRejection(error: GatewayError): void
}

/** Counts failed credentials against one limit of this process, or of all processes that share limits. */
export function createFailures({ limits, clock, log, observe }: FailureDeps): Failures {
  const strangers = limits('refused', refusedCredentials)
  let rejections = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    strangers,
    async toClientError(error, address) {
      // An unknown key was counted before its lookup.
      const wait = error.status === 401 && error.code !== 'invalid_api_key' ? await strangers.take(address()) : 0
      // A retry with the same credential would fail again.
      return wait === 0 ? error : ipRateLimitedError(wait, false)
    },
    report(surface, requestId, error) {
      const fields = { request_id: requestId, code: error.code, status: error.status, detail: error.detail }
      if (error.status >= 500) log.error('request_failed', fields)
      else log.debug('request_rejected', fields)
      observe.failed(surface, error)
    },
    countRejection(error) {
      observe.failed('chat', error)
      rejections++
      if (clock.monotonic() - loggedAt < rejectionsLoggedEveryMs) return
      log.error('overloaded', { failures: rejections })
      loggedAt = clock.monotonic()
      rejections = 0
    },
  }
}
