import { fixedLimit, GatewayError } from '../core/validation/errors.ts'

/** Concurrent exports per account and route: each uses the database as fast as its client reads. */
const maximumExports = 2

export type ExportSlots = {
  /**
   * Takes one slot of the account and returns the function that releases it, to be called once. Throws 429
   * `concurrent_requests_exceeded` if all are taken.
   */
  take(accountId: string): () => void
}

/** Creates the bound on concurrent exports of one route in this process. */
export function createExportSlots(): ExportSlots {
  const running = new Map<string, number>()
  return {
    take(accountId) {
      const taken = running.get(accountId) ?? 0
      if (taken >= maximumExports)
        throw new GatewayError(
          'concurrent_requests_exceeded',
          `Concurrency limit reached: ${maximumExports} exports are running. Retry when one has finished.`,
          { retryAfterMs: 5_000, remedy: fixedLimit },
        )
      running.set(accountId, taken + 1)
      return () => {
        const left = (running.get(accountId) ?? 1) - 1
        if (left === 0) running.delete(accountId)
        else running.set(accountId, left)
      }
    },
  }
}
