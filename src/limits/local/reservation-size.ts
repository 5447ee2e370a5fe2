import { ceilingOfMillionth } from '../../core/usage/money.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import type { AdmissionRequest } from '../meter.ts'

/** What a request is granted and what that reserves: tokens, and money in 1e-8 USD. */
type ReservationSize = { readonly outputCap: number; readonly tokens: number; readonly microcents: number }

const perMillion = 1_000_000n

/**
 * Returns how many output tokens `remaining` covers and what that reserves, or which of the two not even one token
 * fits. `freeReservations` is at least 1.
 */
export function sizeReservation(
  request: AdmissionRequest,
  remaining: DailyUsage,
  freeReservations: number,
): ReservationSize | 'tokens' | 'cost' {
  const { choices, inputTokens } = request
  const wanted = Math.max(1, request.outputTokens)

  const tokensLeft = remaining.tokens - inputTokens
  const tokensShared = request.fairShare
    ? Math.max(Math.floor(tokensLeft / freeReservations), Math.min(tokensLeft, choices))
    : tokensLeft
  const cap = Math.min(wanted, Math.floor(tokensShared / choices))
  if (cap < 1) return 'tokens'

  const left = remaining.microcents - request.extraMicrocents
  return fullGrant(request, cap, left, freeReservations) ?? partialGrant(request, cap, left, freeReservations)
}

/** Grants all of `cap`, which nearly every account can pay many times; null if doubles cannot prove it. */
function fullGrant(
  request: AdmissionRequest,
  cap: number,
  left: number,
  freeReservations: number,
): ReservationSize | null {
  const { choices, inputTokens, inputPrice, outputPrice } = request
  const inputCost = inputTokens * inputPrice
  const outputCost = cap * choices * outputPrice
  const needed = inputCost + outputCost * (request.fairShare ? freeReservations : 1)
  if (needed > Number.MAX_SAFE_INTEGER || ceilingOfMillionth(needed) > left) return null
  return {
    outputCap: cap,
    tokens: inputTokens + cap * choices,
    microcents: ceilingOfMillionth(inputCost + outputCost) + request.extraMicrocents,
  }
}

/**
 * Grants as much of `cap` as `left` (1e-8 USD) pays for. Calculates in bigints of 1e-8 USD times a million, in which
 * prices are integers and only the final result is rounded up.
 */
function partialGrant(
  request: AdmissionRequest,
  cap: number,
  left: number,
  freeReservations: number,
): ReservationSize | 'cost' {
  const { choices, inputTokens } = request
  const inputCost = BigInt(inputTokens) * BigInt(request.inputPrice)
  const outputPrice = BigInt(choices) * BigInt(request.outputPrice)
  const forOutput = BigInt(left) * perMillion - inputCost
  if (forOutput < outputPrice) return 'cost'
  const share = request.fairShare ? forOutput / BigInt(freeReservations) : forOutput
  const affordable = outputPrice === 0n ? cap : Number(share / outputPrice)
  const outputCap = Math.max(1, Math.min(cap, affordable))

  const cost = inputCost + BigInt(outputCap) * outputPrice
  return {
    outputCap,
    tokens: inputTokens + outputCap * choices,
    microcents: Number((cost + perMillion - 1n) / perMillion) + request.extraMicrocents,
  }
}
