/** Counting of failed passwords, and the check of a signed-in user's own password. */

import { Type } from '@sinclair/typebox'
import { getDigest, newToken } from '../../core/accounts/api-keys.ts'
import {
  emailSchema,
  normalizeEmail,
  normalizePassword,
  passwordSchema,
  validateNewPassword,
} from '../../core/accounts/passwords.ts'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import { recordAuditAlone } from '../../database/repositories/audit.ts'
import type { User } from '../../database/tables.ts'
import { invalidToken } from '../../http/authentication.ts'
import { createBehindAnswer, enforceIpLimit } from '../../http/rate-limits.ts'
import type { ConsoleDeps } from '../deps.ts'
import { notFound, type OpenRequest, openRoute, openRoutes, type SessionRequest } from '../routes.ts'
import { accepted, resetAskedShape } from './schemas.ts'
import { invalidCredentials, refuseWithoutPasswords } from './sign-in.ts'
import { createReset, isResetOpen, useReset } from './stores/email-links.ts'
import { changeSubject, isAnyLocked, mailSubject, recordFailure } from './stores/sessions.ts'
import { findUser } from './stores/users.ts'

type FailureDeps = Pick<ConsoleDeps, 'log' | 'post'>

/** Counts a failure of `database`'s actor against each subject; reports new lockouts to the log and to the user. */
export async function countFailure(
  deps: FailureDeps,
  database: Database,
  subjects: readonly string[],
  user: Pick<User, 'id' | 'accountId' | 'email'> | null,
): Promise<void> {
  const locked = await recordFailure(database, subjects)
  if (locked.length === 0) return
  deps.log.warn('sign_in_locked', { user_id: user?.id ?? null, locks: locked.length })
  if (user === null) return
  await recordAuditAlone(database, { accountId: user.accountId, action: 'sign_in.locked', target: user.id })
  if (locked.includes(mailSubject(user.email))) deps.post?.signInLocked(user.email)
}

/** Returns the user if the password is right. Throws `invalid_credentials` otherwise. */
export async function verifyOwnPassword(
  deps: ConsoleDeps,
  { principal: { accountId, userId }, database }: Pick<SessionRequest, 'principal' | 'database'>,
  password: string,
): Promise<User> {
  // An open session must not allow password guesses. Only the user's own sessions can add to these failures.
  const subjects = [changeSubject(userId)]
  const [user, isLocked] = await Promise.all([findUser(database, accountId, userId), isAnyLocked(database, subjects)])
  if (user === null) throw invalidToken()
  if (isLocked) throw invalidCredentials()
  const verdict = await deps.passwords.verify(normalizePassword(password), user.passwordHash, userId)
  if (verdict !== 'wrong') return user
  await countFailure(deps, database, subjects, user)
  throw invalidCredentials()
}

/** Password reset: requested by any client, completed with the token from the email. */

const askingSchema = strictObject({ email: emailSchema })
const choosingSchema = strictObject({
  password: passwordSchema,
  revoke_keys: Type.Optional(Type.Boolean({ description: 'also revoke every API key of the user' })),
})

const hourMs = 3_600_000
const limits = {
  asked: { allowed: 20, windowMs: hourMs },
  /** Limit per mailbox, from all clients together, so that resets cannot flood it. */
  mailed: { allowed: 3, windowMs: hourMs },
  tried: { allowed: 60, windowMs: 60_000 },
}
const maximumAtOnce = 100

/** Routes under `/api/v1/auth/reset`. */
export function resets(deps: ConsoleDeps) {
  const asked = deps.limits('reset', limits.asked)
  const mailed = deps.limits('reset-mail', limits.mailed)
  const tried = deps.limits('reset-token', limits.tried)
  const behindAnswer = createBehindAnswer(maximumAtOnce, () => deps.log.warn('password_reset_failed'))

  return openRoutes('resets', deps, [
    openRoute({
      route: 'POST /api/v1/auth/reset',
      summary: 'Request a password reset by email',
      description: 'The response is the same whether a user has the address or not. Requires email to be configured.',
      body: askingSchema,
      answer: resetAskedShape,
      status: 202,
      errors: ['ip_rate_limited', 'not_found'],
      refuse() {
        refuseWithoutPasswords(deps.config)
        if (deps.post === null) throw noMail()
      },
      async handle({ body: { email }, address }) {
        await enforceIpLimit(asked, address)
        // The response and its time are the same whether the address has a user or not.
        behindAnswer(() => sendReset(deps, mailed, normalizeEmail(email)))
        return accepted
      },
    }),
    openRoute({
      route: 'POST /api/v1/auth/reset/:token',
      limit: tried,
      summary: 'Set a new password with the token from the email',
      description:
        'Ends every session of the user, confirms the email address and ends a sign-in lockout. With `revoke_keys` all API keys of the user are revoked too; those of an unconfirmed address always are.',
      body: choosingSchema,
      answer: null,
      errors: ['ip_rate_limited', 'not_found'],
      handle: call => choose(deps, call),
    }),
  ])
}

/** Sends the email if the address has a user and its mailbox limit is not reached. */
async function sendReset(deps: ConsoleDeps, mailed: RateLimiter, email: string): Promise<void> {
  if ((await mailed.take(email)) > 0) return
  const token = newToken('gw_reset_', deps.randomBytes)
  if (await createReset(deps.database, email, getDigest(token))) deps.post?.passwordReset(email, token)
}

async function choose(deps: ConsoleDeps, { body, params, address }: OpenRequest<typeof choosingSchema>) {
  const password = validateNewPassword(body.password, 'password')
  const digest = getDigest(params.token ?? '')
  const { database } = deps
  if (!(await isResetOpen(database, digest))) throw notFound()
  const used = await useReset(database, {
    digest,
    passwordHash: await deps.passwords.hash(password, address),
    revokesKeys: body.revoke_keys ?? false,
    address,
    addressDigests: email => deps.addressDigests(email, address),
  })
  if (!used) throw notFound()
  deps.announce()
  return null
}

function noMail(): GatewayError {
  return new GatewayError('not_found', 'Email is not configured. Ask the operator to reset the password.')
}
