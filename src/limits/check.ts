import { sizeReservation } from './local/reservation-size.ts'
import type { AdmissionRequest, LimitErrorCode, Meter } from './meter.ts'

/** Why a request would not be admitted now; null = it would be. */
export type LimitReached = { readonly code: LimitErrorCode; readonly retryAfterMs: number }

/** The meters say so too: a concurrent request ends when it ends, which nobody can foresee. */
const seatRetryMs = 1000

/**
 * Decides what `meter.admit` would decide now, and reserves nothing. The meter is asked for a concurrent request where none is
 * allowed: its refusal writes nothing and brings the account's standing up to date. The rest follows from that standing by the
 * rule that the meters share. Rejects as `admit` does where no store can tell.
 */
export async function checkLimits(
  meter: Pick<Meter, 'admit' | 'standing'>,
  request: AdmissionRequest,
): Promise<LimitReached | null> {
  const { accountId, limits } = request
  const asked = await meter.admit({ ...request, limits: { ...limits, concurrentRequests: 0 } })
  if (!asked.admitted && asked.code === 'requests_per_minute_exceeded') return asked
  const { seats, tokens, costMicrocents } = meter.standing(accountId, limits) ?? asked.standing
  if (seats.remaining <= 0) return { code: 'concurrent_requests_exceeded', retryAfterMs: seatRetryMs }
  const used = {
    tokens: tokens.limit - tokens.remaining,
    microcents: costMicrocents.limit - costMicrocents.remaining,
  }
  const grant = sizeReservation(request, limits, used, seats.remaining)
  return typeof grant === 'string' ? { code: grant, retryAfterMs: tokens.resetMs } : null
}
