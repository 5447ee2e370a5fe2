/** Converts a thrown value to the API's error body. Clients see only the texts of a `GatewayError`. */

import type { RateLimiter, RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { Clock, Log } from '../core/ports.ts'
import { errorBody, GatewayError } from '../core/validation/errors.ts'
import { ipRateLimitedError } from './rate-limits.ts'

/** Returns the error that clients see: an unknown failure becomes a 503 without its cause. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  const detail = thrown instanceof Error ? `${thrown.name}: ${thrown.message}`.slice(0, 500) : 'a thrown value'
  return new GatewayError(
    'service_unavailable',
    'Internal error. Retry; if it persists, give the request ID to the operator.',
    {
      retryAfterMs: 1000,
      detail,
    },
  )
}

/**
 * Returns the error of a request that failed after the model had answered. What arrived is billed, so no client library
 * may repeat the request on its own.
 */
export function toBilledError(thrown: unknown): GatewayError {
  const error = toGatewayError(thrown)
  if (error.status !== 503) return error
  return new GatewayError(
    'upstream_failed',
    'The model answered, and the response was lost in the gateway. What it generated is billed. Send the request again only if you need the output.',
    { shouldRetry: false, detail: error.detail ?? error.message },
  )
}

/**
 * Builds the whole error response: status, body, and the headers that tell client libraries whether and when to retry.
 */
export function errorResponse(error: GatewayError, requestId: string): Response {
  const headers = new Headers({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...error.headers,
  })
  writeRetry(headers, error)
  if (error.limit !== null) headers.set('x-gateway-limit', error.limit)
  if (error.attempts !== null) headers.set('x-gateway-attempts', String(error.attempts.length))
  if (error.status === 401) headers.set('www-authenticate', 'Bearer')
  return new Response(JSON.stringify(errorBody(error, requestId)), { status: error.status, headers })
}

/** Sets the headers that tell client libraries whether and when to retry. */
function writeRetry(headers: Headers, error: GatewayError): void {
  const waits = error.status === 429 || error.status === 503
  const retryAfterMs = error.retryAfterMs ?? (waits ? 1000 : null)
  if (retryAfterMs !== null) {
    headers.set('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1000))))
    headers.set('retry-after-ms', String(Math.max(1, Math.ceil(retryAfterMs))))
  }
  if (error.shouldRetry !== null) headers.set('x-should-retry', String(error.shouldRetry))
}

/**
 * Handles an error on its way to the client: logs and counts it, and limits the rate of IP addresses with many failed
 * credentials.
 */

/**
 * Limit for failed credentials: far above the rate of mistakes and far below that of guessing. Valid credentials are
 * not counted.
 */
const refusedCredentials = { perMinute: 60, burst: 100 }

const rejectionsLoggedEveryMs = 1_000

type FailureDeps = {
  readonly limits: RateLimiterFactory
  readonly clock: Pick<Clock, 'monotonic'>
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
