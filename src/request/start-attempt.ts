/** Starts an attempt of the loop: claims its key, asks the retry budget, and builds its request. */
import type { ChatRequest } from '../core/chat/chat.ts'
import { gatewayOutputCap } from '../core/chat/output-cap.ts'
import { fullName } from '../core/models/models.ts'
import type { Deadlines } from '../core/request/deadlines.ts'
import type { Reservation } from '../limits/meter.ts'
import type { CachePlace } from '../models/cache-affinity.ts'
import { modelAt } from '../models/model-hosts.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { ProviderAsk } from '../providers/provider.ts'
import { AttemptRun } from './attempt-run.ts'
import { type CallState, skip } from './call-state.ts'
import { claimKey } from './claim-key.ts'
import { createAttempt } from './embeddings-attempt.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { isUnstreamed } from './unstreamed.ts'
import { createUpstreamResponse } from './upstream-response.ts'

/**
 * Up to this output cap, a JSON response is requested in one piece: few enough tokens for the first byte's deadline.
 * Above it the upstream streams, so that a long output differs from a dead provider, and a client disconnect is billed
 * for the received output.
 */
const maximumWholeAnswerTokens = 512

/** Claims a key, if the provider has several, and starts the attempt; null = the candidate is skipped. */
export function claimAndStart(state: CallState, candidate: Candidate, reservation: Reservation): AttemptRun | null {
  if (candidate.endpoint.keys === undefined) return startAttempt(state, candidate, reservation, null)
  const place = cachePlaceOf(state, candidate)
  const preferred = place?.host === candidate.endpoint.id ? place.account : null
  const claim = claimKey(state, candidate, { outputCap: reservation.outputCap, preferred })
  if (typeof claim === 'string') return skip(state, candidate, claim)
  let run: AttemptRun | null = null
  try {
    run = startAttempt(state, candidate, reservation, claim)
    return run
  } finally {
    if (run === null) claim.settle(0)
  }
}

/** Starts one attempt; null = the retry budget is used up. */
export function startAttempt(
  state: CallState,
  candidate: Candidate,
  reservation: Reservation,
  claim: KeyClaim | null,
): AttemptRun | null {
  const { deps, progress, deadlineAt } = state
  const { prepared, plan, signal, caller } = state.request
  const ask = state.bare ?? prepared.ask
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  // Only a stream has a first content before its end.
  const wantsStream = outputCap > maximumWholeAnswerTokens || progress.hedge !== null
  const access = claim?.key.access ?? candidate.endpoint.access
  const isRefused = isUnstreamed(access, model, deps.clock.monotonic())
  const stream = !isRefused && (ask.stream !== null || (model.capabilities.streaming && wantsStream))
  const key = healthKey(candidate)
  const attempt = createAttempt(deps, {
    candidate,
    claim,
    ask: {
      ask: withOwnCacheKey(ask, name => deps.promptCacheKeyOf(caller.accountId, name)),
      model: candidate.host === undefined ? model : modelAt(model, candidate.host).wire,
      outputCap,
      stream,
      ...cacheMarksFor(state, candidate),
    },
    deadlines: deadlinesFor(deps.config.deadlines, candidate, isRefused),
    deadlineAt,
    signal,
  })
  const ticket = drawsOnBudget(state, candidate) ? deps.health.beginRetry(key) : free
  if (ticket === null) return skip(state, candidate, 'skipped_retry_budget')
  const isProbe = deps.health.beginAttempt(key)
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
    startedAtMs: deps.clock.now(),
  })
  progress.response = response
  const run = { request: state.request, progress, attempt, response, claim, ticket, outputCap, stream }
  return new AttemptRun(deps, { ...run, endProbe: isProbe ? () => deps.health.endProbe(key) : null })
}

/** A local server that loads a large model sends nothing before. Beyond this time it is broken. */
const loadingMs = 300_000

/** Returns the deadlines of one attempt. `isWhole`: a long output arrives in one piece, so its first byte is its end. */
function deadlinesFor(deadlines: Deadlines, { endpoint }: Candidate, isWhole: boolean): Deadlines {
  const leastMs = isWhole ? deadlines.totalMs : endpoint.loadsModels === true ? loadingMs : 0
  if (leastMs === 0) return deadlines
  const atLeast = (milliseconds: number) => Math.max(milliseconds, leastMs)
  return {
    ...deadlines,
    firstByteMs: atLeast(deadlines.firstByteMs),
    firstContentMs: atLeast(deadlines.firstContentMs),
    firstContentReasoningMs: atLeast(deadlines.firstContentReasoningMs),
  }
}

/** Returns where the candidate's model has the conversation cached, if it has several keys or hosts. */
export function cachePlaceOf(
  { deps, request: { caller, ask } }: CallState,
  { model }: Candidate,
): CachePlace | undefined {
  const affinity = deps.ties.of(caller.accountId, ask)
  return affinity?.model === fullName(model) ? affinity.place : undefined
}

function cacheMarksFor({ deps, request }: CallState, { endpoint, model }: Candidate): Pick<ProviderAsk, 'cacheMarks'> {
  if (endpoint.provider.cachesMarkedInput?.(model) !== true) return {}
  const marks = deps.cacheMarks(request.caller.accountId, request.ask)
  return marks === null ? {} : { cacheMarks: marks }
}

/**
 * Returns the request with a `prompt_cache_key` that no other account can send. All accounts share the operator's account at the
 * provider: with the same key, one could measure from cached tokens what another one sends.
 */
function withOwnCacheKey(ask: ChatRequest, keyOf: (name: string) => string): ChatRequest {
  const { extras, source } = ask
  const name = extras[cacheKeyField] ?? source?.fields[cacheKeyField]
  if (typeof name !== 'string') return ask
  const own = { [cacheKeyField]: keyOf(name) }
  return {
    ...ask,
    extras: { ...extras, ...(cacheKeyField in extras ? own : {}) },
    source: source === null ? null : { ...source, fields: { ...source.fields, ...own } },
  }
}

const cacheKeyField = 'prompt_cache_key'

/**
 * Bounds further attempts, so that retries do not overload a struggling provider. A fallback to a healthy provider that
 * has not failed this request is free.
 */
function drawsOnBudget({ deps, failed }: CallState, candidate: Candidate): boolean {
  if (failed.length === 0) return false
  const sameProvider = failed.some(({ candidate: other }) => other.endpoint === candidate.endpoint)
  return sameProvider || !deps.health.mayTry(healthKey(candidate))
}

const free = { end() {} }
