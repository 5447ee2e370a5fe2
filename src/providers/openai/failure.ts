import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import {
  findIdentifier,
  findRetryAfter,
  getLocation,
  isContextOverflow,
  isQuotaExhausted,
  kindOfStatus,
  providerFailure,
  refusalReason,
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
const kindsByName: ReadonlyMap<string, AttemptFailure> = new Map<string, AttemptFailure>([
  ['context_length_exceeded', 'context_overflow'],
  ['exceed_context_size_error', 'context_overflow'],
  ['model_context_window_exceeded', 'context_overflow'],
  ['model_max_prompt_tokens_exceeded', 'context_overflow'],
  ['too_many_prompt_tokens', 'context_overflow'],
  ['tokens_limit_reached', 'context_overflow'],
  ['insufficient_quota', 'quota_exhausted'],
  ['insufficient_balance', 'quota_exhausted'],
  ['exceeded_current_quota_error', 'quota_exhausted'],
  ['billing_hard_limit_reached', 'quota_exhausted'],
  ['billing_not_active', 'quota_exhausted'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['rate_limit_error', 'rate_limited'],
  ['overloaded_error', 'overloaded'],
  ['engine_overloaded_error', 'overloaded'],
  ['server_overloaded', 'overloaded'],
  ['invalid_api_key', 'credential_refused'],
  ['authentication_error', 'credential_refused'],
  ['invalid_authentication_error', 'credential_refused'],
  ['incorrect_api_key_error', 'credential_refused'],
  ['account_deactivated', 'credential_refused'],
  ['unsupported_country_region_territory', 'credential_refused'],
  ['model_not_found', 'model_missing'],
  ['model_decommissioned', 'model_missing'],
  ['invalid_model', 'model_missing'],
  ['deploymentnotfound', 'model_missing'],
  ['content_policy_violation', 'content_filtered'],
  ['content_filter', 'content_filtered'],
  ['moderation_blocked', 'content_filtered'],
  ['data_inspection_failed', 'content_filtered'],
  ['invalid_prompt', 'content_filtered'],
  ['request_too_large', 'request_too_large'],
  // The model generated a call that the server rejected: another model may succeed.
  ['tool_use_failed', 'generation_failed'],
])

const refusedKey = /\b(?:incorrect|invalid) api key\b|\bapi key not valid\b/i

/** Reads a response with a status other than 200. */
export function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const payload = parseUntrustedJson(body)
  const first = record(Array.isArray(payload) ? payload[0] : payload)
  const error = getError(first) ?? first
  const refusal = getRefusal(error, status, body)
  const failure = providerFailure(getKind(refusal), getDetail(refusal), findRetryAfter(headers))
  if (failure.kind !== 'request_refused') return failure
  const { param, code, message, detail } = record(error)
  const said = getText(message) || getText(detail) || getText(error)
  const reason = refusalReason(getText(param) || getLocation(detail), code, said)
  const rejectsStream = reason?.field === 'stream' || unstreamable.test(said)
  return { ...failure, ...(reason !== undefined && { reason }), ...(rejectsStream && { rejectsStream }) }
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
  const byName = kindsByName.get(code ?? '') ?? kindsByName.get(type ?? '')
  const kind = byName ?? (status === null ? 'generation_failed' : kindOfStatus(status))
  if (kind === 'rate_limited') return isQuotaExhausted(text) ? 'quota_exhausted' : kind
  if (byName !== undefined) return byName
  // OpenRouter: 403 with the text that its moderation flagged.
  if (text.includes('"flagged_input"')) return 'content_filtered'
  // xAI and Google: 400 without a specific code.
  if (kind === 'request_refused' && refusedKey.test(text)) return 'credential_refused'
  const ofTheRequest = kind === 'request_refused' || kind === 'request_too_large'
  const mayBeTheWindow = ofTheRequest || kind === 'generation_failed' || status === 500
  return mayBeTheWindow && isContextOverflow(text) ? 'context_overflow' : kind
}

function getDetail({ status, type, code }: Refusal): string {
  return [...new Set([status, type, code].flatMap(part => (part === null ? [] : [String(part)])))].join(' ')
}
