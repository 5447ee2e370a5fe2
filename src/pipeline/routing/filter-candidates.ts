/** First step of routing: which models may and can take a request. No filter is ever broken for a better score. */

import {
  type Catalog,
  fitsWindow,
  fullName,
  leavingSoon,
  type Model,
  type Unmet,
  unmet,
  unmetInFull,
} from '../../core/models/models.ts'
import { baseCost } from '../../core/usage/cost-estimate.ts'
import type { Meter } from '../../limits/meter.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import { unreadable } from './candidate.ts'
import { likelyOutputTokens, listPrice, type OutputForecast } from './expected-cost.ts'
import type { RouteRequest } from './route-request.ts'
import type { DroppedModel } from './routing-errors.ts'

export type FilterDeps = OutputForecast & {
  readonly catalogue: Pick<Catalog, 'list'>
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly meter: Pick<Meter, 'standing'>
}

/**
 * All models that may and can take the request unasked and are within the account's means. Those that only come near to what
 * is asked are taken where there is nobody else.
 */
export function filterCandidates(deps: FilterDeps, request: RouteRequest): EligibleModels {
  const full: Model[] = []
  const near: Model[] = []
  for (const model of deps.catalogue.list)
    if (causeToDrop(deps, request, model) === null) {
      if (unmetInFull(model, request.needs) === null) full.push(model)
      else near.push(model)
    }
  const able = full.length === 0 ? near : full
  const affordable = withinMeans(deps, request, able)
  return { able: affordable, dropped: () => lossesOf(deps, request, able, affordable) }
}

export type EligibleModels = {
  readonly able: readonly Model[]
  /** Why each other model is not among them: hardly anybody asks. */
  readonly dropped: () => readonly DroppedModel[]
}

type DropCause =
  | { readonly cause: 'elsewhere' | 'window' | 'budget'; readonly reason: string }
  | { readonly cause: 'unmet'; readonly reason: string; readonly param: string }

function causeToDrop(
  { endpoints }: FilterDeps,
  { ask, needs, inputTokens, today }: RouteRequest,
  model: Model,
): DropCause | null {
  const endpoint = endpoints.get(model.provider)
  if (endpoint === undefined) return { cause: 'elsewhere', reason: 'its provider is not configured' }
  if (leavingSoon(model, today)) return { cause: 'elsewhere', reason: 'it is about to be retired' }
  if (ask.testMode && model.tier === 'premium') return { cause: 'elsewhere', reason: 'premium, and this is a test' }
  const lacking = unmet(model, needs) ?? unreadable(endpoint, ask)
  if (lacking !== null) return dropCauseOf(lacking)
  if (!fitsWindow(model, inputTokens, 1)) return { cause: 'window', reason: 'the conversation exceeds its window' }
  return null
}

function dropCauseOf({ param, what }: Unmet): DropCause {
  return { cause: 'unmet', reason: `it does not support ${what}`, param }
}

/**
 * Leaves out what the account can no longer pay for: its free seats share what is left of the day, and of that an answer of
 * the usual length has to be paid. Where that leaves nobody, those of whom it can pay one token; where it can pay nobody, all
 * stay: it is the meter that refuses, with the limit and the time it ends.
 */
function withinMeans(deps: FilterDeps, request: RouteRequest, able: readonly Model[]): readonly Model[] {
  const { caller, ask, inputTokens } = request
  const standing = deps.meter.standing(caller.accountId, caller.limits)
  if (standing === null) return able
  const left = standing.costMicrocents.remaining
  // Stand-ins for a named model are looked for when its own reservation has been taken already: what they may cost is seen
  // to when they are asked.
  if (ask.model === null) {
    const share = ask.maxOutputTokens === null ? left / Math.max(1, standing.seats.remaining) : left
    const outputTokens = likelyOutputTokens(deps, request)
    const usual = able.filter(model => baseCost(model, inputTokens, outputTokens(model)) <= share)
    if (usual.length > 0) return usual
  }
  const affordable = able.filter(model => baseCost(model, inputTokens, 1) <= left)
  return affordable.length > 0 ? affordable : able
}

/** Who may not or cannot, then who only comes near, then who is too dear. */
function lossesOf(
  deps: FilterDeps,
  request: RouteRequest,
  able: readonly Model[],
  affordable: readonly Model[],
): readonly DroppedModel[] {
  const dropped: DroppedModel[] = []
  const near: DroppedModel[] = []
  for (const model of deps.catalogue.list) {
    const cause = causeToDrop(deps, request, model)
    const lacking = unmetInFull(model, request.needs)
    if (cause !== null) dropped.push({ model: fullName(model), ...cause })
    else if (lacking !== null && !able.includes(model)) near.push({ model: fullName(model), ...dropCauseOf(lacking) })
  }
  const reason = 'an answer would cost more than the account has left today'
  const dear = able.filter(model => !affordable.includes(model))
  return [...dropped, ...near, ...dear.map(model => ({ model: fullName(model), cause: 'budget' as const, reason }))]
}

/**
 * The fallbacks of a named model that cost at most `fallbackMaxCostFactor` times as much, by list price and by what this request
 * is expected to cost; and those that cost more.
 */
export function filterFallbacks(deps: FilterDeps, request: RouteRequest, named: Model): EligibleFallbacks {
  const { able, dropped } = filterCandidates(deps, request)
  const { fallbackMaxCostFactor } = request.ask
  const outputTokens = likelyOutputTokens(deps, request)
  const costs = (model: Model) =>
    [listPrice(model, request.inputTokens), baseCost(model, request.inputTokens, outputTokens(model))] as const
  const [price, expected] = costs(named)
  const within: Model[] = []
  const beyond: Model[] = []
  for (const model of able) {
    if (model === named) continue
    const [ownPrice, ownExpected] = costs(model)
    const isWithin = ownPrice <= price * fallbackMaxCostFactor && ownExpected <= expected * fallbackMaxCostFactor
    ;(isWithin ? within : beyond).push(model)
  }
  return { within, beyond, dropped }
}

export type EligibleFallbacks = {
  readonly within: readonly Model[]
  readonly beyond: readonly Model[]
  /** Why each other model is neither. */
  readonly dropped: () => readonly DroppedModel[]
}
