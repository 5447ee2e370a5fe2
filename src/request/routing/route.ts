/**
 * Chooses the models for a request in four steps, each with the result of the step before: filter, score, rank, choose.
 * A named model is the first choice whatever its score; the same steps then find its fallbacks.
 */

import type { ChatRequest, Strategy } from '../../core/chat/chat.ts'
import { requestedTier } from '../../core/chat/provider-features.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { EmbeddingCatalog } from '../../core/models/embedding-models.ts'
import { type Catalog, fitsWindow, fullName, getNeeds, type Model, type Needs } from '../../core/models/models.ts'
import type { PriceTerms } from '../../core/models/pricing.ts'
import type { Clock } from '../../core/ports.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { defaultLevelShares, getLevel, type Level, type LevelShares } from '../../models/capability-levels.ts'
import { getEffortRules, usualLengths } from '../../models/effort.ts'
import type { RequestAnalysis } from '../../text/analysis/prompt-analysis.ts'
import { noWeb, type WebPlan } from '../../web/web-plan.ts'
import { type AccountLearning, type Candidate, type RouteRequest, unreadable } from './candidate.ts'
import { modelBreach, noPlaceError } from './constrained.ts'
import { type FilterDeps, filterCandidates, filterFallbacks } from './filter-candidates.ts'
import { findEndpoint, routingHealth } from './hosts.ts'
import { findNamedModel, noEligibleModelError, notConfigured, refuseUnmet } from './named-model.ts'
import {
  maximumCandidates,
  type RankDeps,
  type RouteLearning,
  rankCandidates,
  unhealthyLast,
  withCachedEarlier,
  withoutLearning,
} from './rank-candidates.ts'
import { getScoringMode, RankedCandidate, type ScoreDeps, scoreFallbacks, toCandidates } from './score-candidates.ts'
import { followConversation, type TurnRanking } from './turn.ts'

export type RouteDeps = FilterDeps &
  ScoreDeps &
  RankDeps & {
    readonly catalog: Catalog
    /** Names that a chat request cannot use, for the error. Absent = none. */
    readonly embeddingCatalog?: Pick<EmbeddingCatalog, 'resolve'>
    readonly clock: Pick<Clock, 'now'>
    /** Learning of an account, from memory; null = not loaded yet. Absent = learning is off. */
    readonly learning?: { of(accountId: string): AccountLearning | null }
    /** Target shares of requests per capability level. Absent = the defaults. */
    readonly shares?: LevelShares
  }

/** A request to route, with its analysis. */
type RouteInput = {
  readonly caller: Caller
  readonly request: ChatRequest
  readonly analysis: RequestAnalysis
  /** Estimated tokens, without the web. */
  readonly inputTokens: number
  /** Absent = no web access. */
  readonly web?: WebPlan
}

/** The models to call for a request. */
export type Route = Pick<ChosenRoute, keyof ChosenRoute>

type Dropped = { readonly model: string; readonly reason: string }

/**
 * Chooses the models to call and their order. Throws `GatewayError` if no model can take the request:
 * `model_not_found`, `model_deprecated`, `invalid_request`, `unsupported_parameter`, `context_length_exceeded`,
 * `no_model_available`.
 */
export function route(
  deps: RouteDeps,
  { caller, request: chatRequest, analysis, inputTokens, web = noWeb }: RouteInput,
): Route {
  const now = deps.clock.now()
  const request: RouteRequest = {
    request: withStrategy(chatRequest, caller),
    caller,
    analysis,
    inputTokens,
    needs: getNeeds(chatRequest),
    // A named model needs no level.
    level: getLevel(analysis.strongGain ?? 0, deps.shares ?? defaultLevelShares),
    today: isoDay(now),
    terms: { at: now, tier: requestedTier(chatRequest) },
    learning: deps.learning?.of(caller.accountId) ?? null,
    lengths: deps.calibration?.reasoning.current ?? usualLengths,
    ...(chatRequest.model === null ? { efforts: getEffortRules(chatRequest) } : null),
  }
  const choice =
    chatRequest.model === null ? chooseAutomatically(deps, request) : chooseNamed(deps, request, chatRequest.model)
  // The client's own text decides the choice. Web content has to fit the model and not the reverse.
  const hasRoom =
    web === noWeb || fitsWindow(choice.first.model, inputTokens + web.tokens, chatRequest.maxOutputTokens ?? 1)
  return new ChosenRoute(request, choice, hasRoom ? web : noWeb)
}

/** The key's strategy applies where the request leaves the choice of the model, and of the strategy, to the gateway. */
function withStrategy(request: ChatRequest, { strategy }: Caller): ChatRequest {
  return strategy === undefined || request.strategy !== null || request.model !== null
    ? request
    : { ...request, strategy }
}

/** Candidates in order. Dropped models are computed on request only, because most requests do not read them. */
type Candidates = { readonly candidates: readonly Candidate[]; readonly dropped: () => readonly Dropped[] }
type Choice = {
  readonly first: Candidate
  readonly learning: RouteLearning
  /** The level of the choice. */
  readonly level: Level
  /** Null = a named model. */
  readonly turn: Pick<TurnRanking<unknown>, 'reason' | 'next' | 'runaway'> | null
  readonly isKept: boolean
  readonly all: () => Candidates
  readonly ranked: () => readonly Candidate[]
}

function chooseAutomatically(deps: RouteDeps, request: RouteRequest): Choice {
  const { able, dropped } = filterCandidates(deps, request)
  const { ordered, learning, turn, context } = rankCandidates(deps, request, able)
  const [leader, ...others] = ordered
  const candidates = toCandidates(
    deps.endpoints,
    leader === undefined ? [] : [leader, ...withCachedEarlier(deps, turn.request, context.mode, others)],
    context,
  )
  const [first] = candidates
  if (first === undefined) {
    const lost = dropped()
    const unmet = lost.find(loss => loss.cause === 'constraint')
    const { demands } = request.request
    const isOther = lost.some(({ cause }) => cause === 'window' || cause === 'unmet' || cause === 'budget')
    if (unmet !== undefined && demands !== undefined && !isOther)
      throw noPlaceError(deps, { breach: unmet.breach, demands, model: null, caller: request.caller })
    throw noEligibleModelError(lost, request)
  }
  const all = { candidates, dropped: () => [...dropped(), ...outranked(able, candidates)] }
  const { level } = turn.request
  return { first, learning, level, turn, isKept: context.keptFor !== null, all: () => all, ranked: () => candidates }
}

/** Returns other eligible models. */
function outranked(able: readonly Model[], candidates: readonly Candidate[]): readonly Dropped[] {
  return able
    .filter(model => candidates.every(candidate => candidate.model !== model))
    .map(model => ({ model: fullName(model), reason: 'ranked below the candidate limit' }))
}

function chooseNamed(deps: RouteDeps, request: RouteRequest, name: string): Choice {
  const model = findNamedModel(deps, request, name)
  const endpoint = findEndpoint(deps.endpoints, model, request.request)
  if (endpoint === undefined) throw notConfigured(model)
  const { demands } = request.request
  const breach = modelBreach(deps.endpoints, model, demands)
  if (breach !== null && demands !== undefined)
    throw noPlaceError(deps, { breach, demands, model, caller: request.caller })
  refuseUnmet(model, unreadable(endpoint, model, request.request))
  const { state: health } = routingHealth(deps.health, model)
  const first = new RankedCandidate({ model, score: 1, place: 'requested', health }, endpoint, 'requested model')
  let all: Candidates | null = request.request.fallback === 'any' ? null : { candidates: [first], dropped: () => [] }
  return {
    first,
    learning: withoutLearning(request),
    level: request.level,
    turn: followConversation(deps, request),
    isKept: false,
    all: () => (all ??= withFallbacks(deps, request, first)),
    ranked: () => all?.candidates ?? [first],
  }
}

/** The named model, and its fallbacks. */
function withFallbacks(deps: RouteDeps, request: RouteRequest, first: Candidate): Candidates {
  const { model } = first
  const { within, beyond, dropped } = filterFallbacks(deps, request, model)
  const mode = getScoringMode(request)
  const scored = unhealthyLast(deps, scoreFallbacks(model, within, request.terms), maximumCandidates - 1)
  const ranked = withCachedEarlier(deps, request, mode, scored)
  const fallbacks = toCandidates(deps.endpoints, ranked, `fallback for ${fullName(model)}`)
  const candidates = [first, ...fallbacks]
  return {
    candidates,
    dropped: () => [
      ...dropped().filter(item => item.model !== fullName(model)),
      ...beyond.map(other => ({ model: fullName(other), reason: tooExpensive(model, request) })),
      ...outranked(within, candidates),
    ],
  }
}

function tooExpensive(model: Model, { request }: RouteRequest): string {
  return `expected to cost more than ${request.fallbackMaxCostFactor} times as much as ${fullName(model)}`
}

/** A class, because its getters would otherwise be created for every request. */
class ChosenRoute {
  readonly mode: 'auto' | 'manual'
  readonly strategy: Strategy | null
  readonly analysis: RequestAnalysis
  /** Quality gain of the prompt; decides if no strategy is set. */
  readonly level: Level
  /** Estimated tokens, with the maximum of the web. */
  readonly inputTokens: number
  readonly choices: number
  /** Capabilities that the request requires; absent = an embedding. */
  readonly needs?: Needs
  /** The time of the choice and the requested tier, for the prices that the request can be billed at. */
  readonly terms: PriceTerms
  readonly first: Candidate
  readonly learning: RouteLearning
  /** The turn of the conversation, and the state that it leaves; null = a named model, and no bound on conversations. */
  readonly turn: Choice['turn']
  /** Cache affinity made the first model the first. */
  readonly isKept: boolean

  constructor(
    private readonly request: RouteRequest,
    private readonly choice: Choice,
    readonly web: WebPlan,
  ) {
    this.mode = request.request.model === null ? 'auto' : 'manual'
    this.strategy = request.request.strategy
    this.analysis = request.analysis
    this.level = choice.level
    this.inputTokens = request.inputTokens + web.tokens
    this.choices = request.request.choices
    this.needs = request.needs
    this.terms = request.terms
    this.first = choice.first
    this.learning = choice.learning
    this.turn = choice.turn
    this.isKept = choice.isKept
  }

  /**
   * In the order of calls, `first` among them. More than are ever attempted, because some may be skipped. The fallbacks
   * of a named model are chosen at the first read, because most requests need none.
   */
  get candidates(): readonly Candidate[] {
    return this.choice.all().candidates
  }

  /** Candidates that were ranked so far: all in automatic mode, else at least `first`. Ranks nothing. */
  get ranked(): readonly Candidate[] {
    return this.choice.ranked()
  }

  /** Dropped models with reasons, content-free, for the dry run. */
  get dropped(): readonly Dropped[] {
    return this.choice.all().dropped()
  }

  /** The plan without the web, if only the web prevents the request. */
  withoutWeb(): Route {
    return new ChosenRoute(this.request, this.choice, noWeb)
  }
}

let lastDay = { number: Number.NaN, iso: '' }

/** `YYYY-MM-DD`, UTC. Cached for the day, because every request needs it. */
function isoDay(epochMs: number): string {
  const number = formatDay(epochMs)
  if (number !== lastDay.number) lastDay = { number, iso: new Date(epochMs).toISOString().slice(0, 10) }
  return lastDay.iso
}
