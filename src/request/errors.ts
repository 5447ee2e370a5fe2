/** Failed attempts: their report to health and operator, and the error of a request that no model answered. */
import { type Attempt, isKeyFailure } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { fullName, type Model } from '../core/models/models.ts'
import type { Log } from '../core/ports.ts'
import { type ErrorCode, GatewayError } from '../core/validation/errors.ts'
import type { HealthOutcome } from '../models/circuit-breaker.ts'
import type { HealthTracker } from '../models/health-tracker.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import { type Candidate, findVia } from './routing/candidate.ts'
import { healthKey } from './routing/hosts.ts'

/** A failed attempt; `status` is that of the upstream response, null = no response. */
export type FailedAttempt = {
  readonly candidate: Candidate
  readonly failure: ProviderFailure
  readonly status: number | null
  /** Its key; null = the provider's only one. */
  readonly claim: KeyClaim | null
}

type FailedCall = {
  /** The request made the maximum of attempts. */
  readonly isExhausted: boolean
  /** The request's deadline passed. */
  readonly isLate: boolean
  /** Skipped candidates included. */
  readonly attempts: readonly Attempt[]
  /** Milliseconds until a key pool has capacity; null = none is at its limit. */
  readonly atLimitMs: number | null
  readonly request: Pick<ChatRequest, 'embedding' | 'extras'>
}

/**
 * Builds the error of a request from the failures of its attempts. Clients may repeat it unless it made the maximum of
 * attempts: they would multiply those.
 */
export function allAttemptsFailedError(
  failed: readonly FailedAttempt[],
  { isExhausted, isLate, attempts, atLimitMs, request }: FailedCall,
): GatewayError {
  const last = failed.at(-1) ?? null
  const detail = failed.map(({ failure }) => failure.detail).join('; ')
  const own = last?.failure.ownBody
  const upstream = own === undefined || last?.status == null ? null : { status: last.status, body: own }
  const messages = request.embedding === undefined ? chatMessages : embeddingMessages
  const shouldRetry = isExhausted ? false : null
  const options = { shouldRetry, detail, attempts: [...attempts], upstream }
  if (atLimitMs !== null && !isLate && failed.every(asksToWait)) {
    const waits = failed.flatMap(({ failure }) => failure.retryAfterMs ?? [])
    const retryAfterMs = Math.max(1, Math.min(maximumWaitMs, atLimitMs, ...waits))
    return new GatewayError('upstream_rate_limited', messages.limited, {
      detail,
      attempts: [...attempts],
      retryAfterMs,
    })
  }
  // After the maximum of attempts no wait of one upstream says when another request can succeed.
  if (last !== null && !isExhausted && failed.every(({ failure }) => failure.kind === 'rate_limited')) {
    const waits = failed.map(({ failure }) => failure.retryAfterMs ?? usualWaitMs)
    return new GatewayError('upstream_rate_limited', messages.limited, {
      ...options,
      retryAfterMs: Math.min(maximumStatedWaitMs, ...waits),
    })
  }
  if (last === null)
    return new GatewayError('no_model_available', messages.none, { ...options, retryAfterMs: usualWaitMs })
  const { model, endpoint } = last.candidate
  if (endpoint.own !== undefined && last.claim !== null && last.failure.kind === 'credential_refused') {
    const message = `${endpoint.id} rejects this account's own key "${last.claim.key.name}". An owner can replace it: page Providers, or \`POST /api/v1/provider-keys/{id}/rotate\`.`
    return new GatewayError('upstream_failed', message, { ...options, shouldRetry: false })
  }
  switch (last.failure.kind) {
    case 'context_overflow':
      return new GatewayError('context_length_exceeded', messages.context(fullName(model), model.contextWindow), {
        ...options,
        param: messages.param,
      })
    case 'request_too_large':
      return new GatewayError('body_too_large', messages.large(model.provider), options)
    case 'content_filtered':
      return new GatewayError('content_blocked', messages.filtered(model.provider), {
        ...options,
        layer: 'provider',
        category: 'provider',
        ...(request.embedding !== undefined && { param: messages.param }),
      })
    case 'no_tool_call':
      return uncalledError(last.candidate, options)
    case 'request_refused':
      return refusedError(fullName(model), last.failure, { request, options })
    default: {
      if (isLate || failed.every(({ failure }) => failure.kind === 'timeout'))
        return new GatewayError('upstream_timeout', messages.timeout, options)
      if (failed.every(asksToWait)) {
        const waits = failed.map(({ failure }) => failure.retryAfterMs ?? usualWaitMs)
        const retryAfterMs = Math.min(maximumWaitMs, ...waits)
        return new GatewayError('no_model_available', messages.none, { ...options, retryAfterMs })
      }
      return new GatewayError('upstream_failed', messages.failed, options)
    }
  }
}

/** Returns the error of a refused request, with the field and the code that the upstream names. */
function refusedError(
  model: string,
  { reason }: ProviderFailure,
  {
    request,
    options,
  }: Pick<FailedCall, 'request'> & { readonly options: ConstructorParameters<typeof GatewayError>[2] },
): GatewayError {
  const { field = null, otherField = null, code: upstreamCode = null } = reason ?? {}
  const other = otherField !== null && Object.hasOwn(request.extras, otherField) ? otherField : null
  const named = field ?? other
  const param = named ?? (request.embedding === undefined ? null : embeddingMessages.param)
  const code: ErrorCode = unsupported.has(upstreamCode ?? '') ? 'unsupported_parameter' : 'invalid_request'
  return new GatewayError(code, chatMessages.refused(model, named, upstreamCode), { ...options, param, upstreamCode })
}

/** Error for a complete output without the tool call that the request requires. No client repeats a 400. */
export function uncalledError(
  { model }: Candidate,
  options: ConstructorParameters<typeof GatewayError>[2],
): GatewayError {
  const param = 'tool_choice'
  return new GatewayError('unsupported_parameter', chatMessages.uncalled(fullName(model)), { ...options, param })
}

/** OpenAI's codes for a field, or a value of it, that a model does not support. */
const unsupported: ReadonlySet<string> = new Set(['unsupported_parameter', 'unsupported_value'])

const usualWaitMs = 5_000
/** Upper bound for the wait of a single upstream's 429, which clients receive as stated. */
const maximumStatedWaitMs = 24 * 3_600_000
/** Upper bound for a cooldown that an upstream asks for. */
const maximumWaitMs = 60_000

/** The upstream could serve later. A 503 is an unavailable upstream, whatever its text. */
function asksToWait({ failure, status }: FailedAttempt): boolean {
  return ['rate_limited', 'quota_exhausted', 'overloaded'].includes(failure.kind) && status !== 503
}

const chatMessages = {
  param: 'messages',
  limited: 'The providers of the eligible models have no capacity now. Retry after the time in the retry-after header.',
  none: 'No model is available. Retry after the time in the retry-after header.',
  context: (model: string, tokens: number) =>
    `The conversation exceeds the ${tokens}-token context window of ${model}. Shorten it or choose a larger model. This model's maximum context length is ${tokens} tokens.`,
  large: (provider: string) =>
    `The request is larger than ${provider} accepts. Send fewer or smaller images or less text.`,
  filtered: (provider: string) => `The content filter of ${provider} blocked this request. Change the prompt.`,
  refused: (model: string, param: string | null, code: string | null) => {
    const reason = code === null ? '' : ` (${code})`
    return param === null
      ? `${model} rejected the request as invalid${reason}. Check the parameters in the provider's documentation.`
      : `${model} rejected \`${param}\`${reason}. Change or remove it.`
  },
  uncalled: (model: string) =>
    `\`tool_choice\` requires a tool call, and ${model} answered without it. Choose another model, or an automatic \`tool_choice\`.`,
  timeout: 'No model responded before the timeout. Send the request again, or lower `max_output_tokens`.',
  failed: 'All attempts failed. Send the request again later.',
}

const embeddingMessages = {
  ...chatMessages,
  param: 'input',
  none: 'No host of this model is available. Retry after the time in the retry-after header.',
  limited: 'No host of this model is available. Retry after the time in the retry-after header.',
  context: (model: string, tokens: number) =>
    `An input is too long for ${model}. This model's maximum context length is ${tokens} tokens per input. Split it into shorter inputs.`,
  large: (provider: string) => `The request is larger than ${provider} accepts. Send fewer inputs.`,
  filtered: (provider: string) => `The content filter of ${provider} blocked an input. Remove it.`,
  timeout: 'The model did not respond in time. Retry with fewer inputs.',
  failed: 'Every host of this model failed. Retry.',
}

/** Error for an output that ended early after its first content was sent. */
export function truncatedOutputError(failure: ProviderFailure, candidate: Candidate): GatewayError {
  const options = { shouldRetry: false, detail: `${fullName(candidate.model)}: ${failure.detail}` }
  return failure.kind === 'timeout'
    ? new GatewayError(
        'upstream_timeout',
        'The model timed out. The output is incomplete; send the request again.',
        options,
      )
    : new GatewayError(
        'upstream_failed',
        'The upstream connection failed. The output is incomplete; send the request again.',
        options,
      )
}

export type ReportDeps = {
  readonly health: Pick<HealthTracker, 'report'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

type ReportedFailure = Omit<FailedAttempt, 'candidate'> & {
  readonly candidate: Pick<Candidate, 'endpoint' | 'host'> & { readonly model: Pick<Model, 'id' | 'provider'> }
}

/**
 * Reports a failure to the model's health and to the operator. A client's invalid request and the failure of one key of
 * several do not affect health.
 */
export function reportFailure(
  { health, log }: ReportDeps,
  requestId: string,
  { candidate, failure, status, claim }: ReportedFailure,
): void {
  const { kind, detail, blame, retryAfterMs } = failure
  const { via } = findVia(candidate, claim) ?? {}
  const fields = { request_id: requestId, model: fullName(candidate.model), ...(via && { via }), kind, detail }
  if (claim !== null && isKeyFailure(kind)) {
    if (candidate.endpoint.own !== undefined) log.info('own_key_failed', fields)
    else if (kind === 'credential_refused') log.error('key_rejected', fields)
    else log.warn('key_paused', fields)
    return
  }
  if (blame === 'caller') {
    log.info('upstream_rejected_request', fields)
    return
  }
  // A rejected credential or an unpaid provider bill, which only the operator can fix.
  if (blame === 'us') log.error('provider_disabled', fields)
  else log.warn('attempt_failed', fields)
  const key = healthKey(candidate)
  const outcome = healthOutcome(failure, status)
  health.report(key, { outcome, cause: kind, retryAfterMs })
  // An unhealthy model with a retry time is not called until then.
  if (outcome === 'unhealthy' && retryAfterMs !== null) health.report(key, { outcome: 'cooling', retryAfterMs })
}

function healthOutcome({ kind }: ProviderFailure, status: number | null): HealthOutcome {
  switch (kind) {
    case 'rate_limited':
      return 'cooling'
    case 'quota_exhausted':
    case 'credential_refused':
      return 'switched_off'
    case 'overloaded':
    case 'model_missing':
      return 'unhealthy'
    default:
      return status === 503 ? 'unhealthy' : 'soft_failure'
  }
}
