import { GatewayError } from '../core/errors.ts'
import { createNamedWindows } from '../core/named-windows.ts'

/** So many at least are remembered, those heard of last. */
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
  const windows = createNamedWindows({ allowed, windowMs, names: maximumAddresses })
  const waitMs = (address: string) => windows.waitMs(address, clock.now())

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
