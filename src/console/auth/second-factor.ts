/** The second step of a sign-in with a password: a code of the authenticator app, or a recovery code. */

import type { Actor } from '../../core/audit/audit.ts'
import type { Clock } from '../../core/ports/clock.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { User } from '../../database/tables.ts'
import type { TextSeal } from '../../http/text-seal.ts'
import { countFailure, type FailureDeps } from './own-password.ts'
import { forgetFailures, isAnyLocked, twoFactorSubject } from './stores/sessions.ts'
import type { TotpState } from './stores/totp.ts'
import { findTotp as findTotpInStore, useRecoveryCode, useTotpStep } from './stores/totp.ts'
import { matchingStep, readTotpCode, recoveryDigest } from './totp-code.ts'

export type SecondFactorDeps = FailureDeps & {
  readonly clock: Pick<Clock, 'now'>
  readonly totpSeal: TextSeal
}

type CodeHolder = Pick<User, 'id' | 'accountId' | 'email'>

/**
 * Passes if the user has no two-factor sign-in or the code is right, and uses the code up. Throws `two_factor_required`
 * without a code, and `invalid_credentials` for a wrong one.
 */
export async function checkSecondFactor(
  deps: SecondFactorDeps,
  user: CodeHolder,
  code: string | undefined,
  actor: Actor,
): Promise<void> {
  const { database } = deps
  const state = await findTotpInStore(database, user.id)
  if (state === null || !state.isConfirmed) return
  if (code === undefined)
    throw new GatewayError(
      'two_factor_required',
      'Two-factor sign-in is enabled. Send the code of your authenticator app, or a recovery code, as `code`.',
      { param: 'code', shouldRetry: false },
    )
  // A known network address is exempt from lockouts of the password, but not from this one.
  const subjects = [twoFactorSubject(user.id)]
  const isLocked = await isAnyLocked(database, subjects)
  if (!isLocked && (await isCodeUsed(deps, user.id, state, code))) {
    await forgetFailures(database, subjects[0] ?? '')
    return
  }
  if (!isLocked) await countFailure(deps, subjects, user, actor)
  throw wrongCode()
}

/** Returns true if the code is right and was not used before; it is used up then. */
async function isCodeUsed(deps: SecondFactorDeps, userId: string, state: TotpState, text: string): Promise<boolean> {
  const { database, clock, totpSeal } = deps
  const digest = recoveryDigest(text)
  if (digest !== null) return useRecoveryCode(database, userId, digest)
  const [code, secret] = [readTotpCode(text), totpSeal.open(userId, state.secret)]
  if (secret === null) deps.log.warn('two_factor_secret_unreadable', { user_id: userId })
  if (code === null || secret === null) return false
  const step = matchingStep(secret, code, clock.now())
  // Sealed again, so that it outlives the previous secret of the gateway.
  return step !== null && useTotpStep(database, userId, { step, secret: totpSeal.seal(userId, secret) })
}

/** Error for every wrong code. */
export function wrongCode(): GatewayError {
  return new GatewayError(
    'invalid_credentials',
    'The code is wrong, was used before, or there were too many attempts. Wait for the next code, or retry in 15 minutes.',
    { param: 'code', shouldRetry: false },
  )
}
