import type { Ask, QueryType, Strategy } from '../core/chat.ts'
import type { Reading } from '../core/classify.ts'
import { GatewayError } from '../core/errors.ts'
import type { KnownLength } from '../core/estimate.ts'
import { type Level, type LevelShares, levelOf, usualShares } from '../core/levels.ts'
import {
  type Catalogue,
  deprecationOf,
  fitsWindow,
  fullName,
  type Model,
  needsOf,
  type RoutingFigures,
  tiers,
  unmet,
} from '../core/models.ts'
import type { Leaning } from '../core/nudge.ts'
import type { Caller, Limits } from '../core/plans.ts'
import { cheapness, type Figures, type Parts } from '../core/scoring.ts'
import type { Tie } from '../core/ties.ts'
import { noWeb, type WebPlan } from '../core/web.ts'
import type { Access, Provider } from '../providers/provider.ts'
import type { Standing } from '../stores/meter.ts'
import { candidatesOf, maximumCandidates, notLearned, rankByAim, restingLast } from './ranking.ts'
import { type RouteRequest, sift } from './sift.ts'
import { nobody, notConfigured, unknownModel } from './unroutable.ts'

/** A provider that is configured here. `id` is what a model's `provider` names. */
export type Endpoint = {
  readonly id: string
  readonly provider: Provider
  readonly access: Access
  readonly simulated: boolean
}

export type Candidate = {
  readonly model: Model
  readonly endpoint: Endpoint
  /** 0–1 in auto mode; in manual mode 1 for the named model, nearness to it for the others. */
  readonly score: number
  /** For whoever asks how the choice came about: in words, and what the score is made of; null in manual mode. */
  readonly reason: () => string
  readonly parts: () => ScoreParts | null
}

/** `adjustment` is what learning, health and the month's soft cap made of the sum of the others. */
export type ScoreParts = Parts & { readonly adjustment: number }

export type Route = {
  readonly mode: 'auto' | 'manual'
  readonly strategy: Strategy | null
  readonly reading: Reading
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

/** What learning had to do with a choice. */
export type RouteLearning = {
  /** Erasures of the account's learning at the time; null = it was not known yet. */
  readonly epoch: number | null
  /** Without it another model would be the first. */
  readonly influenced: boolean
  /** Of the first model having become the first. */
  readonly probability: number
}

export type Dropped = { readonly model: string; readonly reason: string }

/** What routing must know of a candidate's health, by its key. */
export type HealthView = {
  /** False while it is to be left alone. */
  mayTry(key: string): boolean
  stateOf(key: string): 'healthy' | 'degraded' | 'unhealthy'
  /** The figures published of a model, moved towards what was measured here; null = nothing was. Absent = nothing is. */
  figuresOf?(key: string, published: RoutingFigures): Figures | null
}

export type RouteDeps = {
  readonly catalogue: Catalogue
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly health: HealthView
  readonly meter: { standing(accountId: string, limits: Limits): Standing | null }
  readonly clock: { /** Epoch milliseconds. */ now(): number }
  /** How much of its monthly soft cap an account has used, 1 = all. Absent = nobody has one. */
  readonly budget?: { shareOf(caller: Caller): number }
  /** What was learnt of an account, from memory; null = not known yet. Absent = nothing is learnt. */
  readonly learning?: { of(accountId: string): AccountLearning | null }
  /** 0 ≤ x < 1, for the few requests that look at another model. Absent = none does. */
  readonly random?: () => number
  /** Target shares of requests by level. Absent = the usual ones. */
  readonly shares?: LevelShares
  /** What answers are longer by than usual. Absent = as long as usual. */
  readonly foresight?: { of(queryType: QueryType, accountId: string | null): KnownLength }
  /** Who answered the conversation before. Absent = nobody knows. */
  readonly ties?: { of(accountId: string, ask: Ask): Tie | null }
}

export type AccountLearning = { readonly epoch: number; leaningOf(queryType: string): Leaning | null }

/**
 * Chooses who is asked, in which order. A named model comes first, whatever soft limits say of it; without a name the
 * strategy or the prompt chooses among all that can take the request. Throws `GatewayError` where nobody can:
 * `model_not_found`, `model_deprecated`, `invalid_request`, `unsupported_parameter`, `context_length_exceeded`,
 * `no_model_available`.
 */
export function route(
  deps: RouteDeps,
  caller: Caller,
  ask: Ask,
  reading: Reading,
  inputTokens: number,
  web: WebPlan = noWeb,
): Route {
  const request: RouteRequest = {
    ask,
    caller,
    reading,
    inputTokens,
    needs: needsOf(ask),
    level: levelOf(reading.strongGain, deps.shares ?? usualShares),
    today: isoDay(deps.clock.now()),
    epoch: deps.learning?.of(caller.accountId)?.epoch ?? null,
  }
  const choice = ask.model === null ? automatic(deps, request) : named(deps, request, ask.model)
  // The choice is made by the caller's words; what the web adds has to fit the model, not the other way round.
  const hasRoom = web === noWeb || fitsWindow(choice.first.model, inputTokens + web.tokens, ask.maxOutputTokens ?? 1)
  return routeOf(request, choice, hasRoom ? web : noWeb)
}

function routeOf(request: RouteRequest, choice: Choice, web: WebPlan): Route {
  const { ask, reading, level, inputTokens, epoch } = request
  return {
    mode: ask.model === null ? 'auto' : 'manual',
    strategy: ask.strategy,
    reading,
    level,
    inputTokens: inputTokens + web.tokens,
    web,
    choices: ask.choices,
    first: choice.first,
    learning: { ...choice.learning, epoch },
    isKept: choice.isKept,
    get candidates() {
      return choice.all().candidates
    },
    get dropped() {
      return choice.all().dropped()
    },
    withoutWeb: () => routeOf(request, choice, noWeb),
  }
}

/** Who was passed over is told to those who ask: hardly anybody does. */
type Ranking = { readonly candidates: readonly Candidate[]; readonly dropped: () => readonly Dropped[] }
type Choice = {
  readonly first: Candidate
  readonly learning: Omit<RouteLearning, 'epoch'>
  readonly isKept: boolean
  readonly all: () => Ranking
}

function automatic(deps: RouteDeps, request: RouteRequest): Choice {
  const { able, dropped } = sift(deps, request)
  const { candidates, learning, isKept } = rankByAim(deps, request, able)
  const [first] = candidates
  if (first === undefined) throw nobody(dropped, request.inputTokens)
  const ranking = { candidates, dropped: () => [...dropped, ...outdone(able, candidates)] }
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
  const first: Candidate = { model, endpoint, score: 1, reason: () => 'named by the caller', parts: unscored }
  let ranking: Ranking | null = request.ask.fallback ? null : { candidates: [first], dropped: () => [] }
  return { first, learning: notLearned, isKept: false, all: () => (ranking ??= withStandIns(deps, request, first)) }
}

const unscored = () => null

/** The named model, and those that can stand in for it. */
function withStandIns(deps: RouteDeps, request: RouteRequest, first: Candidate): Ranking {
  const { model } = first
  const { able, dropped } = sift(deps, request)
  const nearest = able
    .filter(other => other !== model)
    .map(other => ({ model: other, score: nearness(model, other) }))
    .sort((left, right) => right.score - left.score || (fullName(left.model) < fullName(right.model) ? -1 : 1))
  const fallbacks = candidatesOf(
    deps,
    restingLast(deps, nearest).slice(0, maximumCandidates - 1),
    () => `stands in for ${fullName(model)}`,
    unscored,
  )
  const candidates = [first, ...fallbacks]
  return {
    candidates,
    dropped: () => [...dropped.filter(one => one.model !== fullName(model)), ...outdone(able, candidates)],
  }
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
  const lacking = unmet(model, needs)
  if (lacking !== null) {
    const message = `${fullName(model)} does not support ${lacking.what}. Leave it out, or choose another model.`
    throw new GatewayError('unsupported_parameter', message, { param: lacking.param })
  }
  // A stand-in that gives less is better than none, so only the model that was asked for itself refuses.
  if ((ask.maxOutputTokens ?? 0) > model.maxOutputTokens) {
    const message = `\`max_output_tokens\` must be at most ${model.maxOutputTokens} for ${fullName(model)}.`
    throw new GatewayError('invalid_request', message, { param: 'max_output_tokens' })
  }
  return model
}

/** 0–1: how well a model stands in for another. A provider of its own counts, since the first one may be down as a whole. */
function nearness(model: Model, other: Model): number {
  const apart =
    Math.abs(model.figures.quality - other.figures.quality) +
    0.15 * Math.abs(tiers.indexOf(model.tier) - tiers.indexOf(other.tier)) +
    0.1 * Math.max(0, cheapness(model) - cheapness(other)) +
    (model.provider === other.provider ? 0.2 : 0)
  return Math.max(0, 1 - apart)
}

const dayMs = 86_400_000
let lastDay = { number: Number.NaN, iso: '' }

/** `YYYY-MM-DD`, UTC; asked by every request, and the same all day. */
function isoDay(epochMs: number): string {
  const number = Math.floor(epochMs / dayMs)
  if (number !== lastDay.number) lastDay = { number, iso: new Date(epochMs).toISOString().slice(0, 10) }
  return lastDay.iso
}
