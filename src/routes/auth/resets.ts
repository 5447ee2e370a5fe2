/** A forgotten password: asked for by anybody, chosen by whoever reads the mailbox. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { digestOf, type RandomBytes } from '../../core/accounts/api-keys.ts'
import { emailSchema, normalizeEmail, passwordSchema, validateNewPassword } from '../../core/accounts/passwords.ts'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import type { Log } from '../../core/ports/log.ts'
import type { Passwords } from '../../core/ports/passwords.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { checker } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { Stores } from '../../database/repositories/stores.ts'
import { createBehindAnswer } from '../../http/behind-answer.ts'
import { enforceDryRunLimit } from '../../http/ip-rate-limit.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import { heldOpen, notFound, type OpenRouteDeps, readInput, reply, replyNoContent } from '../../http/session-routes.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { resetAskedShape } from './schemas.ts'

export type ResetDeps = OpenRouteDeps & {
  readonly database: Database
  readonly stores: Pick<Stores, 'resets'>
  readonly passwords: Pick<Passwords, 'hash'>
  readonly randomBytes: RandomBytes
  readonly addressDigests: (email: string, address: string) => readonly string[]
  readonly log: Pick<Log, 'warn'>
  /** Null = no mail is sent. */
  readonly post: Pick<Mailer, 'passwordReset'> | null
  readonly announce: () => void
}

const strict = { additionalProperties: false } as const
const askingSchema = Type.Object({ email: emailSchema }, strict)
const choosingSchema = Type.Object(
  {
    password: passwordSchema,
    revoke_keys: Type.Optional(Type.Boolean({ description: 'revoke every API key of the user too' })),
  },
  strict,
)
const checkAsking = checker(askingSchema)
const checkChoosing = checker(choosingSchema)

const hourMs = 3_600_000
const limits = {
  asked: { allowed: 20, windowMs: hourMs },
  /** Of one mailbox, whoever asks: nobody's is to be filled by us. */
  mailed: { allowed: 3, windowMs: hourMs },
  tried: { allowed: 60, windowMs: 60_000 },
}
const maximumAtOnce = 100
const tokenPrefix = 'gw_reset_'

/** The routes under `/api/v1/auth/reset`. */
export function resets(deps: ResetDeps) {
  const asked = deps.limits('reset', limits.asked)
  const mailed = deps.limits('reset-mail', limits.mailed)
  const tried = deps.limits('reset-token', limits.tried)
  const behindAnswer = createBehindAnswer(maximumAtOnce, () => deps.log.warn('password_reset_not_sent'))

  return new Elysia({ name: 'resets' })
    .post(
      '/api/v1/auth/reset',
      async ({ request, server }) => {
        if (deps.post === null) throw noMail()
        const address = deps.addressOf(request, server)
        return heldOpen(deps, { request, address }, async () => {
          const { email } = await readInput(request, checkAsking)
          await enforceDryRunLimit(asked, address)
          // The answer is the same, and as quick, whoever the address belongs to.
          behindAnswer(() => sendReset(deps, mailed, normalizeEmail(email)))
          return reply({ accepted: true }, 202)
        })
      },
      {
        parse: 'none',
        ...withRouteDocs(policies.open, {
          summary: 'Ask for a new password by e-mail',
          description: 'The same answer, whether anybody has the address or not. Only where the gateway sends mail.',
          body: askingSchema,
          examples: { 'a forgotten password': { email: 'ada@example.com' } },
          answer: resetAskedShape,
          status: 202,
          errors: ['ip_rate_limited', 'not_found'],
        }),
      },
    )
    .post(
      '/api/v1/auth/reset/:token',
      async ({ request, server, params }) => {
        const address = deps.addressOf(request, server)
        await enforceDryRunLimit(tried, address)
        return heldOpen(deps, { request, address }, () => choose(deps, request, params.token, address))
      },
      {
        parse: 'none',
        ...withRouteDocs(policies.open, {
          summary: 'Choose a new password with the token that was mailed',
          description:
            'It ends every session of the user, confirms the email address and lifts a lock. With `revoke_keys` all API keys of the user end too; those of an address that was never confirmed always do.',
          body: choosingSchema,
          examples: {
            'a new password, and no old keys': { password: 'correct horse battery staple', revoke_keys: true },
          },
          answer: null,
          errors: ['ip_rate_limited', 'not_found'],
        }),
      },
    )
}

/** Where the mailbox has not had its fill, and somebody's it is. */
async function sendReset(deps: ResetDeps, mailed: RateLimiter, email: string): Promise<void> {
  if ((await mailed.take(email)) > 0) return
  const token = tokenPrefix + Buffer.from(deps.randomBytes(32)).toString('base64url')
  if (await deps.stores.resets.createReset(deps.database, email, digestOf(token)))
    deps.post?.passwordReset(email, token)
}

async function choose(deps: ResetDeps, request: Request, token: string, address: string): Promise<Response> {
  const body = await readInput(request, checkChoosing)
  const password = validateNewPassword(body.password, 'password')
  const digest = digestOf(token)
  const { database, stores } = deps
  if (!(await stores.resets.isResetOpen(database, digest))) throw notFound()
  const used = await stores.resets.useReset(database, {
    digest,
    passwordHash: await deps.passwords.hash(password, address),
    revokesKeys: body.revoke_keys ?? false,
    addressDigests: email => deps.addressDigests(email, address),
  })
  if (!used) throw notFound()
  deps.announce()
  return replyNoContent()
}

function noMail(): GatewayError {
  return new GatewayError('not_found', 'This gateway sends no mail. Ask its operator for a new password.')
}
