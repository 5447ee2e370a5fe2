import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import {
  findIdentifier,
  findRetryAfter,
  kindOfStatus,
  kindsByName,
  providerFailure,
  requestFailure,
  specificKind,
} from '../failure.ts'
import { getText, isRecord, record } from '../json.ts'
import type { ProviderFailure } from '../provider.ts'

const kinds = kindsByName({
  request_refused: 'invalid_request_error',
  credential_refused: 'authentication_error permission_error',
  quota_exhausted: 'billing_error',
  model_missing: 'not_found_error',
  request_too_large: 'request_too_large',
  rate_limited: 'rate_limit_error',
  unavailable: 'api_error',
  timeout: 'timeout_error',
  overloaded: 'overloaded_error',
})

/** Reads a response with a status other than 200. */
export function readAnthropicFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const parsed = parseUntrustedJson(body)
  const error = getError(parsed ?? body)
  const kind = advised(getKind(status, error), headers.get('x-should-retry'))
  const { message } = error
  const failure = requestFailure(kind, getDetail(status, error), { message, retryAfterMs: findRetryAfter(headers) })
  const isOwn = isRecord(parsed) && parsed.type === 'error' && isRecord(parsed.error)
  if (!isOwn || status >= 500 || !aboutRequest.has(kind)) return failure
  const rejectsReasoning = kind === 'request_refused' && badSignature.test(message)
  return { ...failure, ownBody: body, ...(rejectsReasoning && { rejectsReasoning }) }
}

/** An expired signature, or one of another model: "Invalid `signature` in `thinking` block". */
const badSignature = /invalid\W{1,3}signature\W{1,3}in\W{1,3}(?:redacted_)?thinking/i

/** Failures whose text is about the client's own request. Those about credentials and money concern the gateway. */
const aboutRequest: ReadonlySet<AttemptFailure> = new Set([
  'request_refused',
  'context_overflow',
  'content_filtered',
  'request_too_large',
])

/** Reads an error, or an unreadable body, in a response with status 200. */
export function anthropicBodyFailure(body: unknown): ProviderFailure {
  const isError = isRecord(body) && (body.type === 'error' || (body.error !== undefined && body.error !== null))
  if (!isError) return providerFailure('bad_answer', '200 unreadable')
  const error = getError(body)
  return providerFailure(getKind(200, error), getDetail(200, error))
}

/** Adjusts a failure by the API's `x-should-retry` header. */
function advised(kind: AttemptFailure, shouldRetry: string | null): AttemptFailure {
  // A limit that waiting does not lift is not a rate limit: the account's budget is used up.
  if (kind === 'rate_limited' && shouldRetry === 'false') return 'quota_exhausted'
  // If the same request may succeed later, the request was not the cause.
  return kind === 'request_refused' && shouldRetry === 'true' ? 'unavailable' : kind
}

/**
 * Returns the kind of an error. Inside a 200 only its type is available; otherwise the status is more reliable, except
 * for 400.
 */
function getKind(status: number, { type, message }: WireError): AttemptFailure {
  const usual = status === 200 ? 'generation_failed' : kindOfStatus(status)
  const kind = specificKind((status === 200 || status === 400 ? kinds.get(type) : undefined) ?? usual, message)
  if (kind !== 'request_refused') return kind
  if (/credit balance|usage limits|organization has been disabled/i.test(message)) return 'quota_exhausted'
  return /content filtering policy/i.test(message) ? 'content_filtered' : kind
}

type WireError = { readonly type: string | null; readonly message: string }

/** Parses an error of the API or of a proxy before it: nested, flat, in a list, plain text, or empty. */
function getError(body: unknown): WireError {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  const error = record(outer).error ?? outer
  const { type, message, detail } = record(error)
  return { type: findIdentifier(getText(type)), message: getText(message) || getText(detail) || getText(error) }
}

function getDetail(status: number, { type }: WireError): string {
  return `${status} ${type ?? 'without error type'}`
}
