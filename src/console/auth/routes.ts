/** Sign-in, refresh, sign-out, sessions and password. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { getDigest } from '../../core/accounts/api-keys.ts'
import {
  emailSchema,
  normalizeEmail,
  normalizePassword,
  passwordSchema,
  validateNewPassword,
} from '../../core/accounts/passwords.ts'
import type { SingleSignOnConfig } from '../../core/accounts/single-sign-on.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { findAccountByEmail } from '../../database/repositories/accounts.ts'
import { invalidToken, isRefreshToken } from '../../http/authentication.ts'
import { sessionShape } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  emptyBody,
  type OpenRequest,
  openRoute,
  openRoutes,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { countFailure, resets, verifyOwnPassword } from './passwords.ts'
import { registration } from './registration.ts'
import { ownSessionsShape, type SingleSignOnSettings, singleSignOnSettingsShape } from './schemas.ts'
import { invalidCredentials, refuseWithoutPasswords, sessionReply, signIn } from './sign-in.ts'
import { singleSignOn } from './single-sign-on.ts'
import { countKnownFailure, signInQuotaStatus } from './stores/known-addresses.ts'
import {
  addressSubject,
  endSession as endSessionInStore,
  listSessions,
  mailSubject,
  rotateToken,
} from './stores/sessions.ts'
import { getIsAccount } from './stores/single-sign-on.ts'
import { changePassword as changePasswordInStore, rehash } from './stores/users.ts'
import { checkSecondFactor, codeSchema, twoFactor } from './two-factor.ts'

const signInSchema = strictObject({ email: emailSchema, password: passwordSchema, code: Type.Optional(codeSchema) })
const refreshSchema = strictObject({ refresh_token: Type.String({ minLength: 1, maxLength: 256 }) })
const passwordChangeSchema = strictObject({ current_password: passwordSchema, new_password: passwordSchema })

/** The lockout stops password guessing; this limit does not have to. */
const perAddress = { allowed: 300, windowMs: 60_000 }

/** Routes under `/api/v1/auth`. */
export function auth(deps: ConsoleDeps, identify: Authenticate) {
  const requests = deps.limits('auth', perAddress)

  return new Elysia({ name: 'auth' })
    .use(registration(deps, identify))
    .use(singleSignOn(deps))
    .use(singleSignOnSettings(deps, identify))
    .use(twoFactor(deps, identify))
    .use(
      openRoutes('sign-in', deps, [
        openRoute({
          route: 'POST /api/v1/auth/login',
          limit: requests,
          summary: 'Sign in',
          description:
            'A user with two-factor sign-in gets `two_factor_required` and sends the same request again with `code`.',
          body: signInSchema,
          answer: sessionShape,
          errors: ['invalid_credentials', 'two_factor_required', 'forbidden', 'ip_rate_limited'],
          handle: call => logIn(deps, call),
        }),
        openRoute({
          route: 'POST /api/v1/auth/refresh',
          limit: requests,
          summary: 'Refresh the session',
          description: 'Every refresh token is valid for one refresh; a reused one ends its session.',
          body: refreshSchema,
          answer: sessionShape,
          errors: ['invalid_token', 'ip_rate_limited'],
          handle: ({ body }) => refresh(deps, body.refresh_token),
        }),
      ]),
    )
    .use(resets(deps))
    .use(
      sessionRoutes('sessions', identify, [
        sessionRoute({
          route: 'POST /api/v1/auth/logout',
          action: 'sessions.own',
          summary: 'Sign out',
          ...emptyBody,
          answer: null,
          errors: ['not_found'],
          handle: call => endSession(deps, call, call.principal.sessionId),
        }),
        sessionRoute({
          route: 'GET /api/v1/auth/sessions',
          action: 'sessions.own',
          summary: 'List sessions',
          answer: ownSessionsShape,
          async handle({ principal: { accountId, userId, sessionId }, database }) {
            return { data: await listSessions(database, accountId, userId, sessionId) }
          },
        }),
        sessionRoute({
          route: 'DELETE /api/v1/auth/sessions/:id',
          action: 'sessions.own',
          summary: 'End a session',
          answer: null,
          handle: call => endSession(deps, call, call.id),
        }),
        sessionRoute({
          route: 'PUT /api/v1/auth/password',
          action: 'sessions.own',
          summary: 'Change password',
          description: 'Ends all other sessions.',
          body: passwordChangeSchema,
          answer: null,
          errors: ['invalid_credentials', 'conflict'],
          handle: call => changePassword(deps, call),
        }),
      ]),
    )
}

/**
 * A sign-in hashes once, for known and unknown addresses, so neither time nor response reveals which it is. A lock
 * rejects before any hash, for all emails: it must not allow guesses nor keep the hasher busy. It does not apply at a
 * network address from which the user has signed in before.
 */
async function logIn(deps: ConsoleDeps, { request, body, address }: OpenRequest<typeof signInSchema>) {
  const email = normalizeEmail(body.email)
  const password = normalizePassword(body.password)
  const { database } = deps
  const subjects = [mailSubject(email), addressSubject(address)]
  const digests = deps.addressDigests(email, address)
  const [found, { isLocked, isKnown }] = await Promise.all([
    findAccountByEmail(database, email),
    signInQuotaStatus(database, email, { subjects, digests }),
  ])
  if (isLocked && !isKnown) throw invalidCredentials()
  const user = found === null || found.user.removedAt !== null ? null : found.user
  // The operator's password reset is the way back if the identity provider fails.
  const isOpenUntil = user?.passwordSignInUntil?.getTime() ?? 0
  if (isOpenUntil <= deps.clock.now()) refuseWithoutPasswords(deps.config)
  const verdict = await deps.passwords.verify(password, user?.passwordHash ?? null, address)
  const acting = user === null ? database : actingAs(database, { kind: 'user', userId: user.id, address })
  if (user !== null && user.unverifiedSince === null && verdict !== 'wrong') {
    await checkSecondFactor(deps, acting, user, body.code)
    const passwordHash = verdict === 'outdated' ? await rehashed(deps, user, password, address) : user.passwordHash
    return signIn(deps, request, { ...user, passwordHash }, { subjects, address, refusal: invalidCredentials })
  }
  // A user who mistypes at a usual address must not lock it for others.
  await countFailure(deps, acting, isKnown ? subjects.slice(0, 1) : subjects, user)
  if (isKnown) await countKnownFailure(database, email, digests)
  throw invalidCredentials()
}

async function rehashed(
  deps: ConsoleDeps,
  user: { readonly id: string; readonly accountId: string; readonly passwordHash: string },
  password: string,
  address: string,
): Promise<string> {
  const to = await deps.passwords.hash(password, address)
  await rehash(deps.database, user.accountId, user.id, { from: user.passwordHash, to })
  return to
}

async function refresh(deps: ConsoleDeps, token: string) {
  if (!isRefreshToken(token)) throw invalidToken()
  const next = deps.tokens.nextRefreshToken(token)
  const rotation = await rotateToken(deps.database, getDigest(token), getDigest(next))
  switch (rotation.outcome) {
    case 'rotated':
    case 'repeated':
      return sessionReply(deps, rotation.holder, next)
    case 'reused':
      deps.sessions.forget()
      deps.log.warn('refresh_token_reused', { session_id: rotation.sessionId, user_id: rotation.userId })
      throw invalidToken()
    case 'unknown':
      throw invalidToken()
  }
}

async function endSession(
  { announce }: ConsoleDeps,
  { principal, database }: SessionRequest,
  id: string,
): Promise<null> {
  const { accountId, userId } = principal
  refuseUnlessDone<never>(await endSessionInStore(database, accountId, userId, id), {})
  announce()
  return null
}

async function changePassword(deps: ConsoleDeps, call: SessionRequest<typeof passwordChangeSchema>): Promise<null> {
  const { principal, body, database } = call
  const { accountId, userId, sessionId } = principal
  const password = validateNewPassword(body.new_password, 'new_password')
  const user = await verifyOwnPassword(deps, call, body.current_password)
  const changed = await changePasswordInStore(database, accountId, userId, {
    checkedHash: user.passwordHash,
    newHash: await deps.passwords.hash(password, userId),
    keptSession: sessionId,
  })
  if (!changed)
    throw new GatewayError('conflict', 'The password changed during this request. Sign in with the new one.')
  deps.announce()
  return null
}

/** Settings of single sign-on as the configuration has them, for owners of its account. They are read-only. */

/** `GET /api/v1/auth/oidc/settings`. */
function singleSignOnSettings(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('single-sign-on-settings', identify, [
    sessionRoute({
      route: 'GET /api/v1/auth/oidc/settings',
      action: 'account.secure',
      summary: 'Get the settings of single sign-on',
      description:
        'Reads the metadata of the identity provider, at most every 10 s. The state is that of the responding process.',
      answer: singleSignOnSettingsShape,
      async handle({ principal: { accountId }, database }) {
        const { config, identityProvider: provider } = deps
        const { singleSignOn } = config
        const isOwn =
          singleSignOn !== null &&
          provider !== null &&
          (await getIsAccount(database, accountId, singleSignOn.accountId))
        return { single_sign_on: isOwn ? await shownSettings(singleSignOn, provider) : null }
      },
    }),
  ])
}

async function shownSettings(
  config: SingleSignOnConfig,
  provider: Pick<IdentityProvider, 'status'>,
): Promise<NonNullable<SingleSignOnSettings['single_sign_on']>> {
  const { checkedAtMs, sinceMs, error, canSignOut } = await provider.status()
  return {
    label: config.label,
    issuer: config.issuer,
    client_id: config.clientId,
    redirect_uri: config.redirectUri,
    sign_out_uri: `${new URL(config.redirectUri).origin}/`,
    scopes: config.scope,
    groups_claim: config.groupsClaim,
    roles: [...config.roles].map(([group, role]) => ({ group, role })),
    default_role: config.defaultRole,
    domains: config.domains === null ? null : [...config.domains],
    trusts_email: config.trustsEmail,
    only: config.isOnly,
    session_hours: config.sessionHours,
    provider: {
      reachable: error === null,
      failure: error?.failure ?? null,
      detail: error?.detail ?? null,
      since: new Date(sinceMs).toISOString(),
      checked_at: new Date(checkedAtMs).toISOString(),
      can_sign_out: canSignOut,
    },
  }
}
