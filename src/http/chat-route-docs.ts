/** The route of a chat endpoint, and the parts of its API description that all share: request headers and errors. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { continuePolicies, fallbackPolicies, strategies, streamModes } from '../core/chat/chat.ts'
import { fallbackCostFactors } from '../core/request/chat-request.ts'
import type { ErrorCode } from '../core/validation/errors.ts'
import { oneOf } from '../core/validation/validate.ts'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from './chat-handler.ts'
import { idempotencyHeaders, onceErrors } from './idempotency.ts'
import { timeoutHeader } from './request-timeout.ts'
import { policies, type RouteDocs, withRouteDocs } from './route-docs.ts'

const flag = oneOf(['true', 'false', '1', '0'])

/** Headers of every request to a model. */
export const modelHeaders = {
  'X-Gateway-Constraints': Type.String({ examples: ['zdr, region=eu, providers=azure|openai'] }),
  ...timeoutHeader,
  ...idempotencyHeaders,
}

/** Each header up to the cost factor overrides the body field of the same meaning. */
export const chatHeaders = {
  'X-Gateway-Strategy': oneOf(strategies),
  'X-Gateway-Enhance': flag,
  'X-Gateway-Stream-Mode': oneOf(streamModes),
  'X-Gateway-Web': oneOf(['auto', 'off']),
  'X-Gateway-Test-Mode': flag,
  'X-Gateway-Fallback': oneOf(fallbackPolicies),
  'X-Gateway-No-Fallback': flag,
  'X-Gateway-Continue': oneOf(continuePolicies),
  'X-Gateway-Fallback-Max-Cost-Factor': Type.Number(fallbackCostFactors),
  'X-Gateway-Hedge': oneOf(['on', 'off']),
  ...modelHeaders,
}

export const chatErrors: readonly ErrorCode[] = [
  'context_length_exceeded',
  'unsupported_parameter',
  'constraints_unmet',
  'model_deprecated',
  'content_blocked',
  'conversation_stopped',
  'payment_required',
  'account_paused',
  'model_not_found',
  'requests_per_minute_exceeded',
  'concurrent_requests_exceeded',
  'daily_tokens_exceeded',
  'daily_cost_exceeded',
  'monthly_cost_exceeded',
  'upstream_rate_limited',
  'upstream_failed',
  'no_model_available',
  'upstream_timeout',
  ...onceErrors,
]

/** Returns the route of an endpoint. `told` describes what is its own. */
export function chatRoute<Path extends string>(
  deps: ChatRouteDeps,
  path: Path,
  endpoint: ChatEndpoint,
  told: RouteDocs,
) {
  return new Elysia({ name: path }).post(path, ({ request }) => handleChat(deps, endpoint, request), {
    parse: 'none',
    ...withRouteDocs(policies.apiKey, {
      requestHeaders: chatHeaders,
      answerHeaders: ['served', 'cost', 'quotaStatus', 'deprecation'],
      errors: chatErrors,
      ...told,
    }),
  })
}
