/**
 * Registration and confirmation of email addresses. If mail is configured, a new user is unverified: it can only read and
 * cannot sign in again, and a later registration or reset of the address replaces it.
 */
import { Type } from '@sinclair/typebox'
import { getDigest } from '../../core/accounts/api-keys.ts'
import {
  emailSchema,
  normalizeEmail,
  normalizePassword,
  type Passwords,
  passwordSchema,
  validateNewPassword,
} from '../../core/accounts/passwords.ts'
import {
  getDomain,
  isDomainOpen,
  type RegistrationConfig,
  type SingleSignOnConfig,
} from '../../core/accounts/single-sign-on.ts'
import { actingAs } from '../../core/audit/audit.ts'
import type { Clock, Log } from '../../core/ports.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { createBehindAnswer, enforceIpLimit } from '../../http/rate-limits.ts'
import { nameSchema, sessionShape } from '../../http/schemas.ts'
import {
  type Authenticate,
  emptyBody,
  notFound,
  type OpenRequest,
  type OpenRouteDeps,
  openRoutes,
  readInput,
  reply,
  sessionRoutes,
} from '../../http/session-routes.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { type RegistrationRules, registrationRulesShape, resetAskedShape } from './schemas.ts'
import { invalidCredentials, type SignInDeps, signIn } from './sign-in.ts'
import { askVerification, findVerification, releaseUnverified, useVerification } from './stores/email-links.ts'
import { forgetFailures, mailSubject } from './stores/sessions.ts'
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
const tokenPrefix = 'gw_verify_'

export type RegistrationDeps = SignInDeps &
  OpenRouteDeps & {
    readonly config: {
      readonly registration: RegistrationConfig
      readonly singleSignOn: Pick<SingleSignOnConfig, 'isOnly' | 'label' | 'domains'> | null
    }
    readonly passwords: Passwords
    readonly clock: Pick<Clock, 'now'>
    readonly log: Pick<Log, 'warn'>
    /** Null = no mail server is configured. */
    readonly post: Pick<Mailer, 'emailVerification'> | null
  }

type Confirm = (user: { readonly id: string; readonly email: string }) => void

/** Routes of registration and confirmation under `/api/v1/auth`. */
export function registration(deps: RegistrationDeps, identify: Authenticate) {
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
    {
      method: 'GET',
      path: '/api/v1/auth/registration',
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
        }
        return reply(rules)
      },
    },
    {
      method: 'POST',
      path: '/api/v1/auth/register',
      limit: requests,
      summary: 'Create an account',
      description:
        'Signs in immediately. The first user is its owner, on the plan `evaluation`. If email is configured, the user can only read until the address is confirmed by the link in the email; an address that is not confirmed can be registered again.',
      body: registrationSchema,
      examples: {
        'a new account': {
          email: 'ada@example.com',
          password: 'correct horse battery',
          name: 'Analytical Engines',
        },
      },
      answer: sessionShape,
      status: 201,
      errors: ['invalid_credentials', 'conflict', 'ip_rate_limited'],
      handle: call => register(deps, call, { count: () => enforceIpLimit(registrations, call.address), confirm }),
    },
    {
      method: 'POST',
      path: '/api/v1/auth/verify/:token',
      limit: tried,
      summary: 'Confirm an email address',
      description:
        'Takes the token from the email and the password of the registration, and signs in. The token is valid for one day and for one confirmation.',
      body: verificationSchema,
      examples: { 'password of the registration': { password: 'correct horse battery' } },
      answer: sessionShape,
      errors: ['invalid_credentials', 'not_found', 'ip_rate_limited'],
      handle: call => verify(deps, call),
    },
  ]).use(
    sessionRoutes('verification', identify, [
      {
        method: 'POST',
        path: '/api/v1/auth/verification',
        action: 'sessions.own',
        summary: 'Send the confirmation email again',
        description: 'At most three per hour; the response does not change beyond that.',
        body: emptyBody,
        bodyRequired: false,
        examples: { nothing: {} },
        answer: resetAskedShape,
        status: 202,
        errors: ['conflict'],
        async handle({ principal, request }) {
          await readInput(request, emptyBody)
          if (!principal.isUnverified) throw new GatewayError('conflict', 'This email address needs no confirmation.')
          confirm({ id: principal.userId, email: principal.email })
          return reply({ accepted: true }, 202)
        },
      },
    ]),
  )
}

async function register(
  deps: RegistrationDeps,
  { request, address }: OpenRequest,
  { count, confirm }: { readonly count: () => Promise<void>; readonly confirm: Confirm },
): Promise<Response> {
  if (deps.config.registration.mode !== 'open') throw closed()
  const body = await readInput(request, registrationSchema)
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
  // Attempts on an address without a user must not lock out its later owner.
  const subject = mailSubject(email)
  await forgetFailures(database, subject)
  const user = { id: userId, accountId, passwordHash, email }
  const answer = await signIn(deps, request, user, { subjects: [subject], address, status: 201 })
  if (answer === null) throw invalidCredentials()
  if (deps.post !== null) confirm(user)
  return answer
}

/**
 * The token only proves access to the mailbox and not who registered. Without the password, the mailbox's owner could
 * confirm another person's account.
 */
async function verify(deps: RegistrationDeps, { request, params, address }: OpenRequest): Promise<Response> {
  const body = await readInput(request, verificationSchema)
  const { database } = deps
  const digest = getDigest(params.token ?? '')
  const found = await findVerification(database, digest)
  if (found === null) throw notFound()
  const verdict = await deps.passwords.verify(normalizePassword(body.password), found.passwordHash, address)
  if (verdict === 'wrong') throw invalidCredentials()
  const acting = actingAs(database, { kind: 'user', userId: found.userId, address })
  if (!(await useVerification(acting, digest))) throw notFound()
  const subject = mailSubject(found.email)
  await forgetFailures(database, subject)
  const user = { ...found, id: found.userId }
  const answer = await signIn(deps, request, user, { subjects: [subject], address })
  if (answer === null) throw notFound()
  return answer
}

async function sendVerification(deps: RegistrationDeps, user: { readonly id: string; readonly email: string }) {
  const token = tokenPrefix + Buffer.from(deps.randomBytes(32)).toString('base64url')
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
