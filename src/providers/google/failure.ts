import type { AttemptFailure } from '../../core/chat/chat.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { failureOf, isContextOverflow, kindOfStatus, retryAfterOf } from '../failure.ts'
import { isText, record, records, textOf, wholeNumber } from '../json.ts'
import type { ProviderFailure } from '../provider.ts'

/** What a refusal with another status than 200 means. */
export function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  return refusalOf(errorIn(parseUntrustedJson(body)), status, retryAfterOf(headers))
}

/** An error that stands in an answer's place: it may name its status by the code, by a word, or not at all. */
export function failureInAnswer(body: unknown): ProviderFailure {
  const error = errorIn(body)
  const code = error.code !== null && error.code >= 400 ? error.code : statusCodes.get(error.status)
  return refusalOf(error, code ?? 500, null)
}

type UpstreamError = {
  readonly code: number | null
  readonly status: string
  readonly message: string
  readonly reason: string
  readonly quotas: readonly string[]
  readonly retryAfterMs: number | null
}

/** Reads `{error}` and `[{error}]`, and whatever a proxy may send in their place. */
function errorIn(body: unknown): UpstreamError {
  const envelope = record(Array.isArray(body) ? body[0] : body)
  const error = record(envelope.error)
  const details = records(error.details)
  return {
    code: wholeNumber(error.code),
    status: textOf(error.status),
    message: textOf(error.message) || textOf(envelope.error),
    reason: details.map(({ reason }) => reason).find(isText) ?? '',
    quotas: details.flatMap(({ violations }) => records(violations).map(({ quotaId }) => textOf(quotaId))),
    retryAfterMs: details.map(({ retryDelay }) => durationMs(retryDelay)).find(delay => delay !== null) ?? null,
  }
}

/** A duration as protocol buffers write it, in milliseconds: `48s`, `34.4s`. */
function durationMs(duration: unknown): number | null {
  const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(textOf(duration))?.[1]
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1_000)
}

const statusCodes: ReadonlyMap<string, number> = new Map([
  ['INVALID_ARGUMENT', 400],
  ['FAILED_PRECONDITION', 400],
  ['OUT_OF_RANGE', 400],
  ['UNAUTHENTICATED', 401],
  ['PERMISSION_DENIED', 403],
  ['NOT_FOUND', 404],
  ['ABORTED', 409],
  ['RESOURCE_EXHAUSTED', 429],
  ['CANCELLED', 499],
  ['INTERNAL', 500],
  ['UNKNOWN', 500],
  ['DATA_LOSS', 500],
  ['UNIMPLEMENTED', 501],
  ['UNAVAILABLE', 503],
  ['DEADLINE_EXCEEDED', 504],
])

function refusalOf(error: UpstreamError, status: number, headerDelayMs: number | null): ProviderFailure {
  const kind = kindOf(status, error)
  // A delay told with a spent day is that of the minute's quota, and would bring us back too soon.
  const retryAfterMs = kind === 'quota_exhausted' ? null : (error.retryAfterMs ?? headerDelayMs)
  // Names alone, and none with a digit: a message may quote the prompt, and what looks like a key is not passed on.
  const names = [error.status, error.reason, ...error.quotas].filter(name => /^[A-Za-z][A-Za-z_-]{0,95}$/.test(name))
  return failureOf(kind, [status, ...names.slice(0, 4)].join(' '), retryAfterMs)
}

function kindOf(status: number, { status: name, message, reason, quotas }: UpstreamError): AttemptFailure {
  // A bad key is a 400 here, told from a bad request by its reason alone; a region or billing fault is ours as well.
  if (reason.startsWith('API_KEY_') || name === 'FAILED_PRECONDITION') return 'credential_refused'
  if (status === 400 && isContextOverflow(message)) return 'context_overflow'
  if (status === 429 && isSpent(quotas, message)) return 'quota_exhausted'
  // Cancelled on their side: the caller had no part in it.
  return status === 499 ? 'unavailable' : kindOfStatus(status)
}

/** The message speaks of plan and billing on every 429 here: only the quota's own name tells a day from a minute. */
function isSpent(quotas: readonly string[], message: string): boolean {
  return quotas.some(quota => /per_?day/i.test(quota)) || /credits are depleted|spend(?:ing)? cap/i.test(message)
}
