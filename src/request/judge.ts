/** Judges a finished attempt: reports it, and decides whether the loop goes on. */
import { isKeyFailure } from '../core/chat/attempts.ts'
import type { ChatRequest, Message, SourceBody } from '../core/chat/chat.ts'
import { abortError } from '../core/chat/request-abort.ts'
import { firstTokenAt } from '../models/effort.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import type { AttemptRun } from './attempt-run.ts'
import { findCut } from './continuation.ts'
import {
  allAttemptsFailedError,
  type FailedAttempt,
  reportFailure,
  truncatedOutputError,
  uncalledError,
} from './errors.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/hosts.ts'
import { noteUnstreamed } from './start-attempt.ts'
import { lacksForcedCall, type UpstreamResponse } from './upstream-response.ts'
import { type CallDeps, type CallState, continueAfter, maximumAttempts, maximumKeyFailures } from './ways.ts'

/**
 * Decides the next step after an attempt: it serves, the next way, or the end of the loop. Throws if the output ended early
 * after its first content was sent, or the request has ended.
 */
export function judge(state: CallState, run: AttemptRun): 'serve' | 'next' | 'stop' {
  const { deps, request, progress } = state
  const { response, attempt, way } = run
  const { candidate, claim } = way
  const failure = run.failure()
  // A client disconnect is not a failure of the upstream.
  if (failure !== null && request.signal.aborted) throw abortError(request.signal)
  const failed = { candidate, failure: failure ?? state.cut?.failure ?? noCall, status: attempt.status, claim }
  if (failure === null) {
    reportSuccess(deps, run)
    if (isServing(state, run)) {
      run.commit()
      return 'serve'
    }
    if (run.isCommitted) throw uncalledAfterContent(state, run)
    discard(progress, response)
  } else {
    reportFailure(deps, request.requestId, failed)
    if (run.isCommitted) return afterCut(state, run, failed)
    // What only repeats the text before is nothing to the client.
    if (run.seam !== null && response.hasContent) discard(progress, response)
  }
  const isUncalled = failure === null && lacksForcedCall(response)
  run.note(failure?.kind ?? (isUncalled ? noCall.kind : 'empty_answer'))
  progress.upstreamMs += run.lastedMs()
  progress.response = null
  if (isUncalled) return afterNoCall(state, failed)
  if (failure === null) {
    if (run.seam === null) state.empty = run
    else state.failed.push(failed)
    return 'next'
  }
  if (failure.rejectsStream === true && run.stream) {
    // The call was refused before any work, so it is no attempt: the same one follows without a stream.
    noteUnstreamed(attempt.access, candidate.model, deps.clock.monotonic())
    return again(state, candidate)
  }
  noteFailed(state, failed)
  if (failure.rejectsReasoning === true && state.bare === null) {
    state.bare = withoutReasoning(request.prepared.request)
    if (state.bare !== null) return again(state, candidate)
  }
  const mayFallBack = failure.kind === 'context_overflow' || (failure.retryable && failure.blame !== 'caller')
  return mayFallBack && deps.clock.monotonic() < state.deadlineAt ? 'next' : 'stop'
}

/** Whether a finished attempt ends the request with its response. */
export function isServing({ empty, request }: CallState, run: AttemptRun): boolean {
  if (run.failure() !== null) return false
  const { fallback, maxOutputTokens } = request.prepared.request
  // Such a request fills the prompt cache.
  if (maxOutputTokens === 0) return true
  if (lacksForcedCall(run.response)) return false
  const { hasContent, finishes } = run.response
  // `length` and `content_filter` explain an output without content, `stop` does not.
  let isStopped = true
  for (const reason of finishes.values()) if (reason !== 'stop') isStopped = false
  // Without a word of it, a cut text is not known to be whole.
  if (run.seam !== null) return run.seam.isJoined() || !isStopped
  return hasContent || !isStopped || empty !== null || fallback !== 'any'
}

function noteFailed(state: CallState, failed: FailedAttempt): void {
  const { claim, failure, candidate } = failed
  if (claim === null || !isKeyFailure(failure.kind)) {
    state.failed.push(failed)
    return
  }
  state.triedKeys.add(claim.key)
  state.keyFailures.push(failed)
  if (state.keyFailures.length < maximumKeyFailures) state.again = candidate
}

/** Lets another attempt continue a text that was cut. Throws if none may. */
function afterCut(state: CallState, run: AttemptRun, failed: FailedAttempt): 'next' {
  const { deps, progress, deadlineAt } = state
  const cut = findCut(run, failed.failure)
  if (cut === null || deps.clock.monotonic() >= deadlineAt) throw truncatedOutputError(failed.failure, failed.candidate)
  // It was noted when it began to serve.
  progress.attempts.pop()
  run.note(failed.failure.kind)
  progress.cut.push(run.response)
  progress.response = null
  noteFailed(state, failed)
  continueAfter(state, cut)
  return 'next'
}

function again(state: CallState, candidate: Candidate): 'next' {
  state.again = candidate
  return 'next'
}

/** Notes a complete answer that the client does not receive. A hedge that it had outrun is not billed either. */
function discard({ discarded, hedge, cut }: Progress, response: UpstreamResponse): void {
  discarded.push(response)
  // The client has a part of the answer that won the hedge before it was cut.
  if (hedge?.other?.isCanceled === true && cut.length === 0) discarded.push(hedge.other)
}

/** Repeats the first attempt without the required call, unless the request allows only one. Later ones fall back. */
function afterNoCall(state: CallState, attempt: FailedAttempt): 'next' | 'stop' {
  state.failed.push(attempt)
  if (!state.isRepeated && state.request.prepared.request.fallback !== 'none') {
    state.isRepeated = true
    state.again = attempt.candidate
  }
  return state.deps.clock.monotonic() >= state.deadlineAt ? 'stop' : 'next'
}

function uncalledAfterContent({ progress }: CallState, run: AttemptRun): Error {
  progress.attempts.pop()
  run.note(noCall.kind)
  return uncalledError(run.way.candidate, { shouldRetry: false })
}

const noCall: ProviderFailure = {
  kind: 'no_tool_call',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: null,
  detail: '200 without the required tool call',
}

/** Returns the response without content if no candidate had a better one. Throws if all attempts failed. */
export function emptyAnswer(state: CallState): AttemptRun {
  const { deps, request, progress, deadlineAt, failed, keyFailures, empty, atLimitMs, cut } = state
  if (cut !== null) throw truncatedOutputError(cut.failure, cut.candidate)
  if (empty === null) {
    // Rejected keys are omitted if a busy one could still serve.
    const busy = keyFailures.filter(({ failure }) => failure.kind !== 'credential_refused')
    const all = [...(busy.length > 0 || atLimitMs !== null ? busy : keyFailures), ...failed]
    throw allAttemptsFailedError(all, {
      isExhausted: all.length >= maximumAttempts,
      isLate: deps.clock.monotonic() >= deadlineAt,
      attempts: progress.attempts,
      atLimitMs,
      request: request.prepared.request,
    })
  }
  // This response serves after all.
  progress.response = empty.response
  progress.discarded.splice(progress.discarded.indexOf(empty.response), 1)
  progress.attempts.splice(
    progress.attempts.findIndex(({ outcome }) => outcome === 'empty_answer'),
    1,
  )
  empty.commit()
  return empty
}

/** Reports a success, with its speed if it was streamed. */
function reportSuccess({ health, clock }: CallDeps, { response, attempt, stream }: AttemptRun): void {
  const speed = stream ? getSpeed(response, attempt.waitedMs, clock.monotonic()) : null
  const firstTokenScale = firstTokenAt(response.effort)
  health.report(healthKey(response.candidate), { outcome: 'ok', firstTokenScale, ...speed })
}

/** Fewer tokens than this give no meaningful rate. */
const leastPacedTokens = 32
/** Maximum share of the response time spent waiting for the client. */
const mostIdle = 0.25

/**
 * Returns the speed of a streamed response: time to first content, and the token rate if the upstream counted tokens
 * and was the bottleneck.
 */
function getSpeed(
  { firstContentAt, startedAt, usage, reasoning }: UpstreamResponse,
  waitedMs: number,
  endedAt: number,
) {
  if (firstContentAt === null) return {}
  const firstTokenMs = firstContentAt - startedAt
  // Hidden reasoning was generated before the first content.
  const tokens = (usage?.outputTokens ?? 0) - (reasoning === '' ? (usage?.reasoningTokens ?? 0) : 0)
  const lasted = endedAt - firstContentAt
  const idle = Math.max(0, endedAt - startedAt - waitedMs)
  if (tokens < leastPacedTokens || idle > mostIdle * lasted) return { firstTokenMs }
  return { firstTokenMs, tokensPerSecond: (1000 * tokens) / Math.max(1, lasted - idle) }
}

/** Returns the request without reasoning, for a provider that no longer accepts it; null if it has none, or the form of Responses. */
function withoutReasoning(request: ChatRequest): ChatRequest | null {
  if (!request.messages.some(hasReasoning)) return null
  const messages = request.messages.map(bare)
  const { source } = request
  if (source === null || source.messages !== request.messages) return { ...request, messages }
  switch (source.dialect) {
    case 'messages':
      return { ...request, messages, source: { ...source, messages, sealed: reasoningBlocks(source) } }
    case 'gemini':
      return { ...request, messages, source: null }
    case 'responses':
    case 'decisions':
      return null
  }
}

function hasReasoning(message: Message): boolean {
  return message.role === 'assistant' && (message.reasoningItems?.length ?? 0) > 0
}

function bare(message: Message): Message {
  if (message.role !== 'assistant' || message.reasoningItems === undefined) return message
  const { reasoningItems, ...rest } = message
  return rest
}

/** Returns the places of all blocks with reasoning, which the body then goes without. */
function reasoningBlocks({ fields }: SourceBody): NonNullable<SourceBody['sealed']> {
  const turns: readonly unknown[] = Array.isArray(fields.messages) ? fields.messages : []
  return turns.flatMap((turn, message) => {
    const content: unknown = typeof turn === 'object' && turn !== null && 'content' in turn ? turn.content : null
    const blocks: readonly unknown[] = Array.isArray(content) ? content : []
    return blocks.flatMap((block, part) => (isReasoning(block) ? [[message, part] as const] : []))
  })
}

function isReasoning(block: unknown): boolean {
  if (typeof block !== 'object' || block === null || !('type' in block)) return false
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}
