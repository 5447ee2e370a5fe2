/**
 * Caches a credential that expires. All requests share it. The first one fetches it, a later one renews it early in the
 * background, and two fetches never run concurrently.
 */
import type { Clock } from '../core/ports.ts'
import type { ProviderFailure } from '../providers/provider.ts'

/** A fetched credential and its remaining life in milliseconds. */
export type Fetched<T> = { readonly value: T; readonly lifetimeMs: number }

export type CredentialCache<T> = {
  /** Returns the credential, without waiting if there is one. Never rejects. */
  get(): Result<T> | Promise<Result<T>>
  /**
   * Reads a refusal of this credential. Returns true if another one is available or will be fetched: it was replaced
   * meanwhile, or is old enough that it may have been revoked.
   */
  isReplaceable(refused: T): boolean
}

type Result<T> = { readonly value: T } | { readonly failure: ProviderFailure }

/** A credential is renewed this long before its end, or at four fifths of a shorter life. */
const earlyMs = 300_000
const earlyShare = 0.2
/** After a failure, this long passes before the next fetch: requests meanwhile get the failure, or the old credential. */
const pauseMs = 2_000
/** A refused credential that was fetched within this time is not fetched again. */
const youngMs = 30_000

/** Creates a cache. `fetch` returns a failure instead of rejecting. */
export function credentialCache<T>(
  clock: Pick<Clock, 'monotonic'>,
  fetch: () => Promise<Fetched<T> | { readonly failure: ProviderFailure }>,
): CredentialCache<T> {
  let current: { readonly value: T; readonly fetchedAt: number; readonly endsAt: number } | null = null
  let renewAt = 0
  let flight: Promise<Result<T>> | null = null
  let failed: { readonly failure: ProviderFailure; readonly until: number } | null = null

  const renew = async (): Promise<Result<T>> => {
    const startedAt = clock.monotonic()
    const result = await fetch()
    const now = clock.monotonic()
    flight = null
    if ('failure' in result) {
      renewAt = now + pauseMs
      failed = { failure: result.failure, until: renewAt }
      return result
    }
    const { value, lifetimeMs } = result
    failed = null
    // Its life began before the response arrived.
    current = { value, fetchedAt: now, endsAt: startedAt + lifetimeMs }
    renewAt = current.endsAt - Math.min(earlyMs, lifetimeMs * earlyShare)
    return { value }
  }

  return {
    get() {
      const now = clock.monotonic()
      if (current !== null && now < current.endsAt) {
        if (now >= renewAt) flight ??= renew()
        return current
      }
      if (failed !== null && now < failed.until) return failed
      flight ??= renew()
      return flight
    },
    isReplaceable(refused) {
      if (current === null || current.value !== refused) return true
      if (clock.monotonic() - current.fetchedAt < youngMs) return false
      current = null
      return true
    },
  }
}
