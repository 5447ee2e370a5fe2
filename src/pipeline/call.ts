/**
 * The attempt loop: candidates are asked in order until one answers. Fallback is possible until the first content has
 * gone to the caller; from then on a failure is said, never papered over with a second answer.
 *
 * A JSON caller has seen nothing until the whole answer is there, so for it every failure can still fall back.
 */

import type { Deps } from '../composition/deps.ts'
import type {
  AttemptOutcome,
  AttemptSkip,
  ChatEvent,
  ChatEvents,
  ChatRequest,
  ResponseStart,
} from '../core/chat/chat.ts'
import { gatewayOutputCap } from '../core/chat/output-cap.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { fullName } from '../core/models/models.ts'
import type { SkipReason } from '../core/routing/circuit-breaker.ts'
import { likelyInputTokens, tokensSpared } from '../core/tokens/tokens.ts'
import { highestCostOf } from '../core/usage/money.ts'
import type { Reservation } from '../limits/meter.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import { startAttempt } from './attempt.ts'
import { allAttemptsFailedError, type FailedAttempt, truncatedOutputError } from './attempt-errors.ts'
import type { Prepared } from './enrich.ts'
import { reportFailure, reportSuccess } from './report-attempt.ts'
import { applyParts, createUpstreamResponse, type RequestContext, type UpstreamResponse } from './request-context.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { inOrder } from './routing/order.ts'
import type { Route } from './routing/route.ts'

const maximumAttempts = 3

/**
 * Up to this output cap a JSON caller's answer is asked for in one piece: few enough tokens to be written well within the
 * first byte's deadline. Above it the upstream is asked to stream, so that a long answer can be told from a dead provider
 * and a caller who leaves is billed for what arrived.
 */
const maximumWholeAnswerTokens = 512

/** Longest text taken per token of the output cap: past it the upstream ignores the cap, and is cut off. */
const maximumCharactersPerToken = 16

const checkpointEveryMs = 1000
/** The first with content is due early: until then the request is known, and nothing of its answer. */
const firstCheckpointMs = 250
/** 256 tokens of text, as a rule. */
const checkpointEveryCharacters = 1024

/**
 * Asks the plan's candidates for an answer and yields it: `opened` and the first content in one batch, then content, then
 * the finish reasons of an answer that truly ended. `tally.serving` is the answer to be paid for. Throws `GatewayError`
 * when nobody answered, when the answer broke off after its first content had gone, and when `signal` aborts.
 */
export async function* call(
  deps: Deps,
  prepared: Prepared,
  plan: Route,
  tally: RequestContext,
  signal: RequestAbortSignal,
): ChatEvents {
  const { ask } = prepared
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  const failed: FailedAttempt[] = []
  /** An answer without content: what the caller gets if nobody has a better one. */
  let empty: UpstreamResponse | null = null
  const active = deps.health.beginRequest()
  try {
    const skipped = (candidate: Candidate, reason: SkipReason) => noteSkip(deps, tally, candidate, `skipped_${reason}`)
    for (const candidate of inOrder(deps.health, plan, skipped)) {
      if (failed.length + (empty === null ? 0 : 1) >= maximumAttempts) break
      if (!worthTrying(candidate, failed)) continue
      const seat = await affordable(deps, candidate, ask, plan, tally)
      if (seat === null) {
        noteSkip(deps, tally, candidate, 'skipped_over_budget')
        continue
      }
      const outputCap = Math.min(seat.outputCap, candidate.model.maxOutputTokens)
      const canStream = candidate.model.capabilities.streaming
      const stream = ask.stream !== null || (canStream && outputCap > maximumWholeAnswerTokens)
      const key = healthKey(candidate)
      const attempt = startAttempt(deps, {
        candidate,
        ask: { ask, model: candidate.model, outputCap, stream },
        deadlines: deps.config.deadlines,
        deadlineAt,
        signal,
      })
      const retry = drawsOnBudget(deps, candidate, failed) ? deps.health.beginRetry(key) : free
      if (retry === null) {
        noteSkip(deps, tally, candidate, 'skipped_retry_budget')
        continue
      }
      deps.health.beginAttempt(key)
      const serving = createUpstreamResponse(candidate, attempt.droppedParameters, deps.clock.monotonic())
      serving.outputCap = gatewayOutputCap({
        client: ask.maxOutputTokens,
        usual: deps.config.defaultMaxOutputTokens,
        plannedLimit: plan.first.model.maxOutputTokens,
        granted: seat.outputCap,
        modelLimit: candidate.model.maxOutputTokens,
      })
      tally.serving = serving
      const progress = { at: serving.startedAt + firstCheckpointMs - checkpointEveryMs, length: 0 }
      const held: ChatEvent[] = []
      let committed = false
      try {
        while (!serving.ended && serving.failure === null) {
          const parts = await attempt.next()
          if (parts === null) break
          const content = applyParts(serving, parts, ask.choices)
          noteProgress(tally, serving, progress, attempt.arrivedAt())
          if (serving.hasContent && serving.firstContentAt === null) {
            serving.firstContentAt = attempt.arrivedAt()
            attempt.contentArrived()
          }
          if (serving.text.length > outputCap * ask.choices * maximumCharactersPerToken + 4096)
            serving.failure ??= endless
          if (content.length === 0) continue
          if (committed) yield content
          else {
            for (const event of content) held.push(event)
            // What failed in the same breath as it began has not been seen by anybody: it can still fall back.
            if (ask.stream === null || !serving.hasContent || serving.failure !== null) continue
            committed = true
            yield opened(deps, tally, serving, held)
          }
        }
      } finally {
        attempt.close(serving.ended && serving.failure === null)
        retry.end()
      }

      const failure = serving.failure ?? (serving.ended ? null : truncated)
      // A caller who leaves is not a sick upstream.
      if (failure !== null && signal.aborted) throw abortError(signal)
      if (failure === null) {
        const endedAt = deps.clock.monotonic()
        reportSuccess(deps, serving, stream ? { waitedMs: attempt.waitedMs(), endedAt } : null)
        if (!isEmpty(serving) || empty !== null || !ask.fallback) {
          yield committed ? finishesOf(serving) : [...opened(deps, tally, serving, held), ...finishesOf(serving)]
          return
        }
      } else {
        reportFailure(deps, tally, candidate, failure, attempt.status())
        if (committed) throw truncatedOutputError(failure, candidate)
      }
      const durationMs = deps.clock.monotonic() - serving.startedAt
      note(tally, candidate, failure?.kind ?? 'empty_answer', serving.startedAt, durationMs)
      tally.upstreamMs += durationMs
      tally.serving = null
      if (failure === null) {
        empty = serving
        continue
      }
      failed.push({ candidate, failure, status: attempt.status() })
      if (!ask.fallback || !mayFallBack(failure) || deps.clock.monotonic() >= deadlineAt) break
    }
  } finally {
    active.end()
  }
  if (empty === null) throw allAttemptsFailedError(failed, deps.clock.monotonic() >= deadlineAt, tally.attempts)
  // It served after all.
  tally.serving = empty
  const noted = tally.attempts.findIndex(({ outcome }) => outcome === 'empty_answer')
  tally.attempts.splice(noted, 1)
  yield [...opened(deps, tally, empty, []), ...finishesOf(empty)]
}

/** Each second or 256 tokens, whichever is first: what a process that dies may lose of a request. */
function noteProgress(
  tally: RequestContext,
  serving: UpstreamResponse,
  last: { at: number; length: number },
  now: number,
): void {
  if (now - last.at < checkpointEveryMs && serving.text.length - last.length < checkpointEveryCharacters) return
  last.at = now
  last.length = serving.text.length
  tally.checkpoint()
}

/**
 * Second tries are bounded so that a struggling provider is not buried under them. A fallback to one that may be asked and
 * has not failed this request buries nobody and is free.
 */
function drawsOnBudget(deps: Deps, candidate: Candidate, failed: readonly FailedAttempt[]): boolean {
  if (failed.length === 0) return false
  const sameProvider = failed.some(({ candidate: other }) => other.model.provider === candidate.model.provider)
  return sameProvider || !deps.health.mayTry(healthKey(candidate))
}

const free = { end() {} }

/** A context overflow may go on to a larger window only; a provider that refused our credential is not asked again. */
function worthTrying(candidate: Candidate, failed: readonly FailedAttempt[]): boolean {
  return failed.every(({ candidate: other, failure }) => {
    if (failure.kind === 'context_overflow') return candidate.model.contextWindow > other.model.contextWindow
    if (failure.kind === 'credential_refused' || failure.kind === 'quota_exhausted')
      return candidate.model.provider !== other.model.provider
    return true
  })
}

/**
 * The seat, enlarged where this candidate costs or counts more than was reserved; where the day has no tokens for that, with a
 * smaller output cap. Null = the account cannot pay it.
 */
function affordable(
  deps: Deps,
  candidate: Candidate,
  ask: ChatRequest,
  plan: Route,
  tally: RequestContext,
): Reservation | null | Promise<Reservation | null> {
  const { seat } = tally
  if (seat === null) return null
  const { model } = candidate
  const outputCap = Math.min(seat.outputCap, model.maxOutputTokens)
  const inputTokens = plan.inputTokens - tokensSpared(ask, model.provider)
  const worst = highestCostOf(model, inputTokens, outputCap * plan.choices) + plan.web.microcents
  const tokens = inputTokens + outputCap * plan.choices
  const isEnough = worst <= seat.reservedMicrocents && tokens <= seat.reservedTokens
  // What was reserved was reserved for the first candidate.
  if (isEnough || candidate === plan.first) return seat
  const raise = async (toTokens: number, cap: number): Promise<Reservation | null> => {
    const raised = await deps.meter.raise(seat, toTokens, worst)
    if (raised !== null) tally.seat = raised
    return raised && { ...raised, outputCap: cap }
  }
  const smaller = Math.floor((seat.reservedTokens - inputTokens) / plan.choices)
  return raise(Math.max(tokens, seat.reservedTokens), outputCap).then(
    raised => raised ?? (smaller < 1 || smaller >= outputCap ? null : raise(seat.reservedTokens, smaller)),
  )
}

function mayFallBack(failure: ProviderFailure): boolean {
  return failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
}

/** Nothing at all although the model says it is done: `length` and `content_filter` explain themselves, `stop` does not. */
function isEmpty(serving: UpstreamResponse): boolean {
  return !serving.hasContent && [...serving.finishes.values()].every(reason => reason === 'stop')
}

function finishesOf(serving: UpstreamResponse): ChatEvent[] {
  const { stopSequence, upstreamReason } = serving
  return [...serving.finishes].map(([choice, reason]) => ({
    type: 'finish',
    choice,
    reason,
    ...(choice === 0 && reason === 'stop' && stopSequence !== null ? { stopSequence } : {}),
    ...(choice === 0 && upstreamReason !== null ? { upstreamReason } : {}),
  }))
}

/** The first batch of an answer; from here on it is the one that serves. */
function opened(deps: Deps, tally: RequestContext, serving: UpstreamResponse, held: readonly ChatEvent[]): ChatEvent[] {
  const { candidate, startedAt, firstContentAt } = serving
  const durationMs = deps.clock.monotonic() - startedAt
  if (firstContentAt !== null) tally.firstContentMs = firstContentAt - tally.startedMonotonic
  note(tally, candidate, 'served', startedAt, durationMs)
  const opening: ResponseStart = {
    requestId: tally.requestId,
    createdAt: Math.floor(tally.startedAt / 1000),
    model: fullName(servedModel(deps, serving) ?? candidate.model),
    provider: candidate.model.provider,
    attempts: [...tally.attempts],
    droppedParameters: serving.droppedParameters,
    ...(tally.secrets.length === 0 ? {} : { secrets: tally.secrets }),
    ...(serving.outputCap === null ? {} : { outputCap: serving.outputCap }),
    ...(tally.web === null ? {} : { web: tally.web }),
    ...(tally.asked?.dialect === 'messages' ? { inputUsage: inputUsageOf(serving, tally.asked) } : {}),
    enhanced: tally.enhancement?.changed ?? null,
    overheadMs: Math.max(0, startedAt - tally.startedMonotonic - tally.upstreamMs),
  }
  return [{ type: 'opened', opening }, ...held]
}

/** The input as far as it is counted when the answer begins. */
function inputUsageOf(
  { usage, candidate }: UpstreamResponse,
  asked: ChatRequest,
): NonNullable<ResponseStart['inputUsage']> {
  const { cachedInputTokens = 0, cacheWriteTokens = 0 } = usage ?? {}
  const inputTokens = usage?.inputTokens ?? likelyInputTokens(asked, candidate.model.provider)
  return { inputTokens, cachedInputTokens, cacheWriteTokens }
}

/**
 * The model that truly served: where the provider answers with another one of its catalogue (a retired model's successor),
 * that one is named and priced; a dated snapshot of the asked one is the asked one.
 */
export function servedModel(deps: Pick<Deps, 'catalogue'>, serving: UpstreamResponse | null) {
  if (serving === null) return null
  const { model } = serving.candidate
  if (serving.upstreamModel === null || serving.upstreamModel === model.id) return model
  const other = deps.catalogue.resolve(`${model.provider}/${serving.upstreamModel}`)
  return other !== null && other.provider === model.provider ? other : model
}

function note(
  tally: RequestContext,
  candidate: Candidate,
  outcome: AttemptOutcome,
  startedAt: number,
  durationMs: number,
): void {
  tally.attempts.push({ model: fullName(candidate.model), outcome, startedAt, durationMs: Math.round(durationMs) })
}

/** Notes that a candidate was not asked although its turn had come. */
function noteSkip(
  { clock }: Pick<Deps, 'clock'>,
  tally: RequestContext,
  candidate: Candidate,
  outcome: AttemptSkip,
): void {
  note(tally, candidate, outcome, clock.monotonic(), 0)
}

const truncated: ProviderFailure = {
  kind: 'truncated',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: null,
  detail: 'the answer ended without its terminal event',
}
const endless: ProviderFailure = { ...truncated, kind: 'bad_answer', detail: 'the answer went on past its output cap' }
