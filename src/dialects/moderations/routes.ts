import { Elysia } from 'elysia'
import type { Caller } from '../../core/limits/plans.ts'
import type { RateLimiterFactory } from '../../core/limits/rate-limits.ts'
import { checker, parseJson } from '../../core/validation/validate.ts'
import { enforceAccountLimit } from '../../http/account-rate-limit.ts'
import { bodyLimits, checkContentType, receiveBody, type Timer } from '../../http/body.ts'
import type { BodyBudget } from '../../http/body-budget.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import type { Moderation } from '../../moderation/moderation.ts'
import { toModerationResult } from './reply.ts'
import { type ModerationsBody, moderationsResponseSchema, moderationsSchema } from './schema.ts'

/** Moderation is free and does not count toward the account's limits, so it has its own rate limit. */
const limit = { perMinute: 120, burst: 60 }

type ModerationsRouteDeps = {
  readonly callerOf: (request: Request) => Caller | Promise<Caller>
  readonly safety: Pick<Moderation, 'screen' | 'secrets' | 'leaksIn'>
  readonly limits: RateLimiterFactory
  readonly bodies: BodyBudget
  readonly clock: Timer
  readonly newRequestId: () => string
}

/** `POST /v1/moderations`: the gateway's own moderation, in process. Nothing is billed, recorded or sent to a provider. */
export function moderations(deps: ModerationsRouteDeps) {
  const limiter = deps.limits('moderations', limit)

  return new Elysia({ name: 'moderations' }).post(
    '/v1/moderations',
    async ({ request }) => {
      const asking = deps.callerOf(request)
      const known = asking instanceof Promise ? null : asking
      if (asking instanceof Promise) asking.catch(() => {})
      const hold = deps.bodies.open(known?.accountId ?? null)
      try {
        // If the body budget has no room, the gateway rejects the body before it authenticates the request.
        const read = receiveBody(request, bodyLimits.chat, { hold, clock: deps.clock })
        const caller = await asking
        if (known === null) hold.assign(caller.accountId)
        await enforceAccountLimit(limiter, caller.accountId, { ...limit, what: 'moderations' })
        checkContentType(request.headers)
        const results = await moderate(deps.safety, textsOf(check(parseJson(await read()))))
        const id = deps.newRequestId().replace('req_', 'modr-')
        const body = { id, model: 'gateway-moderation', results }
        return Response.json(body, { headers: { 'cache-control': 'no-store' } })
      } finally {
        hold.release()
      }
    },
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Moderation of texts',
        description:
          "The gateway's own moderation in OpenAI's format: the in-process checks of a chat with this text as its prompt. Nothing " +
          'is billed, recorded or sent to a provider.',
        body: moderationsSchema,
        examples: {
          'one text': { input: 'How do I sharpen a kitchen knife?' },
          'several texts': { model: 'omni-moderation-latest', input: ['Good morning.', 'Good night.'] },
        },
        answer: moderationsResponseSchema,
        errors: ['unsupported_parameter', 'requests_per_minute_exceeded'],
      }),
    },
  )
}

const check = checker(moderationsSchema)

/** Returns the texts to moderate. The parts of one multimodal input are one text. */
function textsOf({ input }: ModerationsBody): readonly string[] {
  if (typeof input === 'string') return [input]
  const parts = input.flatMap(part => (typeof part === 'string' ? [] : [part.text]))
  return parts.length > 0 ? [parts.join('\n')] : input.filter(part => typeof part === 'string')
}

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

async function moderate({ screen, secrets, leaksIn }: ModerationsRouteDeps['safety'], texts: readonly string[]) {
  const results = []
  for (const text of texts) {
    if (results.length > 0) await nextTurn()
    results.push(toModerationResult(screen(text), secrets === 'block' && leaksIn(text).length > 0))
  }
  return results
}
