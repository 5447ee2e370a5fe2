/** Decides the next step of the loop after an attempt. */

import { isKeyFailure } from '../core/chat/attempts.ts'
import type { ChatEvent } from '../core/chat/chat-events.ts'
import { abortError } from '../core/chat/request-abort.ts'
import { withoutReasoning } from '../core/chat/without-reasoning.ts'
import { fullName } from '../core/models/models.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import { allAttemptsFailedError, type FailedAttempt, truncatedOutputError, uncalledError } from './attempt-errors.ts'
import { type AttemptRun, finishesOf, opened } from './attempt-run.ts'
import { type CallState, maximumAttempts } from './call-state.ts'
import { explainingFailures, noteKeyFailure } from './claim-key.ts'
import type { Progress } from './progress.ts'
import { reportFailure, reportKeyFailure, reportSuccess } from './report-attempt.ts'
import { type Candidate, viaOf } from './routing/candidate.ts'
import { noteUnstreamed } from './unstreamed.ts'
import { lacksForcedCall, type UpstreamResponse } from './upstream-response.ts'

/**
 * Decides the next step after an attempt: the last batch, the next candidate, or the end of the loop. Throws if the
 * output ended early after its first content was sent, or the request has ended.
 */
export function decide(state: CallState, run: AttemptRun): readonly ChatEvent[] | 'next' | 'stop' {
  const { deps, request, progress } = state
  const { response, attempt } = run
  const { candidate } = response
  const { ask } = request.prepared
  const failure = run.failure()
  // A client disconnect is not a failure of the upstream.
  if (failure !== null && request.signal.aborted) throw abortError(request.signal)
  if (failure === null) {
    const endedAt = deps.clock.monotonic()
    reportSuccess(deps, response, run.stream ? { waitedMs: attempt.waitedMs(), endedAt } : null)
    if (isServing(state, run)) return run.lastBatch()
    if (run.isCommitted) {
      const served = progress.attempts.pop()
      const lastedMs = Math.round(endedAt - response.startedAt)
      if (served !== undefined) progress.attempts.push({ ...served, outcome: noCall.kind, durationMs: lastedMs })
      throw uncalledError(candidate, { shouldRetry: false })
    }
    discard(progress, response)
  } else {
    const report = { candidate, failure, status: attempt.status(), ...viaOf(candidate, run.claim) }
    if (run.claim === null || !isKeyFailure(failure.kind)) reportFailure(deps, request.requestId, report)
    else reportKeyFailure(deps, request.requestId, { ...report, claim: run.claim })
    if (run.isCommitted) throw truncatedOutputError(failure, candidate)
  }
  const durationMs = deps.clock.monotonic() - response.startedAt
  const isUncalled = failure === null && lacksForcedCall(response)
  const outcome = failure?.kind ?? (isUncalled ? noCall.kind : 'empty_answer')
  progress.attempts.push({
    model: fullName(candidate.model),
    outcome,
    startedAt: response.startedAt,
    durationMs: Math.round(durationMs),
    status: attempt.status(),
    ...viaOf(candidate, run.claim),
  })
  progress.upstreamMs += durationMs
  progress.response = null
  if (isUncalled) return afterNoCall(state, { candidate, failure: noCall, status: attempt.status() })
  if (failure === null) {
    state.empty = response
    return 'next'
  }
  const failed = { candidate, failure, status: attempt.status() }
  if (failure.rejectsStream === true && run.stream) {
    // The call was refused before any work, so it is no attempt: the same one follows without a stream.
    noteUnstreamed(run.response, attempt.access(), deps.clock.monotonic())
    state.keys.again = candidate
    return 'next'
  }
  if (run.claim !== null && isKeyFailure(failure.kind)) noteKeyFailure(state.keys, run.claim, failed)
  else state.failed.push(failed)
  if (failure.rejectsReasoning === true && state.bare === null) {
    state.bare = withoutReasoning(ask)
    if (state.bare !== null) {
      state.keys.again = candidate
      return 'next'
    }
  }
  return !mayFallBack(failure) || deps.clock.monotonic() >= state.deadlineAt ? 'stop' : 'next'
}

/** Notes a complete answer that the client does not receive. A hedge that it had outrun is not billed either. */
function discard({ discarded, hedge }: Progress, response: UpstreamResponse): void {
  discarded.push(response)
  if (hedge !== null && !hedge.isRacing && hedge.other !== null) discarded.push(hedge.other)
}

/** Repeats the first attempt without the required call, unless the request allows only one. Later ones fall back. */
function afterNoCall(state: CallState, attempt: FailedAttempt): 'next' | 'stop' {
  state.failed.push(attempt)
  if (!state.isRepeated && state.request.prepared.ask.fallback !== 'none') {
    state.isRepeated = true
    state.keys.again = attempt.candidate
  }
  return state.deps.clock.monotonic() >= state.deadlineAt ? 'stop' : 'next'
}

const noCall: ProviderFailure = {
  kind: 'no_tool_call',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: null,
  detail: '200 without the required tool call',
}

/** Returns the response without content if no candidate had a better one. Throws if all attempts failed. */
export function emptyAnswer({
  deps,
  request,
  progress,
  deadlineAt,
  failed,
  keys,
  empty,
}: CallState): readonly ChatEvent[] {
  if (empty === null) {
    const isLate = deps.clock.monotonic() >= deadlineAt
    const all = [...explainingFailures(keys), ...failed]
    throw allAttemptsFailedError(all, {
      isExhausted: all.length >= maximumAttempts,
      isLate,
      attempts: progress.attempts,
      atLimitMs: keys.atLimitMs,
      ask: request.prepared.ask,
    })
  }
  // This response serves after all.
  progress.response = empty
  progress.discarded.splice(progress.discarded.indexOf(empty), 1)
  const noted = progress.attempts.findIndex(({ outcome }) => outcome === 'empty_answer')
  const [{ via } = {}] = progress.attempts.splice(noted, 1)
  const named = via === undefined ? null : { via }
  return [opened(deps, { request, progress, response: empty }, named), ...finishesOf(empty)]
}

/**
 * After a context overflow, only a larger context window helps. A provider that rejected its credential is not called
 * again. Under `same_model` only other keys and hosts of the called model are, under `none` nothing is.
 */
export function worthTrying({ request, failed, keys }: CallState, candidate: Candidate): boolean {
  const called = failed[0] ?? keys.failed[0]
  const policy = request.prepared.ask.fallback
  if (policy === 'none' && called !== undefined) return false
  if (policy === 'same_model' && called !== undefined && !isSameModel(candidate, called.candidate)) return false
  return failed.every(({ candidate: other, failure }) => {
    if (failure.kind === 'context_overflow') return candidate.model.contextWindow > other.model.contextWindow
    if (failure.kind === 'credential_refused' || failure.kind === 'quota_exhausted')
      return candidate.endpoint !== other.endpoint
    return true
  })
}

/** Compares models, whichever host serves them. */
export const isSameModel = (one: Candidate, other: Candidate) => fullName(one.model) === fullName(other.model)

function mayFallBack(failure: ProviderFailure): boolean {
  return failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
}

/** Whether a finished attempt ends the request with its response. */
export function isServing({ empty, request }: CallState, run: AttemptRun): boolean {
  if (run.failure() !== null) return false
  const { fallback, maxOutputTokens } = request.prepared.ask
  // Such a request fills the prompt cache.
  if (maxOutputTokens === 0) return true
  if (lacksForcedCall(run.response)) return false
  return !isEmpty(run.response) || empty !== null || fallback !== 'any'
}

/** The model finished without content: `length` and `content_filter` explain this, `stop` does not. */
function isEmpty(response: UpstreamResponse): boolean {
  return !response.hasContent && [...response.finishes.values()].every(reason => reason === 'stop')
}
