/**
 * The identity provider of single sign-on (OpenID Connect): authorization code with PKCE, state and nonce. All calls are
 * bounded in time and size. The provider is asked only when a user signs in, so that its outage affects nothing else.
 */
import * as oidc from 'openid-client'
import {
  type Claims,
  type IdentityClaims,
  type SingleSignOnConfig,
  SingleSignOnError,
  type SingleSignOnFailure,
} from '../../core/accounts/single-sign-on.ts'
import { type Clock, type Network, readBodyText } from '../../core/ports.ts'

/** Values that bind a response of the provider to one sign-in. */
export type SignInSecrets = { readonly state: string; readonly nonce: string; readonly verifier: string }

/** Whether the provider's metadata could be read, as this process saw it. Times in epoch milliseconds. */
type ProviderStatus = {
  readonly checkedAtMs: number
  /** Time of the first check with this outcome. */
  readonly sinceMs: number
  /** Null = the last check succeeded. `detail` is an identifier, without any text of the provider. */
  readonly error: { readonly failure: SingleSignOnFailure; readonly detail: string } | null
  /** The provider offers a page that ends its session. */
  readonly canSignOut: boolean
}

export type IdentityProvider = {
  /** Returns the URL at which the user signs in. */
  signInUrl(secrets: SignInSecrets): Promise<string>
  /**
   * Exchanges the code in the query of the redirect URI for claims, whose issuer, audience, signature, times and nonce
   * were checked. `iss` and `sub` are always present.
   */
  getClaims(query: string, secrets: SignInSecrets): Promise<IdentityClaims>
  /** Returns the URL that ends the user's session at the provider; null = it has none. */
  signOutUrl(returnTo: string): Promise<string | null>
  /** Reads the metadata, unless the last check is less than 10 s ago, and returns the outcome. Never throws. */
  status(): Promise<ProviderStatus>
}

type IdentityProviderDeps = {
  readonly network: Pick<Network, 'fetch'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  /** Time of one call to the provider in milliseconds. */
  readonly timeoutMs: number
}

/** Metadata and keys of large providers are below 20 KB; an ID token with 200 groups is below 16 KB. */
const maximumCharacters = 262_144
/** Metadata changes rarely; the library refreshes the keys itself. */
const metadataMs = 600_000
/** The settings page must not make the gateway a source of load for the provider. */
const statusMs = 10_000

/** Creates the client. The first call asks for the provider's metadata, which are then kept for 10 minutes. */
export function createIdentityProvider(config: SingleSignOnConfig, deps: IdentityProviderDeps): IdentityProvider {
  let known: { readonly at: number; readonly provider: oidc.Configuration } | null = null
  /** Anyone can start a sign-in, so concurrent ones share a request for the metadata. */
  let running: Promise<oidc.Configuration> | null = null
  let checked: (ProviderStatus & { readonly at: number }) | null = null

  const note = (error: ProviderStatus['error'], canSignOut: boolean) => {
    const [at, checkedAtMs] = [deps.clock.monotonic(), deps.clock.now()]
    const isSame = checked !== null && checked.error?.failure === error?.failure
    checked = { at, checkedAtMs, sinceMs: isSame ? (checked?.sinceMs ?? checkedAtMs) : checkedAtMs, error, canSignOut }
    return checked
  }
  const read = () => {
    running ??= discover(config, deps)
      .then(
        provider => {
          known = { at: deps.clock.monotonic(), provider }
          note(null, provider.serverMetadata().end_session_endpoint !== undefined)
          return provider
        },
        thrown => {
          const { failure, detail } = toSingleSignOnError(thrown)
          note({ failure, detail }, checked?.canSignOut ?? false)
          throw thrown
        },
      )
      .finally(() => {
        running = null
      })
    return running
  }

  const provider = async (): Promise<oidc.Configuration> => {
    const now = deps.clock.monotonic()
    if (known !== null && now - known.at < metadataMs) return known.provider
    try {
      return await read()
    } catch (thrown) {
      // Older metadata are better than a failed sign-in.
      if (known === null) throw thrown
      return known.provider
    }
  }

  return {
    signInUrl: ({ state, nonce, verifier }) =>
      explained(async () => {
        const url = oidc.buildAuthorizationUrl(await provider(), {
          redirect_uri: config.redirectUri,
          scope: config.scope,
          response_type: 'code',
          code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          state,
          nonce,
        })
        return url.href
      }),
    getClaims: (query, { state, nonce, verifier }) =>
      explained(async () => {
        const current = new URL(config.redirectUri)
        current.search = query
        const found = await provider()
        const tokens = await oidc.authorizationCodeGrant(found, current, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (claims === undefined) throw new SingleSignOnError('rejected', 'no ID token')
        return { ...(await furtherClaims(config, found, claims, tokens.access_token)), ...claims }
      }),
    signOutUrl: returnTo =>
      explained(async () => {
        const found = await provider()
        if (found.serverMetadata().end_session_endpoint === undefined) return null
        // The client ID, and no `id_token_hint`: for that, the gateway would have to store ID tokens.
        return oidc.buildEndSessionUrl(found, { post_logout_redirect_uri: returnTo }).href
      }),
    async status() {
      if (checked === null || deps.clock.monotonic() - checked.at >= statusMs) await read().catch(() => undefined)
      const { at: _, ...status } = checked ?? note(null, false)
      return status
    },
  }
}

function discover(config: SingleSignOnConfig, deps: IdentityProviderDeps): Promise<oidc.Configuration> {
  const issuer = new URL(config.issuer)
  return oidc.discovery(issuer, config.clientId, undefined, authentication(config), {
    timeout: deps.timeoutMs / 1000,
    // The configuration allows http only within the machine or the private network.
    execute: [oidc.enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])],
    [oidc.customFetch]: (url, init) => boundedFetch(deps.network, url, init),
  })
}

/** Basic authentication is the standard's default; the body is used where the provider supports only that. */
function authentication({ clientSecret }: SingleSignOnConfig): oidc.ClientAuth {
  if (clientSecret === null) return oidc.None()
  const [basic, post] = [oidc.ClientSecretBasic(clientSecret), oidc.ClientSecretPost(clientSecret)]
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const method = methods.includes('client_secret_basic') ? basic : post
    return method(server, client, body, headers)
  }
}

/** Some providers leave email address and groups out of the ID token; their user info has them. */
async function furtherClaims(
  { groupsClaim, roles }: SingleSignOnConfig,
  provider: oidc.Configuration,
  claims: oidc.IDToken,
  accessToken: string,
): Promise<Claims> {
  const [first = groupsClaim] = groupsClaim.split('.')
  const hasGroups = roles.size === 0 || Object.hasOwn(claims, groupsClaim) || Object.hasOwn(claims, first)
  const isComplete = hasGroups && Object.hasOwn(claims, 'email')
  if (isComplete || provider.serverMetadata().userinfo_endpoint === undefined) return {}
  return oidc.fetchUserInfo(provider, accessToken, claims.sub)
}

async function boundedFetch(
  network: Pick<Network, 'fetch'>,
  url: string,
  init: oidc.CustomFetchOptions,
): Promise<Response> {
  const { body, headers, method, redirect, signal } = init
  const response = await network.fetch(url, {
    headers,
    method,
    redirect,
    ...(body === undefined || body === null ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  })
  const text = await readBodyText(response, maximumCharacters)
  if (text.length > maximumCharacters) throw new SingleSignOnError('unavailable', 'response too large')
  const kept = new Headers()
  for (const name of ['content-type', 'www-authenticate']) {
    const value = response.headers.get(name)
    if (value !== null) kept.set(name, value)
  }
  return new Response(text === '' ? null : text, { status: response.status, headers: kept })
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    throw toSingleSignOnError(thrown)
  }
}

const unreachable = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_PARSE_ERROR'])

/** Error descriptions of the provider may repeat what was sent, so only codes are kept. */
function toSingleSignOnError(thrown: unknown): SingleSignOnError {
  const inner = thrown instanceof Error && thrown.cause instanceof SingleSignOnError ? thrown.cause : thrown
  if (inner instanceof SingleSignOnError) return inner
  if (inner instanceof oidc.AuthorizationResponseError) {
    const isAway = inner.error === 'temporarily_unavailable' || inner.error === 'server_error'
    const failure = inner.error === 'access_denied' ? 'denied' : isAway ? 'unavailable' : 'rejected'
    return new SingleSignOnError(failure, identifier(inner.error))
  }
  if (inner instanceof oidc.ResponseBodyError) {
    if (![400, 401, 403].includes(inner.status)) return new SingleSignOnError('unavailable', `status ${inner.status}`)
    // A code that expired or was used before.
    const failure = inner.error === 'invalid_grant' ? 'expired' : 'misconfigured'
    return new SingleSignOnError(failure, identifier(inner.error))
  }
  if (inner instanceof oidc.ClientError) {
    const isAway = inner.code === undefined || unreachable.has(inner.code)
    return new SingleSignOnError(isAway ? 'unavailable' : 'rejected', identifier(inner.code ?? inner.message))
  }
  return new SingleSignOnError('unavailable', inner instanceof Error ? inner.name : 'unknown')
}

function identifier(text: string): string {
  return text.replace(/[^\w .-]/g, '').slice(0, 64)
}
