/** The delivery log of a webhook, and the deliveries that a user requests: a test event, or an earlier event again. */

import { Type } from '@sinclair/typebox'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { maximumPending } from '../../core/webhooks/events.ts'
import { enforceAccountLimit } from '../../http/rate-limits.ts'
import type { ConsoleDeps } from '../deps.ts'
import { noBody, notFound, type SessionRequest, type SessionRoute, sessionRoute } from '../routes.ts'
import { readQuery } from '../usage/query.ts'
import { deliveriesShape, type ShownDelivery, testedShape } from './schemas.ts'
import {
  enqueueTest as enqueueTestInStore,
  type ListedDelivery,
  listDeliveries,
  type QueueProblem,
  redeliver as redeliverInStore,
} from './stores/webhook-log.ts'
import { listEndpoints } from './stores/webhooks.ts'

const deliveriesQuerySchema = strictObject({
  cursor: Type.Optional(Type.String({ pattern: '^msg_\\w{1,64}$', maxLength: 68, description: '`next_cursor`' })),
})

const pageLength = 50
/** Each request makes the gateway send one to a server of the user's choice. */
const perMinute = 10

/** Routes under `/api/v1/webhooks/{id}` that concern deliveries. */
export function deliveryRoutes(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>): readonly SessionRoute[] {
  const limiter = deps.limits('webhook_tests', { allowed: perMinute, windowMs: 60_000 })
  const requested = {
    action: 'webhooks.manage',
    ...noBody,
    answer: testedShape,
    status: 202,
    errors: ['not_found', 'conflict', 'requests_per_minute_exceeded'],
  } as const
  return [
    sessionRoute({
      ...requested,
      method: 'POST',
      path: '/api/v1/webhooks/:id/test',
      summary: 'Send a test event',
      description: `Sends \`webhook.test\`. The list of deliveries shows the result. At most ${perMinute} tests and redeliveries per minute and account.`,
      handle: call => sendTest(deps, limiter, call),
    }),
    sessionRoute({
      method: 'GET',
      path: '/api/v1/webhooks/:id/deliveries',
      action: 'webhooks.manage',
      summary: 'List deliveries of a webhook, newest first',
      description: 'Settled ones are kept for 30 days, and at most 1,000 per webhook.',
      query: deliveriesQuerySchema,
      answer: deliveriesShape,
      errors: ['not_found'],
      handle: list,
    }),
    sessionRoute({
      ...requested,
      method: 'POST',
      path: '/api/v1/webhooks/:id/deliveries/:delivery/redeliver',
      summary: 'Send a delivery again',
      description:
        'Sends a delivered or failed event again, with the same `webhook-id` and body, and with all attempts. The limit of test events applies.',
      handle: call => sendAgain(deps, limiter, call),
    }),
  ]
}

async function sendTest(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>, limiter: RateLimiter, call: SessionRequest) {
  const { accountId, endpointId } = await requestedDelivery(limiter, call)
  const outcome = await enqueueTestInStore(call.database, accountId, endpointId)
  if (typeof outcome === 'string') throw conflict(outcome)
  deps.webhooks.wake()
  return outcome
}

async function sendAgain(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>, limiter: RateLimiter, call: SessionRequest) {
  const { accountId, endpointId } = await requestedDelivery(limiter, call)
  const id = call.params.delivery ?? ''
  const outcome = await redeliverInStore(call.database, accountId, { endpointId, id })
  if (outcome === 'not_found') throw notFound()
  if (outcome !== 'done') throw conflict(outcome)
  deps.webhooks.wake()
  return { id }
}

/** Checks endpoint and rate limit of a request for a delivery. */
async function requestedDelivery(limiter: RateLimiter, call: SessionRequest) {
  const { accountId } = call.principal
  const endpointId = await getEndpoint(call)
  await enforceAccountLimit(limiter, accountId, { perMinute, what: 'test events and redeliveries' })
  return { accountId, endpointId }
}

const conflicts: Readonly<Record<QueueProblem | 'pending', string>> = {
  disabled: 'This webhook is disabled. Enable it first.',
  pending: 'This delivery is pending. The gateway sends it at `next_attempt_at`.',
  queue_full: `This webhook has ${maximumPending} pending deliveries. Retry when its server accepts requests again.`,
}

const conflict = (problem: keyof typeof conflicts) => new GatewayError('conflict', conflicts[problem])

async function list(call: SessionRequest) {
  const query = readQuery(call.request.url, deliveriesQuerySchema)
  const id = await getEndpoint(call)
  const range = { after: query.cursor ?? null, limit: pageLength + 1 }
  const rows = await listDeliveries(call.database, call.principal.accountId, id, range)
  const data = rows.slice(0, pageLength)
  return {
    data: data.map(shownDelivery),
    next_cursor: rows.length > pageLength ? (data.at(-1)?.id ?? null) : null,
  }
}

/** Returns the ID of the endpoint in the path. Throws `not_found` unless it belongs to the account. */
async function getEndpoint({ principal, id, database }: SessionRequest): Promise<string> {
  const [row] = await listEndpoints(database, principal.accountId, id)
  if (row === undefined) throw notFound()
  return row.id
}

/** Converts a time in epoch milliseconds to ISO 8601; null stays null. */
export const isoOrNull = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

function shownDelivery(row: ListedDelivery): ShownDelivery {
  return {
    id: row.id,
    type: row.type,
    status: row.status,
    attempts: row.attempts,
    created_at: new Date(row.createdAtMs).toISOString(),
    last_attempt_at: isoOrNull(row.attemptedAtMs),
    next_attempt_at: row.status === 'pending' ? isoOrNull(row.dueAtMs) : null,
    response_status: row.responseStatus,
    error: row.error,
    duration_ms: row.durationMs,
    body: row.body,
  }
}
