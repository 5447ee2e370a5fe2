/**
 * Fetches a credential that expires, and caches it. All requests share it. The first one fetches it, a later one renews
 * it early in the background, and two fetches never run concurrently. Requests to token endpoints are bounded in time
 * and size, and their errors contain no secret.
 */
import { type Clock, type Network, readBodyText } from '../core/ports.ts'
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

export type CredentialDeps = {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'after'>
  readonly network: Pick<Network, 'fetch'>
}

/** Bound for a whole token request. */
const tokenTimeoutMs = 10_000
const maximumCharacters = 65_536

/**
 * Posts a form and returns the body of a response with status 200. Every other result is a failure: a refusal is the
 * gateway's own (`credential_refused`), an outage of the endpoint the upstream's.
 */
export async function postForm(
  { clock, network }: CredentialDeps,
  what: string,
  url: string,
  form: Readonly<Record<string, string>>,
): Promise<{ readonly text: string } | { readonly failure: ProviderFailure }> {
  const abort = new AbortController()
  const cancel = clock.after(tokenTimeoutMs, () => abort.abort())
  try {
    const response = await network.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
      signal: abort.signal,
      // A redirect would send the secret to its target.
      redirect: 'error',
    })
    const text = await readBodyText(response, maximumCharacters)
    if (response.ok) return { text }
    const detail = `${what}: ${[response.status, ...errorCodes(text)].join(' ')}`
    const isRefusal = [400, 401, 403].includes(response.status)
    return { failure: isRefusal ? refused(detail) : unavailable(detail) }
  } catch {
    return { failure: unavailable(`${what}: ${abort.signal.aborted ? 'no response in time' : 'no connection'}`) }
  } finally {
    cancel()
    abort.abort()
  }
}

/** Returns the failure of a credential that the gateway lacks or that was refused. `detail` is for the operator. */
export function refused(detail: string): ProviderFailure {
  return { kind: 'credential_refused', blame: 'us', retryable: true, retryAfterMs: null, detail }
}

function unavailable(detail: string): ProviderFailure {
  return { kind: 'unavailable', blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}

/** OAuth's `error` and AWS's `Code` are identifiers; descriptions next to them may repeat what was sent. */
function errorCodes(text: string): readonly string[] {
  const [, code] = /"error"\s*:\s*"([A-Za-z_]{1,64})"|<Code>([A-Za-z]{1,64})<\/Code>/.exec(text)?.filter(Boolean) ?? []
  return code === undefined ? [] : [code]
}
