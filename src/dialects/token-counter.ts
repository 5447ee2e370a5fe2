/** Counts the input tokens of a request in its own API form. Nothing is billed, moderated or logged. */
import type { ChatRequest, SourceBody } from '../core/chat/chat.ts'
import type { Catalog, Model } from '../core/models/models.ts'
import { type Demand, readConstraintsHeader, requestDemands } from '../core/policy/constraints.ts'
import { parseJson } from '../core/validation/validate.ts'
import { answerHeld, type HeldBodyDeps } from '../http/body.ts'
import type { ChatRouteDeps, RequestSource } from '../http/chat-handler.ts'
import type { TokenCountLimit } from '../http/rate-limits.ts'
import { findNamed } from '../models/allowed-models.ts'
import { joinDemands } from '../request/routing/constrained.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import type { ReasoningSeal } from './reasoning-seal.ts'

export type TokenCounterDeps = HeldBodyDeps &
  Pick<ChatRouteDeps, 'newRequestId'> & {
    readonly reasoningSeal: ReasoningSeal
    readonly limitTokenCounts: TokenCountLimit
    readonly catalog: Pick<Catalog, 'resolve' | 'findDisabled'>
    /** Returns the count of the model's provider; null = the provider returned none. */
    readonly countInput: (
      model: Model,
      source: SourceBody,
      demands: readonly Demand[] | undefined,
    ) => Promise<number | null>
  }

type CountForm = {
  /** Parses a body. Throws `GatewayError` with the invalid field. `source` null = only the gateway can count it. */
  readonly read: (
    body: unknown,
    source: RequestSource,
    url: string,
  ) => { readonly model: ChatRequest['model']; readonly source: SourceBody | null } & Parameters<
    typeof likelyInputTokens
  >[0]
  /** Provider whose tokens are estimated if the request names no model. */
  readonly usualProvider: string
  readonly body: (tokens: number) => object
  readonly addHeaders?: (headers: Headers, requestId: string) => void
}

/** Returns the handler of one API form. */
export function createTokenCounter(deps: TokenCounterDeps, form: CountForm): (request: Request) => Promise<Response> {
  return request => {
    const requestId = deps.newRequestId()
    return answerHeld(deps, request, {
      admit: ({ accountId }) => deps.limitTokenCounts(accountId),
      async answer(text, caller) {
        const { headers, url } = request
        const asked = form.read(parseJson(text), { headers, text, accountId: caller.accountId }, url)
        const model = findNamed(deps.catalog, asked.model)
        const demands = joinDemands(caller, requestDemands(readConstraintsHeader(headers))?.demands)
        const counted =
          model === null || asked.source === null ? null : await deps.countInput(model, asked.source, demands)
        const tokens = counted ?? likelyInputTokens(asked, model?.provider ?? form.usualProvider)
        return replied(form, tokens, requestId, counted === null)
      },
    })
  }
}

function replied({ body, addHeaders }: CountForm, tokens: number, requestId: string, isEstimated: boolean): Response {
  const headers = new Headers({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': requestId,
  })
  addHeaders?.(headers, requestId)
  if (isEstimated) headers.set('x-gateway-estimated', 'true')
  return new Response(JSON.stringify(body(tokens)), { headers })
}
