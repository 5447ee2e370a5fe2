import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { googleStatuses } from '../../core/chat/google-wire.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { findRetryAfter, kindOfStatus, requestFailure, specificKind } from '../failure.ts'
import { getText, isText, record, records, wholeNumber } from '../json.ts'
import type { ProviderFailure } from '../provider.ts'

/** Reads a response with a status other than 200. */
export function readGoogleFailure(status: number, headers: Headers, body: string): ProviderFailure {
  return getRefusal(errorIn(parseUntrustedJson(body)), status, findRetryAfter(headers))
}

/** Reads an error in place of a response, with its status as a code, a word, or missing. */
export function googleBodyFailure(body: unknown): ProviderFailure {
  const error = errorIn(body)
  const code = error.code !== null && error.code >= 400 ? error.code : googleStatuses.get(error.status)
  return getRefusal(error, code ?? 500, null)
}

type UpstreamError = {
  readonly code: number | null
  readonly status: string
  readonly message: string
  readonly reason: string
  readonly quotas: readonly string[]
  readonly retryAfterMs: number | null
  /** Path of the field at fault; '' = not stated. */
  readonly field: string
}

/** Parses `{error}`, `[{error}]`, and other forms of proxies. */
function errorIn(body: unknown): UpstreamError {
  const envelope = record(Array.isArray(body) ? body[0] : body)
  const error = record(envelope.error)
  const details = records(error.details)
  return {
    code: wholeNumber(error.code),
    status: getText(error.status),
    message: getText(error.message) || getText(envelope.error),
    reason: details.map(({ reason }) => reason).find(isText) ?? '',
    quotas: details.flatMap(({ violations }) => records(violations).map(({ quotaId }) => getText(quotaId))),
    retryAfterMs: details.map(({ retryDelay }) => durationMs(retryDelay)).find(delay => delay !== null) ?? null,
    field:
      details.flatMap(({ fieldViolations }) => records(fieldViolations).map(({ field }) => field)).find(isText) ?? '',
  }
}

/** Parses a protobuf duration (`48s`, `34.4s`) to milliseconds. */
function durationMs(duration: unknown): number | null {
  const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(getText(duration))?.[1]
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1_000)
}

function getRefusal(error: UpstreamError, status: number, headerDelayMs: number | null): ProviderFailure {
  const kind = getKind(status, error)
  // A delay reported with an exhausted daily quota belongs to the per-minute quota and is too short.
  const retryAfterMs = kind === 'quota_exhausted' ? null : (error.retryAfterMs ?? headerDelayMs)
  // Names without digits only: a message may quote the prompt, and key-like text is not logged.
  const names = [error.status, error.reason, ...error.quotas].filter(name => /^[A-Za-z][A-Za-z_-]{0,95}$/.test(name))
  return requestFailure(kind, [status, ...names.slice(0, 4)].join(' '), {
    message: error.message,
    field: error.field,
    retryAfterMs,
  })
}

function getKind(status: number, { status: name, message, reason, quotas }: UpstreamError): AttemptFailure {
  // A bad key is a 400 here, distinguishable from a bad request only by its reason. Region and billing errors also
  // belong to the gateway's account.
  if (reason.startsWith('API_KEY_') || name === 'FAILED_PRECONDITION') return 'credential_refused'
  if (status === 429) return isSpent(quotas, message) ? 'quota_exhausted' : 'rate_limited'
  return specificKind(kindOfStatus(status), message)
}

/**
 * Returns true if a daily quota is used up. The message mentions plan and billing in every 429; only the quota's name
 * distinguishes day and minute.
 */
function isSpent(quotas: readonly string[], message: string): boolean {
  return quotas.some(quota => /per_?day/i.test(quota)) || /credits are depleted|spend(?:ing)? cap/i.test(message)
}
