import { tokensSpared } from '../core/tokens/tokens.ts'
import { highestCostOf } from '../core/usage/money.ts'
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
  const { reservation } = progress
  const { model } = candidate
  const outputCap = Math.min(reservation.outputCap, model.maxOutputTokens)
  const inputTokens = plan.inputTokens - tokensSpared(prepared.ask, model.provider)
  const worst = highestCostOf(model, inputTokens, outputCap * plan.choices) + plan.web.microcents
  const tokens = inputTokens + outputCap * plan.choices
  const isEnough = worst <= reservation.reservedMicrocents && tokens <= reservation.reservedTokens
  // The reservation was made for the first candidate.
  if (isEnough || candidate === plan.first) return reservation
  const raise = async (toTokens: number, cap: number): Promise<Reservation | null> => {
    const raised = await meter.raise(reservation, toTokens, worst)
    if (raised !== null) progress.reservation = raised
    return raised && { ...raised, outputCap: cap }
  }
  const smaller = Math.floor((reservation.reservedTokens - inputTokens) / plan.choices)
  return raise(Math.max(tokens, reservation.reservedTokens), outputCap).then(
    raised => raised ?? (smaller < 1 || smaller >= outputCap ? null : raise(reservation.reservedTokens, smaller)),
  )
}
