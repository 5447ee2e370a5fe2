import type { PromptAnalysis } from '../../core/analysis/prompt-analysis.ts'
import type { ChatRequest, Strategy } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import {
  deprecationOf,
  fitsWindow,
  fullName,
  type Model,
  needsOf,
  tiers,
  type Unmet,
  unmet,
} from '../../core/models/models.ts'
import { defaultLevelShares, type Level, levelOf } from '../../core/routing/capability-levels.ts'
import { costScore } from '../../core/routing/scoring.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { noWeb, type WebPlan } from '../../core/web/web-plan.ts'
import { type Candidate, unreadable } from './candidate.ts'
import { filterCandidates, splitByCost } from './filter-candidates.ts'
import {
  candidatesOf,
  maximumCandidates,
  type RouteLearning,
  rankByStrategy,
  unhealthyLast,
  withoutLearning,
} from './rank-candidates.ts'
import type { RouteDeps, RouteRequest } from './route-request.ts'
import { noEligibleModelError, notConfigured, unknownModel } from './routing-errors.ts'

export type Route = {
  readonly mode: 'auto' | 'manual'
  readonly strategy: Strategy | null
  readonly reading: PromptAnalysis
  /** What the prompt alone is worth; it decides where there is no strategy. */
  readonly level: Level
  /** Estimated, with what the web may add. */
  readonly inputTokens: number
  readonly web: WebPlan
  readonly choices: number
  readonly first: Candidate
  /**
   * In the order to be asked, `first` among them. More than are ever attempted: some may be skipped. For a named model the
   * others are worked out when they are first looked at: as a rule nobody has to.
   */
  readonly candidates: readonly Candidate[]
  readonly learning: RouteLearning
  /** The first model is the first because it holds the conversation's beginning in its cache. */
  readonly isKept: boolean
  /** Models passed over, and why: content-free, for whoever asks how a choice came about. */
  readonly dropped: readonly Dropped[]
  /** The same without the web, where that is all that stands in the request's way. */
  withoutWeb(): Route
}

export type Dropped = { readonly model: string; readonly reason: string }

/**
 * Chooses who is asked, in which order. A named model comes first, whatever soft limits say of it; without a name the
 * strategy or the prompt chooses among all that can take the request. Throws `GatewayError` where nobody can:
 * `model_not_found`, `model_deprecated`, `invalid_request`, `unsupported_parameter`, `context_length_exceeded`,
 * `no_model_available`.
 */
export function route(
  deps: RouteDeps,
  caller: Caller,
  ask: ChatRequest,
  reading: PromptAnalysis,
  inputTokens: number,
  web: WebPlan = noWeb,
): Route {
  const request: RouteRequest = {
    ask,
    caller,
    reading,
    inputTokens,
    needs: needsOf(ask),
    level: levelOf(reading.strongGain, deps.shares ?? defaultLevelShares),
    today: isoDay(deps.clock.now()),
    epoch: deps.learning?.of(caller.accountId)?.epoch ?? null,
  }
  const choice = ask.model === null ? automatic(deps, request) : named(deps, request, ask.model)
  // The choice is made by the caller's words; what the web adds has to fit the model, not the other way round.
  const hasRoom = web === noWeb || fitsWindow(choice.first.model, inputTokens + web.tokens, ask.maxOutputTokens ?? 1)
  return new ChosenRoute(request, choice, hasRoom ? web : noWeb)
}

/** A class, since its getters would be made anew for every request. */
class ChosenRoute implements Route {
  readonly mode: Route['mode']
  readonly strategy: Strategy | null
  readonly reading: PromptAnalysis
  readonly level: Level
  readonly inputTokens: number
  readonly choices: number
  readonly first: Candidate
  readonly learning: RouteLearning
  readonly isKept: boolean
  readonly web: WebPlan
  private readonly request: RouteRequest
  private readonly choice: Choice

  constructor(request: RouteRequest, choice: Choice, web: WebPlan) {
    this.mode = request.ask.model === null ? 'auto' : 'manual'
    this.strategy = request.ask.strategy
    this.reading = request.reading
    this.level = request.level
    this.inputTokens = request.inputTokens + web.tokens
    this.choices = request.ask.choices
    this.first = choice.first
    this.learning = choice.learning
    this.isKept = choice.isKept
    this.web = web
    this.request = request
    this.choice = choice
  }

  get candidates() {
    return this.choice.all().candidates
  }

  get dropped() {
    return this.choice.all().dropped()
  }

  withoutWeb(): Route {
    return new ChosenRoute(this.request, this.choice, noWeb)
  }
}

/** Who was passed over is told to those who ask: hardly anybody does. */
type Ranking = { readonly candidates: readonly Candidate[]; readonly dropped: () => readonly Dropped[] }
type Choice = {
  readonly first: Candidate
  readonly learning: RouteLearning
  readonly isKept: boolean
  readonly all: () => Ranking
}

function automatic(deps: RouteDeps, request: RouteRequest): Choice {
  const { able, dropped } = filterCandidates(deps, request)
  const { candidates, learning, isKept } = rankByStrategy(deps, request, able)
  const [first] = candidates
  if (first === undefined) throw noEligibleModelError(dropped(), request.inputTokens)
  const ranking = { candidates, dropped: () => [...dropped(), ...outdone(able, candidates)] }
  return { first, learning, isKept, all: () => ranking }
}

/** Who could have answered too. */
function outdone(able: readonly Model[], candidates: readonly Candidate[]): readonly Dropped[] {
  return able
    .filter(model => candidates.every(candidate => candidate.model !== model))
    .map(model => ({ model: fullName(model), reason: 'others stand before it, more than are ever asked' }))
}

function named(deps: RouteDeps, request: RouteRequest, name: string): Choice {
  const model = namedModel(deps, request, name)
  const endpoint = deps.endpoints.get(model.provider)
  if (endpoint === undefined) throw notConfigured(model)
  refuseUnmet(model, unreadable(endpoint, request.ask))
  const first: Candidate = { model, endpoint, score: 1, reason: () => 'named by the caller', parts: unscored }
  let ranking: Ranking | null = request.ask.fallback ? null : { candidates: [first], dropped: () => [] }
  return {
    first,
    learning: withoutLearning(request),
    isKept: false,
    all: () => (ranking ??= withStandIns(deps, request, first)),
  }
}

const unscored = () => null

/** The named model, and those that can stand in for it. */
function withStandIns(deps: RouteDeps, request: RouteRequest, first: Candidate): Ranking {
  const { model } = first
  const { able, dropped } = filterCandidates(deps, request)
  const { within, beyond } = splitByCost(deps, request, model, able)
  const nearest = within
    .map(other => ({ model: other, score: nearness(model, other) }))
    .sort((left, right) => right.score - left.score || (fullName(left.model) < fullName(right.model) ? -1 : 1))
  const reason = () => `stands in for ${fullName(model)}`
  const fallbacks = candidatesOf(deps, unhealthyLast(deps, nearest, maximumCandidates - 1), (entry, endpoint) => ({
    ...entry,
    endpoint,
    reason,
    parts: unscored,
  }))
  const candidates = [first, ...fallbacks]
  return {
    candidates,
    dropped: () => [
      ...dropped().filter(one => one.model !== fullName(model)),
      ...beyond.map(other => ({ model: fullName(other), reason: tooExpensive(model, request) })),
      ...outdone(within, candidates),
    ],
  }
}

function tooExpensive(model: Model, { ask }: RouteRequest): string {
  return `it is expected to cost more than ${ask.fallbackMaxCostFactor} times as much as ${fullName(model)}`
}

/** The model a caller named, if it exists, still serves, and can do what is asked. */
function namedModel(deps: RouteDeps, { ask, needs, today }: RouteRequest, name: string): Model {
  const model = deps.catalogue.resolve(name)
  if (model === null) throw unknownModel(deps.catalogue, name)
  if (deprecationOf(model, today) === 'retired') {
    const advice = model.successor === null ? 'Choose another one' : `Use ${model.successor} instead`
    const message = `${fullName(model)} is retired since ${model.deprecationDate}. ${advice}.`
    throw new GatewayError('model_deprecated', message, { param: 'model' })
  }
  refuseUnmet(model, unmet(model, needs))
  // A stand-in that gives less is better than none, so only the model that was asked for itself refuses. Messages requires a cap, so
  // its clients send one that is not made for this model: it is lowered.
  if (ask.dialect !== 'messages' && (ask.maxOutputTokens ?? 0) > model.maxOutputTokens) {
    const message = `\`max_output_tokens\` must be at most ${model.maxOutputTokens} for ${fullName(model)}.`
    throw new GatewayError('invalid_request', message, { param: 'max_output_tokens' })
  }
  return model
}

function refuseUnmet(model: Model, lacking: Unmet | null): void {
  if (lacking === null) return
  const message = `${fullName(model)} does not support ${lacking.what}. Leave it out, or choose another model.`
  throw new GatewayError('unsupported_parameter', message, { param: lacking.param })
}

/** 0–1: how well a model stands in for another. A provider of its own counts, since the first one may be down as a whole. */
function nearness(model: Model, other: Model): number {
  const apart =
    Math.abs(model.figures.quality - other.figures.quality) +
    0.15 * Math.abs(tiers.indexOf(model.tier) - tiers.indexOf(other.tier)) +
    0.1 * Math.max(0, costScore(model) - costScore(other)) +
    (model.provider === other.provider ? 0.2 : 0)
  return Math.max(0, 1 - apart)
}

let lastDay = { number: Number.NaN, iso: '' }

/** `YYYY-MM-DD`, UTC; asked by every request, and the same all day. */
function isoDay(epochMs: number): string {
  const number = formatDay(epochMs)
  if (number !== lastDay.number) lastDay = { number, iso: new Date(epochMs).toISOString().slice(0, 10) }
  return lastDay.iso
}
