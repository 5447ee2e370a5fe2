import type { Deps } from '../composition/deps.ts'
import type { Caller } from '../core/limits/plans.ts'

/**
 * Brings to mind how an account stands that was never seen here, and takes nothing: it asks for a seat where there is none.
 * Where nobody can tell, its standing stays unknown. Never throws.
 */
export async function checkPart(deps: Pick<Deps, 'meter'>, caller: Caller, requestId: string): Promise<void> {
  const { accountId, limits } = caller
  const noSeats = { ...limits, concurrentRequests: 0 }
  await deps.meter.admit({ ...nothing, requestId, accountId, limits: noSeats }).catch(() => null)
}

const nothing = {
  inputTokens: 0,
  outputTokens: 1,
  choices: 1,
  fairShare: false,
  inputPrice: 0,
  outputPrice: 0,
  extraMicrocents: 0,
}
