/** `POST /v1/responses/input_tokens`: estimates the input tokens of a request. No upstream is called, nothing is billed or logged. */

import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Catalog } from '../../core/models/models.ts'
import { parseJson } from '../../core/validation/validate.ts'
import { bodyLimits, checkContentType, receiveBody } from '../../http/body.ts'
import type { ChatRouteDeps } from '../../http/chat-handler.ts'
import type { TokenCountLimit } from '../../http/rate-limits.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { count, namedSchema } from '../../http/schemas.ts'
import { likelyInputTokens } from '../../text/tokens/tokens.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { readResponses, responsesSchema } from './request.ts'

type InputTokensDeps = Pick<ChatRouteDeps, 'getCaller' | 'bodies' | 'clock'> & {
  readonly catalog: Pick<Catalog, 'resolve'>
  readonly reasoningSeal: ReasoningSeal
  readonly limitTokenCounts: TokenCountLimit
}

/** Returns the route. */
export function inputTokens(deps: InputTokensDeps) {
  return new Elysia({ name: 'input-tokens' }).post(
    '/v1/responses/input_tokens',
    ({ request }) => counted(deps, request),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Input tokens of a response',
        description: 'An estimate by the gateway, for any model. Free, with a rate limit per account.',
        body: responsesSchema,
        examples: { 'a text': { model: 'gateway-ai', input: 'How many tokens are these?' } },
        answer: namedSchema('InputTokens', { object: Type.Literal('response.input_tokens'), input_tokens: count }),
        answerHeaders: [],
        errors: ['unsupported_parameter', 'requests_per_minute_exceeded', 'previous_response_not_found', 'not_found'],
      }),
    },
  )
}

async function counted(
  { getCaller, catalog, reasoningSeal: seal, limitTokenCounts, bodies, clock }: InputTokensDeps,
  request: Request,
): Promise<Response> {
  const asking = getCaller(request)
  // If the body budget has no room, the gateway rejects the body before it authenticates the request.
  const known = asking instanceof Promise ? null : asking
  if (asking instanceof Promise) asking.catch(() => {})
  const hold = bodies.open(known?.accountId ?? null)
  try {
    const receive = receiveBody(request, bodyLimits.chat, { hold, clock })
    const { accountId } = await asking
    if (known === null) hold.assign(accountId)
    await limitTokenCounts(accountId)
    checkContentType(request.headers)
    const text = await receive()
    const { request: question } = readResponses(
      parseJson(text),
      { headers: request.headers, text },
      { seal, accountId },
    )
    const provider = (question.model === null ? null : catalog.resolve(question.model))?.provider ?? ''
    const body = { object: 'response.input_tokens', input_tokens: likelyInputTokens(question, provider) }
    return Response.json(body, { headers: { 'cache-control': 'no-store' } })
  } finally {
    hold.release()
  }
}
