/** The delivery log of a webhook, and the deliveries that a user requests: a test event, or an earlier event again. */

import { Type } from '@sinclair/typebox'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { maximumPending } from '../../core/webhooks/events.ts'
import { enforceAccountLimit } from '../../http/rate-limits.ts'
import type { ConsoleDeps } from '../deps.ts'
import { noBody, notFound, refuseUnlessDone, type SessionRequest, type SessionRoute, sessionRoute } from '../routes.ts'
import { readQuery } from '../usage/query.ts'
import { deliveriesShape, testedShape } from './schemas.ts'
import {
  enqueueTest as enqueueTestInStore,
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

/** Creates the limiter of tests and redeliveries. */
export const testLimiter = ({ limits }: Pick<ConsoleDeps, 'limits'>) =>
  limits('webhook_tests', { allowed: perMinute, windowMs: 60_000 })

/** Counts one test or redelivery of an account. Throws 429 if the limit is reached. */
export const enforceTestLimit = (limiter: RateLimiter, accountId: string) =>
  enforceAccountLimit(limiter, accountId, { perMinute, what: 'test events and redeliveries' })

/** Routes under `/api/v1/webhooks/{id}` that concern deliveries. */
export function deliveryRoutes(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>): readonly SessionRoute[] {
  const limiter = testLimiter(deps)
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
  if (typeof outcome === 'string') throw new GatewayError('conflict', conflicts[outcome])
  deps.webhooks.wake()
  return outcome
}

async function sendAgain(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>, limiter: RateLimiter, call: SessionRequest) {
  const { accountId, endpointId } = await requestedDelivery(limiter, call)
  const id = call.params.delivery ?? ''
  const outcome = await redeliverInStore(call.database, accountId, { endpointId, id })
  refuseUnlessDone(outcome, conflicts)
  deps.webhooks.wake()
  return { id }
}

/** Checks endpoint and rate limit of a request for a delivery. */
async function requestedDelivery(limiter: RateLimiter, call: SessionRequest) {
  const { accountId } = call.principal
  const endpointId = await getEndpoint(call)
  await enforceTestLimit(limiter, accountId)
  return { accountId, endpointId }
}

const conflicts: Readonly<Record<QueueProblem | 'pending', string>> = {
  disabled: 'This webhook is disabled. Enable it first.',
  pending: 'This delivery is pending. The gateway sends it at `next_attempt_at`.',
  queue_full: `This webhook has ${maximumPending} pending deliveries. Retry when its server accepts requests again.`,
}

async function list(call: SessionRequest) {
  const query = readQuery(call.request.url, deliveriesQuerySchema)
  const id = await getEndpoint(call)
  const range = { after: query.cursor ?? null, limit: pageLength + 1 }
  const rows = await listDeliveries(call.database, call.principal.accountId, id, range)
  const data = rows.slice(0, pageLength)
  return {
    data,
    next_cursor: rows.length > pageLength ? (data.at(-1)?.id ?? null) : null,
  }
}

/** Returns the ID of the endpoint in the path. Throws `not_found` unless it belongs to the account. */
async function getEndpoint({ principal, id, database }: SessionRequest): Promise<string> {
  const [row] = await listEndpoints(database, principal.accountId, id)
  if (row === undefined) throw notFound()
  return row.id
}
