import type { ChatRequest } from '../core/chat/chat.ts'
import { highestAddedInput } from '../core/chat/provider-features.ts'
import type { PriceTerms } from '../core/models/pricing.ts'
import { getHighestCost } from '../core/usage/money.ts'
import { highestSourceCharges } from '../core/usage/source-charges.ts'
import type { Meter, Reservation } from '../limits/meter.ts'
import { estimateOpaqueTokens, tokensSpared } from '../text/tokens/tokens.ts'
import type { CallRequest } from './attempt-run.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import type { Route } from './routing/route.ts'
import type { Spent } from './settled-cost.ts'

type AffordableRequest = {
  readonly plan: Pick<Route, 'inputTokens' | 'choices' | 'terms' | 'first' | 'web'>
  readonly prepared: Pick<CallRequest['prepared'], 'request'>
}

type WantedAttempt = {
  readonly candidate: Candidate
  readonly isHedge: boolean
  /** What the parts of a cut text have used, which the attempt continues; null = it continues none. */
  readonly spent: Spent | null
}

/**
 * Enlarges the reservation if this candidate costs or counts more. If the remaining daily tokens do not suffice, lowers
 * the output cap. A hedge adds its whole cost, and its part is noted. Null = the account cannot pay for the candidate.
 */
export async function affordable(
  meter: Pick<Meter, 'raise'>,
  { plan, prepared: { request } }: AffordableRequest,
  progress: Progress,
  { candidate, isHedge, spent }: WantedAttempt,
): Promise<Reservation | null> {
  const { reservation, hedge } = progress
  // The reservation was made for the first candidate, also if it is less than what that can add.
  if (!isHedge && spent === null && candidate === plan.first) return reservation
  const { reservedTokens, reservedMicrocents } = reservation
  const left = spent === null ? reservation : { ...reservation, outputCap: reservation.outputCap - spent.outputTokens }
  if (left.outputCap < 1) return null
  const asked = spent === null ? plan : { ...plan, inputTokens: plan.inputTokens + spent.addedTokens }
  const { outputCap, inputTokens, microcents } = highestUsage({ plan: asked, request }, candidate, left)
  const ownTokens = inputTokens + outputCap * plan.choices
  const raise = async (toTokens: number, toMicrocents: number, cap: number): Promise<Reservation | null> => {
    const raised = await meter.raise(reservation, toTokens, toMicrocents)
    if (raised !== null) progress.reservation = raised
    return raised && { ...raised, outputCap: cap }
  }
  if (isHedge) {
    const raised = await raise(reservedTokens + ownTokens, reservedMicrocents + microcents, outputCap)
    if (raised !== null && hedge !== null) Object.assign(hedge, { tokens: ownTokens, microcents })
    return raised
  }
  // A canceled hedge is billed too, and so are the parts of a cut text.
  const lost = hedge === null || hedge.other === null ? { tokens: 0, microcents: 0 } : hedge
  const beside =
    spent === null ? lost : { tokens: lost.tokens + spent.tokens, microcents: lost.microcents + spent.microcents }
  const worst = microcents + plan.web.microcents + beside.microcents
  const tokens = ownTokens + beside.tokens
  if (worst <= reservedMicrocents && tokens <= reservedTokens) return left
  const first = highestUsage({ plan, request }, plan.first, reservation)
  const isCheaper = microcents <= first.microcents && ownTokens <= first.inputTokens + first.outputCap * plan.choices
  if (spent === null && isCheaper) return reservation
  const smaller = Math.floor((reservedTokens - beside.tokens - inputTokens) / plan.choices)
  const raised = await raise(Math.max(tokens, reservedTokens), worst, outputCap)
  if (raised !== null || smaller < 1 || smaller >= outputCap) return raised
  return raise(reservedTokens, worst, smaller)
}

/** Returns the largest usage of one attempt, with the input that the provider may add, without the gateway's own web access. */
export function highestUsage(
  { plan, request }: { readonly plan: Pick<Route, 'inputTokens' | 'choices' | 'terms'>; readonly request: ChatRequest },
  candidate: Candidate,
  reservation: Reservation,
) {
  const { model, endpoint } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const shown = reservedInput(plan, request, candidate)
  const room = Math.max(0, model.contextWindow - shown)
  // A provider of another form does not receive the client's own body.
  const isOwn =
    request.source !== null && endpoint.provider.takesSource?.(model).includes(request.source.dialect) === true
  const sent = isOwn ? request : { ...request, source: null }
  const addedTokens = Math.min(room, highestAddedInput(sent, room) + estimateOpaqueTokens(sent, model.provider))
  const inputTokens = shown + addedTokens
  const terms = reservedTerms(plan, candidate)
  const charges = highestSourceCharges(request, candidate, inputTokens, terms)
  const most = { inputTokens, outputTokens: outputCap * plan.choices }
  const microcents = endpoint.own === undefined ? getHighestCost(model.pricing, most, terms) + charges : 0
  return { outputCap, inputTokens, addedTokens, microcents }
}

/** Returns the input tokens that a candidate is reserved at, without what its provider may add; never below 0. */
export function reservedInput(
  { inputTokens }: Pick<Route, 'inputTokens'>,
  request: ChatRequest,
  { model }: Candidate,
): number {
  return Math.max(0, inputTokens - tokensSpared(request, model.provider))
}

/** Returns the terms that a candidate is reserved on. A tier that it is not sent binds nothing: its provider may choose any. */
export function reservedTerms(
  { terms: { at, tier } }: Pick<Route, 'terms'>,
  { model, endpoint }: Candidate,
): PriceTerms {
  return { at, tier: tier !== null && endpoint.provider.sendsTier?.(tier, model) === true ? tier : null }
}
