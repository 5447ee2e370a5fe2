/** Writes errors in Anthropic's format. Clients evaluate `error.type`, the status and some of Anthropic's texts. */
import { type ErrorCode, errorBody, errorTable, type GatewayError } from '../../core/validation/errors.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { errorResponse } from '../../http/error-response.ts'
import { isBlockFields } from './blocks.ts'

type Row = readonly [status: number, type: string]

/** Status and type of codes that differ from the other API forms. Source: Anthropic's API reference, "Errors". */
const rows: Partial<Record<ErrorCode, Row>> = {
  // The costs reset at midnight. A client would treat 429 as a rate limit, wait and retry.
  daily_cost_exceeded: [402, 'billing_error'],
  monthly_cost_exceeded: [402, 'billing_error'],
  body_too_large: [413, 'request_too_large'],
  upstream_failed: [502, 'api_error'],
  no_model_available: [529, 'overloaded_error'],
  service_unavailable: [529, 'overloaded_error'],
  upstream_timeout: [504, 'timeout_error'],
}

const typeByStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  409: 'conflict_error',
  413: 'request_too_large',
  421: 'permission_error',
  426: 'invalid_request_error',
  429: 'rate_limit_error',
}

function getRow(code: ErrorCode): Row {
  const { status } = errorTable[code]
  return rows[code] ?? [status, typeByStatus[status] ?? 'api_error']
}

/** Error types of the Messages API. */
export const messagesErrorTypes: readonly string[] = [
  ...new Set([...Object.values(typeByStatus), ...Object.values(rows).map(([, type]) => type)]),
]

/** Returns the status of an error in the Messages API. */
export function getMessagesStatus(code: ErrorCode): number {
  return getRow(code)[0]
}

/** Claude Code compacts its conversation when an error has this text. */
const overflowWords = 'prompt is too long'

function getMessage({ code, message }: GatewayError): string {
  const isOverflow = code === 'context_length_exceeded' && !message.includes(overflowWords)
  return isOverflow ? `${overflowWords}: ${message}` : message
}

/** Returns the error object. If Anthropic rejected the request, returns Anthropic's error. */
export function errorEnvelope(error: GatewayError, requestId: string): object {
  const own = error.upstream === null ? null : parseUntrustedJson(error.upstream.body)
  if (isBlockFields(own)) return own
  const fields = errorBody(error, requestId).error
  return {
    type: 'error',
    error: { ...fields, type: getRow(error.code)[1], message: getMessage(error) },
    request_id: requestId,
  }
}

/** Returns the error response. Anthropic's own error keeps its bytes. */
export function messagesRefusal(error: GatewayError, requestId: string): Response {
  const { headers } = errorResponse(error, requestId)
  headers.set('request-id', requestId)
  if (error.upstream !== null) return new Response(error.upstream.body, { status: error.upstream.status, headers })
  return new Response(JSON.stringify(errorEnvelope(error, requestId)), { status: getRow(error.code)[0], headers })
}
