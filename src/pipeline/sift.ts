/** Who may and can take a request unasked; everything here is a filter, and none of them is ever broken for a better score. */
import { expectedOutput, plainCost, unknownLength } from '../core/estimate.ts'
import { fitsWindow, fullName, leavingSoon, type Model, type Unmet, unmet, unmetInFull } from '../core/models.ts'
import type { RouteDeps, RouteRequest } from './route-request.ts'
import type { Loss } from './unroutable.ts'

/**
 * All models that may and can take the request unasked and are within the account's means, and why each other one is not
 * among them. Those that only come near to what is asked are taken where there is nobody else.
 */
export function sift(
  deps: RouteDeps,
  request: RouteRequest,
): { readonly able: readonly Model[]; readonly dropped: readonly Loss[] } {
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
  if (able.length === 0) return withinBudget(deps, request, near, dropped)
  return withinBudget(deps, request, able, lost.length === 0 ? dropped : [...dropped, ...lost])
}

type DropCause =
  | { readonly cause: 'elsewhere' | 'window' | 'budget'; readonly reason: string }
  | { readonly cause: 'unmet'; readonly reason: string; readonly param: string }

function causeToDrop(
  { endpoints }: RouteDeps,
  { ask, needs, inputTokens, today }: RouteRequest,
  model: Model,
): DropCause | null {
  if (!endpoints.has(model.provider)) return { cause: 'elsewhere', reason: 'its provider is not configured' }
  if (leavingSoon(model, today)) return { cause: 'elsewhere', reason: 'it is about to be retired' }
  if (ask.testMode && model.tier === 'premium') return { cause: 'elsewhere', reason: 'premium, and this is a test' }
  const lacking = unmet(model, needs)
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
function withinBudget(deps: RouteDeps, request: RouteRequest, able: readonly Model[], dropped: readonly Loss[]) {
  const { caller, ask } = request
  const standing = deps.meter.standing(caller.accountId, caller.limits)
  if (standing === null) return { able, dropped }
  const left = standing.costMicrocents.remaining
  const share = ask.maxOutputTokens === null ? left / Math.max(1, standing.seats.remaining) : left
  // Stand-ins for a named model are looked for when its own reservation has been taken already: what they may cost is seen
  // to when they are asked.
  const isChosen = ask.model === null
  const usual = able.filter(
    model => isChosen && plainCost(model, request.inputTokens, likelyOutputTokens(deps, request, model)) <= share,
  )
  const affordable = usual.length > 0 ? usual : able.filter(model => plainCost(model, request.inputTokens, 1) <= left)
  if (affordable.length === 0 || affordable.length === able.length) return { able, dropped }
  const reason = 'an answer would cost more than the account has left today'
  const lost = able.filter(model => !affordable.includes(model))
  return {
    able: affordable,
    dropped: [...dropped, ...lost.map(model => ({ model: fullName(model), cause: 'budget' as const, reason }))],
  }
}

/** Output tokens to expect, all choices together. */
export function likelyOutputTokens({ foresight }: RouteDeps, request: RouteRequest, model: Model): number {
  const { reading, caller, ask } = request
  const known = foresight?.of(reading.queryType, caller.accountId) ?? unknownLength
  return expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
}

/** Who does not break the answer off before the caller's own cap does. */
export function longEnough({ ask: { maxOutputTokens }, inputTokens }: RouteRequest): (model: Model) => boolean {
  if (maxOutputTokens === null) return () => true
  return model => model.maxOutputTokens >= maxOutputTokens && fitsWindow(model, inputTokens, maxOutputTokens)
}
