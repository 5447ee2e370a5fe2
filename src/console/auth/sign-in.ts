/** Response of a sign-in, for all ways to sign in. */

import { getDigest } from '../../core/accounts/api-keys.ts'
import { actingAs } from '../../core/audit/audit.ts'
import type { Limits } from '../../core/limits/plans.ts'
import { pick, shownFields } from '../../core/usage/shown-fields.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { getLimits } from '../../database/repositories/accounts.ts'
import type { Account, User } from '../../database/tables.ts'
import { firstRefreshToken, invalidToken } from '../../http/authentication.ts'
import type { ShownAccount, ShownSignIn, ShownUser } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import { findSession, forgetFailures, mailSubject, startSession } from './stores/sessions.ts'
import { findAccount, findUser } from './stores/users.ts'

const maximumAgentCharacters = 200

type SignInOptions = {
  /** Keys under which failures are counted; a success clears the first one's failures. */
  readonly subjects: readonly string[]
  /** Network address of the user. */
  readonly address: string
  /** Hours after which the user must sign in again; null = a session in use continues. */
  readonly maximumHours?: number | null
  /** Error if the user, the password or a lockout has changed meanwhile. */
  readonly refusal: () => GatewayError
}

/**
 * Starts a session for a user whose password was just checked, and returns the response.
 */
export async function signIn(
  deps: ConsoleDeps,
  request: Request,
  user: Pick<User, 'id' | 'accountId' | 'passwordHash' | 'email'>,
  { subjects, address, maximumHours = null, refusal }: SignInOptions,
): Promise<ShownSignIn> {
  const { database, randomBytes, newId } = deps
  const refreshToken = firstRefreshToken(randomBytes)
  const sessionId = newId('ses')
  const acting = actingAs(database, { kind: 'user', userId: user.id, address })
  const started = await startSession(acting, {
    id: sessionId,
    accountId: user.accountId,
    userId: user.id,
    userAgent: request.headers.get('user-agent')?.slice(0, maximumAgentCharacters) ?? null,
    tokenDigest: getDigest(refreshToken),
    passwordHash: user.passwordHash,
    subjects,
    addressDigests: deps.addressDigests(user.email, address),
    maximumHours,
  })
  if (!started) throw refusal()
  deps.sessions.forget()
  return sessionReply(deps, { accountId: user.accountId, userId: user.id, sessionId }, refreshToken)
}

/** Signs in a user who has proven the email address, which ends a lockout of the address. */
export async function signInProven(
  deps: ConsoleDeps,
  request: Request,
  user: Parameters<typeof signIn>[2],
  options: Pick<SignInOptions, 'address' | 'refusal'>,
): Promise<ShownSignIn> {
  const subject = mailSubject(user.email)
  await forgetFailures(deps.database, subject)
  return signIn(deps, request, user, { ...options, subjects: [subject] })
}

/** Response of register, sign-in, refresh and accepting an invitation. */
export async function sessionReply(
  deps: ConsoleDeps,
  holder: { readonly accountId: string; readonly userId: string; readonly sessionId: string },
  refreshToken: string,
): Promise<ShownSignIn> {
  const { accountId, userId, sessionId } = holder
  const [{ token, expiresAt }, user, account, session] = await Promise.all([
    deps.tokens.sign({ userId, sessionId }),
    findUser(deps.database, accountId, userId),
    findAccount(deps.database, accountId),
    findSession(deps.database, sessionId),
  ])
  if (user === null || account === null) throw invalidToken()
  const limits = getLimits(account, deps.config.plans)
  return {
    token,
    expires_at: expiresAt.toISOString(),
    refresh_token: refreshToken,
    user: shownUser(user),
    account: shownAccount(account, limits),
    two_factor_setup_required: session?.mustSetUpTwoFactor ?? false,
    // Without configuration there is no page to sign out at.
    single_sign_on: deps.config.singleSignOn !== null && (session?.isSingleSignOn ?? false),
  }
}

/** Converts a user to its API form. */
export function shownUser(user: Pick<User, 'id' | 'email' | 'role' | 'createdAt' | 'unverifiedSince'>): ShownUser {
  const shown = shownFields(pick(user, ['id', 'email', 'role', 'createdAt']))
  return { ...shown, verification_pending: user.unverifiedSince !== null }
}

/** Throws `forbidden` if users of this gateway sign in by single sign-on only. */
export function refuseWithoutPasswords({ singleSignOn }: Pick<ConsoleDeps['config'], 'singleSignOn'>): void {
  if (singleSignOn?.isOnly === true)
    throw new GatewayError('forbidden', 'Password sign-in is disabled. Use single sign-on.', { shouldRetry: false })
}

/** One error for every failed sign-in, whatever the cause. */
export function invalidCredentials(): GatewayError {
  return new GatewayError(
    'invalid_credentials',
    'Sign-in failed: wrong email or password, unconfirmed address, or too many attempts. Check them or retry in 15 minutes.',
    { shouldRetry: false },
  )
}

const accountFields = [
  ...(['id', 'name', 'plan', 'web', 'hedge', 'fallback', 'continue', 'baselineModel', 'shadow'] as const),
  ...(['constraints', 'createdAt'] as const),
] as const

/** Converts an account to its API form, with its own limits or its plan's. */
export function shownAccount(account: Account, limits: Limits): ShownAccount {
  const shown = shownFields(pick(account, accountFields))
  return { ...shown, requires_two_factor: account.requiresTotp, limits: shownLimits(limits) }
}

/** Converts limits to their API form; null = that of the plan. */
export function shownLimits<Limit extends number | null>(limits: { readonly [Name in keyof Limits]: Limit }) {
  return shownFields(pick(limits, ['requestsPerMinute', 'concurrentRequests', 'dailyTokens', 'dailyCostMicrocents']))
}
