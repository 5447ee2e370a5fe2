/** Two-factor sign-in of the signed-in user: set up with a secret, confirm with a first code, disable. */

import { Type } from '@sinclair/typebox'
import { passwordSchema } from '../../core/accounts/passwords.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { User } from '../../database/tables.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, forbidden, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import { countFailure, verifyOwnPassword } from './passwords.ts'
import { recoveryCodesShape, twoFactorSetupShape, twoFactorShape } from './schemas.ts'
import { forgetFailures, isAnyLocked, twoFactorSubject } from './stores/sessions.ts'
import {
  confirmTotp,
  findTotp,
  matchingStep,
  newRecoveryCodes,
  newTotpSecret,
  offerTotp,
  readTotpCode,
  recoveryDigest,
  removeTotp,
  type TotpState,
  totpUri,
  useRecoveryCode,
  useTotpStep,
} from './totp.ts'

/** A code of the authenticator app, or a recovery code. */
export const codeSchema = Type.String({
  minLength: 6,
  maxLength: 40,
  description: 'a code of 6 digits, or a recovery code',
})
const setupSchema = strictObject({ password: passwordSchema })
const confirmSchema = strictObject({ code: codeSchema })
const disableSchema = strictObject({ password: passwordSchema, code: codeSchema })

/** Routes under `/api/v1/auth/two-factor`. */
export function twoFactor(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('two-factor', identify, [
    sessionRoute({
      route: 'GET /api/v1/auth/two-factor',
      action: 'sessions.own',
      summary: 'Get the state of your two-factor sign-in',
      answer: twoFactorShape,
      async handle({ principal, database }) {
        const state = await findTotp(database, principal.userId)
        const isEnabled = state?.isConfirmed ?? false
        return {
          enabled: isEnabled,
          recovery_codes_left: isEnabled ? (state?.recoveryCodes ?? 0) : 0,
          setup_required: principal.mustSetUpTwoFactor,
        }
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/auth/two-factor',
      action: 'sessions.own',
      summary: 'Set up two-factor sign-in',
      description: 'Returns a secret for an authenticator app. It has no effect until its first code confirms it.',
      body: setupSchema,
      answer: twoFactorSetupShape,
      errors: ['invalid_credentials', 'conflict'],
      handle: call => setUp(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/auth/two-factor/confirm',
      action: 'sessions.own',
      summary: 'Enable two-factor sign-in with its first code',
      description: 'Returns ten recovery codes, which are shown once and work once each.',
      body: confirmSchema,
      answer: recoveryCodesShape,
      errors: ['invalid_credentials', 'conflict'],
      handle: call => confirm(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/auth/two-factor/disable',
      action: 'sessions.own',
      summary: 'Disable two-factor sign-in',
      body: disableSchema,
      answer: null,
      errors: ['invalid_credentials', 'conflict'],
      handle: call => disable(deps, call),
    }),
  ])
}

async function setUp(deps: ConsoleDeps, call: SessionRequest<typeof setupSchema>) {
  const { principal, body, database } = call
  // The address may belong to another person, who would be locked out.
  if (principal.isUnverified) throw forbidden()
  const { email } = await verifyOwnPassword(deps, call, body.password)
  const secret = newTotpSecret(deps.randomBytes)
  const sealed = deps.totpSeal.seal(principal.userId, secret)
  if (!(await offerTotp(database, principal, sealed)))
    throw new GatewayError('conflict', 'Two-factor sign-in is enabled already. Disable it first.')
  const uri = totpUri(secret, email)
  const { renderSVG } = await import('uqr')
  const svg = renderSVG(uri, { border: 2 })
  return { secret, uri, qr_code: `data:image/svg+xml,${encodeURIComponent(svg)}` }
}

async function confirm(deps: ConsoleDeps, { principal, body, database }: SessionRequest<typeof confirmSchema>) {
  const state = await findTotp(database, principal.userId)
  if (state === null || state.isConfirmed) throw notInSetup()
  const [digits, secret] = [readTotpCode(body.code), deps.totpSeal.open(principal.userId, state.secret)]
  const step = digits === null || secret === null ? null : matchingStep(secret, digits, deps.clock.now())
  // The user of this session knows the secret, so a wrong code is a typing error and guessing gains nothing.
  if (step === null) throw wrongCode()
  const codes = newRecoveryCodes(deps.randomBytes)
  const digests = codes.map(recoveryDigest)
  const confirmed = { secret: state.secret, step, digests }
  if (!(await confirmTotp(database, principal, confirmed))) throw notInSetup()
  deps.announce()
  return { recovery_codes: [...codes] }
}

async function disable(deps: ConsoleDeps, call: SessionRequest<typeof disableSchema>): Promise<null> {
  const { principal, body, database } = call
  const user = await verifyOwnPassword(deps, call, body.password)
  await checkSecondFactor(deps, database, user, body.code)
  if (!(await removeTotp(database, principal))) throw notInSetup()
  deps.announce()
  return null
}

function notInSetup(): GatewayError {
  return new GatewayError('conflict', 'The state of two-factor sign-in has changed. Read it again, then decide.')
}

/** The second step of a sign-in with a password: a code of the authenticator app, or a recovery code. */

type CodeHolder = Pick<User, 'id' | 'accountId' | 'email'>

/**
 * Passes if the user has no two-factor sign-in or the code is right, and uses the code up. Throws `two_factor_required`
 * without a code, and `invalid_credentials` for a wrong one.
 */
export async function checkSecondFactor(
  deps: ConsoleDeps,
  database: Database,
  user: CodeHolder,
  code: string | undefined,
): Promise<void> {
  const state = await findTotp(database, user.id)
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
  if (!isLocked && (await isCodeUsed(deps, database, { userId: user.id, state, text: code }))) {
    await forgetFailures(database, subjects[0] ?? '')
    return
  }
  if (!isLocked) await countFailure(deps, database, subjects, user)
  throw wrongCode()
}

/** Returns true if the code is right and was not used before; it is used up then. */
async function isCodeUsed(
  { clock, totpSeal, log }: ConsoleDeps,
  database: Database,
  { userId, state, text }: { readonly userId: string; readonly state: TotpState; readonly text: string },
): Promise<boolean> {
  const digest = recoveryDigest(text)
  if (digest !== null) return useRecoveryCode(database, userId, digest)
  const [code, secret] = [readTotpCode(text), totpSeal.open(userId, state.secret)]
  if (secret === null) log.warn('two_factor_secret_unreadable', { user_id: userId })
  if (code === null || secret === null) return false
  const step = matchingStep(secret, code, clock.now())
  // Sealed again, so that it outlives the previous secret of the gateway.
  return step !== null && useTotpStep(database, userId, { step, secret: totpSeal.seal(userId, secret) })
}

/** Error for every wrong code. */
function wrongCode(): GatewayError {
  return new GatewayError(
    'invalid_credentials',
    'The code is wrong, was used before, or there were too many attempts. Wait for the next code, or retry in 15 minutes.',
    { param: 'code', shouldRetry: false },
  )
}
