/** Fields of the gateway in bodies of other vendors' API forms. */
import type { Static, TObject } from '@sinclair/typebox'
import { chatRequestFields } from './chat-request.ts'

const shared = chatRequestFields(true)

/** They never reach a provider. */
export const gatewayFields = {
  mode: shared.mode,
  strategy: shared.strategy,
  stream_mode: shared.stream_mode,
  enhance_prompt: shared.enhance_prompt,
  test_mode: shared.test_mode,
  fallback: shared.fallback,
  continue: shared.continue,
  fallback_max_cost_factor: shared.fallback_max_cost_factor,
  constraints: shared.constraints,
  web: shared.web,
}

type GatewayFields = Static<TObject<typeof gatewayFields>>

/** Returns only these fields of a body. */
export function pickGatewayFields(body: GatewayFields) {
  return {
    mode: body.mode ?? null,
    strategy: body.strategy ?? null,
    stream_mode: body.stream_mode ?? null,
    enhance_prompt: body.enhance_prompt ?? null,
    test_mode: body.test_mode ?? null,
    fallback: body.fallback ?? null,
    continue: body.continue ?? null,
    fallback_max_cost_factor: body.fallback_max_cost_factor ?? null,
    constraints: body.constraints ?? null,
    web: body.web ?? null,
  }
}
