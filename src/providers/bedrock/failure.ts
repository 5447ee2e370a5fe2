import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { exceptionPrefix } from '../aws-event-stream.ts'
import { findRetryAfter, isContextOverflow, isQuotaExhausted, kindOfStatus, providerFailure } from '../failure.ts'
import { getText, record } from '../json.ts'
import type { ProviderFailure } from '../provider.ts'
import { refusalReason } from '../refusal-reason.ts'

/** In lower case, because streams write the first letter small. Others are known by their status. */
const kinds: ReadonlyMap<string, AttemptFailure> = new Map<string, AttemptFailure>([
  ['throttlingexception', 'rate_limited'],
  ['servicequotaexceededexception', 'quota_exhausted'],
  ['modelnotreadyexception', 'overloaded'],
  ['serviceunavailableexception', 'overloaded'],
  ['internalserverexception', 'unavailable'],
  ['internalfailure', 'unavailable'],
  ['modeltimeoutexception', 'timeout'],
  ['modelerrorexception', 'generation_failed'],
  ['modelstreamerrorexception', 'generation_failed'],
  ['resourcenotfoundexception', 'model_missing'],
  ['accessdeniedexception', 'credential_refused'],
  ['unrecognizedclientexception', 'credential_refused'],
  ['invalidsignatureexception', 'credential_refused'],
  ['incompletesignature', 'credential_refused'],
  ['expiredtokenexception', 'credential_refused'],
  ['missingauthenticationtokenexception', 'credential_refused'],
  ['validationexception', 'request_refused'],
])

/** Reads a response with a status other than 200. */
export function readBedrockFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const error = record(parseUntrustedJson(body))
  // `Name:http://…`, and in bodies `namespace#Name`.
  const name = (headers.get('x-amzn-errortype') || getText(error.__type)).replace(/:.*$/s, '').replace(/^.*#/s, '')
  const message = getText(error.message) || getText(error.Message) || body
  return getFailure(name, message, { status, retryAfterMs: findRetryAfter(headers) })
}

/** Reads an exception within a stream. `name` is the event's. */
export function bedrockException(name: string, data: string): ProviderFailure {
  const message = getText(record(parseUntrustedJson(data)).message) || data
  const failure = getFailure(name.slice(exceptionPrefix.length), message, { status: 200, retryAfterMs: null })
  // The request was accepted, so a plain rejection is the upstream's fault.
  return failure.kind === 'request_refused' ? providerFailure('generation_failed', failure.detail) : failure
}

type Answered = { readonly status: number; readonly retryAfterMs: number | null }

function getFailure(name: string, message: string, { status, retryAfterMs }: Answered): ProviderFailure {
  const named = kinds.get(name.toLowerCase())
  const kind = specificKind(named ?? (status === 200 ? 'generation_failed' : kindOfStatus(status)), message)
  const detail = /^[A-Za-z]{1,64}$/.test(name) ? `${status} ${name}` : `${status} without error type`
  const failure = providerFailure(kind, detail, retryAfterMs)
  const reason = kind === 'request_refused' ? refusalReason(null, null, message) : undefined
  return { ...failure, ...(reason !== undefined && { reason }) }
}

const missingModel =
  /model identifier is invalid|on-demand throughput isn|model version is not supported|end of its life/i

/** Distinguishes errors of one name by their text. */
function specificKind(kind: AttemptFailure, message: string): AttemptFailure {
  switch (kind) {
    case 'rate_limited':
      return isQuotaExhausted(message) ? 'quota_exhausted' : kind
    case 'request_refused':
      if (isContextOverflow(message)) return 'context_overflow'
      if (/operation not allowed|security token included/i.test(message)) return 'credential_refused'
      return missingModel.test(message) ? 'model_missing' : kind
    default:
      return kind
  }
}
