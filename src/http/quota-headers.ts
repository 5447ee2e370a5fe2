import type { Caller, QuotaStatus } from '../core/limits/plans.ts'
import type { Callers } from './authentication.ts'
import { writeCaller } from './headers.ts'

export type QuotaHeaderDeps = {
  readonly meter: { standing(accountId: string, limits: Caller['limits']): QuotaStatus | null }
  readonly budget: { warningOf(caller: Caller): string | null }
  readonly recall: Callers['recall']
  /** Loads the account's quota status into `meter`. Never throws. */
  readonly look: (caller: Caller, requestId: string) => Promise<void>
}

/** Adds the account's limits to any response to a known key; chat routes write them themselves. Never throws. */
export async function withQuotaHeaders(
  deps: QuotaHeaderDeps,
  headers: Headers,
  response: Response,
  requestId: string,
): Promise<Response> {
  try {
    const caller = await deps.recall(headers)
    if (caller === null) return response
    if (deps.meter.standing(caller.accountId, caller.limits) === null) await deps.look(caller, requestId)
    writeCaller(response.headers, deps, caller)
  } catch {
    // The response already reports why the key cannot be found.
  }
  return response
}
