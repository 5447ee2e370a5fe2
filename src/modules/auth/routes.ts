/** Coming in and going out: register, sign in, refresh, sign out, sessions, password. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { GatewayError } from '../../core/errors.ts'
import { chosenPassword, emailSchema, mailbox, offeredPassword, passwordSchema } from '../../core/passwords.ts'
import { digestOf } from '../../core/secrets.ts'
import { checker } from '../../core/validate.ts'
import { invalidToken, isRefreshToken } from '../../http/callers.ts'
import { type Documented, documented } from '../../http/documented.ts'
import { nameSchema } from '../../http/fields.ts'
import { policies } from '../../http/policies.ts'
import {
  type Call,
  heldOpen,
  type Identify,
  notFound,
  readInput,
  reply,
  replyNothing,
  sessionRoutes,
} from '../../http/session-routes.ts'
import { sessionShape } from '../../http/shapes.ts'
import { type SessionDeps, sessionReply, signIn } from '../../http/sign-in.ts'
import { refuseHaste } from '../../http/too-hasty.ts'
import type { Session } from '../../stores/tables.ts'
import { resets } from './resets.ts'
import { ownSessionsShape, type ShownSession } from './shapes.ts'

const strict = { additionalProperties: false } as const
const registrationSchema = Type.Object(
  { email: emailSchema, password: passwordSchema, name: Type.Optional(nameSchema) },
  strict,
)
const signInSchema = Type.Object({ email: emailSchema, password: passwordSchema }, strict)
const refreshSchema = Type.Object({ refresh_token: Type.String({ minLength: 1, maxLength: 256 }) }, strict)
const passwordChangeSchema = Type.Object({ current_password: passwordSchema, new_password: passwordSchema }, strict)
const nothingSchema = Type.Object({}, strict)
const checkRegistration = checker(registrationSchema)
const checkSignIn = checker(signInSchema)
const checkRefresh = checker(refreshSchema)
const checkPassword = checker(passwordChangeSchema)
const checkNothing = checker(nothingSchema)

const hourMs = 3_600_000
/** Sign-up tells whether an address is known, so it is rare. Guessing passwords is for the locks to stop, not for this. */
const limits = {
  registrations: { allowed: 5, windowMs: hourMs },
  requests: { allowed: 300, windowMs: 60_000 },
}

/** The routes under `/api/v1/auth`. */
export function auth(deps: SessionDeps, identify: Identify) {
  const registrations = deps.limits('register', limits.registrations)
  const requests = deps.limits('auth', limits.requests)
  const open = (told: Documented) => ({ parse: 'none', ...documented(policies.open, told) }) as const

  return new Elysia({ name: 'auth' })
    .post(
      '/api/v1/auth/register',
      async ({ request, server }) => {
        const address = deps.addressOf(request, server)
        await refuseHaste(requests, address)
        return heldOpen(deps, { request, address }, () =>
          register(deps, request, () => refuseHaste(registrations, address)),
        )
      },
      open({
        summary: 'Make an account',
        description: 'Signs in at once. The first user is its owner, on the plan `evaluation`.',
        body: registrationSchema,
        examples: {
          'a new account': { email: 'ada@example.com', password: 'correct horse battery', name: 'Analytical Engines' },
        },
        answer: sessionShape,
        status: 201,
        errors: ['invalid_credentials', 'conflict', 'ip_rate_limited'],
      }),
    )
    .post(
      '/api/v1/auth/login',
      async ({ request, server }) => {
        const address = deps.addressOf(request, server)
        await refuseHaste(requests, address)
        return heldOpen(deps, { request, address }, () => logIn(deps, request, address))
      },
      open({
        summary: 'Sign in',
        body: signInSchema,
        examples: { 'with a password': { email: 'ada@example.com', password: 'correct horse battery' } },
        answer: sessionShape,
        errors: ['invalid_credentials', 'ip_rate_limited'],
      }),
    )
    .post(
      '/api/v1/auth/refresh',
      async ({ request, server }) => {
        const address = deps.addressOf(request, server)
        await refuseHaste(requests, address)
        return heldOpen(deps, { request, address }, () => refresh(deps, request))
      },
      open({
        summary: 'Renew a session',
        description: 'Every refresh token is good for one renewal; one that is used again ends its session.',
        body: refreshSchema,
        examples: { 'the last refresh token': { refresh_token: 'gw_refresh_…' } },
        answer: sessionShape,
        errors: ['invalid_token', 'ip_rate_limited'],
      }),
    )
    .use(resets(deps))
    .use(
      sessionRoutes('sessions', identify, [
        {
          method: 'POST',
          path: '/api/v1/auth/logout',
          action: 'sessions.own',
          summary: 'Sign out',
          body: nothingSchema,
          bodyRequired: false,
          examples: { nothing: {} },
          answer: null,
          errors: ['not_found'],
          async handle({ principal, request }) {
            await readInput(request, checkNothing)
            return endSession(deps, principal, principal.sessionId)
          },
        },
        {
          method: 'GET',
          path: '/api/v1/auth/sessions',
          action: 'sessions.own',
          summary: 'Own sessions',
          answer: ownSessionsShape,
          async handle({ principal: { accountId, userId, sessionId } }) {
            const entries = await deps.stores.sessions.listSessions(deps.database, accountId, userId)
            return reply({ data: entries.map(entry => shownSession(entry, sessionId)) })
          },
        },
        {
          method: 'DELETE',
          path: '/api/v1/auth/sessions/:id',
          action: 'sessions.own',
          summary: 'End one of the own sessions',
          answer: null,
          handle: ({ principal, params }) => endSession(deps, principal, params.id ?? ''),
        },
        {
          method: 'PUT',
          path: '/api/v1/auth/password',
          action: 'sessions.own',
          summary: 'Change the password',
          description: 'Ends all other sessions.',
          body: passwordChangeSchema,
          examples: {
            'a better one': { current_password: 'correct horse battery', new_password: 'correct horse battery staple' },
          },
          answer: null,
          errors: ['invalid_credentials', 'conflict'],
          handle: call => changePassword(deps, call),
        },
      ]),
    )
}

async function register(deps: SessionDeps, request: Request, count: () => Promise<void>): Promise<Response> {
  const body = await readInput(request, checkRegistration)
  const email = mailbox(body.email)
  const password = chosenPassword(body.password, 'password')
  await count()
  const passwordHash = await deps.passwords.hash(password)
  const [accountId, userId, createdAt] = [deps.newId('acc'), deps.newId('usr'), new Date(deps.clock.now())]
  const registered = await deps.stores.users.registerAccount(
    deps.database,
    { id: accountId, name: body.name ?? email, plan: 'evaluation', createdAt },
    { id: userId, accountId, email, passwordHash, role: 'owner', createdAt },
  )
  if (!registered) throw new GatewayError('conflict', 'This e-mail address cannot be registered. Sign in instead.')
  // What was tried on an address that nobody had is no reason to keep its owner out.
  const subject = deps.stores.sessions.mailSubject(email)
  await deps.stores.sessions.forgetFailures(deps.database, subject)
  const answer = await signIn(deps, request, { id: userId, accountId, passwordHash }, [subject], 201)
  if (answer === null) throw invalidCredentials()
  return answer
}

/** Every path through here hashes once: the time it takes tells an unknown address from a wrong password no more than the answer. */
async function logIn(deps: SessionDeps, request: Request, address: string): Promise<Response> {
  const body = await readInput(request, checkSignIn)
  const email = mailbox(body.email)
  const password = offeredPassword(body.password)
  const { stores, database } = deps
  const subjects = [stores.sessions.mailSubject(email), stores.sessions.addressSubject(address)]
  const [found, isLocked] = await Promise.all([
    stores.accounts.findAccountByEmail(database, email),
    stores.sessions.isAnyLocked(database, subjects),
  ])
  const user = found === null || found.user.removedAt !== null ? null : found.user
  const verdict = await deps.passwords.verify(password, user?.passwordHash ?? null)
  // Before the right password is told from a wrong one: a lock would else be a place to try passwords at leisure.
  if (isLocked) throw invalidCredentials()
  if (user !== null && verdict !== 'wrong') {
    const passwordHash = verdict === 'outdated' ? await rehashed(deps, user, password) : user.passwordHash
    const answer = await signIn(deps, request, { ...user, passwordHash }, subjects)
    if (answer !== null) return answer
  } else {
    await countFailure(deps, subjects, user)
  }
  throw invalidCredentials()
}

async function rehashed(
  deps: SessionDeps,
  user: { readonly id: string; readonly accountId: string; readonly passwordHash: string },
  password: string,
): Promise<string> {
  const to = await deps.passwords.hash(password)
  await deps.stores.users.rehash(deps.database, user.accountId, user.id, { from: user.passwordHash, to })
  return to
}

async function countFailure(
  deps: SessionDeps,
  subjects: readonly string[],
  user: { readonly id: string; readonly email: string } | null,
): Promise<void> {
  const locked = await deps.stores.sessions.recordFailure(deps.database, subjects)
  if (locked.length === 0) return
  deps.sessions.forget()
  deps.log.warn('sign_in_locked', { user_id: user?.id ?? null, locks: locked.length })
  if (user !== null && locked.includes(deps.stores.sessions.mailSubject(user.email)))
    deps.post?.signInLocked(user.email)
}

async function refresh(deps: SessionDeps, request: Request): Promise<Response> {
  const { refresh_token: token } = await readInput(request, checkRefresh)
  if (!isRefreshToken(token)) throw invalidToken()
  const next = deps.tokens.nextRefreshToken(token)
  const rotation = await deps.stores.sessions.rotateToken(deps.database, digestOf(token), digestOf(next))
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

async function endSession(deps: SessionDeps, { accountId, userId }: Call['principal'], id: string): Promise<Response> {
  if (!(await deps.stores.sessions.endSession(deps.database, accountId, userId, id))) throw notFound()
  deps.announce()
  return replyNothing()
}

async function changePassword(deps: SessionDeps, { principal, request }: Call): Promise<Response> {
  const { accountId, userId, sessionId, email } = principal
  const body = await readInput(request, checkPassword)
  const password = chosenPassword(body.new_password, 'new_password')
  const user = await deps.stores.users.findUser(deps.database, accountId, userId)
  if (user === null) throw invalidToken()
  if ((await deps.passwords.verify(offeredPassword(body.current_password), user.passwordHash)) === 'wrong') {
    // A session left open on a table must not be a place to guess the password either.
    await countFailure(deps, [deps.stores.sessions.mailSubject(email)], { id: userId, email })
    throw invalidCredentials()
  }
  const changed = await deps.stores.users.changePassword(deps.database, accountId, userId, {
    checkedHash: user.passwordHash,
    newHash: await deps.passwords.hash(password),
    keptSession: sessionId,
  })
  if (!changed) throw new GatewayError('conflict', 'The password was changed meanwhile. Sign in with the new one.')
  deps.announce()
  return replyNothing()
}

function shownSession(entry: Session, current: string): ShownSession {
  return {
    id: entry.id,
    user_agent: entry.userAgent,
    created_at: entry.createdAt.toISOString(),
    last_used_at: entry.lastUsedAt.toISOString(),
    expires_at: entry.expiresAt.toISOString(),
    current: entry.id === current,
  }
}

/** One answer for every sign-in that failed, whatever was wrong. */
function invalidCredentials(): GatewayError {
  return new GatewayError(
    'invalid_credentials',
    'The e-mail address or the password is not right, or there were too many tries. Check both, or wait a while.',
    { shouldRetry: false },
  )
}
