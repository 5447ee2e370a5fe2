import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import {
  findIdentifier,
  findRetryAfter,
  getLocation,
  isContextOverflow,
  kindOfStatus,
  kindsByName,
  providerFailure,
  requestFailure,
  specificKind,
} from '../failure.ts'
import { getText, isRecord, type Json, record } from '../json.ts'
import type { ProviderFailure } from '../provider.ts'

/** Returns the error in a payload in any of the servers' forms; null = none. */
export function getError(body: Json): unknown {
  if (body.error) return body.error
  if (Array.isArray(body.choices)) return null
  const flat = body.object === 'error' || body.detail || typeof body.message === 'string'
  return flat ? body : null
}

type Refusal = {
  readonly status: number | null
  readonly type: string | null
  readonly code: string | null
  /** The error's text, only for matching wordings. */
  readonly text: string
}

/** Lower-case types and codes whose meaning takes precedence over the status. */
const kinds = kindsByName({
  context_overflow: `context_length_exceeded exceed_context_size_error model_context_window_exceeded
    model_max_prompt_tokens_exceeded too_many_prompt_tokens tokens_limit_reached`,
  quota_exhausted: `insufficient_quota insufficient_balance exceeded_current_quota_error billing_hard_limit_reached
    billing_not_active`,
  rate_limited: 'rate_limit_exceeded rate_limit_error',
  overloaded: 'overloaded_error engine_overloaded_error server_overloaded',
  credential_refused: `invalid_api_key authentication_error invalid_authentication_error incorrect_api_key_error
    account_deactivated unsupported_country_region_territory`,
  model_missing: 'model_not_found model_decommissioned invalid_model deploymentnotfound',
  content_filtered: `content_policy_violation content_filter moderation_blocked data_inspection_failed invalid_prompt`,
  request_too_large: 'request_too_large',
  // The model generated a call that the server rejected: another model may succeed.
  generation_failed: 'tool_use_failed',
})

const refusedKey = /\b(?:incorrect|invalid) api key\b|\bapi key not valid\b/i

/** Reads a response with a status other than 200. */
export function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const payload = parseUntrustedJson(body)
  const first = record(Array.isArray(payload) ? payload[0] : payload)
  const error = getError(first) ?? first
  const refusal = getRefusal(error, status, body)
  const { param, code, message: said, detail } = record(error)
  const message = getText(said) || getText(detail) || getText(error)
  const failure = requestFailure(getKind(refusal), getDetail(refusal), {
    message,
    retryAfterMs: findRetryAfter(headers),
    field: getText(param) || getLocation(detail),
    code,
  })
  const rejectsStream =
    failure.kind === 'request_refused' && (failure.reason?.field === 'stream' || unstreamable.test(message))
  return rejectsStream ? { ...failure, rejectsStream } : failure
}

/** OpenAI: "Your organization must be verified to stream this model." Others say that streaming is not supported. */
const unstreamable =
  /verified to (?:use )?stream|stream(?:ing)?\b.{0,32}\bnot (?:support|allow|enabl)|not support stream/i

/**
 * Reads an error in a response with status 200. The request was accepted, so a plain rejection is the upstream's fault.
 */
export function failureInAnswer(error: unknown): ProviderFailure {
  const refusal = getRefusal(error, null, isRecord(error) ? JSON.stringify(error) : String(error))
  const kind = getKind(refusal)
  return providerFailure(kind === 'request_refused' ? 'generation_failed' : kind, `200 ${getDetail(refusal)}`.trimEnd())
}

function getRefusal(error: unknown, status: number | null, text: string): Refusal {
  const { status_code: statusCode, status: statusText, type, code } = record(error)
  const claimed = [statusCode, statusText, code].map(claimedStatus).find(claim => claim !== null)
  return { status: status ?? claimed ?? null, type: identifier(type), code: identifier(code), text }
}

function claimedStatus(claim: unknown): number | null {
  const status = typeof claim === 'number' || typeof claim === 'string' ? Number(claim) : 0
  return status >= 400 && status <= 599 ? status : null
}

/** Azure writes its codes in capitals. */
function identifier(value: unknown): string | null {
  return findIdentifier(typeof value === 'string' ? value.toLowerCase() : value)
}

function getKind({ status, type, code, text }: Refusal): AttemptFailure {
  const byName = kinds.get(code) ?? kinds.get(type)
  const kind = byName ?? (status === null ? 'generation_failed' : kindOfStatus(status))
  if (kind === 'rate_limited') return specificKind(kind, text)
  if (byName !== undefined) return byName
  // OpenRouter: 403 with the text that its moderation flagged.
  if (text.includes('"flagged_input"')) return 'content_filtered'
  // xAI and Google: 400 without a specific code.
  if (kind === 'request_refused' && refusedKey.test(text)) return 'credential_refused'
  const mayBeTheWindow = kind === 'generation_failed' || status === 500
  return mayBeTheWindow && isContextOverflow(text) ? 'context_overflow' : specificKind(kind, text)
}

function getDetail({ status, type, code }: Refusal): string {
  return [...new Set([status, type, code].flatMap(part => (part === null ? [] : [String(part)])))].join(' ')
}
