/** Explains how a request ended: which part of the gateway decided, and what its client can do next. */
import type { AttemptFailure } from '../chat/attempts.ts'
import { type ErrorCode, errorTable } from '../validation/errors.ts'
import { causeTexts } from './attempt-causes.ts'

export const deciders = [
  'limit',
  'billing',
  'moderation',
  'validation',
  'routing',
  'provider',
  'gateway',
  'client',
] as const
/** The part of the path that ended a request. */
export type Decider = (typeof deciders)[number]

export type RequestExplanation = {
  /** Null = nothing prevented the request. */
  readonly decidedBy: Decider | null
  readonly summary: string
  /** Null = nothing to do. */
  readonly nextStep: string | null
}

type Ended = {
  readonly status: 'completed' | 'failed' | 'client_closed' | 'blocked' | 'rejected'
  readonly errorCode: string | null
  readonly layer: string | null
  readonly category: string | null
  readonly param: string | null
  /** Kind of the value of `param`, in words; null = unknown. */
  readonly sent: string | null
  /** Values that `param` accepts, in words; null = unknown. */
  readonly accepted: string | null
  /** The limit that was reached, such as `key.requests_per_minute`; null = none, or unknown. */
  readonly limit: string | null
  readonly finishReason: string | null
  /** Failures of its attempts in order. */
  readonly causes: readonly AttemptFailure[]
  /** Part of the output was sent before the failure. */
  readonly isTruncated: boolean
}

/** Explains the end of one request. */
export function explainRequest(ended: Ended): RequestExplanation {
  const { status, causes } = ended
  if (status === 'completed') {
    const failed =
      causes.length === 0 ? '' : ` after ${causes.length} failed ${causes.length === 1 ? 'attempt' : 'attempts'}`
    return { decidedBy: null, summary: `The request completed${failed}.${endOf(ended)}`, nextStep: stepAfter(ended) }
  }
  if (status === 'client_closed')
    return {
      decidedBy: 'client',
      summary: 'The client closed the connection before the end.',
      nextStep: 'If this was not intended, raise the timeout of the client or stream the response.',
    }
  const code = isErrorCode(ended.errorCode) ? ended.errorCode : null
  if (code === null) return unknown
  return explained(code, ended)
}

/** Why the output ended early; empty = it did not. */
function endOf({ finishReason, layer, category }: Ended): string {
  if (finishReason === 'length') return ' Its output ended at the output limit.'
  if (finishReason !== 'content_filter') return ''
  if (layer === null || layer === 'provider') return ' The content filter of the provider ended the output.'
  return ` The moderation layer \`${layer}\`${inCategory(category)} ended the output.`
}

const falseAlarm = 'Change the prompt. If this is a false alarm, ask the operator to adjust the moderation settings.'

function stepAfter({ finishReason, layer }: Ended): string | null {
  if (finishReason === 'length') return 'Raise the output limit, such as `max_output_tokens`, for a longer output.'
  if (finishReason !== 'content_filter') return null
  return layer === null || layer === 'provider' ? 'Change the prompt, or use a model of another provider.' : falseAlarm
}

const unknown: RequestExplanation = {
  decidedBy: 'gateway',
  summary: 'The request failed.',
  nextStep: 'Give the request ID to the operator of this gateway.',
}

function isErrorCode(code: string | null): code is ErrorCode {
  return code !== null && Object.hasOwn(errorTable, code)
}

function explained(code: ErrorCode, ended: Ended): RequestExplanation {
  const row = rowOf(code, ended)
  if (code === 'content_blocked' && ended.layer !== null) return blocked(ended.layer, ended.category)
  const last = ended.causes.at(-1)
  // After a failed attempt the provider decided, whatever the code.
  const cause = last === undefined || row.decidedBy === 'gateway' ? null : causeTexts[last]
  const told = cause === null || last === sameCause[code] ? '' : ` Last cause: ${cause.text}.`
  const field = ended.param === null || row === modelForbidden ? '' : fieldText(ended.param, ended)
  const owner = ended.limit === null ? null : limitOwner(ended.limit)
  const truncated = ended.isTruncated ? ' The client received part of the output.' : ''
  return {
    decidedBy: cause === null ? row.decidedBy : 'provider',
    summary: `${row.summary}${owner === null ? '' : ` This is a limit of ${owner.name}.`}${told}${field}${truncated}`,
    nextStep: `${cause?.nextStep ?? row.nextStep}${owner === null ? '' : ` ${owner.setBy}`}`,
  }
}

function fieldText(param: string, { sent, accepted }: Ended): string {
  const was = sent === null ? '' : sent === 'nothing' ? ', which was not sent' : `, sent as ${sent}`
  const inside = sent === 'an array' || sent === 'an object' ? ' The invalid part can be inside it.' : ''
  return ` The error names \`${param}\`${was}.${accepted === null ? '' : ` It accepts ${accepted.replace(/\.$/, '')}.`}${inside}`
}

/** Causes that only repeat the summary of their code. */
const sameCause: Partial<Record<ErrorCode, AttemptFailure>> = {
  context_length_exceeded: 'context_overflow',
  content_blocked: 'content_filtered',
}

function rowOf(code: ErrorCode, { param, causes }: Ended): Row {
  if (code === 'forbidden' && param === 'model') return modelForbidden
  if (code === 'unsupported_parameter' && param === 'messages') return attachmentsUnsupported
  return code === 'upstream_timeout' && causes.length === 0 ? requestTimedOut : codes[code]
}

const attachmentsUnsupported: Row = {
  decidedBy: 'routing',
  summary: 'No eligible model accepts the images or files of the messages.',
  nextStep: 'Remove the images and files, or choose a model with vision on the Models page.',
}

/** No attempt failed: the timeout of the request ended a running one. */
const requestTimedOut: Row = {
  decidedBy: 'provider',
  summary: 'The timeout of the request ended before a model had responded.',
  nextStep: 'Allow more time (`X-Gateway-Timeout-Ms`), lower `max_output_tokens`, or use a faster model.',
}

const modelForbidden: Row = {
  decidedBy: 'validation',
  summary: 'The API key may not use the requested model.',
  nextStep: 'Request a model that the key allows, or change the models of the key on the Keys page.',
}

/** Returns whose limit it is, and where it is set. `limit` is `account.…`, `key.…`, `project.…` or `tag:name=value.…`. */
function limitOwner(limit: string): { readonly name: string; readonly setBy: string } | null {
  const owner = limit.slice(0, limit.lastIndexOf('.'))
  if (owner === 'account')
    return { name: 'the account', setBy: 'The plan and the operator set the limits of an account.' }
  if (owner === 'key') return { name: 'the API key', setBy: 'The limits of a key are on the Keys page.' }
  if (owner === 'project')
    return { name: 'the project', setBy: 'An owner or admin of the account sets the limits of a project.' }
  if (!owner.startsWith('tag:')) return null
  return { name: `the tag \`${owner.slice(4)}\``, setBy: 'An admin of the account sets the limits of tags.' }
}

const inCategory = (category: string | null) =>
  category === null || category === '' ? '' : ` (category \`${category}\`)`

function blocked(layer: string, category: string | null): RequestExplanation {
  if (layer === 'provider')
    return {
      decidedBy: 'provider',
      summary: 'The content filter of the provider blocked the request.',
      nextStep: 'Change the prompt, or use a model of another provider.',
    }
  return {
    decidedBy: 'moderation',
    summary: `The moderation layer \`${layer}\`${inCategory(category)} blocked the request.`,
    nextStep: falseAlarm,
  }
}

type Row = { readonly decidedBy: Decider; readonly summary: string; readonly nextStep: string }

const codes: Readonly<Record<ErrorCode, Row>> = {
  invalid_request: {
    decidedBy: 'validation',
    summary: 'The request is not valid.',
    nextStep:
      'Correct the field that the error names. The response of the request names the exact place; models and other fields can narrow the accepted values.',
  },
  invalid_json: {
    decidedBy: 'validation',
    summary: 'The body is not valid JSON.',
    nextStep: 'Send one JSON object, encoded as UTF-8.',
  },
  context_length_exceeded: {
    decidedBy: 'routing',
    summary: 'The conversation exceeds the context window.',
    nextStep: 'Shorten the conversation, or choose a model with a larger context window.',
  },
  unsupported_parameter: {
    decidedBy: 'routing',
    summary: 'No eligible model supports a parameter of the request.',
    nextStep: 'Remove the parameter, or choose a model that supports it on the Models page.',
  },
  previous_response_not_found: {
    decidedBy: 'validation',
    summary: 'The gateway stores no responses, so it cannot continue an earlier one.',
    nextStep: 'Send the whole conversation in `input`, without `previous_response_id`.',
  },
  model_deprecated: {
    decidedBy: 'routing',
    summary: 'The requested model was retired.',
    nextStep: 'Use its successor, or automatic routing.',
  },
  content_blocked: {
    decidedBy: 'moderation',
    summary: 'Moderation blocked the request.',
    nextStep: 'Change the prompt.',
  },
  invalid_api_key: {
    decidedBy: 'validation',
    summary: 'The API key is not valid.',
    nextStep: 'Check the key on the Keys page: it may be revoked or expired.',
  },
  invalid_token: { decidedBy: 'validation', summary: 'The session token is not valid.', nextStep: 'Sign in again.' },
  invalid_credentials: {
    decidedBy: 'validation',
    summary: 'The credentials are not valid.',
    nextStep: 'Check the email address and the password.',
  },
  two_factor_required: {
    decidedBy: 'validation',
    summary: 'The account requires a code of an authenticator app.',
    nextStep: 'Send the code of the app, or a recovery code, as `code`.',
  },
  two_factor_setup_required: {
    decidedBy: 'validation',
    summary: 'The account requires two-factor sign-in, which this user has not set up.',
    nextStep: 'Set up two-factor sign-in in the settings.',
  },
  payment_required: {
    decidedBy: 'billing',
    summary: 'The account has an unpaid invoice or no payment method.',
    nextStep: 'An owner can pay or add a payment method on the Billing page.',
  },
  account_paused: {
    decidedBy: 'billing',
    summary: 'The key is paused until the end of the UTC day, because its requests used more than was reserved.',
    nextStep: 'Use another key, wait, or ask the operator of this gateway to resume the account.',
  },
  forbidden: {
    decidedBy: 'validation',
    summary: 'The key or the role does not permit this request.',
    nextStep: 'Use another key, or ask an owner for permission.',
  },
  misdirected: {
    decidedBy: 'validation',
    summary: 'The request was sent under an unknown host name.',
    nextStep: 'Use the address of the gateway, or add the host name to ALLOWED_HOSTS.',
  },
  model_not_found: {
    decidedBy: 'routing',
    summary: 'The request names a model that is unknown or not configured.',
    nextStep: 'Choose a model from the Models page, or use `gateway-ai` for automatic routing.',
  },
  not_found: {
    decidedBy: 'validation',
    summary: 'The path does not exist.',
    nextStep: 'Check the path of the request.',
  },
  method_not_allowed: {
    decidedBy: 'validation',
    summary: 'The path has no such method.',
    nextStep: 'Use a method of the `allow` header.',
  },
  conflict: {
    decidedBy: 'validation',
    summary: 'Another request with the same Idempotency-Key is running, or had another body.',
    nextStep: 'Wait for the first request, or use a new Idempotency-Key.',
  },
  already_completed: {
    decidedBy: 'validation',
    summary: 'An earlier request with the same Idempotency-Key has completed.',
    nextStep: 'Use the result of the earlier request, or a new Idempotency-Key.',
  },
  body_too_large: {
    decidedBy: 'validation',
    summary: 'The request is too large.',
    nextStep: 'Send fewer or smaller images, or less text.',
  },
  upgrade_required: {
    decidedBy: 'validation',
    summary: 'The gateway serves no WebSockets.',
    nextStep: 'Send the request over HTTP.',
  },
  requests_per_minute_exceeded: {
    decidedBy: 'limit',
    summary: 'The limit of requests per minute was reached.',
    nextStep: 'Wait for the time in the `retry-after` header, or ask for a higher limit.',
  },
  concurrent_requests_exceeded: {
    decidedBy: 'limit',
    summary: 'The limit of concurrent requests was reached.',
    nextStep: 'Retry when a running request has finished, or ask for a higher limit.',
  },
  request_bytes_exceeded: {
    decidedBy: 'limit',
    summary: 'The request bodies of the account use all memory that one account may use.',
    nextStep: 'Send fewer large requests at the same time.',
  },
  ip_rate_limited: {
    decidedBy: 'limit',
    summary: 'The network address sent too many failed requests.',
    nextStep: 'Correct the credential, and wait for the time in the `retry-after` header.',
  },
  daily_tokens_exceeded: {
    decidedBy: 'limit',
    summary: 'The request needs more than the remaining daily token limit.',
    nextStep: 'Shorten the request, wait until 00:00 UTC, or ask for a higher limit.',
  },
  daily_cost_exceeded: {
    decidedBy: 'limit',
    summary: 'The request can cost more than the remaining daily cost limit.',
    nextStep: 'Choose a cheaper model, lower `max_output_tokens`, or wait until 00:00 UTC.',
  },
  monthly_cost_exceeded: {
    decidedBy: 'limit',
    summary: 'The request can cost more than the remaining monthly cost limit of its key or tag.',
    nextStep: 'Choose a cheaper model, lower `max_output_tokens`, or raise the limit of the key or tag.',
  },
  upstream_rate_limited: {
    decidedBy: 'provider',
    summary: 'The providers of the eligible models had no capacity.',
    nextStep: 'Retry after the time in the `retry-after` header, or add keys or providers.',
  },
  upstream_failed: {
    decidedBy: 'provider',
    summary: 'All attempts failed.',
    nextStep: 'Send the request again later. The timeline shows the cause of each attempt.',
  },
  no_model_available: {
    decidedBy: 'routing',
    summary: 'No model could be called.',
    nextStep: 'Retry after the time in the `retry-after` header. Allow fallbacks to use other models.',
  },
  service_unavailable: {
    decidedBy: 'gateway',
    summary: 'The gateway could not finish the request.',
    nextStep: 'Send the request again. If it persists, give the request ID to the operator.',
  },
  upstream_timeout: {
    decidedBy: 'provider',
    summary: 'No model responded in time.',
    nextStep: 'Send the request again, or lower `max_output_tokens`.',
  },
}
