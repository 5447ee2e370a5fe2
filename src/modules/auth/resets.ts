/** A forgotten password: asked for by anybody, chosen by whoever reads the mailbox. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { GatewayError } from '../../core/errors.ts'
import type { Limit } from '../../core/limits.ts'
import { chosenPassword, emailSchema, mailbox, passwordSchema } from '../../core/passwords.ts'
import { digestOf } from '../../core/secrets.ts'
import { checker } from '../../core/validate.ts'
import { documented } from '../../http/documented.ts'
import { policies } from '../../http/policies.ts'
import { heldOpen, notFound, readInput, reply, replyNothing } from '../../http/session-routes.ts'
import type { SessionDeps } from '../../http/sign-in.ts'
import { refuseHaste } from '../../http/too-hasty.ts'
import { resetAskedShape } from './shapes.ts'

const strict = { additionalProperties: false } as const
const askingSchema = Type.Object({ email: emailSchema }, strict)
const choosingSchema = Type.Object({ password: passwordSchema }, strict)
const checkAsking = checker(askingSchema)
const checkChoosing = checker(choosingSchema)

const hourMs = 3_600_000
const limits = {
  asked: { allowed: 20, windowMs: hourMs },
  /** Of one mailbox, whoever asks: nobody's is to be filled by us. */
  mailed: { allowed: 3, windowMs: hourMs },
  tried: { allowed: 60, windowMs: 60_000 },
}
/** Askings under way; one too many is forgotten, as if its letter had been lost. */
const maximumAtOnce = 100
const tokenPrefix = 'gw_reset_'

/** The routes under `/api/v1/auth/reset`. */
export function resets(deps: SessionDeps) {
  const asked = deps.limits('reset', limits.asked)
  const mailed = deps.limits('reset-mail', limits.mailed)
  const tried = deps.limits('reset-token', limits.tried)
  let atOnce = 0

  /** Behind the answer, which is the same, and as quick, whoever the address belongs to. */
  const write = (email: string) => {
    if (atOnce >= maximumAtOnce) return
    atOnce++
    sendReset(deps, mailed, email)
      .catch(() => deps.log.warn('password_reset_not_sent'))
      .finally(() => {
        atOnce--
      })
  }

  return new Elysia({ name: 'resets' })
    .post(
      '/api/v1/auth/reset',
      async ({ request, server }) => {
        if (deps.post === null) throw noMail()
        const address = deps.addressOf(request, server)
        return heldOpen(deps, { request, address }, async () => {
          const { email } = await readInput(request, checkAsking)
          await refuseHaste(asked, address)
          write(mailbox(email))
          return reply({ accepted: true }, 202)
        })
      },
      {
        parse: 'none',
        ...documented(policies.open, {
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
        await refuseHaste(tried, address)
        return heldOpen(deps, { request, address }, () => choose(deps, request, params.token))
      },
      {
        parse: 'none',
        ...documented(policies.open, {
          summary: 'Choose a new password with the token that was mailed',
          description: 'It ends every session of the user.',
          body: choosingSchema,
          examples: { 'a new password': { password: 'correct horse battery staple' } },
          answer: null,
          errors: ['ip_rate_limited', 'not_found'],
        }),
      },
    )
}

/** Where the mailbox has not had its fill, and somebody's it is. */
async function sendReset(deps: SessionDeps, mailed: Limit, email: string): Promise<void> {
  if ((await mailed.take(email)) > 0) return
  const token = tokenPrefix + Buffer.from(deps.randomBytes(32)).toString('base64url')
  if (await deps.stores.resets.askReset(deps.database, email, digestOf(token))) deps.post?.passwordReset(email, token)
}

async function choose(deps: SessionDeps, request: Request, token: string): Promise<Response> {
  const body = await readInput(request, checkChoosing)
  const password = chosenPassword(body.password, 'password')
  const digest = digestOf(token)
  const { database, stores } = deps
  if (!(await stores.resets.isResetOpen(database, digest))) throw notFound()
  if (!(await stores.resets.useReset(database, digest, await deps.passwords.hash(password)))) throw notFound()
  deps.announce()
  return replyNothing()
}

function noMail(): GatewayError {
  return new GatewayError('not_found', 'This gateway sends no mail. Ask its operator for a new password.')
}
