/**
 * The attempt loop: calls candidates in order until one answers. Fallback is possible until the first content was sent
 * to the client; a later failure is reported and never replaced by another output. A JSON client receives only complete
 * output, so every failure can still fall back.
 */

import type { AttemptOutcome, ChatEvent, ChatEvents, ChatRequest } from '../core/chat/chat.ts'
import { gatewayOutputCap } from '../core/chat/output-cap.ts'
import { abortError } from '../core/chat/request-abort.ts'
import { withoutReasoning } from '../core/chat/without-reasoning.ts'
import { fullName } from '../core/models/models.ts'
import { tokensSpared } from '../core/tokens/tokens.ts'
import { highestCostOf } from '../core/usage/money.ts'
import { highestSourceCharges } from '../core/usage/source-charges.ts'
import type { Meter, Reservation } from '../limits/meter.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import { startAttempt } from './attempt.ts'
import { allAttemptsFailedError, type FailedAttempt, truncatedOutputError } from './attempt-errors.ts'
import { AttemptRun, type AttemptRunDeps, type CallRequest, finishesOf, opened } from './attempt-run.ts'
import type { Progress } from './progress.ts'
import { type ReportDeps, reportFailure, reportSuccess } from './report-attempt.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { type CandidateOrderDeps, inOrder } from './routing/order.ts'
import { createUpstreamResponse, type UpstreamResponse } from './upstream-response.ts'

const maximumAttempts = 3

/**
 * Up to this output cap, a JSON response is requested in one piece: few enough tokens for the first byte's deadline.
 * Above it the upstream streams, so that a long output differs from a dead provider, and a client disconnect is billed
 * for the received output.
 */
const maximumWholeAnswerTokens = 512

export type CallDeps = AttemptRunDeps &
  ReportDeps & {
    readonly meter: Pick<Meter, 'raise'>
    readonly health: CandidateOrderDeps['health'] & {
      mayTry(key: string): boolean
      /** Counts a request as active until its `end`. */
      beginRequest(): RetryTicket
      beginAttempt(key: string): void
      /** Reserves a second or third attempt from the retry budget; null = the budget is used up. */
      beginRetry(key: string): RetryTicket | null
    }
  }

type RetryTicket = { end(): void }

/** State of the loop for one request. */
type Call = {
  readonly deps: CallDeps
  readonly request: CallRequest
  readonly progress: Progress
  /** Monotonic deadline of the whole request in milliseconds. */
  readonly deadlineAt: number
  readonly failed: FailedAttempt[]
  /** A response without content: returned if no candidate has a better one. */
  empty: UpstreamResponse | null
  /** The request without reasoning of earlier turns, after a provider has rejected it; null = it was not rejected. */
  bare: ChatRequest | null
  /** The last candidate is called once more. */
  repeats: boolean
}

/**
 * Calls the plan's candidates and yields the response: `opened` and the first content in one batch, then content, then
 * the finish reasons of a complete output. `progress.response` is the response to be billed. Throws `GatewayError` if
 * no candidate answered, if the output ended early after its first content was sent, and when `signal` aborts.
 */
export async function* call(deps: CallDeps, request: CallRequest, progress: Progress): ChatEvents {
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  const state: Call = { deps, request, progress, deadlineAt, failed: [], empty: null, bare: null, repeats: false }
  progress.upstreamMs = request.prepared.waitedMs
  const active = deps.health.beginRequest()
  try {
    const candidates = inOrder(deps, request.plan, (one, reason) => skip(state, one, `skipped_${reason}`))
    for (const candidate of withRepeats(state, candidates)) {
      if (state.failed.length + (state.empty === null ? 0 : 1) >= maximumAttempts) break
      if (!worthTrying(candidate, state.failed)) continue
      const reservation = await affordable(state, candidate)
      const run =
        reservation === null ? skip(state, candidate, 'skipped_over_budget') : start(state, candidate, reservation)
      if (run === null) continue
      try {
        while (!run.isOver()) {
          const parts = await run.attempt.next()
          if (parts === null) break
          const shown = run.take(parts)
          if (shown !== null) yield shown
        }
      } finally {
        run.close()
      }
      const next = decide(state, run)
      if (next === 'stop') break
      if (next === 'next') continue
      yield next
      return
    }
  } finally {
    active.end()
  }
  yield emptyAnswer(state)
}

/** Yields each candidate, and again where its next call has another request. */
function* withRepeats(state: Call, candidates: Iterable<Candidate>): Generator<Candidate, void, void> {
  for (const candidate of candidates) {
    yield candidate
    if (!state.repeats) continue
    state.repeats = false
    yield candidate
  }
}

/** Starts one attempt; null = the retry budget is used up. */
function start(state: Call, candidate: Candidate, reservation: Reservation): AttemptRun | null {
  const { deps, progress, deadlineAt } = state
  const { prepared, plan, signal } = state.request
  const ask = state.bare ?? prepared.ask
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const stream = ask.stream !== null || (model.capabilities.streaming && outputCap > maximumWholeAnswerTokens)
  const key = healthKey(candidate)
  const attempt = startAttempt(deps, {
    candidate,
    ask: { ask, model, outputCap, stream },
    deadlines: deps.config.deadlines,
    deadlineAt,
    signal,
  })
  const ticket = drawsOnBudget(state, candidate) ? deps.health.beginRetry(key) : free
  if (ticket === null) return skip(state, candidate, 'skipped_retry_budget')
  deps.health.beginAttempt(key)
  const response = createUpstreamResponse({
    candidate,
    ask,
    droppedParameters: attempt.droppedParameters,
    outputCap: gatewayOutputCap({
      client: ask.maxOutputTokens,
      usual: deps.config.defaultMaxOutputTokens,
      plannedLimit: plan.first.model.maxOutputTokens,
      granted: reservation.outputCap,
      modelLimit: model.maxOutputTokens,
    }),
    startedAt: deps.clock.monotonic(),
  })
  progress.response = response
  return new AttemptRun(deps, { request: state.request, progress, attempt, response, ticket, outputCap, stream })
}

/**
 * Decides the next step after an attempt: the last batch, the next candidate, or the end of the loop. Throws if the
 * output ended early after its first content was sent, or the request has ended.
 */
function decide(state: Call, run: AttemptRun): readonly ChatEvent[] | 'next' | 'stop' {
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
    if (!isEmpty(response) || state.empty !== null || !ask.fallback) return run.lastBatch()
  } else {
    reportFailure(deps, request.requestId, { candidate, failure, status: attempt.status() })
    if (run.isCommitted) throw truncatedOutputError(failure, candidate)
  }
  const durationMs = deps.clock.monotonic() - response.startedAt
  const outcome = failure?.kind ?? 'empty_answer'
  progress.attempts.push({
    model: fullName(candidate.model),
    outcome,
    startedAt: response.startedAt,
    durationMs: Math.round(durationMs),
  })
  progress.upstreamMs += durationMs
  progress.response = null
  if (failure === null) {
    state.empty = response
    return 'next'
  }
  state.failed.push({ candidate, failure, status: attempt.status() })
  if (failure.rejectsReasoning === true && state.bare === null) {
    state.bare = withoutReasoning(ask)
    state.repeats = state.bare !== null
    if (state.repeats) return 'next'
  }
  return !ask.fallback || !mayFallBack(failure) || deps.clock.monotonic() >= state.deadlineAt ? 'stop' : 'next'
}

/** Returns the response without content if no candidate had a better one. Throws if all attempts failed. */
function emptyAnswer({ deps, request, progress, deadlineAt, failed, empty }: Call): readonly ChatEvent[] {
  if (empty === null) throw allAttemptsFailedError(failed, deps.clock.monotonic() >= deadlineAt, progress.attempts)
  // This response serves after all.
  progress.response = empty
  const noted = progress.attempts.findIndex(({ outcome }) => outcome === 'empty_answer')
  progress.attempts.splice(noted, 1)
  return [opened(deps, { request, progress, response: empty }), ...finishesOf(empty)]
}

/**
 * Bounds further attempts, so that retries do not overload a struggling provider. A fallback to a healthy provider that
 * has not failed this request is free.
 */
function drawsOnBudget({ deps, failed }: Call, candidate: Candidate): boolean {
  if (failed.length === 0) return false
  const sameProvider = failed.some(({ candidate: other }) => other.model.provider === candidate.model.provider)
  return sameProvider || !deps.health.mayTry(healthKey(candidate))
}

const free = { end() {} }

/**
 * After a context overflow, only a larger context window helps. A provider that rejected its credential is not called
 * again.
 */
function worthTrying(candidate: Candidate, failed: readonly FailedAttempt[]): boolean {
  return failed.every(({ candidate: other, failure }) => {
    if (failure.kind === 'context_overflow') return candidate.model.contextWindow > other.model.contextWindow
    if (failure.kind === 'credential_refused' || failure.kind === 'quota_exhausted')
      return candidate.model.provider !== other.model.provider
    return true
  })
}

/**
 * Enlarges the reservation if this candidate costs or counts more. If the remaining daily tokens do not suffice, lowers
 * the output cap. Null = the account cannot pay for the candidate.
 */
function affordable(
  { deps, request: { plan, prepared }, progress }: Call,
  candidate: Candidate,
): Reservation | Promise<Reservation | null> {
  const { reservation } = progress
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const inputTokens = plan.inputTokens - tokensSpared(prepared.ask, model.provider)
  const extra = plan.web.microcents + highestSourceCharges(prepared.ask, candidate, inputTokens)
  const worst = highestCostOf(model, inputTokens, outputCap * plan.choices) + extra
  const tokens = inputTokens + outputCap * plan.choices
  const isEnough = worst <= reservation.reservedMicrocents && tokens <= reservation.reservedTokens
  // The reservation was made for the first candidate.
  if (isEnough || candidate === plan.first) return reservation
  const raise = async (toTokens: number, cap: number): Promise<Reservation | null> => {
    const raised = await deps.meter.raise(reservation, toTokens, worst)
    if (raised !== null) progress.reservation = raised
    return raised && { ...raised, outputCap: cap }
  }
  const smaller = Math.floor((reservation.reservedTokens - inputTokens) / plan.choices)
  return raise(Math.max(tokens, reservation.reservedTokens), outputCap).then(
    raised => raised ?? (smaller < 1 || smaller >= outputCap ? null : raise(reservation.reservedTokens, smaller)),
  )
}

function mayFallBack(failure: ProviderFailure): boolean {
  return failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
}

/** The model finished without content: `length` and `content_filter` explain this, `stop` does not. */
function isEmpty(response: UpstreamResponse): boolean {
  return !response.hasContent && [...response.finishes.values()].every(reason => reason === 'stop')
}

/** Records that a candidate was skipped in its turn. */
function skip({ deps, progress }: Call, { model }: Candidate, outcome: AttemptOutcome): null {
  progress.attempts.push({ model: fullName(model), outcome, startedAt: deps.clock.monotonic(), durationMs: 0 })
  return null
}
