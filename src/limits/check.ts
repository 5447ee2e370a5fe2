import { sizeReservation } from './local/reservation-size.ts'
import type { AdmissionRequest, LimitErrorCode, Meter } from './meter.ts'

/** Why a request would be rejected now; null = it would be admitted. */
export type LimitReached = { readonly code: LimitErrorCode; readonly retryAfterMs: number }

/** The meters use the same value: when a concurrent request will end is unknown. */
const seatRetryMs = 1000

/**
 * Returns what `meter.admit` would decide now without reserving. Calls the meter with a limit of 0 concurrent requests:
 * the rejection writes nothing and refreshes the account's quota status, from which the other limits follow by the
 * meters' shared rule. Rejects like `admit` if no store answers.
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
