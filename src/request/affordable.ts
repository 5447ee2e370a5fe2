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

type AffordableRequest = {
  readonly plan: Pick<Route, 'inputTokens' | 'choices' | 'terms' | 'first' | 'web'>
  readonly prepared: Pick<CallRequest['prepared'], 'request'>
}

/**
 * Enlarges the reservation if this candidate costs or counts more. If the remaining daily tokens do not suffice, lowers
 * the output cap. Null = the account cannot pay for the candidate.
 */
export function affordable(
  meter: Pick<Meter, 'raise'>,
  { plan, prepared }: AffordableRequest,
  candidate: Candidate,
  progress: Progress,
): Reservation | Promise<Reservation | null> {
  const { reservation, hedge } = progress
  const { request } = prepared
  const { outputCap, inputTokens, microcents } = highestUsage({ plan, request }, candidate, reservation)
  // A canceled hedge is billed too.
  const beside = hedge === null || hedge.other === null ? nothing : hedge
  const worst = microcents + plan.web.microcents + beside.microcents
  const tokens = inputTokens + outputCap * plan.choices + beside.tokens
  const isEnough = worst <= reservation.reservedMicrocents && tokens <= reservation.reservedTokens
  // The reservation was made for the first candidate, also if it is less than what that can add.
  if (isEnough || candidate === plan.first) return reservation
  const first = highestUsage({ plan, request }, plan.first, reservation)
  if (microcents <= first.microcents && tokens - beside.tokens <= first.inputTokens + first.outputCap * plan.choices)
    return reservation
  const raise = async (toTokens: number, cap: number): Promise<Reservation | null> => {
    const raised = await meter.raise(reservation, toTokens, worst)
    if (raised !== null) progress.reservation = raised
    return raised && { ...raised, outputCap: cap }
  }
  const smaller = Math.floor((reservation.reservedTokens - beside.tokens - inputTokens) / plan.choices)
  return raise(Math.max(tokens, reservation.reservedTokens), outputCap).then(
    raised => raised ?? (smaller < 1 || smaller >= outputCap ? null : raise(reservation.reservedTokens, smaller)),
  )
}

const nothing = { tokens: 0, microcents: 0 }

/** Enlarges the reservation by the whole cost of a hedge, and notes its part; null = the account cannot pay for both. */
export async function affordableHedge(
  meter: Pick<Meter, 'raise'>,
  { plan, prepared }: AffordableRequest,
  candidate: Candidate,
  progress: Progress,
): Promise<Reservation | null> {
  const { reservation, hedge } = progress
  const { outputCap, inputTokens, microcents } = highestUsage(
    { plan, request: prepared.request },
    candidate,
    reservation,
  )
  const tokens = inputTokens + outputCap * plan.choices
  const { reservedTokens, reservedMicrocents } = reservation
  const raised = await meter.raise(reservation, reservedTokens + tokens, reservedMicrocents + microcents)
  if (raised === null || hedge === null) return null
  progress.reservation = raised
  Object.assign(hedge, { tokens, microcents })
  return raised
}

/** Returns the largest usage of one attempt, with the input that the provider may add, without the gateway's own web access. */
export function highestUsage(
  { plan, request }: { readonly plan: Pick<Route, 'inputTokens' | 'choices' | 'terms'>; readonly request: ChatRequest },
  candidate: Candidate,
  reservation: Reservation,
) {
  const { model, endpoint } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const shown = plan.inputTokens - tokensSpared(request, model.provider)
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
  const microcents = getHighestCost(model.pricing, most, terms) + charges
  return { outputCap, inputTokens, addedTokens, microcents }
}

/** Returns the terms that a candidate is reserved on. A tier that it is not sent binds nothing: its provider may choose any. */
export function reservedTerms(
  { terms: { at, tier } }: Pick<Route, 'terms'>,
  { model, endpoint }: Candidate,
): PriceTerms {
  return { at, tier: tier !== null && endpoint.provider.sendsTier?.(tier, model) === true ? tier : null }
}
