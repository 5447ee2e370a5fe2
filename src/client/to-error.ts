/** From what a gateway says went wrong to the error that is thrown for it. */
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
  /** What a failure half-way through a stream would have had. */
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

/** The typed error of a body in the gateway's envelope; of any other body, what its status alone tells. */
export function toError(status: number, body: unknown, headers: Headers): ApiError {
  const told = isEnvelope(body) ? body.error : unknown(status, headers)
  const Thrown = known.get(told.type)?.thrown ?? ApiError
  return new Thrown(status, told, headers)
}

/** The typed error of a stream's `error` event, whose own status has gone by. */
export function toStreamError(body: ErrorBody, headers: Headers): ApiError {
  return toError(known.get(body.error.type)?.status ?? 502, body, headers)
}

function isEnvelope(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'type' in error && 'message' in error
}

/** Something between here and the gateway answered in its place. */
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
