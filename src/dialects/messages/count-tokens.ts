import type { ChatRequest, SourceBody } from '../../core/chat/chat.ts'
import { autoModel, type Catalog, type Model } from '../../core/models/models.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { parseJson } from '../../core/validation/validate.ts'
import { bodyLimits, checkContentType, readBody, whileHeld } from '../../http/body.ts'
import type { ChatRouteDeps } from '../../http/chat-handler.ts'
import type { TokenCountLimit } from '../../http/rate-limits.ts'
import { likelyInputTokens } from '../../text/tokens/tokens.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { readCount } from './request.ts'

export type CountTokensDeps = Pick<ChatRouteDeps, 'callerOf' | 'newRequestId'> & {
  readonly bodies: ChatRouteDeps['bodies']
  readonly reasoningSeal: ReasoningSeal
  readonly limitTokenCounts: TokenCountLimit
  readonly catalogue: Pick<Catalog, 'resolve'>
  /** Returns the count of the model's provider; null = the provider returned none. */
  readonly countInput: (model: Model, source: SourceBody) => Promise<number | null>
}

/** Without a model, the estimate is for Claude. */
const usualProvider = 'anthropic'

/** Returns the handler of `count_tokens`. Nothing is billed, moderated or logged. */
export function createTokenCounter(deps: CountTokensDeps): (request: Request) => Promise<Response> {
  return async request => {
    const requestId = deps.newRequestId()
    const { accountId } = await deps.callerOf(request)
    await deps.limitTokenCounts(accountId)
    checkContentType(request.headers)
    return whileHeld({ budget: deps.bodies, owner: accountId }, request, bodyLimits.chat, async () => {
      const text = await readBody(request, bodyLimits.chat)
      const { model: name, ...asked } = readCount(
        parseJson(text),
        { headers: request.headers, text, accountId },
        deps.reasoningSeal,
      )
      const model = modelOf(deps, name)
      const counted = model === null ? null : await deps.countInput(model, asked.source)
      const tokens = counted ?? likelyInputTokens(asked, model?.provider ?? usualProvider)
      return replied(tokens, requestId, counted === null)
    })
  }
}

function modelOf({ catalogue }: CountTokensDeps, name: ChatRequest['model']): Model | null {
  if (name === null || name.toLowerCase() === autoModel) return null
  const model = catalogue.resolve(name)
  if (model !== null) return model
  throw new GatewayError('model_not_found', 'Unknown model. List models with GET /v1/models.', {
    param: 'model',
  })
}

function replied(tokens: number, requestId: string, isEstimated: boolean): Response {
  const headers = new Headers({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'request-id': requestId,
  })
  if (isEstimated) headers.set('x-gateway-estimated', 'true')
  return new Response(JSON.stringify({ input_tokens: tokens }), { headers })
}
