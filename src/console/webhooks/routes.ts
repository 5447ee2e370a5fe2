/**
 * Webhook endpoints of an account with their delivery logs, for admins and owners, and the deliveries that a user requests: a
 * test event, or an earlier event again.
 */

import { Type } from '@sinclair/typebox'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { checkUrl } from '../../core/validation/public-address.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import {
  endpointUrlProblem,
  maximumEndpoints,
  maximumPending,
  webhookEventTypes,
  webhookFormats,
} from '../../core/webhooks/events.ts'
import type { Database } from '../../database/database.ts'
import { enforceAccountLimit } from '../../http/rate-limits.ts'
import { projectIdSchema } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import { listProjects } from '../projects/store.ts'
import {
  type Authenticate,
  emptyBody,
  notFound,
  refuseUnlessDone,
  type SessionRequest,
  type SessionRoute,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { readQuery } from '../usage/query.ts'
import {
  deliveriesShape,
  eventTypeSchema,
  newWebhookShape,
  type ShownWebhook,
  testedShape,
  webhookShape,
  webhooksShape,
} from './schemas.ts'
import {
  enqueueTest as enqueueTestInStore,
  listDeliveries,
  type QueueProblem,
  redeliver as redeliverInStore,
} from './stores/webhook-log.ts'
import { addEndpoint, changeEndpoint, deleteEndpoint, listEndpoints, rotateSecret } from './stores/webhooks.ts'

const urlSchema = Type.String({ minLength: 1, maxLength: 2048 })
const eventsSchema = Type.Array(eventTypeSchema, { minItems: 1, maxItems: webhookEventTypes.length, uniqueItems: true })
const creationSchema = strictObject({
  url: urlSchema,
  events: Type.Optional(eventsSchema),
  format: Type.Optional(oneOf(webhookFormats)),
  project_id: nullable(projectIdSchema),
})
const changeSchema = strictObject({
  url: Type.Optional(urlSchema),
  events: Type.Optional(eventsSchema),
  enabled: Type.Optional(Type.Boolean()),
  project_id: nullable(projectIdSchema),
})
const rotationSchema = strictObject({
  overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 7 * 86_400 })),
})

const defaultOverlapSeconds = 86_400

/** Routes under `/api/v1/webhooks`. */
export function webhookRoutes(deps: ConsoleDeps, identify: Authenticate) {
  const action = 'webhooks.manage'
  return sessionRoutes('webhook-endpoints', identify, [
    sessionRoute({
      route: 'GET /api/v1/webhooks',
      action,
      summary: 'List webhooks, oldest first',
      answer: webhooksShape,
      async handle({ principal: { accountId }, database }) {
        return { data: await listEndpoints(database, accountId) }
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/webhooks',
      action,
      summary: 'Create a webhook',
      description: `The response shows the signing secret once. At most ${maximumEndpoints} per account. Without \`events\` it receives all of them. With \`"format": "slack"\` the body is a sentence in \`text\`. With \`project_id\` it receives only events about keys and alerts of that project.`,
      body: creationSchema,
      answer: newWebhookShape,
      status: 201,
      errors: ['not_found', 'conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'PATCH /api/v1/webhooks/:id',
      action,
      summary: 'Change, enable or disable a webhook',
      body: changeSchema,
      answer: webhookShape,
      errors: ['not_found'],
      handle: call => change(deps, call),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/webhooks/:id',
      action,
      summary: 'Delete a webhook with its deliveries',
      answer: null,
      errors: ['not_found'],
      async handle({ principal, id, database }) {
        refuseUnlessDone<never>(await deleteEndpoint(database, principal.accountId, id), {})
        return null
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/webhooks/:id/rotate',
      action,
      summary: 'Rotate the signing secret',
      description: 'Requests carry signatures of both secrets until `overlap_seconds` (1 day by default) have passed.',
      body: rotationSchema,
      bodyRequired: false,
      answer: newWebhookShape,
      errors: ['not_found'],
      handle: call => rotate(deps, call),
    }),
    ...deliveryRoutes(deps),
  ])
}

async function create(deps: ConsoleDeps, { principal, body, database }: SessionRequest<typeof creationSchema>) {
  const { url, events = [...webhookEventTypes], format = 'standard', project_id = null } = body
  refuseBadUrl(deps, url)
  const { accountId } = principal
  await refuseNoProject(database, accountId, project_id)
  const [id, secret] = [deps.newId('whk'), deps.webhooks.newSecret()]
  const sealedSecret = deps.webhooks.seal.seal(id, secret)
  const endpoint = { id, url: new URL(url).href, events, format, sealedSecret, project_id }
  const full = `An account has at most ${maximumEndpoints} webhooks. Delete one first.`
  refuseUnlessDone(await addEndpoint(database, accountId, endpoint), { full })
  return { ...(await loadWebhook(database, accountId, id)), secret }
}

async function change(deps: ConsoleDeps, call: SessionRequest<typeof changeSchema>) {
  const { principal, id, body: wanted, database } = call
  if (Object.keys(wanted).length === 0) throw invalidField('url', 'is required unless another field is sent')
  if (wanted.url !== undefined) refuseBadUrl(deps, wanted.url)
  const { accountId } = principal
  await refuseNoProject(database, accountId, wanted.project_id ?? null)
  const to = { ...wanted, url: wanted.url === undefined ? undefined : new URL(wanted.url).href }
  refuseUnlessDone<never>(await changeEndpoint(database, accountId, id, to), {})
  if (wanted.enabled === true) deps.webhooks.wake()
  return loadWebhook(database, accountId, id)
}

async function rotate({ webhooks }: ConsoleDeps, call: SessionRequest<typeof rotationSchema>) {
  const { principal, id, body, database } = call
  const { accountId } = principal
  const secret = webhooks.newSecret()
  const { overlap_seconds: overlapSeconds = defaultOverlapSeconds } = body
  const fresh = { sealedSecret: webhooks.seal.seal(id, secret), overlapSeconds }
  refuseUnlessDone<never>(await rotateSecret(database, accountId, id, fresh), {})
  return { ...(await loadWebhook(database, accountId, id)), secret }
}

/** Throws unless the account has the project and it is not archived; null = no project is wanted. */
async function refuseNoProject(database: Database, accountId: string, id: string | null): Promise<void> {
  if (id === null) return
  const [project] = await listProjects(database, accountId, [id])
  if (project === undefined || project.archived_at !== null) throw notFound()
}

function refuseBadUrl({ config }: ConsoleDeps, url: string): void {
  const problem = endpointUrlProblem(url, text => checkUrl(text)?.port === 443, config.privateWebhooks)
  if (problem !== null) throw invalidField('url', problem)
}

async function loadWebhook(database: Database, accountId: string, id: string): Promise<ShownWebhook> {
  const [row] = await listEndpoints(database, accountId, id)
  if (row === undefined) throw notFound()
  return row
}

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
function deliveryRoutes(deps: Pick<ConsoleDeps, 'limits' | 'webhooks'>): readonly SessionRoute[] {
  const limiter = testLimiter(deps)
  const requested = {
    action: 'webhooks.manage',
    ...emptyBody,
    answer: testedShape,
    status: 202,
    errors: ['not_found', 'conflict', 'requests_per_minute_exceeded'],
  } as const
  return [
    sessionRoute({
      ...requested,
      route: 'POST /api/v1/webhooks/:id/test',
      summary: 'Send a test event',
      description: `Sends \`webhook.test\`. The list of deliveries shows the result. At most ${perMinute} tests and redeliveries per minute and account.`,
      handle: call => sendTest(deps, limiter, call),
    }),
    sessionRoute({
      route: 'GET /api/v1/webhooks/:id/deliveries',
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
      route: 'POST /api/v1/webhooks/:id/deliveries/:delivery/redeliver',
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
