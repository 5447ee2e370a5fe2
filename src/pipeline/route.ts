import { leanToCheaper } from '../core/billing.ts'
import type { Ask, Strategy } from '../core/chat.ts'
import type { Reading } from '../core/classify.ts'
import { GatewayError } from '../core/errors.ts'
import {
  type Catalogue,
  deprecationOf,
  fitsWindow,
  fullName,
  leavingSoon,
  type Model,
  type Needs,
  needsOf,
  tiers,
  type Unmet,
  unmet,
  unmetInFull,
} from '../core/models.ts'
import { costOf } from '../core/money.ts'
import { biasOf, explore, type Leaning, nudge } from '../core/nudge.ts'
import type { Caller, Limits } from '../core/plans.ts'
import { cheapness, diversify, explain, type Scored, score, weightsOf } from '../core/scoring.ts'
import { noWeb, type WebPlan } from '../core/web.ts'
import type { Access, Provider } from '../providers/provider.ts'
import type { Standing } from '../stores/meter.ts'

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
  /** For whoever asks how the choice came about. */
  readonly reason: () => string
}

export type Route = {
  readonly mode: 'auto' | 'manual'
  readonly strategy: Strategy | null
  readonly reading: Reading
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
}

export type AccountLearning = { readonly epoch: number; leaningOf(queryType: string): Leaning | null }

/** At most this many candidates are handed on: three are attempted, the others stand by for those that are skipped. */
const maximumCandidates = 6

/** Health is kept per provider, model and credential; a configured provider has one credential. */
export function healthKey({ model }: Pick<Candidate, 'model'>): string {
  return fullName(model)
}

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
  const request: Request = {
    ask,
    caller,
    reading,
    inputTokens,
    needs: needsOf(ask),
    today: isoDay(deps.clock.now()),
    epoch: deps.learning?.of(caller.accountId)?.epoch ?? null,
  }
  const choice = ask.model === null ? automatic(deps, request) : named(deps, request, ask.model)
  // The choice is made by the caller's words; what the web adds has to fit the model, not the other way round.
  const hasRoom = web === noWeb || fitsWindow(choice.first.model, inputTokens + web.tokens, ask.maxOutputTokens ?? 1)
  return routeOf(request, choice, hasRoom ? web : noWeb)
}

function routeOf(request: Request, choice: Choice, web: WebPlan): Route {
  const { ask, reading, inputTokens, epoch } = request
  return {
    mode: ask.model === null ? 'auto' : 'manual',
    strategy: ask.strategy,
    reading,
    inputTokens: inputTokens + web.tokens,
    web,
    choices: ask.choices,
    first: choice.first,
    learning: { ...choice.learning, epoch },
    get candidates() {
      return choice.all().candidates
    },
    get dropped() {
      return choice.all().dropped
    },
    withoutWeb: () => routeOf(request, choice, noWeb),
  }
}

type Request = {
  readonly ask: Ask
  readonly caller: Caller
  readonly reading: Reading
  readonly inputTokens: number
  readonly needs: Needs
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string
  /** Of the account's learning, as the choice begins. */
  readonly epoch: number | null
}

type Ranking = Pick<Route, 'candidates' | 'dropped'>
type Choice = {
  readonly first: Candidate
  readonly learning: Omit<RouteLearning, 'epoch'>
  readonly all: () => Ranking
}
const notLearned = { influenced: false, probability: 1 }

function automatic(deps: RouteDeps, request: Request): Choice {
  const { able, dropped } = sift(deps, request)
  if (able.length === 0) throw nobody(dropped, request)
  const affordable = withinBudget(deps, request, able, dropped)
  const choice = {
    strategy: request.ask.strategy,
    complexity: request.reading.complexity,
    testMode: request.ask.testMode,
  }
  // Who would break the answer off before the caller's own cap does is better than nobody, but only than nobody.
  const isLong = longEnough(request)
  const long = affordable.filter(isLong)
  const short = long.length === affordable.length ? [] : affordable.filter(model => !isLong(model))
  const spent = deps.budget?.shareOf(request.caller) ?? 0
  const rank = (leaning: Leaning | null) =>
    [long, short]
      .flatMap(models => restingLast(deps, leanToCheaper(nudged(score(models, choice), leaning), spent)))
      .slice(0, maximumCandidates)
  // Where quality has no weight, what was learnt of it has none either.
  const account = weightsOf(choice).quality === 0 ? null : (deps.learning?.of(request.caller.accountId) ?? null)
  const leaning = account?.leaningOf(request.reading.queryType) ?? null
  const { ordered, ...learning } = learned(deps, rank, leaning, isLong)
  const candidates = candidatesOf(deps, ordered, ({ model }) => explain(model, choice) + learntOf(leaning, model))
  const [first] = candidates
  if (first === undefined) throw nobody(dropped, request)
  return { first, learning, all: () => ({ candidates, dropped }) }
}

/** The ranking under what was learnt, now and then with a near-tie first, and whether it begins with another model for it. */
function learned(
  deps: RouteDeps,
  rank: (leaning: Leaning | null) => readonly Scored[],
  leaning: Leaning | null,
  isLong: (model: Model) => boolean,
) {
  if (leaning === null) return { ordered: rank(null), ...notLearned }
  const leanOf = ({ model }: Scored) => leaning(fullName(model))
  const mayLead = ({ model }: Scored) =>
    isLong(model) && deps.health.stateOf(healthKey({ model })) === 'healthy' && deps.health.mayTry(healthKey({ model }))
  const { ordered, probability } = explore(rank(leaning), leanOf, mayLead, deps.random ?? (() => 1))
  return { ordered, probability, influenced: ordered[0]?.model !== rank(null)[0]?.model }
}

/** For whoever asks how a score came about; nothing where nothing was learnt. */
function learntOf(leaning: Leaning | null, model: Model): string {
  const bias = biasOf(leaning, fullName(model))
  return bias === 0 ? '' : `, learnt ${bias > 0 ? '+' : '−'}${Math.abs(bias * 100).toFixed(1)}`
}

function nudged(scored: readonly Scored[], leaning: Leaning | null): readonly Scored[] {
  return leaning === null ? scored : nudge(scored, ({ model }) => leaning(fullName(model)))
}

function longEnough({ ask: { maxOutputTokens }, inputTokens }: Request): (model: Model) => boolean {
  if (maxOutputTokens === null) return () => true
  return model => model.maxOutputTokens >= maxOutputTokens && fitsWindow(model, inputTokens, maxOutputTokens)
}

function named(deps: RouteDeps, request: Request, name: string): Choice {
  const model = namedModel(deps, request, name)
  const endpoint = deps.endpoints.get(model.provider)
  if (endpoint === undefined) throw notConfigured(model)
  const first: Candidate = { model, endpoint, score: 1, reason: () => 'named by the caller' }
  let ranking: Ranking | null = request.ask.fallback ? null : { candidates: [first], dropped: [] }
  return { first, learning: notLearned, all: () => (ranking ??= withStandIns(deps, request, first)) }
}

/** The named model, and those that can stand in for it. */
function withStandIns(deps: RouteDeps, request: Request, first: Candidate): Ranking {
  const { model } = first
  const { able, dropped } = sift(deps, request)
  const others = withinBudget(deps, request, able, dropped).filter(other => other !== model)
  const nearest = others
    .map(other => ({ model: other, score: nearness(model, other) }))
    .sort((left, right) => right.score - left.score || (fullName(left.model) < fullName(right.model) ? -1 : 1))
  const fallbacks = candidatesOf(
    deps,
    restingLast(deps, nearest).slice(0, maximumCandidates - 1),
    () => `stands in for ${fullName(model)}`,
  )
  return { candidates: [first, ...fallbacks], dropped }
}

/** The model a caller named, if it exists, still serves, and can do what is asked. */
function namedModel(deps: RouteDeps, { ask, needs, today }: Request, name: string): Model {
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

type DropCause =
  | { readonly cause: 'elsewhere' | 'window' | 'budget'; readonly reason: string }
  | { readonly cause: 'unmet'; readonly reason: string; readonly param: string }
type Loss = Dropped & DropCause

/**
 * All models that may and can take the request unasked, and why each other one does not. Those that only come near to what
 * is asked are taken where there is nobody else.
 */
function sift(deps: RouteDeps, request: Request): { readonly able: readonly Model[]; readonly dropped: Loss[] } {
  const able: Model[] = []
  const near: Model[] = []
  const dropped: Loss[] = []
  const lost: Loss[] = []
  for (const model of deps.catalogue.list) {
    const cause = causeToDrop(deps, request, model)
    const lacking = cause === null ? unmetInFull(model, request.needs) : null
    if (cause !== null) dropped.push({ model: fullName(model), ...cause })
    else if (lacking === null) able.push(model)
    else {
      near.push(model)
      lost.push({ model: fullName(model), ...dropCauseOf(lacking) })
    }
  }
  return able.length === 0 ? { able: near, dropped } : { able, dropped: [...dropped, ...lost] }
}

function dropCauseOf({ param, what }: Unmet): DropCause {
  return { cause: 'unmet', reason: `it does not support ${what}`, param }
}

function causeToDrop(deps: RouteDeps, { ask, needs, inputTokens, today }: Request, model: Model): DropCause | null {
  if (!deps.endpoints.has(model.provider)) return { cause: 'elsewhere', reason: 'its provider is not configured' }
  if (leavingSoon(model, today)) return { cause: 'elsewhere', reason: 'it is about to be retired' }
  if (ask.testMode && model.tier === 'premium') return { cause: 'elsewhere', reason: 'premium, and this is a test' }
  const lacking = unmet(model, needs)
  if (lacking !== null) return dropCauseOf(lacking)
  if (!fitsWindow(model, inputTokens, 1)) return { cause: 'window', reason: 'the conversation exceeds its window' }
  return null
}

/**
 * Leaves out what the account can no longer pay for, even with one token of output. If that is everything, all stay: it
 * is the meter that refuses, with the limit and the time it ends.
 */
function withinBudget(deps: RouteDeps, request: Request, able: readonly Model[], dropped: Loss[]): readonly Model[] {
  const standing = deps.meter.standing(request.caller.accountId, request.caller.limits)
  if (standing === null) return able
  const left = standing.costMicrocents.remaining
  const affordable = able.filter(model => leastCost(model, request.inputTokens) <= left)
  if (affordable.length === 0 || affordable.length === able.length) return able
  const reason = 'it costs more than the account has left today'
  for (const model of able)
    if (!affordable.includes(model)) dropped.push({ model: fullName(model), cause: 'budget', reason })
  return affordable
}

/** In micro-cents, with one token of output. */
function leastCost(model: Model, inputTokens: number): number {
  return costOf(model, { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 1, reasoningTokens: 0 })
}

const degradedPenalty = 0.1

/** Models that are not well go behind all others, never away: the last one left is still worth a try. */
function restingLast(deps: RouteDeps, scored: readonly Scored[]): Scored[] {
  const well: Scored[] = []
  const resting: Scored[] = []
  for (const entry of scored) {
    const key = healthKey(entry)
    const state = deps.health.stateOf(key)
    if (state === 'unhealthy' || !deps.health.mayTry(key)) resting.push(entry)
    else well.push(state === 'degraded' ? { ...entry, score: Math.max(0, entry.score - degradedPenalty) } : entry)
  }
  well.sort((left, right) => right.score - left.score)
  const healthy = diversify(well, maximumCandidates)
  return [...healthy, ...diversify(resting, maximumCandidates - healthy.length)]
}

function candidatesOf(
  deps: RouteDeps,
  scored: readonly Scored[],
  reason: (of: Scored) => string,
): readonly Candidate[] {
  return scored.flatMap(entry => {
    const endpoint = deps.endpoints.get(entry.model.provider)
    return endpoint === undefined ? [] : [{ ...entry, endpoint, reason: () => reason(entry) }]
  })
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

/** Nobody can take it. The nearest miss is named: what all others were lost to before the last filter. */
function nobody(dropped: readonly Loss[], { inputTokens }: Request): GatewayError {
  if (dropped.some(({ cause }) => cause === 'window')) {
    const message = `The conversation, of about ${inputTokens} tokens, exceeds the context window of every model that can do what is asked. Shorten it.`
    return new GatewayError('context_length_exceeded', message, { param: 'messages' })
  }
  const params = dropped.flatMap(loss => (loss.cause === 'unmet' ? [loss.param] : []))
  const [param] = params.toSorted((left, right) => countOf(params, right) - countOf(params, left))
  if (param !== undefined) {
    const message = `No model here supports \`${param}\` as this request uses it. Change it or leave it out.`
    return new GatewayError('unsupported_parameter', message, { param })
  }
  return new GatewayError('no_model_available', 'No model can take this request right now. Try again later.', {
    retryAfterMs: 5000,
    detail: 'no model is left once those not configured, retiring, or out of test mode are taken out',
  })
}

function countOf(values: readonly string[], wanted: string): number {
  return values.filter(value => value === wanted).length
}

function notConfigured(model: Model): GatewayError {
  const message = `${fullName(model)} is known, but its provider is not configured here. Choose one of GET /api/v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** The message repeats nothing of the unknown name: it may be a key pasted into the wrong field. */
function unknownModel(catalogue: Catalogue, name: string): GatewayError {
  const near = nearNames(catalogue, name)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  const message = `There is no model of that name.${hint} GET /api/v1/models lists them; leave \`model\` out to have one chosen.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

const leastSimilar = 0.5
const maximumHints = 2

function nearNames({ list }: Catalogue, name: string): string[] {
  const wanted = pairsOf(name)
  return list
    .map(model => ({
      name: fullName(model),
      similarity: Math.max(
        ...[fullName(model), model.id, ...model.aliases].map(known => likeness(wanted, pairsOf(known))),
      ),
    }))
    .filter(({ similarity }) => similarity >= leastSimilar)
    .sort((left, right) => right.similarity - left.similarity)
    .slice(0, maximumHints)
    .map(near => near.name)
}

const longestCompared = 64

/** The pairs of neighbouring characters in a name. */
function pairsOf(name: string): Set<string> {
  const text = ` ${name.slice(0, longestCompared).toLowerCase()} `
  return new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)))
}

/** Dice's coefficient of two names' pairs, 0–1. */
function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of left) if (right.has(pair)) shared++
  return (2 * shared) / (left.size + right.size)
}
