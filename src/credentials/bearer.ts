/** Authorizers that add an OAuth access token: Microsoft Entra ID and Google service accounts. */
import { importPKCS8, SignJWT } from 'jose'
import type { Authorization, Authorizer, ProviderFailure } from '../providers/provider.ts'
import {
  type CredentialCache,
  type CredentialDeps,
  credentialCache,
  type Fetched,
  postForm,
  refused,
} from './credential-cache.ts'

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
