/**
 * First step of routing: removes models that must not or cannot take a request. A better score never overrides a
 * filter.
 */

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
import type { Breach } from '../../core/policy/constraints.ts'
import { findDenial, type Rule } from '../../core/policy/rules.ts'
import type { Meter } from '../../limits/meter.ts'
import { isModelAllowed } from '../../models/allowed-models.ts'
import type { Endpoints } from '../../providers/configured-provider.ts'
import { type RouteRequest, unreadable } from './candidate.ts'
import { modelBreach } from './constrained.ts'
import { findEndpoint } from './hosts.ts'
import type { DroppedModel } from './named-model.ts'
import { expectedCost, likelyOutputTokens, listPrice, type OutputForecast } from './score-candidates.ts'

export type FilterDeps = OutputForecast & {
  readonly catalog: Pick<Catalog, 'list' | 'resolve'>
  readonly endpoints: Endpoints
  readonly meter: Pick<Meter, 'quotaStatus'>
}

/**
 * Returns all eligible models within the account's remaining limits. Models that meet the request only partly are
 * included only if no other model is eligible.
 */
export function filterCandidates(deps: FilterDeps, request: RouteRequest): EligibleModels {
  const full: Model[] = []
  const near: Model[] = []
  for (const model of deps.catalog.list)
    if (causeToDrop(deps, request, model) === null) {
      if (unmetInFull(model, request.needs) === null) full.push(model)
      else near.push(model)
    }
  const able = full.length === 0 ? near : full
  const affordable = withinMeans(deps, request, able)
  return { able: affordable, dropped: () => listDroppedModels(deps, request, able, affordable) }
}

type EligibleModels = {
  readonly able: readonly Model[]
  /** Reasons of the dropped models, computed on request, because few clients read them. */
  readonly dropped: () => readonly DroppedModel[]
}

type DropCause =
  | { readonly cause: 'key' | 'elsewhere' | 'window' | 'budget'; readonly reason: string }
  | { readonly cause: 'constraint'; readonly reason: string; readonly breach: Breach }
  | { readonly cause: 'rule'; readonly reason: string; readonly rule: Rule }
  | { readonly cause: 'unmet'; readonly reason: string; readonly param: string }

function causeToDrop(
  { endpoints, catalog }: FilterDeps,
  { request, caller, needs, inputTokens, today }: RouteRequest,
  model: Model,
): DropCause | null {
  const denial =
    request.rules === undefined ? null : findDenial(request.rules.denials, fullName(model), catalog.resolve)
  if (denial !== null) return { cause: 'rule', rule: denial, reason: `denied by the rule ${denial.name}` }
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    return { cause: 'key', reason: 'not allowed for this API key' }
  const endpoint = findEndpoint(endpoints, model, request)
  if (endpoint === undefined) return { cause: 'elsewhere', reason: 'provider not configured' }
  const breach = modelBreach(endpoints, model, request.demands)
  if (breach !== null) return { cause: 'constraint', breach, reason: `no host meets ${breach.constraint}` }
  if (leavingSoon(model, today)) return { cause: 'elsewhere', reason: 'retires within 7 days' }
  if (request.testMode && model.tier === 'premium')
    return { cause: 'elsewhere', reason: 'premium model excluded by test_mode' }
  const lacking = unmet(model, needs) ?? unreadable(endpoint, model, request)
  if (lacking !== null) return getDropCause(lacking)
  if (!fitsWindow(model, inputTokens, 1)) return { cause: 'window', reason: 'conversation exceeds the context window' }
  return null
}

function getDropCause({ param, what }: Unmet): DropCause {
  return { cause: 'unmet', reason: `does not support ${what}`, param }
}

/**
 * Drops models that the account can no longer pay for: an output of the usual length must fit into the share of the
 * remaining daily limit per free concurrent request. If no model remains, keeps those with one payable token. If there
 * are none either, keeps all: the meter then rejects with the limit and its reset time.
 */
function withinMeans(deps: FilterDeps, request: RouteRequest, able: readonly Model[]): readonly Model[] {
  const { caller, request: question } = request
  const quotaStatus = deps.meter.quotaStatus(caller.accountId, caller.limits)
  if (quotaStatus === null) return able
  const left = quotaStatus.costMicrocents.remaining
  // Fallbacks of a named model are chosen after its reservation; their cost is checked when they are called.
  if (question.model === null) {
    const share = question.maxOutputTokens === null ? left / Math.max(1, quotaStatus.reservations.remaining) : left
    const outputTokens = likelyOutputTokens(deps, request)
    const usual = able.filter(
      model => expectedCost(model, request, outputTokens(model)) <= share || isOnOwnKey(deps, model),
    )
    if (usual.length > 0) return usual
  }
  const affordable = able.filter(model => expectedCost(model, request, 1) <= left || isOnOwnKey(deps, model))
  return affordable.length > 0 ? affordable : able
}

function isOnOwnKey({ endpoints }: Pick<FilterDeps, 'endpoints'>, model: Model): boolean {
  return findEndpoint(endpoints, model)?.own !== undefined
}

/** Dropped models in this order: forbidden or incapable, then partly capable, then too expensive. */
function listDroppedModels(
  deps: FilterDeps,
  request: RouteRequest,
  able: readonly Model[],
  affordable: readonly Model[],
): readonly DroppedModel[] {
  const dropped: DroppedModel[] = []
  const near: DroppedModel[] = []
  for (const model of deps.catalog.list) {
    const cause = causeToDrop(deps, request, model)
    const lacking = unmetInFull(model, request.needs)
    if (cause !== null) dropped.push({ model: fullName(model), ...cause })
    else if (lacking !== null && !able.includes(model)) near.push({ model: fullName(model), ...getDropCause(lacking) })
  }
  const reason = 'estimated cost exceeds the remaining daily cost limit'
  const dear = able.filter(model => !affordable.includes(model))
  return [...dropped, ...near, ...dear.map(model => ({ model: fullName(model), cause: 'budget' as const, reason }))]
}

/**
 * Returns the fallbacks of a named model that cost at most `fallbackMaxCostFactor` times as much, by list price and by
 * the expected cost of this request; and the more expensive ones.
 */
export function filterFallbacks(deps: FilterDeps, request: RouteRequest, named: Model): EligibleFallbacks {
  const { able, dropped } = filterCandidates(deps, request)
  const { fallbackMaxCostFactor } = request.request
  const outputTokens = likelyOutputTokens(deps, request)
  const costs = (model: Model) =>
    [listPrice(model, request), expectedCost(model, request, outputTokens(model))] as const
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

type EligibleFallbacks = {
  readonly within: readonly Model[]
  readonly beyond: readonly Model[]
  /** Reasons of the other models. */
  readonly dropped: () => readonly DroppedModel[]
}
