/**
 * The attempt loop: calls candidates in order until one answers. Fallback is possible until the first content was sent
 * to the client; a later failure is reported and never replaced by another output. A JSON client receives only complete
 * output, so every failure can still fall back.
 */

import type { AutomaticCacheMarks } from '../core/chat/cache-marks.ts'
import type { AttemptOutcome, ChatEvent, ChatEvents, ChatRequest } from '../core/chat/chat.ts'
import { gatewayOutputCap } from '../core/chat/output-cap.ts'
import { abortError } from '../core/chat/request-abort.ts'
import { withoutReasoning } from '../core/chat/without-reasoning.ts'
import { modelAt } from '../core/models/model-hosts.ts'
import { fullName } from '../core/models/models.ts'
import type { CacheAffinity, CachePlace } from '../core/routing/cache-affinity.ts'
import { isKeyFailure } from '../core/routing/choose-key.ts'
import type { Meter, Reservation } from '../limits/meter.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { ProviderAsk, ProviderFailure } from '../providers/provider.ts'
import { affordable } from './affordable.ts'
import { UpstreamAttempt } from './attempt.ts'
import { allAttemptsFailedError, type FailedAttempt, truncatedOutputError } from './attempt-errors.ts'
import { AttemptRun, type AttemptRunDeps, type CallRequest, finishesOf, opened } from './attempt-run.ts'
import {
  claimKey,
  createKeySearch,
  explainingFailures,
  type KeySearch,
  noteKeyFailure,
  waitForCapacity,
} from './claim-key.ts'
import type { Progress } from './progress.ts'
import { type ReportDeps, reportFailure, reportKeyFailure, reportSuccess } from './report-attempt.ts'
import { type Candidate, viaOf } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { candidatesAtHosts, type Endpoints } from './routing/hosts.ts'
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
    /** Cache marks for a request that has none; null = none. */
    readonly cacheMarks: (accountId: string, ask: ChatRequest) => AutomaticCacheMarks | null
    readonly endpoints: Endpoints
    readonly ties: { of(accountId: string, ask: ChatRequest): CacheAffinity | null }
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
  /** Attempts that count, in order; failures of a single key are in `keys`. */
  readonly failed: FailedAttempt[]
  readonly keys: KeySearch
  /** A response without content: returned if no candidate has a better one. */
  empty: UpstreamResponse | null
  /** The request without reasoning of earlier turns, after a provider has rejected it; null = it was not rejected. */
  bare: ChatRequest | null
}

/**
 * Calls the plan's candidates and yields the response: `opened` and the first content in one batch, then content, then
 * the finish reasons of a complete output. `progress.response` is the response to be billed. Throws `GatewayError` if
 * no candidate answered, if the output ended early after its first content was sent, and when `signal` aborts.
 */
export async function* call(deps: CallDeps, request: CallRequest, progress: Progress): ChatEvents {
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  const keys = createKeySearch()
  const state: Call = { deps, request, progress, deadlineAt, failed: [], keys, empty: null, bare: null }
  progress.upstreamMs = request.prepared.waitedMs
  const active = deps.health.beginRequest()
  try {
    const { ask } = request.prepared
    const candidates = inOrder(
      deps,
      request.plan,
      (one, reason) => skip(state, one, `skipped_${reason}`),
      one => candidatesAtHosts(deps.endpoints, one, ask, () => cachePlaceOf(state, one)?.host),
    )
    for (;;) {
      if (state.failed.length + (state.empty === null ? 0 : 1) >= maximumAttempts) break
      const next = nextCandidate(state, candidates)
      // Waiting without need would delay every request by a turn.
      const candidate = next instanceof Promise ? await next : next
      if (candidate === null) break
      if (!worthTrying(state, candidate)) continue
      const reservation = await affordable(deps.meter, request, candidate, progress)
      const begun =
        reservation === null ? skip(state, candidate, 'skipped_over_budget') : begin(state, candidate, reservation)
      const run = begun instanceof Promise ? await begun : begun
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
      const step = decide(state, run)
      if (step === 'stop') break
      if (step === 'next') continue
      yield step
      return
    }
  } finally {
    active.end()
  }
  yield emptyAnswer(state)
}

/** Returns the same candidate for its next key, the next one, or one whose capacity has returned; null = none is left. */
function nextCandidate(
  state: Call,
  candidates: Iterator<Candidate, void>,
): Candidate | null | Promise<Candidate | null> {
  const { keys } = state
  const again = keys.again
  keys.again = null
  const next = again ?? keys.waited.shift() ?? candidates.next().value
  return next ?? (keys.limited.length === 0 ? null : waitForCapacity(state))
}

/** Claims a key, if the provider has several, and starts the attempt; null = the candidate is skipped. */
function begin(
  state: Call,
  candidate: Candidate,
  reservation: Reservation,
): AttemptRun | null | Promise<AttemptRun | null> {
  if (candidate.endpoint.keys === undefined) return start(state, candidate, reservation, null)
  const place = cachePlaceOf(state, candidate)
  const preferred = place?.host === candidate.endpoint.id ? place.account : null
  return claimKey(state, candidate, { outputCap: reservation.outputCap, preferred }).then(claim => {
    if (typeof claim === 'string') return skip(state, candidate, claim)
    let run: AttemptRun | null = null
    try {
      run = start(state, candidate, reservation, claim)
      return run
    } finally {
      if (run === null) claim.settle(0)
    }
  })
}

/** Starts one attempt; null = the retry budget is used up. */
function start(state: Call, candidate: Candidate, reservation: Reservation, claim: KeyClaim | null): AttemptRun | null {
  const { deps, progress, deadlineAt } = state
  const { prepared, plan, signal } = state.request
  const ask = state.bare ?? prepared.ask
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const stream = ask.stream !== null || (model.capabilities.streaming && outputCap > maximumWholeAnswerTokens)
  const key = healthKey(candidate)
  const attempt = new UpstreamAttempt(deps, {
    candidate,
    claim,
    ask: {
      ask,
      model: candidate.host === undefined ? model : modelAt(model, candidate.host).wire,
      outputCap,
      stream,
      ...cacheMarksFor(state, candidate),
    },
    deadlines: deps.config.deadlines,
    deadlineAt,
    signal,
  })
  const ticket = drawsOnBudget(state, candidate) ? deps.health.beginRetry(key) : free
  if (ticket === null) return skip(state, candidate, 'skipped_retry_budget')
  deps.health.beginAttempt(key)
  const response = createUpstreamResponse({
    candidate,
    ...(claim === null ? {} : { keyAccount: claim.key.account }),
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
  return new AttemptRun(deps, { request: state.request, progress, attempt, response, claim, ticket, outputCap, stream })
}

/** Returns where the candidate's model has the conversation cached, if it has several keys or hosts. */
function cachePlaceOf({ deps, request: { caller, ask } }: Call, { model }: Candidate): CachePlace | undefined {
  const affinity = deps.ties.of(caller.accountId, ask)
  return affinity?.model === fullName(model) ? affinity.place : undefined
}

function cacheMarksFor({ deps, request }: Call, { endpoint, model }: Candidate): Pick<ProviderAsk, 'cacheMarks'> {
  if (endpoint.provider.cachesMarkedInput?.(model) !== true) return {}
  const marks = deps.cacheMarks(request.caller.accountId, request.ask)
  return marks === null ? {} : { cacheMarks: marks }
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
    if (!isEmpty(response) || state.empty !== null || ask.fallback !== 'any') return run.lastBatch()
  } else {
    const report = { candidate, failure, status: attempt.status(), ...viaOf(candidate, run.claim) }
    if (run.claim === null || !isKeyFailure(failure.kind)) reportFailure(deps, request.requestId, report)
    else reportKeyFailure(deps, request.requestId, { ...report, claim: run.claim })
    if (run.isCommitted) throw truncatedOutputError(failure, candidate)
  }
  const durationMs = deps.clock.monotonic() - response.startedAt
  const outcome = failure?.kind ?? 'empty_answer'
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
  if (failure === null) {
    state.empty = response
    return 'next'
  }
  const failed = { candidate, failure, status: attempt.status() }
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

/** Returns the response without content if no candidate had a better one. Throws if all attempts failed. */
function emptyAnswer({ deps, request, progress, deadlineAt, failed, keys, empty }: Call): readonly ChatEvent[] {
  if (empty === null) {
    const isLate = deps.clock.monotonic() >= deadlineAt
    throw allAttemptsFailedError([...explainingFailures(keys), ...failed], isLate, progress.attempts, keys.atLimitMs)
  }
  // This response serves after all.
  progress.response = empty
  const noted = progress.attempts.findIndex(({ outcome }) => outcome === 'empty_answer')
  const [{ via } = {}] = progress.attempts.splice(noted, 1)
  const named = via === undefined ? null : { via }
  return [opened(deps, { request, progress, response: empty }, named), ...finishesOf(empty)]
}

/**
 * Bounds further attempts, so that retries do not overload a struggling provider. A fallback to a healthy provider that
 * has not failed this request is free.
 */
function drawsOnBudget({ deps, failed }: Call, candidate: Candidate): boolean {
  if (failed.length === 0) return false
  const sameProvider = failed.some(({ candidate: other }) => other.endpoint === candidate.endpoint)
  return sameProvider || !deps.health.mayTry(healthKey(candidate))
}

const free = { end() {} }

/**
 * After a context overflow, only a larger context window helps. A provider that rejected its credential is not called
 * again. Under `same_model` only other keys and hosts of the called model are, under `none` nothing is.
 */
function worthTrying({ request, failed, keys }: Call, candidate: Candidate): boolean {
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

const isSameModel = (one: Candidate, other: Candidate) => fullName(one.model) === fullName(other.model)

function mayFallBack(failure: ProviderFailure): boolean {
  return failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
}

/** The model finished without content: `length` and `content_filter` explain this, `stop` does not. */
function isEmpty(response: UpstreamResponse): boolean {
  return !response.hasContent && [...response.finishes.values()].every(reason => reason === 'stop')
}

/** Records that a candidate was skipped in its turn. */
function skip({ deps, progress }: Call, { model }: Candidate, outcome: AttemptOutcome): null {
  const last = progress.attempts.at(-1)
  // A candidate that waits for capacity is skipped repeatedly.
  if (outcome !== 'skipped_rate_limit' || last?.outcome !== outcome || last.model !== fullName(model))
    progress.attempts.push({ model: fullName(model), outcome, startedAt: deps.clock.monotonic(), durationMs: 0 })
  return null
}
