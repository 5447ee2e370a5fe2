/**
 * Fetches a credential that expires, and caches it. All requests share it. The first one fetches it, a later one renews
 * it early in the background, and two fetches never run concurrently. Requests to token endpoints are bounded in time
 * and size, and their errors contain no secret.
 */

import { importPKCS8, SignJWT } from 'jose'
import { type Clock, type Network, readBodyText } from '../core/ports.ts'
import type { Authorization, Authorizer, ProviderFailure } from '../providers/provider.ts'

/** A fetched credential and its remaining life in milliseconds. */
export type Fetched<T> = { readonly value: T; readonly lifetimeMs: number }

type CredentialCache<T> = {
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

/** Authorizers that add an OAuth access token: Microsoft Entra ID and Google service accounts. */

/** Client credentials of an app registration. */
export type EntraCredentials = {
  /** Origin of the token endpoint, `https://login.microsoftonline.com` in the public cloud. */
  readonly authority: string
  readonly tenantId: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string
}

/** Fields of a service account's key file. */
export type ServiceAccount = {
  readonly clientEmail: string
  /** PKCS #8 in PEM. */
  readonly privateKey: string
  readonly privateKeyId: string | null
  readonly tokenUrl: string
}

/** Creates an authorizer with tokens of Microsoft Entra ID (OAuth 2.0 client credentials). */
export function entraAuthorizer(deps: CredentialDeps, credentials: EntraCredentials): Authorizer {
  const { authority, tenantId, clientId, clientSecret, scope } = credentials
  return bearerAuthorizer(deps, 'Entra ID token', () =>
    postForm(deps, 'Entra ID token', `${authority}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`, {
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
      scope,
    }),
  )
}

const googleScope = 'https://www.googleapis.com/auth/cloud-platform'
/** Google accepts assertions of at most one hour. */
const assertionSeconds = 3_600

/** Creates an authorizer with tokens of a Google service account (OAuth 2.0 JWT bearer, RFC 7523). */
export function serviceAccountAuthorizer(deps: CredentialDeps, account: ServiceAccount): Authorizer {
  const { clientEmail, privateKey, privateKeyId, tokenUrl } = account
  const assertion = async () => {
    const issuedAt = Math.floor(deps.clock.now() / 1_000)
    return await new SignJWT({ scope: googleScope })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(privateKeyId !== null && { kid: privateKeyId }) })
      .setIssuer(clientEmail)
      .setAudience(tokenUrl)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + assertionSeconds)
      .sign(await importPKCS8(privateKey, 'RS256'))
  }
  return bearerAuthorizer(deps, 'Google token', async () => {
    const signed = await assertion().catch(() => null)
    if (signed === null) return { failure: refused('Google token: the private key of the service account is invalid') }
    const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    return await postForm(deps, 'Google token', tokenUrl, { grant_type, assertion: signed })
  })
}

type TokenResponse = { readonly text: string } | { readonly failure: ProviderFailure }

function bearerAuthorizer(deps: CredentialDeps, what: string, request: () => Promise<TokenResponse>): Authorizer {
  const cache: CredentialCache<string> = credentialCache(deps.clock, async () => {
    const response = await request()
    return 'failure' in response ? response : (tokenIn(response.text) ?? { failure: refused(`${what}: not a token`) })
  })
  return {
    authorize({ headers }) {
      const write = (result: Awaited<ReturnType<typeof cache.get>>): Authorization =>
        'failure' in result ? result : { headers: { ...headers, authorization: `Bearer ${result.value}` } }
      const result = cache.get()
      return result instanceof Promise ? result.then(write) : write(result)
    },
    // 403 means a missing role, which a new token does not change.
    isRenewable: ({ status }, { authorization = '' }) =>
      status === 401 && cache.isReplaceable(authorization.slice('Bearer '.length)),
  }
}

function tokenIn(text: string): Fetched<string> | null {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body !== 'object' || body === null) return null
    const token = 'access_token' in body ? body.access_token : null
    const seconds = 'expires_in' in body ? Number(body.expires_in) : Number.NaN
    // A header cannot carry other characters.
    if (typeof token !== 'string' || !/^[\x21-\x7e]{1,16384}$/.test(token) || !(seconds > 0)) return null
    return { value: token, lifetimeMs: Math.min(seconds, 86_400) * 1_000 }
  } catch {
    return null
  }
}
