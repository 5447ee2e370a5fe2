/** Converts a thrown value to the API's error body. Clients see only the texts of a `GatewayError`. */
import { errorBody, GatewayError } from '../core/validation/errors.ts'

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
