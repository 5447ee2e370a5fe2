/** Converts error responses of a gateway to error classes. */
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  ContentBlockedError,
  InvalidRequestError,
  NotFoundError,
  PaymentRequiredError,
  PermissionDeniedError,
  QuotaExceededError,
  RateLimitError,
  UpstreamError,
} from './errors.ts'
import type { Error as ErrorBody } from './wire.ts'

type ErrorPayload = ErrorBody['error']
type Row = {
  readonly thrown: new (status: number, told: ErrorPayload, headers: Headers) => ApiError
  /** For a failure midway through a stream: the status that it would have had. */
  readonly status: number
}

const rows: Readonly<Record<ErrorPayload['type'], Row>> = {
  invalid_request_error: { thrown: InvalidRequestError, status: 400 },
  content_policy_violation: { thrown: ContentBlockedError, status: 400 },
  authentication_error: { thrown: AuthenticationError, status: 401 },
  billing_error: { thrown: PaymentRequiredError, status: 402 },
  permission_error: { thrown: PermissionDeniedError, status: 403 },
  not_found_error: { thrown: NotFoundError, status: 404 },
  conflict_error: { thrown: ConflictError, status: 409 },
  rate_limit_error: { thrown: RateLimitError, status: 429 },
  insufficient_quota: { thrown: QuotaExceededError, status: 429 },
  upstream_error: { thrown: UpstreamError, status: 502 },
}
const known: ReadonlyMap<string, Row> = new Map(Object.entries(rows))

/** Returns the typed error of a body in the gateway's format; for other bodies, an error by status. */
export function toError(status: number, body: unknown, headers: Headers): ApiError {
  const told = isEnvelope(body) ? body.error : unknown(status, headers)
  const Thrown = known.get(told.type)?.thrown ?? ApiError
  return new Thrown(status, told, headers)
}

/** Returns the typed error of a stream's `error` event, which has no HTTP status of its own. */
export function toStreamError(body: ErrorBody, headers: Headers): ApiError {
  return toError(known.get(body.error.type)?.status ?? 502, body, headers)
}

function isEnvelope(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'type' in error && 'message' in error
}

/** Builds the error for a response of a proxy in front of the gateway. */
function unknown(status: number, headers: Headers): ErrorPayload {
  const types = Object.keys(rows) as ErrorPayload['type'][]
  return {
    type: types.find(type => rows[type].status === status) ?? 'upstream_error',
    code: 'service_unavailable',
    message: `What answered in the gateway’s place said ${status}, and nothing else.`,
    param: null,
    request_id: headers.get('x-request-id') ?? '',
  }
}
