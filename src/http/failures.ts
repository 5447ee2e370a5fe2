/**
 * What becomes of an error on its way to a client: it is logged and counted, and an address that is refused again and again is
 * told to slow down.
 */
import type { RateLimiter, RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { Log } from '../core/ports/log.ts'
import type { GatewayError } from '../core/validation/errors.ts'
import { ipRateLimitedError } from './ip-rate-limit.ts'

/** Refused credentials. Far above what a mistake makes, far below what guessing needs; a good one is not counted. */
const refusedCredentials = { perMinute: 60, burst: 100 }

const rejectionsLoggedEveryMs = 1_000

type FailureDeps = {
  readonly limits: RateLimiterFactory
  readonly clock: { monotonic(): number }
  readonly log: Pick<Log, 'debug' | 'error'>
  /** Counts an error that a client got: on a chat route, or on any other. */
  readonly observe: { failed(surface: 'chat' | 'other', error: GatewayError): void }
}

export type Failures = {
  /** Counts, by address, credentials that this process does not know. */
  readonly strangers: RateLimiter
  /** Returns the error that the client gets in place of `error`. */
  toClientError(error: GatewayError, address: () => string): Promise<GatewayError>
  /** Logs and counts an error that a client gets. */
  report(surface: 'chat' | 'other', requestId: string, error: GatewayError): void
  /** Counts a rejection, and logs how many there were at most once per second: a line for each would be part of the overload. */
  countRejection(error: GatewayError): void
}

/** Counts refused credentials under one limit of the process, or of all that share their limits. */
export function createFailures({ limits, clock, log, observe }: FailureDeps): Failures {
  const strangers = limits('refused', refusedCredentials)
  let rejections = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    strangers,
    async toClientError(error, address) {
      // A key that is not known was counted before it was looked up.
      const wait = error.status === 401 && error.code !== 'invalid_api_key' ? await strangers.take(address()) : 0
      // The same credential would be refused again.
      return wait === 0 ? error : ipRateLimitedError(wait, false)
    },
    report(surface, requestId, error) {
      const fields = { request_id: requestId, code: error.code, status: error.status, detail: error.detail }
      if (error.status >= 500) log.error('request_failed', fields)
      else log.debug('request_refused', fields)
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
