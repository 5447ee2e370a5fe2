/** The error of a request for embeddings that every host failed. */
import type { Attempt } from '../../core/chat/attempts.ts'
import { fullName } from '../../core/models/models.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { ProviderFailure } from '../../providers/provider.ts'
import type { EmbeddingHost } from './prepare.ts'

export type FailedHost = {
  readonly host: EmbeddingHost
  readonly failure: ProviderFailure
  readonly status: number | null
  /** Its key pool had no usable key. */
  readonly isOfKeys: boolean
}

const usualWaitMs = 5_000
const maximumWaitMs = 60_000
const unavailable = 'No host of this model is available. Retry after the time in the retry-after header.'

/** Returns the error from the failure of each host; `isLate` = the request's time was up. */
export function embeddingsFailedError(
  failed: readonly FailedHost[],
  isLate: boolean,
  attempts: readonly Attempt[],
): GatewayError {
  const last = failed.at(-1) ?? null
  const detail = failed.map(({ failure }) => failure.detail).join('; ')
  // One host is called once, so a client's retry can succeed.
  const options = { detail, attempts: [...attempts] }
  if (last === null)
    return new GatewayError('no_model_available', unavailable, { ...options, retryAfterMs: usualWaitMs })
  const { model } = last.host
  const name = fullName(model)
  switch (last.failure.kind) {
    case 'context_overflow': {
      const message = `An input is too long for ${name}. This model's maximum context length is ${model.maximumInputTokens} tokens per input. Split it into shorter inputs.`
      return new GatewayError('context_length_exceeded', message, { ...options, param: 'input' })
    }
    case 'request_too_large':
      return new GatewayError(
        'body_too_large',
        `The request is larger than ${model.provider} accepts. Send fewer inputs.`,
        options,
      )
    case 'content_filtered': {
      const message = `The content filter of ${model.provider} blocked an input. Remove it.`
      return new GatewayError('content_blocked', message, {
        ...options,
        layer: 'provider',
        category: 'provider',
        param: 'input',
      })
    }
    case 'request_refused': {
      const message = `${name} rejected the request as invalid. Check its parameters against the documentation of that model.`
      return new GatewayError('invalid_request', message, { ...options, param: 'input' })
    }
    default: {
      if (isLate || failed.every(({ failure }) => failure.kind === 'timeout'))
        return new GatewayError(
          'upstream_timeout',
          'The model did not respond in time. Retry with fewer inputs.',
          options,
        )
      if (!failed.every(asksToWait))
        return new GatewayError('upstream_failed', 'Every host of this model failed. Retry.', options)
      const waits = failed.map(({ failure }) => failure.retryAfterMs ?? usualWaitMs)
      const retryAfterMs = Math.max(1, Math.min(maximumWaitMs, ...waits))
      if (failed.some(({ isOfKeys }) => isOfKeys) || failed.every(({ failure }) => failure.kind === 'rate_limited'))
        return new GatewayError('upstream_rate_limited', unavailable, { ...options, retryAfterMs })
      return new GatewayError('no_model_available', unavailable, { ...options, retryAfterMs })
    }
  }
}

/** A 503 is an unavailable upstream, whatever its text. */
function asksToWait({ failure, status }: FailedHost): boolean {
  return ['rate_limited', 'quota_exhausted', 'overloaded'].includes(failure.kind) && status !== 503
}
