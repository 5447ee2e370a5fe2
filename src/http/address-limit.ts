import { GatewayError } from '../core/errors.ts'
import { createWindowLog, type WindowLog } from '../core/windows-log.ts'

/** Beyond it the address not heard of for longest is forgotten. */
const maximumAddresses = 10_000

export type AddressLimit = {
  /** Counts one request of an address. Returns 0, or where it has had its fill, and then uncounted, the milliseconds to wait. */
  waitMs(address: string): number
  /** The same, throwing `ip_rate_limited` where it would have to wait. */
  take(address: string): void
}

/** At most `allowed` requests of one address in any `windowMs`: exact, in memory, forgotten with the process. */
export function createAddressLimit(
  { allowed, windowMs }: { readonly allowed: number; readonly windowMs: number },
  clock: { now(): number },
): AddressLimit {
  const logs = new Map<string, WindowLog>()

  const waitMs = (address: string): number => {
    const now = clock.now()
    const log = logs.get(address) ?? createWindowLog(windowMs)
    logs.delete(address)
    logs.set(address, log)
    for (const oldest of logs.keys()) {
      if (logs.size <= maximumAddresses) break
      logs.delete(oldest)
    }
    const wait = log.waitUntilUnder(allowed, now)
    if (wait === 0) log.add(now)
    return wait
  }

  return {
    waitMs,
    take(address) {
      const wait = waitMs(address)
      if (wait > 0) throw tooHasty(wait)
    },
  }
}

/** The refusal of an address that asks too often. */
export function tooHasty(retryAfterMs: number): GatewayError {
  return new GatewayError(
    'ip_rate_limited',
    'Too many requests from this address: wait as long as `retry-after` says.',
    { retryAfterMs, shouldRetry: false },
  )
}
