/** Reports an attempt to the model's health, and a failure also to the operator. */

import type { AttemptFailure } from '../core/chat/attempts.ts'
import { fullName, type Model, type ModelHost } from '../core/models/models.ts'
import type { Log } from '../core/ports.ts'
import type { HealthOutcome } from '../models/circuit-breaker.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import type { FailedAttempt } from './attempt-errors.ts'
import { type Candidate, viaOf } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** Content of a report. */
type ReportedFailure = Pick<FailedAttempt, 'failure' | 'status'> & {
  readonly candidate: { readonly model: Pick<Model, 'id' | 'provider'>; readonly host?: ModelHost }
  /** Host and key, as the operator named them; absent = the provider has one of each. */
  readonly via?: string
}

export type ReportDeps = {
  readonly health: {
    /** Milliseconds; tokens per second. */
    report(
      key: string,
      report: {
        readonly outcome: HealthOutcome
        readonly cause?: AttemptFailure
        readonly retryAfterMs?: number | null
        readonly firstTokenMs?: number | null
        readonly tokensPerSecond?: number | null
        readonly failure?: AttemptFailure
      },
    ): void
  }
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** Reports a success with its speed if it `streamed`: total wait and end time in milliseconds. */
export function reportSuccess(
  { health }: Pick<ReportDeps, 'health'>,
  response: UpstreamResponse,
  streamed: { readonly waitedMs: number; readonly endedAt: number } | null,
): void {
  health.report(healthKey(response.candidate), {
    outcome: 'ok',
    ...(streamed === null ? {} : speedOf(response, streamed.waitedMs, streamed.endedAt)),
  })
}

/** Fewer tokens than this give no meaningful rate. */
const leastPacedTokens = 32
/** Maximum share of the response time spent waiting for the client. */
const mostIdle = 0.25

/**
 * Returns the speed of a streamed response: time to first content, and the token rate if the upstream counted tokens
 * and was the bottleneck.
 */
function speedOf({ firstContentAt, startedAt, usage, reasoning }: UpstreamResponse, waitedMs: number, endedAt: number) {
  if (firstContentAt === null) return {}
  const firstTokenMs = firstContentAt - startedAt
  // Hidden reasoning was generated before the first content.
  const tokens = (usage?.outputTokens ?? 0) - (reasoning === '' ? (usage?.reasoningTokens ?? 0) : 0)
  const lasted = endedAt - firstContentAt
  const idle = Math.max(0, endedAt - startedAt - waitedMs)
  if (tokens < leastPacedTokens || idle > mostIdle * lasted) return { firstTokenMs }
  return { firstTokenMs, tokensPerSecond: (1000 * tokens) / Math.max(1, lasted - idle) }
}

/** Reports a failure to the model's health and to the operator. A client's invalid request does not affect health. */
export function reportFailure(
  deps: ReportDeps,
  requestId: string,
  { candidate, failure, status, via }: ReportedFailure,
): void {
  const { kind, detail, blame, retryAfterMs } = failure
  const fields = { request_id: requestId, model: fullName(candidate.model), ...(via && { via }), kind, detail }
  if (blame === 'caller') {
    deps.log.info('upstream_rejected_request', fields)
    return
  }
  // A rejected credential or an unpaid provider bill, which only the operator can fix.
  if (blame === 'us') deps.log.error('provider_disabled', fields)
  else deps.log.warn('attempt_failed', fields)
  const key = healthKey(candidate)
  const outcome = healthOutcome(failure, status)
  deps.health.report(key, { outcome, cause: kind, retryAfterMs })
  // An unhealthy model with a retry time is not called until then.
  if (outcome === 'unhealthy' && retryAfterMs !== null) deps.health.report(key, { outcome: 'cooling', retryAfterMs })
}

type ReportedKeyFailure = Pick<FailedAttempt, 'failure'> & {
  readonly candidate: ReportedFailure['candidate'] & Pick<Candidate, 'endpoint'>
  readonly claim: KeyClaim
}

/** Reports a failure of one key to the operator. It says nothing about the model's health. */
export function reportKeyFailure(
  { log }: Pick<ReportDeps, 'log'>,
  requestId: string,
  { candidate, failure, claim }: ReportedKeyFailure,
): void {
  const { kind, detail } = failure
  const { via } = viaOf(candidate, claim) ?? {}
  const fields = { request_id: requestId, model: fullName(candidate.model), ...(via && { via }), kind, detail }
  if (kind === 'credential_refused') log.error('key_rejected', fields)
  else log.warn('key_paused', fields)
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
