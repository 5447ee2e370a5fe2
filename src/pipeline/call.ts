/**
 * The attempt loop: candidates are asked in order until one answers. Fallback is possible until the first content has
 * gone to the caller; from then on a failure is said, never papered over with a second answer.
 *
 * A JSON caller has seen nothing until the whole answer is there, so for it every failure can still fall back.
 */
import type { AttemptFailure, ChatEvent, ChatEvents, Opening } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'
import { fullName } from '../core/models.ts'
import { costOf } from '../core/money.ts'
import type { Deps } from '../deps.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import { startAttempt } from './attempt.ts'
import type { Prepared } from './enrich.ts'
import { type Candidate, healthKey, type Route } from './route.ts'
import { type Serving, startServing, type Tally, takeIn } from './tally.ts'

export const maximumAttempts = 3

/**
 * Up to this output cap a JSON caller's answer is asked for in one piece. Above it the upstream is asked to stream, so
 * that a long answer can be told from a dead provider and a caller who leaves is billed for what arrived.
 */
const maximumWholeAnswerTokens = 1024

/** Longest text taken per token of the output cap: past it the upstream ignores the cap, and is cut off. */
const maximumCharactersPerToken = 16

type Failed = { readonly candidate: Candidate; readonly failure: ProviderFailure }

export async function* call(
  deps: Deps,
  prepared: Prepared,
  plan: Route,
  tally: Tally,
  signal: AbortSignal,
): ChatEvents {
  const { ask } = prepared
  const failed: Failed[] = []
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  let emptyAnswers = 0
  const queue = candidateQueue(deps, plan)

  for (let candidate = queue.next(); candidate !== null; candidate = queue.next()) {
    if (failed.length + emptyAnswers >= maximumAttempts) break
    if (!worthTrying(candidate, failed)) continue
    const seat = await affordable(deps, candidate, plan, tally)
    if (seat === null) {
      note(tally, candidate, 'skipped_over_budget', 0)
      continue
    }
    const outputCap = Math.min(seat.outputCap, candidate.model.maxOutputTokens)
    const stream = ask.stream !== null || outputCap > maximumWholeAnswerTokens
    const key = healthKey(candidate)
    const retry = drawsOnBudget(deps, candidate, failed) ? deps.health.beginRetry(key) : free
    if (retry === null) continue
    const startedAt = deps.clock.monotonic()
    const serving = startServing(candidate)
    tally.serving = serving
    const attempt = startAttempt(deps, {
      candidate,
      ask: { ask, model: candidate.model, outputCap, stream },
      deadlines: deps.config.deadlines,
      deadlineAt,
      signal,
    })
    tally.droppedParameters = attempt.droppedParameters
    let held: ChatEvent[] = []
    let committed = false
    try {
      for (;;) {
        const parts = await attempt.next()
        if (parts === null) break
        const content = takeIn(serving, parts)
        if (serving.hasContent && tally.firstContentMs === null) attempt.contentArrived()
        if (content.length > 0) {
          if (ask.stream === null || !serving.hasContent) held.push(...content)
          else if (committed) yield content
          else {
            committed = true
            tally.firstContentMs = deps.clock.monotonic() - tally.startedMonotonic
            note(tally, candidate, 'served', deps.clock.monotonic() - startedAt)
            yield [{ type: 'opened', opening: openingOf(deps, tally, candidate, startedAt) }, ...held, ...content]
            held = []
          }
        }
        if (serving.ended || serving.failure !== null) break
        if (serving.text.length > outputCap * ask.choices * maximumCharactersPerToken + 4096)
          serving.failure = endless
      }
    } finally {
      attempt.close(serving.ended && serving.failure === null)
      retry.end()
    }

    const failure = serving.failure ?? (serving.ended ? null : truncated)
    const durationMs = deps.clock.monotonic() - startedAt
    if (failure === null && !(isEmpty(serving) && emptyAnswers === 0 && hasAnother(plan, failed))) {
      deps.health.report(key, { outcome: 'ok', firstTokenMs: tally.firstContentMs ?? durationMs })
      if (!committed) {
        tally.firstContentMs ??= deps.clock.monotonic() - tally.startedMonotonic
        note(tally, candidate, 'served', durationMs)
        yield [{ type: 'opened', opening: openingOf(deps, tally, candidate, startedAt) }, ...held, ...finishesOf(serving)]
      } else yield finishesOf(serving)
      return
    }
    // A caller who leaves is not a sick upstream.
    if (signal.aborted) throw endedFromOutside(signal)
    if (failure !== null) reportFailure(deps, key, failure)
    if (committed) throw midStreamError(failure ?? truncated, candidate)
    note(tally, candidate, failure?.kind ?? 'empty_answer', durationMs)
    tally.upstreamMs += durationMs
    tally.serving = null
    if (failure === null) {
      emptyAnswers += 1
      continue
    }
    deps.log.warn('attempt_failed', {
      request_id: tally.requestId,
      model: fullName(candidate.model),
      kind: failure.kind,
      detail: failure.detail,
    })
    failed.push({ candidate, failure })
    if (!ask.fallback || !mayFallBack(failure) || deps.clock.monotonic() >= deadlineAt) break
  }
  throw exhausted(failed, deps, deadlineAt)
}

/**
 * The plan's candidates in order, those that are resting last: a sick one is probed by one request at a time, and the last
 * resort is never taken away.
 */
function candidateQueue(deps: Deps, plan: Route): { next(): Candidate | null } {
  const waiting = [...plan.candidates]
  const resting: Candidate[] = []
  return {
    next() {
      for (let candidate = waiting.shift(); candidate !== undefined; candidate = waiting.shift()) {
        if (deps.health.mayTry(healthKey(candidate))) return candidate
        resting.push(candidate)
      }
      return resting.shift() ?? null
    },
  }
}

/**
 * Second tries are bounded so that a struggling provider is not buried under them. A fallback to a healthy provider that
 * has not failed this request buries nobody and is free.
 */
function drawsOnBudget(deps: Deps, candidate: Candidate, failed: readonly Failed[]): boolean {
  if (failed.length === 0) return false
  const sameProvider = failed.some(({ candidate: other }) => other.model.provider === candidate.model.provider)
  return sameProvider || deps.health.stateOf(healthKey(candidate)) !== 'healthy'
}

const free = { end() {} }

/** A context overflow may go on to a larger window only; a provider that refused our credential is not asked again. */
function worthTrying(candidate: Candidate, failed: readonly Failed[]): boolean {
  return failed.every(({ candidate: other, failure }) => {
    if (failure.kind === 'context_overflow') return candidate.model.contextWindow > other.model.contextWindow
    if (failure.kind === 'credential_refused' || failure.kind === 'quota_exhausted')
      return candidate.model.provider !== other.model.provider
    return true
  })
}

function hasAnother(plan: Route, failed: readonly Failed[]): boolean {
  return failed.length + 1 < Math.min(maximumAttempts, plan.candidates.length)
}

/** The seat, enlarged where this candidate is dearer than what was reserved; null = the account cannot pay it. */
async function affordable(deps: Deps, candidate: Candidate, plan: Route, tally: Tally) {
  const seat = tally.seat
  if (seat === null) return null
  const worst = costOf(candidate.model, {
    inputTokens: plan.inputTokens,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: seat.outputCap * plan.choices,
    reasoningTokens: 0,
  })
  if (worst <= seat.reservedMicrocents) return seat
  const raised = await deps.meter.raise(seat, seat.reservedTokens, worst)
  if (raised !== null) tally.seat = raised
  return raised
}

function mayFallBack(failure: ProviderFailure): boolean {
  return failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
}

/** Nothing at all although the model says it is done: `length` and `content_filter` explain themselves, `stop` does not. */
function isEmpty(serving: Serving): boolean {
  return !serving.hasContent && [...serving.finishes.values()].every(reason => reason === 'stop')
}

function finishesOf(serving: Serving): ChatEvent[] {
  return [...serving.finishes].map(([choice, reason]) => ({ type: 'finish', choice, reason }))
}

function openingOf(deps: Deps, tally: Tally, candidate: Candidate, attemptStartedAt: number): Opening {
  const now = deps.clock.monotonic()
  return {
    requestId: tally.requestId,
    createdAt: Math.floor(tally.startedAt / 1000),
    model: fullName(servedModel(deps, tally.serving) ?? candidate.model),
    provider: candidate.model.provider,
    attempts: [...tally.attempts],
    droppedParameters: tally.droppedParameters,
    overheadMs: Math.max(0, now - tally.startedMonotonic - tally.upstreamMs - (now - attemptStartedAt)),
  }
}

/**
 * The model that truly served: where the provider answers with another one of its catalogue (a retired model's successor),
 * that one is named and priced; a dated snapshot of the asked one is the asked one.
 */
export function servedModel(deps: Pick<Deps, 'catalogue'>, serving: Serving | null) {
  if (serving === null) return null
  const { model } = serving.candidate
  if (serving.upstreamModel === null || serving.upstreamModel === model.id) return model
  const other = deps.catalogue.resolve(`${model.provider}/${serving.upstreamModel}`)
  return other !== null && other.provider === model.provider ? other : model
}

function note(tally: Tally, candidate: Candidate, outcome: 'served' | AttemptFailure, durationMs: number): void {
  tally.attempts.push({ model: fullName(candidate.model), outcome, durationMs: Math.round(durationMs) })
}

const truncated: ProviderFailure = {
  kind: 'truncated',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: null,
  detail: 'the answer ended without its terminal event',
}
const endless: ProviderFailure = { ...truncated, kind: 'bad_answer', detail: 'the answer went on past its output cap' }

/** What a failure says about the model's health. The caller's own mistakes say nothing. */
function reportFailure(deps: Deps, key: string, failure: ProviderFailure): void {
  if (failure.blame === 'caller') return
  deps.health.report(key, { outcome: healthOutcome(failure), retryAfterMs: failure.retryAfterMs })
}

function healthOutcome(failure: ProviderFailure): 'soft_failure' | 'unhealthy' | 'cooling' | 'switched_off' {
  switch (failure.kind) {
    case 'rate_limited':
      return 'cooling'
    case 'quota_exhausted':
    case 'credential_refused':
      return 'switched_off'
    case 'overloaded':
    case 'model_missing':
      return 'unhealthy'
    default:
      return 'soft_failure'
  }
}

/** The caller left, or the gateway had to end the request itself and said why. */
function endedFromOutside(signal: AbortSignal): GatewayError {
  if (signal.reason instanceof GatewayError) return signal.reason
  return new GatewayError('service_unavailable', 'The caller closed the connection.')
}

function midStreamError(failure: ProviderFailure, candidate: Candidate): GatewayError {
  const options = { shouldRetry: false, detail: `${fullName(candidate.model)}: ${failure.detail}` }
  return failure.kind === 'timeout'
    ? new GatewayError('upstream_timeout', 'The model stopped answering. What came before is incomplete; ask again.', options)
    : new GatewayError('upstream_failed', 'The answer broke off. What came before is incomplete; ask again.', options)
}

/** The error of a request that no candidate answered, from what each of them said. */
function exhausted(failed: readonly Failed[], deps: Deps, deadlineAt: number): GatewayError {
  const last = failed.at(-1)?.failure ?? null
  const options = { shouldRetry: false, detail: failed.map(({ failure }) => failure.detail).join('; ') }
  if (last === null) return new GatewayError('no_model_available', messages.none, { ...options, retryAfterMs: 5000 })
  switch (last.kind) {
    case 'context_overflow':
      return new GatewayError('context_length_exceeded', messages.context, { ...options, param: 'messages' })
    case 'request_too_large':
      return new GatewayError('body_too_large', messages.large, options)
    case 'content_filtered':
      return new GatewayError('content_blocked', messages.filtered, { ...options, layer: 'provider', category: 'provider' })
    case 'request_refused':
      return new GatewayError('invalid_request', messages.refused, options)
    default: {
      if (failed.every(({ failure }) => failure.kind === 'timeout') || deps.clock.monotonic() >= deadlineAt)
        return new GatewayError('upstream_timeout', messages.timeout, options)
      if (failed.every(({ failure }) => unavailable.has(failure.kind))) {
        const waits = failed.map(({ failure }) => failure.retryAfterMs ?? 5000)
        return new GatewayError('no_model_available', messages.none, { ...options, retryAfterMs: Math.min(...waits) })
      }
      return new GatewayError('upstream_failed', messages.failed, options)
    }
  }
}

const unavailable = new Set<AttemptFailure>(['rate_limited', 'quota_exhausted', 'overloaded'])

const messages = {
  none: 'No model can take this request right now. Try again after the time in retry-after.',
  context: 'The conversation is longer than the model takes. Shorten it, or name a model with a larger context window.',
  large: 'The request is larger than the provider takes. Send fewer or smaller images or less text.',
  filtered: "The provider's own content filter refused this request. Change the prompt.",
  refused: 'The provider refused the request as invalid. Check its parameters against the documentation of the model.',
  timeout: 'No model answered in time. Try again, or ask for less output.',
  failed: 'Every model that was asked failed to answer. Try again in a moment.',
}
