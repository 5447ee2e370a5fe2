import { tokensSpared } from '../core/tokens/tokens.ts'
import { highestCostOf } from '../core/usage/money.ts'
import { highestSourceCharges } from '../core/usage/source-charges.ts'
import type { Meter, Reservation } from '../limits/meter.ts'
import type { CallRequest } from './attempt-run.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'

/**
 * Enlarges the reservation if this candidate costs or counts more. If the remaining daily tokens do not suffice, lowers
 * the output cap. Null = the account cannot pay for the candidate.
 */
export function affordable(
  meter: Pick<Meter, 'raise'>,
  { plan, prepared }: Pick<CallRequest, 'plan' | 'prepared'>,
  candidate: Candidate,
  progress: Progress,
): Reservation | Promise<Reservation | null> {
  const { reservation, hedge } = progress
  const { outputCap, inputTokens, microcents } = highestUsage({ plan, prepared }, candidate, reservation)
  // A canceled hedge is billed too.
  const beside = hedge === null || hedge.other === null ? nothing : hedge
  const worst = microcents + plan.web.microcents + beside.microcents
  const tokens = inputTokens + outputCap * plan.choices + beside.tokens
  const isEnough = worst <= reservation.reservedMicrocents && tokens <= reservation.reservedTokens
  // The reservation was made for the first candidate.
  if (isEnough || candidate === plan.first) return reservation
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

/** Enlarges the reservation by the whole cost of a hedge and returns its part; null = the account cannot pay for both. */
export async function affordableHedge(
  meter: Pick<Meter, 'raise'>,
  request: Pick<CallRequest, 'plan' | 'prepared'>,
  candidate: Candidate,
  progress: Progress,
): Promise<{ readonly tokens: number; readonly microcents: number } | null> {
  const { reservation } = progress
  const { outputCap, inputTokens, microcents } = highestUsage(request, candidate, reservation)
  const tokens = inputTokens + outputCap * request.plan.choices
  const { reservedTokens, reservedMicrocents } = reservation
  const raised = await meter.raise(reservation, reservedTokens + tokens, reservedMicrocents + microcents)
  if (raised === null) return null
  progress.reservation = raised
  return { tokens, microcents }
}

/** Returns the largest usage of one attempt, without the gateway's own web access. */
function highestUsage(
  { plan, prepared }: Pick<CallRequest, 'plan' | 'prepared'>,
  candidate: Candidate,
  reservation: Reservation,
) {
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const inputTokens = plan.inputTokens - tokensSpared(prepared.ask, model.provider)
  const charges = highestSourceCharges(prepared.ask, candidate, inputTokens)
  return { outputCap, inputTokens, microcents: highestCostOf(model, inputTokens, outputCap * plan.choices) + charges }
}
