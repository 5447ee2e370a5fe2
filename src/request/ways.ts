/**
 * Selects the ways of one request to an upstream. A way is one host of a model with one of its keys. The order is: another
 * key of the same host, another host of the same model, the next model. A failed key is replaced at once: its call
 * neither counts as an attempt nor draws on the retry budget, within a bound. Without capacity anywhere the request
 * waits briefly once.
 */

import type { AttemptOutcome, AttemptSkip } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { AutomaticCacheMarks } from '../core/chat/provider-features.ts'
import { abortError, sleepUnlessAborted } from '../core/chat/request-abort.ts'
import { type Catalog, fullName } from '../core/models/models.ts'
import type { Deadlines } from '../core/request/deadlines.ts'
import type { CacheAffinityTracker } from '../learning/cache-affinity.ts'
import type { Meter, Reservation } from '../limits/meter.ts'
import type { CachePlace } from '../models/cache-affinity.ts'
import type { HealthTracker } from '../models/health-tracker.ts'
import type { HedgeBudget } from '../models/hedging.ts'
import type { Endpoints } from '../providers/configured-provider.ts'
import type { KeyClaim, KeyNeed, NoKey, PoolKey } from '../providers/keys/key-pool.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import { affordable } from './affordable.ts'
import type { AttemptDeps } from './attempt.ts'
import type { AttemptRun, CallRequest, Way } from './attempt-run.ts'
import type { Cut } from './continuation.ts'
import type { FailedAttempt, ReportDeps } from './errors.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import { candidatesAtHosts, drawHost, healthKey, inOrder } from './routing/hosts.ts'
import { spentOn } from './settled-cost.ts'

export type CallDeps = AttemptDeps &
  ReportDeps & {
    readonly config: { readonly deadlines: Deadlines; readonly defaultMaxOutputTokens: number }
    readonly catalog: Pick<Catalog, 'resolve'>
    /** Tells a continuation the language of the conversation. */
    readonly read: PromptAnalyzer
    readonly meter: Pick<Meter, 'raise'>
    readonly getPromptCacheKey: (accountId: string, name: string) => string
    /** Cache marks for a request that has none; null = none. */
    readonly cacheMarks: (accountId: string, request: ChatRequest) => AutomaticCacheMarks | null
    readonly endpoints: Endpoints
    readonly random: () => number
    readonly ties: Pick<CacheAffinityTracker, 'of'>
    readonly hedges: Pick<HedgeBudget, 'earn' | 'draw'>
    readonly health: Pick<
      HealthTracker,
      | 'skipReason'
      | 'getStanding'
      | 'beginRequest'
      | 'beginAttempt'
      | 'endProbe'
      | 'beginRetry'
      | 'lateAfterMs'
      | 'waited'
      | 'report'
    >
  }

/** State of the attempt loop for one request. */
export class CallState {
  /** Monotonic deadline of the whole request in milliseconds. */
  readonly deadlineAt: number
  /** Hosts of the planned models in their order. */
  readonly candidates: Iterator<Candidate, void>
  /** Attempts that count, in order; failures of a single key are in `keyFailures`. */
  readonly failed: FailedAttempt[] = []
  readonly keyFailures: FailedAttempt[] = []
  /** Keys that failed this request. */
  readonly triedKeys = new Set<PoolKey>()
  /** The candidate that is called once more: with its next key, or with a changed request. */
  again: Candidate | null = null
  /** Candidates without capacity since the last wait, and after how many milliseconds it returns. */
  limited: { readonly candidate: Candidate; readonly waitMs: number }[] = []
  /** Candidates to try before the next of `candidates`. */
  waiting: Candidate[] = []
  /** The shortest wait that a pool reported; null = none did. */
  atLimitMs: number | null = null
  /** Milliseconds that the request waited for capacity. */
  waitedMs = 0
  /** An attempt without content: its response is returned if no candidate has a better one. */
  empty: AttemptRun | null = null
  /** An attempt without the required tool call was repeated, which happens once. */
  isRepeated = false
  /** The request without reasoning of earlier turns, after a provider has rejected it; null = it was not rejected. */
  bare: ChatRequest | null = null
  /** The text that the next attempt continues; null = none. */
  cut: Cut | null = null

  constructor(
    readonly deps: CallDeps,
    readonly request: CallRequest,
    readonly progress: Progress,
  ) {
    const getFirstHost = (candidate: Candidate) => () =>
      findCachePlace(this, candidate)?.host ?? drawHost(candidate.model, deps.random)
    this.deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
    this.candidates = inOrder(
      deps,
      request.plan,
      (candidate, reason) => skip(this, candidate, `skipped_${reason}`),
      candidate => candidatesAtHosts(deps.endpoints, candidate, request.prepared.request, getFirstHost(candidate)),
    )
  }
}

export const maximumAttempts = 3
/** Keys that one request may lose before its candidate counts as failed. */
export const maximumKeyFailures = 8
/** A wait that an upstream does not state. */
const usualWaitMs = 5_000
/** Longest wait of a request for capacity, in total. */
export const maximumCapacityWaitMs = 2_000

/** Returns the next way; null = none is left. Records the candidates that it skips. Throws if the request ends. */
export async function select(state: CallState): Promise<Way | null> {
  while (getAttempts(state) < maximumAttempts) {
    const candidate =
      state.again ?? state.waiting.shift() ?? state.candidates.next().value ?? (await untilCapacity(state))
    state.again = null
    if (candidate === null) return null
    if (!worthTrying(state, candidate)) continue
    const spent = state.cut === null ? null : spentBefore(state)
    const reservation = await affordable(state.deps.meter, state.request, state.progress, {
      candidate,
      isHedge: false,
      spent,
    })
    const way = reservation === null ? 'skipped_over_budget' : take(state, candidate, reservation)
    if (typeof way !== 'string') return way
    skip(state, candidate, way)
  }
  return null
}

/**
 * Returns the way of a hedge beside a running attempt: another host of the same model, else another key of the same
 * host, else the next model if the request allows fallback. Removes none from the order of attempts before it is used.
 */
export async function selectBeside(state: CallState, running: AttemptRun): Promise<Way | null> {
  const { deps, request, progress } = state
  const { candidate: serving, claim } = running.way
  const policy = request.prepared.request.fallback
  if (policy === 'none') return null
  const next = state.waiting.shift() ?? state.candidates.next().value ?? null
  if (next !== null) state.waiting.unshift(next)
  const isHost = next !== null && isSameModel(next, serving)
  const options = [
    ...(isHost ? [next] : []),
    ...(claim === null ? [] : [serving]),
    ...(next !== null && !isHost && policy === 'any' ? [next] : []),
  ].filter(
    candidate =>
      candidate.model.capabilities.streaming &&
      // A late own key has not failed, and the operator's is billed.
      candidate.endpoint !== serving.endpoint.own?.shared &&
      worthTrying(state, candidate) &&
      deps.health.getStanding(healthKey(candidate)).mayTry,
  )
  if (options.length === 0 || !deps.hedges.draw(request.caller.accountId)) return null
  const except = claim === null ? state.triedKeys : new Set([...state.triedKeys, claim.key])
  for (const candidate of options) {
    // The account that has the prompt in its cache is the late one.
    const own = claimKey(state, candidate, progress.reservation.outputCap, { except, preferred: null })
    if (own?.key === null) continue
    let way: Way | null = null
    try {
      const reservation = await affordable(deps.meter, request, progress, { candidate, isHedge: true, spent: null })
      const ticket = reservation === null ? null : ticketFor(state, candidate)
      if (reservation !== null && ticket !== null) way = { candidate, reservation, claim: own, ticket }
      return way
    } finally {
      if (way === null) own?.settle(0)
    }
  }
  return null
}

/**
 * Lets another attempt continue a text: at the next host of its model, else once where it was cut, else at the next model. The
 * same host with the operator's key comes after the own key that was cut.
 */
export function continueAfter(state: CallState, cut: Cut): void {
  state.cut = cut
  const next = state.waiting.shift() ?? state.candidates.next().value ?? null
  const others = next === null ? [] : [next]
  const isHost =
    next !== null && isSameModel(next, cut.candidate) && next.endpoint !== cut.candidate.endpoint.own?.shared
  // One request must not open the circuit of a model.
  const here = state.failed.filter(({ candidate }) => candidate === cut.candidate).length < 2 ? [cut.candidate] : []
  state.waiting.unshift(...(isHost ? [...others, ...here] : [...here, ...others]))
}

/** Releases a way on which no attempt began. */
export function release({ claim, ticket }: Pick<Way, 'claim' | 'ticket'>): void {
  ticket.end()
  claim?.settle(0)
}

/** Claims a key and a ticket of the retry budget; otherwise returns the reason for skipping the candidate. */
function take(state: CallState, candidate: Candidate, reservation: Reservation): Way | AttemptSkip {
  const place = findCachePlace(state, candidate)
  const preferred = place?.host === candidate.endpoint.id ? place.account : null
  const claim = claimKey(state, candidate, reservation.outputCap, { except: state.triedKeys, preferred })
  if (claim?.key === null) return withoutKey(state, candidate, claim)
  const ticket = ticketFor(state, candidate)
  if (ticket !== null) return { candidate, reservation, claim, ticket }
  claim?.settle(0)
  return 'skipped_retry_budget'
}

/** Claims a key; null = the host has one credential. */
function claimKey(
  state: CallState,
  candidate: Candidate,
  outputCap: number,
  choice: Pick<KeyNeed, 'except' | 'preferred'>,
): KeyClaim | NoKey | null {
  const { model, endpoint } = candidate
  if (endpoint.keys === undefined) return null
  const tokens = getTokens(state.request.prepared.request, model, outputCap)
  return endpoint.keys.claim({ model: fullName(model), tokens, ...choice })
}

/** Returns the tokens of an attempt at most: input and output cap, as providers count them. */
function getTokens(request: ChatRequest, model: Candidate['model'], outputCap: number): number {
  // A request for embeddings has several calls, of which the largest must fit.
  const embedded = request.embedding?.tokens.reduce((sum, tokens) => sum + tokens, 0)
  if (embedded !== undefined) return Math.min(embedded, model.embedding?.batch.tokens ?? embedded)
  return likelyInputTokens(request, model.provider) + Math.min(outputCap, model.maxOutputTokens) * request.choices
}

function withoutKey(state: CallState, candidate: Candidate, { reason, waitMs }: NoKey): AttemptSkip {
  const ms = reason === 'at_limit' ? waitMs : statedWaitMs(state, candidate)
  if (ms !== null) {
    state.limited.push({ candidate, waitMs: ms })
    state.atLimitMs = Math.min(ms, state.atLimitMs ?? ms)
    return 'skipped_rate_limit'
  }
  // The provider rejects all keys: routing learns it as it does for a provider with one key.
  if (reason === 'refused') state.deps.health.report(healthKey(candidate), { outcome: 'switched_off' })
  return 'skipped_provider_disabled'
}

/** Returns the shortest wait that the upstream stated for keys of this provider; null = none answered 429. */
function statedWaitMs({ keyFailures }: CallState, { endpoint }: Candidate): number | null {
  const waits = keyFailures.flatMap(({ candidate, failure }) =>
    candidate.endpoint === endpoint && failure.kind !== 'credential_refused'
      ? [failure.retryAfterMs ?? usualWaitMs]
      : [],
  )
  return waits.length === 0 ? null : Math.min(...waits)
}

const free = { end() {} }

/**
 * Bounds further attempts, so that retries do not overload a struggling provider; null = the retry budget is used up. A
 * fallback to a healthy provider that has not failed this request is free.
 */
function ticketFor({ deps, failed }: CallState, candidate: Candidate): Way['ticket'] | null {
  if (failed.length === 0) return free
  const key = healthKey(candidate)
  const isSameProvider = failed.some(({ candidate: other }) => other.endpoint === candidate.endpoint)
  return isSameProvider || !deps.health.getStanding(key).mayTry ? deps.health.beginRetry(key) : free
}

/**
 * Waits until capacity returns and returns the first candidate to try again; null = not within the bound. Others with the
 * same capacity may be faster, so all are tried again. Throws if the request ends.
 */
async function untilCapacity(state: CallState): Promise<Candidate | null> {
  const { deps, request, progress, deadlineAt } = state
  const limited = state.limited.toSorted((item, other) => item.waitMs - other.waitMs)
  state.limited = []
  const waitMs = limited[0]?.waitMs ?? Number.POSITIVE_INFINITY
  if (state.waitedMs + waitMs > maximumCapacityWaitMs || deps.clock.monotonic() + waitMs >= deadlineAt) return null
  state.waitedMs += waitMs
  await sleepUnlessAborted(deps.clock, waitMs, request.signal)
  progress.upstreamMs += waitMs
  // Pauses of failed keys may have ended. The pool checks them.
  state.triedKeys.clear()
  if (request.signal.aborted) throw abortError(request.signal)
  state.waiting = limited.map(({ candidate }) => candidate)
  return state.waiting.shift() ?? null
}

/** Returns the attempts so far; calls that failed because of a key are none. */
export function getAttempts({ failed, empty, progress: { hedge } }: CallState): number {
  return failed.length + (empty === null ? 0 : 1) + (hedge?.other?.isCanceled === true ? 1 : 0)
}

/** Records that a candidate was skipped in its turn. */
function skip({ deps, progress }: CallState, { model }: Candidate, outcome: AttemptOutcome): void {
  const last = progress.attempts.at(-1)
  // A candidate that waits for capacity is skipped repeatedly.
  if (outcome !== 'skipped_rate_limit' || last?.outcome !== outcome || last.model !== fullName(model))
    progress.attempts.push({ model: fullName(model), outcome, startedAt: deps.clock.monotonic(), durationMs: 0 })
}

/**
 * After a context overflow, only a larger context window helps. A provider that rejected its credential is not called
 * again. Under `same_model` only other keys and hosts of the called model are, under `none` nothing is.
 */
function worthTrying({ request, failed, keyFailures, cut }: CallState, candidate: Candidate): boolean {
  const called = cut ?? failed[0] ?? keyFailures[0]
  const policy = cut?.policy ?? request.prepared.request.fallback
  if (policy === 'none' && called !== undefined) return false
  if (policy === 'same_model' && called !== undefined && !isSameModel(candidate, called.candidate)) return false
  return failed.every(({ candidate: other, failure }) => {
    if (failure.kind === 'context_overflow') return candidate.model.contextWindow > other.model.contextWindow
    if (failure.kind === 'credential_refused' || failure.kind === 'quota_exhausted')
      return candidate.endpoint !== other.endpoint
    return true
  })
}

/** Returns what the parts of a cut text have used. */
function spentBefore({ deps, request, progress }: CallState) {
  const { plan, prepared } = request
  return spentOn(deps.catalog, progress, { plan, request: prepared.request, reservation: progress.reservation })
}

/** Compares models, whichever host serves them. */
const isSameModel = (candidate: Candidate, other: Candidate) => fullName(candidate.model) === fullName(other.model)

/** Returns where the candidate's model has the conversation cached, if it has several keys or hosts. */
function findCachePlace(
  { deps, request: { caller, request } }: CallState,
  { model }: Candidate,
): CachePlace | undefined {
  const affinity = deps.ties.of(caller.accountId, request)
  return affinity?.model === fullName(model) ? affinity.place : undefined
}
