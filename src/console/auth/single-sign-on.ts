/**
 * Single sign-on: the browser goes to the identity provider and returns to the only redirect URI. A secret in a cookie
 * binds all steps to that browser; state, nonce and PKCE verifier are derived from it, and the database has its digest,
 * which works once. The dashboard then exchanges the cookie for a session, so that no token is ever part of a URL.
 */

import { createHmac } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { getDigest, newToken } from '../../core/accounts/api-keys.ts'
import { dummyHash } from '../../core/accounts/passwords.ts'
import {
  getGroups,
  type IdentityClaims,
  isDomainAllowed,
  mappedRole,
  type SingleSignOnConfig,
  SingleSignOnError,
  type SingleSignOnFailure,
  verifiedEmail,
} from '../../core/accounts/single-sign-on.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { sessionShape } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import { emptyBody, type OpenRequest, openRoute, openRoutes, reply } from '../routes.ts'
import type { IdentityProvider, SignInSecrets } from './identity-provider.ts'
import { signIn } from './sign-in.ts'
import { beginSignIn, identifyUser, previewUser, useHandOver, useSignIn } from './stores/single-sign-on.ts'

/** Configuration and client of the identity provider. */
type Setup = { readonly config: SingleSignOnConfig; readonly provider: IdentityProvider }

/** A sign-in takes three requests, and an office has one address. */
const perAddress = { allowed: 300, windowMs: 60_000 }
const cookieSeconds = 600

/** Routes under `/api/v1/auth/oidc`. */
export function singleSignOn(deps: ConsoleDeps) {
  const limit = deps.limits('oidc', perAddress)
  return openRoutes('single-sign-on', deps, [
    openRoute({
      route: 'GET /api/v1/auth/oidc/start',
      limit,
      summary: 'Start single sign-on',
      description:
        'Redirects a browser to the identity provider. With `test=true` it starts no session: the settings page shows the role that a sign-in gives, or why it fails.',
      query: Type.Object({ test: Type.Optional(oneOf(['true'])) }),
      answer: null,
      status: 303,
      errors: ['not_found', 'ip_rate_limited'],
      handle: ({ request }) => begin(deps, getSetup(deps), new URL(request.url).searchParams.get('test') === 'true'),
    }),
    openRoute({
      route: 'GET /api/v1/auth/oidc/callback',
      limit,
      summary: 'Return from the identity provider',
      description: 'The redirect URI of single sign-on. Redirects to the dashboard, also after a failure.',
      answer: null,
      status: 303,
      errors: ['not_found', 'ip_rate_limited'],
      handle: ({ request }) => finish(deps, getSetup(deps), request),
    }),
    openRoute({
      route: 'GET /api/v1/auth/oidc/logout',
      limit,
      summary: 'Sign out at the identity provider',
      description: 'Redirects a browser to the sign-out page of the identity provider, or to the dashboard.',
      answer: null,
      status: 303,
      errors: ['not_found', 'ip_rate_limited'],
      handle: () => signOut(deps, getSetup(deps)),
    }),
    openRoute({
      route: 'POST /api/v1/auth/oidc/session',
      limit,
      summary: 'Get the session after single sign-on',
      description: 'Takes the cookie that the redirect URI set, once and within a minute.',
      ...emptyBody,
      answer: sessionShape,
      errors: ['invalid_credentials', 'not_found', 'ip_rate_limited'],
      refuse: () => void getSetup(deps),
      handle: call => handOver(deps, getSetup(deps), call),
    }),
  ])
}

/** Throws `not_found` if single sign-on is not configured. */
function getSetup({ config: { singleSignOn: config }, identityProvider: provider }: ConsoleDeps): Setup {
  if (config === null || provider === null)
    throw new GatewayError('not_found', 'Single sign-on is not configured. Sign in with a password.')
  return { config, provider }
}

async function begin(deps: ConsoleDeps, { config, provider }: Setup, isTest: boolean) {
  const secret = newToken('', deps.randomBytes)
  try {
    const url = await provider.signInUrl(getSecrets(secret))
    await beginSignIn(deps.database, isTest ? getTestDigest(secret) : getDigest(secret))
    return redirect(url, cookie(config, secret, cookieSeconds))
  } catch (thrown) {
    return failed(deps, config, thrown, isTest)
  }
}

/** The stored digest decides whether a return is a test: no part of the return can change it. */
const getTestDigest = (secret: string) => getDigest(`test ${secret}`)

async function finish(deps: ConsoleDeps, { config, provider }: Setup, request: Request) {
  const { database } = deps
  let isTest = false
  try {
    const secret = readCookie(config, request)
    if (secret === null) throw new SingleSignOnError('expired', 'no cookie')
    if (!(await useSignIn(database, getDigest(secret)))) {
      isTest = await useSignIn(database, getTestDigest(secret))
      if (!isTest) throw new SingleSignOnError('expired', 'unknown')
    }
    const claims = await provider.getClaims(new URL(request.url).search, getSecrets(secret))
    const arrival = getArrival(deps, config, claims)
    if (isTest) {
      const { role } = requireUser(config, claims, await previewUser(database, arrival))
      return redirect(`${getOrigin(config)}/#/settings?sso_test=passed&role=${role}`, cookie(config, '', 0))
    }
    const { userId } = requireUser(config, claims, await identifyUser(database, arrival))
    // The groups may have given another role.
    deps.announce()
    const next = newToken('', deps.randomBytes)
    await beginSignIn(database, getDigest(next), userId)
    return redirect(`${getOrigin(config)}/#/sso`, cookie(config, next, cookieSeconds))
  } catch (thrown) {
    return failed(deps, config, thrown, isTest)
  }
}

/** Returns what the claims say about the user. Throws `SingleSignOnError` if its email address may not sign in. */
function getArrival(deps: ConsoleDeps, config: SingleSignOnConfig, claims: IdentityClaims) {
  const email = verifiedEmail(config, claims)
  if (config.domains !== null) {
    if (email === null) throw new SingleSignOnError('email_unverified')
    if (!isDomainAllowed(config, email, claims)) throw new SingleSignOnError('domain_not_allowed')
  }
  return {
    issuer: claims.iss,
    subject: claims.sub,
    email,
    accountId: config.accountId,
    role: config.roles.size === 0 ? 'unmanaged' : (mappedRole(config, claims) ?? config.defaultRole),
    defaultRole: config.defaultRole,
    newUser: { id: deps.newId('usr'), passwordHash: dummyHash() },
  } as const
}

/** Returns the outcome. Throws it as a `SingleSignOnError` if it is a failure. */
function requireUser<T extends object>(
  config: SingleSignOnConfig,
  claims: IdentityClaims,
  outcome: T | { readonly failure: SingleSignOnFailure },
): T {
  if ('failure' in outcome) throw new SingleSignOnError(outcome.failure, `${getGroups(config, claims).length} groups`)
  return outcome
}

async function handOver(deps: ConsoleDeps, { config }: Setup, { request, address }: OpenRequest) {
  const secret = readCookie(config, request)
  const user = secret === null ? null : await useHandOver(deps.database, getDigest(secret))
  const { sessionHours: maximumHours } = config
  if (user === null) throw usedSignIn()
  const answer = reply(await signIn(deps, request, user, { subjects: [], address, maximumHours, refusal: usedSignIn }))
  answer.headers.append('set-cookie', cookie(config, '', 0))
  return answer
}

function usedSignIn(): GatewayError {
  const message = 'This sign-in has expired or was used. Sign in again.'
  return new GatewayError('invalid_credentials', message, { shouldRetry: false })
}

async function signOut(deps: ConsoleDeps, { config, provider }: Setup) {
  const home = `${getOrigin(config)}/`
  const url = await provider.signOutUrl(home).catch(thrown => {
    deps.log.warn('oidc_sign_out_failed', failureFields(thrown))
    return null
  })
  return redirect(url ?? home)
}

/** Redirects to the page that explains the failure. The operator's log has the detail. */
function failed(deps: ConsoleDeps, config: SingleSignOnConfig, thrown: unknown, isTest: boolean): Response {
  const fields = failureFields(thrown)
  deps.log.warn(isTest ? 'oidc_test_failed' : 'oidc_sign_in_failed', fields)
  const page = isTest ? `settings?sso_test=${fields.failure}` : `sso?error=${fields.failure}`
  return redirect(`${getOrigin(config)}/#/${page}`, cookie(config, '', 0))
}

function failureFields(thrown: unknown): { readonly failure: SingleSignOnFailure; readonly detail: string } {
  if (thrown instanceof SingleSignOnError) return { failure: thrown.failure, detail: thrown.detail }
  return { failure: 'unavailable', detail: thrown instanceof Error ? thrown.name : 'unknown' }
}

/** Only the configured origin: no part of a request decides where the browser goes. */
function getOrigin({ redirectUri }: SingleSignOnConfig): string {
  return new URL(redirectUri).origin
}

function redirect(location: string, setCookie: string | null = null): Response {
  const headers = new Headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  if (setCookie !== null) headers.append('set-cookie', setCookie)
  return new Response(null, { status: 303, headers })
}

/** State, nonce and verifier reveal neither each other nor the secret. */
function getSecrets(secret: string): SignInSecrets {
  const derive = (purpose: string) => createHmac('sha256', secret).update(purpose).digest('base64url')
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') }
}

/** `__Host-` needs TLS. `Lax`, since the browser returns from a page of another site. */
function cookie(config: SingleSignOnConfig, value: string, seconds: number): string {
  const secure = isSecure(config) ? '; Secure' : ''
  return `${cookieName(config)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`
}

function isSecure({ redirectUri }: SingleSignOnConfig): boolean {
  return redirectUri.startsWith('https:')
}

function cookieName(config: SingleSignOnConfig): string {
  return isSecure(config) ? '__Host-gateway-sso' : 'gateway-sso'
}

/** Returns the secret in the cookie; null = none, or of another form. */
function readCookie(config: SingleSignOnConfig, { headers }: Request): string | null {
  const prefix = `${cookieName(config)}=`
  const found = (headers.get('cookie') ?? '').split(/;\s*/).find(part => part.startsWith(prefix))
  const secret = found?.slice(prefix.length) ?? ''
  return /^[\w-]{43}$/.test(secret) ? secret : null
}
