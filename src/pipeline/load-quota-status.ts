import type { Caller } from '../core/limits/plans.ts'
import type { Meter } from '../limits/meter.ts'

/**
 * Loads the quota status of an account that this process has not seen. Reserves nothing: it requests a reservation where no
 * concurrent request is allowed. The status stays unknown if no store answers. Never throws.
 */
export async function loadQuotaStatus(
  { meter }: { readonly meter: Pick<Meter, 'admit'> },
  { accountId, limits }: Caller,
  requestId: string,
): Promise<void> {
  const noRequests = { ...limits, concurrentRequests: 0 }
  await meter.admit({ ...nothing, requestId, accountId, limits: noRequests }).catch(() => null)
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
