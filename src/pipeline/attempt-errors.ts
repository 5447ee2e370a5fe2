/** What a caller is told whose request no model answered, or of whose answer the rest never came. */
import type { Attempt } from '../core/chat/chat.ts'
import { fullName } from '../core/models/models.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import type { Candidate } from './routing/candidate.ts'

/** A candidate that was asked and failed; `status` is that of its answer, null where there was none. */
export type FailedAttempt = {
  readonly candidate: Candidate
  readonly failure: ProviderFailure
  readonly status: number | null
}

/**
 * The error of a request that no candidate answered, from what each of them said; `isLate` = its time was up. It lists
 * `attempts`, the skipped candidates included.
 */
export function allAttemptsFailedError(
  failed: readonly FailedAttempt[],
  isLate: boolean,
  attempts: readonly Attempt[],
): GatewayError {
  const last = failed.at(-1) ?? null
  const detail = failed.map(({ failure }) => failure.detail).join('; ')
  const own = last?.failure.ownBody
  const upstream = own === undefined || last?.status == null ? null : { status: last.status, body: own }
  const options = { shouldRetry: false, detail, attempts: [...attempts], upstream }
  if (last === null)
    return new GatewayError('no_model_available', messages.none, { ...options, retryAfterMs: usualWaitMs })
  const { model } = last.candidate
  switch (last.failure.kind) {
    case 'context_overflow':
      return new GatewayError('context_length_exceeded', messages.context(fullName(model), model.contextWindow), {
        ...options,
        param: 'messages',
      })
    case 'request_too_large':
      return new GatewayError('body_too_large', messages.large(model.provider), options)
    case 'content_filtered':
      return new GatewayError('content_blocked', messages.filtered(model.provider), {
        ...options,
        layer: 'provider',
        category: 'provider',
      })
    case 'request_refused':
      return new GatewayError('invalid_request', messages.refused(fullName(model)), options)
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

const usualWaitMs = 5_000
/** No model is left alone for longer. */
const maximumWaitMs = 60_000

/** It would have answered, but not now. A 503 is an upstream that is down, however it words it. */
function asksToWait({ failure, status }: FailedAttempt): boolean {
  return ['rate_limited', 'quota_exhausted', 'overloaded'].includes(failure.kind) && status !== 503
}

const messages = {
  none: 'No model can take this request right now. Try again after the time in retry-after.',
  context: (model: string, tokens: number) =>
    `The conversation exceeds the ${tokens}-token context window of ${model}. Shorten it or choose a larger model. This model's maximum context length is ${tokens} tokens.`,
  large: (provider: string) =>
    `The request is larger than ${provider} takes. Send fewer or smaller images or less text.`,
  filtered: (provider: string) => `The content filter of ${provider} blocked this request. Change the prompt.`,
  refused: (model: string) =>
    `${model} refused the request as invalid. Check its parameters against the documentation of that model.`,
  timeout: 'No model answered in time. Try again, or ask for less output.',
  failed: 'Every model that was asked failed to answer. Try again in a moment.',
}

/** Of an answer that broke off after its first content had gone. */
export function truncatedOutputError(failure: ProviderFailure, candidate: Candidate): GatewayError {
  const options = { shouldRetry: false, detail: `${fullName(candidate.model)}: ${failure.detail}` }
  return failure.kind === 'timeout'
    ? new GatewayError(
        'upstream_timeout',
        'The model stopped answering. What came before is incomplete; ask again.',
        options,
      )
    : new GatewayError('upstream_failed', 'The answer broke off. What came before is incomplete; ask again.', options)
}
