/**
 * Registration and confirmation of email addresses. If mail is configured, a new user is unverified: it can only read and
 * cannot sign in again, and a later registration or reset of the address replaces it.
 */

import { Type } from '@sinclair/typebox'
import { getDigest, newToken } from '../../core/accounts/api-keys.ts'
import {
  emailSchema,
  normalizeEmail,
  normalizePassword,
  passwordSchema,
  validateNewPassword,
} from '../../core/accounts/passwords.ts'
import { getDomain, isDomainOpen } from '../../core/accounts/single-sign-on.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError, shellCommand } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { createBehindAnswer, enforceIpLimit } from '../../http/rate-limits.ts'
import { nameSchema, sessionShape } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  emptyBody,
  notFound,
  type OpenRequest,
  openRoute,
  openRoutes,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { accepted, type RegistrationRules, registrationRulesShape, resetAskedShape } from './schemas.ts'
import { invalidCredentials, signInProven } from './sign-in.ts'
import { askVerification, findVerification, releaseUnverified, useVerification } from './stores/email-links.ts'
import { registerAccount } from './stores/users.ts'

const registrationSchema = strictObject({
  email: emailSchema,
  password: passwordSchema,
  name: Type.Optional(nameSchema),
})
const verificationSchema = strictObject({ password: passwordSchema })

const hourMs = 3_600_000
const limits = {
  /** Sign-up reveals whether an email address is known, so its limit is low. */
  registrations: { allowed: 5, windowMs: hourMs },
  requests: { allowed: 300, windowMs: 60_000 },
  /** Limit per mailbox. */
  mailed: { allowed: 3, windowMs: hourMs },
  tried: { allowed: 60, windowMs: 60_000 },
}
const maximumMailsAtOnce = 100

type Confirm = (user: { readonly id: string; readonly email: string }) => void

/** Routes of registration and confirmation under `/api/v1/auth`. */
export function registration(deps: ConsoleDeps, identify: Authenticate) {
  const registrations = deps.limits('register', limits.registrations)
  const requests = deps.limits('auth', limits.requests)
  const mailed = deps.limits('verify-mail', limits.mailed)
  const tried = deps.limits('verify-token', limits.tried)
  const behindAnswer = createBehindAnswer(maximumMailsAtOnce, () => deps.log.warn('email_verification_failed'))
  const confirm: Confirm = user =>
    behindAnswer(async () => {
      if ((await mailed.take(user.email)) === 0) await sendVerification(deps, user)
    })

  return openRoutes('registration', deps, [
    openRoute({
      route: 'GET /api/v1/auth/registration',
      summary: 'Get the ways to register and sign in',
      answer: registrationRulesShape,
      async handle() {
        const { mode, domains } = deps.config.registration
        const { singleSignOn } = deps.config
        const rules: RegistrationRules = {
          mode,
          domains: domains === null ? null : [...domains],
          verifies_email: deps.post !== null,
          password_sign_in: singleSignOn?.isOnly !== true,
          single_sign_on: singleSignOn?.label ?? null,
          operator_command: shellCommand('').trimEnd(),
        }
        return rules
      },
    }),
    openRoute({
      route: 'POST /api/v1/auth/register',
      limit: requests,
      summary: 'Create an account',
      description:
        'Signs in immediately. The first user is its owner, on the plan `evaluation`. If email is configured, the user can only read until the address is confirmed by the link in the email; an address that is not confirmed can be registered again.',
      body: registrationSchema,
      answer: sessionShape,
      status: 201,
      errors: ['invalid_credentials', 'conflict', 'ip_rate_limited'],
      refuse() {
        if (deps.config.registration.mode !== 'open') throw closed()
      },
      handle: call => register(deps, call, { count: () => enforceIpLimit(registrations, call.address), confirm }),
    }),
    openRoute({
      route: 'POST /api/v1/auth/verify/:token',
      limit: tried,
      summary: 'Confirm an email address',
      description:
        'Takes the token from the email and the password of the registration, and signs in. The token is valid for one day and for one confirmation.',
      body: verificationSchema,
      answer: sessionShape,
      errors: ['invalid_credentials', 'not_found', 'ip_rate_limited'],
      handle: call => verify(deps, call),
    }),
  ]).use(
    sessionRoutes('verification', identify, [
      sessionRoute({
        route: 'POST /api/v1/auth/verification',
        action: 'sessions.own',
        summary: 'Send the confirmation email again',
        description: 'At most three per hour; the response does not change beyond that.',
        ...emptyBody,
        answer: resetAskedShape,
        status: 202,
        errors: ['conflict'],
        async handle({ principal }) {
          if (!principal.isUnverified) throw new GatewayError('conflict', 'This email address needs no confirmation.')
          confirm({ id: principal.userId, email: principal.email })
          return accepted
        },
      }),
    ]),
  )
}

async function register(
  deps: ConsoleDeps,
  { request, body, address }: OpenRequest<typeof registrationSchema>,
  { count, confirm }: { readonly count: () => Promise<void>; readonly confirm: Confirm },
) {
  const email = normalizeEmail(body.email)
  const password = validateNewPassword(body.password, 'password')
  // Addresses of the identity provider's domains belong to its users.
  const isManaged = deps.config.singleSignOn?.domains?.includes(getDomain(email)) === true
  if (isManaged || !isDomainOpen(deps.config.registration, email)) throw domainClosed()
  await count()
  const passwordHash = await deps.passwords.hash(password, address)
  const { database } = deps
  const [accountId, userId, createdAt] = [deps.newId('acc'), deps.newId('usr'), new Date(deps.clock.now())]
  await releaseUnverified(database, email)
  const registered = await registerAccount(
    actingAs(database, { kind: 'user', userId, address }),
    { id: accountId, name: body.name ?? email, plan: 'evaluation', createdAt },
    {
      id: userId,
      accountId,
      email,
      passwordHash,
      role: 'owner',
      createdAt,
      unverifiedSince: deps.post === null ? null : createdAt,
      emailProven: false,
    },
  )
  if (!registered) throw new GatewayError('conflict', 'This email address cannot be registered. Sign in instead.')
  const user = { id: userId, accountId, passwordHash, email }
  const answer = await signInProven(deps, request, user, { address, refusal: invalidCredentials })
  if (deps.post !== null) confirm(user)
  return answer
}

/**
 * The token only proves access to the mailbox and not who registered. Without the password, the mailbox's owner could
 * confirm another person's account.
 */
async function verify(deps: ConsoleDeps, call: OpenRequest<typeof verificationSchema>) {
  const { request, body, params, address } = call
  const { database } = deps
  const digest = getDigest(params.token ?? '')
  const found = await findVerification(database, digest)
  if (found === null) throw notFound()
  const verdict = await deps.passwords.verify(normalizePassword(body.password), found.passwordHash, address)
  if (verdict === 'wrong') throw invalidCredentials()
  const acting = actingAs(database, { kind: 'user', userId: found.userId, address })
  if (!(await useVerification(acting, digest))) throw notFound()
  return signInProven(deps, request, { ...found, id: found.userId }, { address, refusal: notFound })
}

async function sendVerification(deps: ConsoleDeps, user: { readonly id: string; readonly email: string }) {
  const token = newToken('gw_verify_', deps.randomBytes)
  if (await askVerification(deps.database, user.id, getDigest(token))) deps.post?.emailVerification(user.email, token)
}

function closed(): GatewayError {
  return new GatewayError(
    'forbidden',
    'Registration is closed. Ask an owner of an account to invite you, or the operator of this gateway for an account.',
    { shouldRetry: false },
  )
}

function domainClosed(): GatewayError {
  return new GatewayError('forbidden', 'Addresses of this domain cannot be registered. Use another address.', {
    param: 'email',
    shouldRetry: false,
  })
}
