/** Starts an attempt of the loop: builds its request for the way that was selected. */

import { gatewayOutputCap } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import type { Deadlines } from '../core/request/deadlines.ts'
import { modelAt } from '../models/model-hosts.ts'
import type { Access, AdapterRequest } from '../providers/provider.ts'
import { AttemptRun, type Way } from './attempt-run.ts'
import { continuedRequest, Seam } from './continuation.ts'
import { createAttempt } from './embeddings-attempt.ts'
import { reportFailure } from './errors.ts'
import type { Candidate } from './routing/candidate.ts'
import { assertAllowed } from './routing/constrained.ts'
import { healthKey } from './routing/hosts.ts'
import { UpstreamResponse } from './upstream-response.ts'
import { type CallState, release } from './ways.ts'

/**
 * Up to this output cap, a JSON response is requested in one piece: few enough tokens for the first byte's deadline.
 * Above it the upstream streams, so that a long output differs from a dead provider, and a client disconnect is billed
 * for the received output.
 */
const maximumWholeAnswerTokens = 512

/** Starts an attempt on a way, which is released with it. */
export function startAttempt(state: CallState, way: Way): AttemptRun {
  try {
    return start(state, way)
  } catch (cause) {
    release(way)
    throw cause
  }
}

function start(state: CallState, way: Way): AttemptRun {
  const { deps, progress, deadlineAt } = state
  const { prepared, plan, signal, caller, request: client } = state.request
  const asked = state.bare ?? prepared.request
  const { cut } = state
  const request = cut === null ? asked : continuedRequest(asked, cut, deps.read(client.messages).language)
  const { candidate, reservation, claim } = way
  assertAllowed(request.demands, candidate)
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  // Only a stream has a first content before its end.
  const wantsStream = outputCap > maximumWholeAnswerTokens || progress.hedge !== null
  const access = claim?.key.access ?? candidate.endpoint.access
  const isRefused = isUnstreamed(access, model, deps.clock.monotonic())
  const stream = !isRefused && (request.stream !== null || (model.capabilities.streaming && wantsStream))
  const response = new UpstreamResponse(request, {
    candidate,
    keyAccount: claim?.key.account ?? null,
    outputCap: gatewayOutputCap({
      client: request.maxOutputTokens,
      usual: deps.config.defaultMaxOutputTokens,
      plannedLimit: plan.first.model.maxOutputTokens,
      granted: reservation.outputCap,
      modelLimit: model.maxOutputTokens,
    }),
    startedAt: deps.clock.monotonic(),
    startedAtMs: deps.clock.now(),
  })
  const attempt = createAttempt(deps, {
    candidate,
    claim,
    request: {
      request: withOwnCacheKey(withEffort(request, candidate), name => deps.getPromptCacheKey(caller.accountId, name)),
      model: candidate.host === undefined ? model : modelAt(model, candidate.host).wire,
      outputCap,
      stream,
      ...cacheMarksFor(state, candidate),
    },
    deadlines: deadlinesFor(deps.config.deadlines, candidate, isRefused),
    deadlineAt,
    signal,
    response,
    keyFailed: (failure, status, lost) =>
      reportFailure(deps, state.request.requestId, { candidate, failure, status, claim: lost }),
  })
  const key = healthKey(candidate)
  const isProbe = deps.health.beginAttempt(key)
  progress.response = response
  const endProbe = isProbe ? () => deps.health.endProbe(key) : null
  const seam = cut === null ? null : new Seam(cut)
  return new AttemptRun(state, outputCap, { way, attempt, response, stream, seam, endProbe })
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

function cacheMarksFor(
  { deps, request }: CallState,
  { endpoint, model }: Candidate,
): Pick<AdapterRequest, 'cacheMarks'> {
  if (endpoint.provider.cachesMarkedInput?.(model) !== true) return {}
  const marks = deps.cacheMarks(request.caller.accountId, request.request)
  return marks === null ? {} : { cacheMarks: marks }
}

/** Returns the request with the effort that routing chose, unless the client set one. */
function withEffort(request: ChatRequest, { effort = null }: Candidate): ChatRequest {
  return effort === null || request.reasoningEffort !== null ? request : { ...request, reasoningEffort: effort }
}

/**
 * Returns the request with a `prompt_cache_key` that no other account can send. All accounts share the operator's account at the
 * provider: with the same key, one could measure from cached tokens what another one sends.
 */
function withOwnCacheKey(request: ChatRequest, getKey: (name: string) => string): ChatRequest {
  const { extras, source } = request
  const name = extras[cacheKeyField] ?? source?.fields[cacheKeyField]
  if (typeof name !== 'string') return request
  const own = { [cacheKeyField]: getKey(name) }
  return {
    ...request,
    extras: { ...extras, ...(cacheKeyField in extras ? own : {}) },
    source: source === null ? null : { ...source, fields: { ...source.fields, ...own } },
  }
}

const cacheKeyField = 'prompt_cache_key'

/** The operator may have verified the organization since. */
const rememberedMs = 3_600_000

/** Monotonic milliseconds until which no stream is requested, by model ID. */
const refused = new WeakMap<Access, Map<string, number>>()

/** Notes that the provider refuses to stream a model to a key. OpenAI requires a verified organization for some. */
export function noteUnstreamed(access: Access, { id }: Pick<Model, 'id'>, now: number): void {
  const models = refused.get(access) ?? new Map<string, number>()
  refused.set(access, models.set(id, now + rememberedMs))
}

/** Returns whether the provider refuses to stream this model to this key. */
function isUnstreamed(access: Access, { id }: Pick<Model, 'id'>, now: number): boolean {
  return now < (refused.get(access)?.get(id) ?? 0)
}
