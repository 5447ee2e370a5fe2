import type { Caller } from '../core/limits/plans.ts'
import type { Meter } from '../limits/meter.ts'

/** Loads the quota status of an account that this process has not seen. It stays unknown if no store answers. Never throws. */
export async function loadQuotaStatus(
  { meter }: { readonly meter: Pick<Meter, 'loadStatus'> },
  { accountId, limits }: Caller,
): Promise<void> {
  await meter.loadStatus(accountId, limits).catch(() => null)
}
