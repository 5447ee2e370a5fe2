/** What can go wrong, as classes: what a gateway refuses by what there is to do about it, and what never reached one. */
import type { Error as ErrorBody } from './wire.ts'

type Told = ErrorBody['error']

/** Every error of this library but an abort, which is the caller's own reason. */
export class GatewayError extends Error {
  override readonly name: string = 'GatewayError'
}

/** A gateway answered, and this is its refusal or failure. `message` says what to do next. */
export class ApiError extends GatewayError {
  override readonly name: string = 'ApiError'
  /** HTTP status; of a stream that failed half-way, the one that it would have had. */
  readonly status: number
  readonly type: string
  readonly code: string
  /** Dotted path of the field at fault, where there is one. */
  readonly param: string | null
  readonly requestId: string
  /** Seconds after which the same request may succeed, where the gateway says. */
  readonly retryAfter: number | null
  /** What the gateway says of trying again; null = nothing. */
  readonly shouldRetry: boolean | null
  /** Models that were asked or skipped before the request failed, in order; empty where it did not come to that. */
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

/** 400, 413: the request itself; `param` names the field. */
export class InvalidRequestError extends ApiError {
  override readonly name = 'InvalidRequestError'
}

/** 400: moderation refused the prompt. Never billed. */
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

/** 401: the key or the session token is missing, wrong, revoked or over. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError'
}

/** 402: an invoice is unpaid, there is no payment method any more, or the operator has to resume the account. */
export class PaymentRequiredError extends ApiError {
  override readonly name = 'PaymentRequiredError'
}

/** 403, 421: not for this role, or not under this host name. */
export class PermissionDeniedError extends ApiError {
  override readonly name = 'PermissionDeniedError'
}

/** 404: no such model, request, or thing of one's own. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
}

/** 409: it is in the way of something that is so already. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** 429: a limit is reached. */
export class RateLimitError extends ApiError {
  override readonly name: string = 'RateLimitError'
  /** Which one: `requests_per_minute`, `concurrent_requests`, `daily_tokens`, `daily_cost` or `ip_rate`. */
  readonly limit: string
  /** How much it allows, where the gateway tells. */
  readonly limitValue: number | null

  constructor(status: number, told: Told, headers: Headers) {
    super(status, told, headers)
    this.limit = told.code.replace(/_(exceeded|limited)$/, '')
    this.limitValue = numberIn(headers, headerOfLimit[this.limit] ?? '')
  }
}

/** 429 that no waiting of seconds helps: tokens or dollars of the day are used up. */
export class QuotaExceededError extends RateLimitError {
  override readonly name = 'QuotaExceededError'
}

/** 502, 503, 504: every candidate failed, none was there, or the gateway itself could not. */
export class UpstreamError extends ApiError {
  override readonly name = 'UpstreamError'
}

/** No gateway answered: refused, unreachable, or the connection broke. `cause` holds what the platform said. */
export class ConnectionError extends GatewayError {
  override readonly name: string = 'ConnectionError'
}

/** Nothing came for as long as `timeoutMs` allows. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError'
}

/** A stream ended without its `done`: what arrived is no whole answer. */
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
