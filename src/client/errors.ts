/** Error classes: errors of the gateway by what to do about them, and failures to reach it. */
import type { Error as ErrorBody } from './wire.ts'

type Told = ErrorBody['error']

/** Base class of all errors of this library except an abort, which throws the caller's own reason. */
export class GatewayError extends Error {
  override readonly name: string = 'GatewayError'
}

/** An error response of the gateway. `message` says what to do next. */
export class ApiError extends GatewayError {
  override readonly name: string = 'ApiError'
  /** HTTP status; for a stream that failed midway, the status that the error would have had. */
  readonly status: number
  readonly type: string
  readonly code: string
  /** Dotted path of the invalid field; null = none. */
  readonly param: string | null
  readonly requestId: string
  /** Seconds after which the same request may succeed; null = not stated. */
  readonly retryAfter: number | null
  /** Whether the gateway recommends a retry; null = not stated. */
  readonly shouldRetry: boolean | null
  /** Models attempted or skipped before the request failed, in order; empty if routing was not reached. */
  readonly attempts: NonNullable<Told['attempts']>
  readonly headers: Headers

  constructor(status: number, told: Told, headers: Headers) {
    super(told.message)
    this.attempts = told.attempts ?? []
    this.status = status
    this.type = told.type
    this.code = told.code
    this.param = told.param
    this.requestId = told.request_id
    this.retryAfter = secondsIn(headers)
    const advice = headers.get('x-should-retry')
    this.shouldRetry = advice === null ? null : advice === 'true'
    this.headers = headers
  }
}

/** 400, 413: the request is invalid; `param` names the field. */
export class InvalidRequestError extends ApiError {
  override readonly name = 'InvalidRequestError'
}

/** 400: moderation blocked the prompt. Not billed. */
export class ContentBlockedError extends ApiError {
  override readonly name = 'ContentBlockedError'
  readonly layer: string | null
  readonly category: string | null

  constructor(status: number, told: Told, headers: Headers) {
    super(status, told, headers)
    this.layer = told.layer ?? null
    this.category = told.category ?? null
  }
}

/** 401: the key or session token is missing, wrong, revoked or expired. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError'
}

/** 402: an invoice is unpaid, there is no payment method, or the key is paused until the end of the UTC day. */
export class PaymentRequiredError extends ApiError {
  override readonly name = 'PaymentRequiredError'
}

/** 403, 421: not allowed for this role, or under this host name. */
export class PermissionDeniedError extends ApiError {
  override readonly name = 'PermissionDeniedError'
}

/** 404: no such model, request, or resource of the account. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
}

/** 409: conflicts with the current state. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** 429: a limit is reached. */
export class RateLimitError extends ApiError {
  override readonly name: string = 'RateLimitError'
  /** Name of the limit: `requests_per_minute`, `concurrent_requests`, `daily_tokens`, `daily_cost`, `monthly_cost` or `ip_rate`. */
  readonly limit: string
  /** Value of the limit; null = not stated. */
  readonly limitValue: number | null

  constructor(status: number, told: Told, headers: Headers) {
    super(status, told, headers)
    this.limit = told.code.replace(/_(exceeded|limited)$/, '')
    this.limitValue = numberIn(headers, headerOfLimit[this.limit] ?? '')
  }
}

/** 429 that a short wait does not resolve: the daily token or cost limit is reached. */
export class QuotaExceededError extends RateLimitError {
  override readonly name = 'QuotaExceededError'
}

/** 502, 503, 504: all candidates failed, none was available, or the gateway itself failed. */
export class UpstreamError extends ApiError {
  override readonly name = 'UpstreamError'
}

/** No response of a gateway: refused, unreachable, or the connection broke. `cause` is the platform's error. */
export class ConnectionError extends GatewayError {
  override readonly name: string = 'ConnectionError'
}

/** Nothing arrived within `timeoutMs`. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError'
}

/** A stream ended without its `done` event: the output is incomplete. */
export class IncompleteStreamError extends ConnectionError {
  override readonly name = 'IncompleteStreamError'
}

const headerOfLimit: Readonly<Record<string, string>> = {
  requests_per_minute: 'x-ratelimit-limit-requests',
  daily_tokens: 'x-ratelimit-limit-tokens',
}

function secondsIn(headers: Headers): number | null {
  const milliseconds = numberIn(headers, 'retry-after-ms')
  return milliseconds === null ? numberIn(headers, 'retry-after') : milliseconds / 1000
}

function numberIn(headers: Headers, name: string): number | null {
  const text = name === '' ? null : headers.get(name)
  const value = text === null ? Number.NaN : Number(text)
  return Number.isFinite(value) && value >= 0 ? value : null
}
