/** Webhook endpoints of an account, for admins and owners. */
import { Type } from '@sinclair/typebox'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { checkUrl } from '../../core/validation/public-address.ts'
import { invalidField, nullable, strictObject } from '../../core/validation/validate.ts'
import {
  endpointUrlProblem,
  maximumEndpoints,
  type WebhookEventType,
  webhookEventTypes,
} from '../../core/webhooks/events.ts'
import { projectIdSchema } from '../../http/schemas.ts'
import {
  type Authenticate,
  notFound,
  readInput,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import type { TextSeal } from '../../http/text-seal.ts'
import { listProjects } from '../projects/store.ts'
import { type DeliveryDeps, deliveryRoutes, isoOrNull } from './deliveries.ts'
import { eventTypeSchema, newWebhookShape, type ShownWebhook, webhookShape, webhooksShape } from './schemas.ts'
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  type ListedEndpoint,
  listEndpoints,
  rotateSecret,
} from './stores/webhooks.ts'

type WebhookDeps = DeliveryDeps & {
  readonly config: { readonly privateWebhooks: boolean }
  readonly newId: (prefix: string) => string
  readonly webhooks: { readonly seal: Pick<TextSeal, 'seal'>; readonly newSecret: () => string }
}

const urlSchema = Type.String({ minLength: 1, maxLength: 2048 })
const eventsSchema = Type.Array(eventTypeSchema, { minItems: 1, maxItems: webhookEventTypes.length, uniqueItems: true })
const creationSchema = strictObject({
  url: urlSchema,
  events: Type.Optional(eventsSchema),
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
export function webhookRoutes(deps: WebhookDeps, identify: Authenticate) {
  const action = 'webhooks.manage'
  return sessionRoutes('webhook-endpoints', identify, [
    {
      method: 'GET',
      path: '/api/v1/webhooks',
      action,
      summary: 'List webhooks, oldest first',
      answer: webhooksShape,
      async handle({ principal: { accountId } }) {
        const rows = await listEndpoints(deps.database, accountId)
        return reply({ data: rows.map(shownWebhook) })
      },
    },
    {
      method: 'POST',
      path: '/api/v1/webhooks',
      action,
      summary: 'Create a webhook',
      description: `The response shows the signing secret once. At most ${maximumEndpoints} per account. Without \`events\` it receives all of them. With \`project_id\` it receives only events about keys and alerts of that project.`,
      body: creationSchema,
      examples: { 'key changes': { url: 'https://example.com/webhooks', events: ['key.created', 'key.revoked'] } },
      answer: newWebhookShape,
      status: 201,
      errors: ['not_found', 'conflict'],
      handle: call => create(deps, call),
    },
    {
      method: 'PATCH',
      path: '/api/v1/webhooks/:id',
      action,
      summary: 'Change, enable or disable a webhook',
      body: changeSchema,
      examples: { 'another URL': { url: 'https://example.com/other' }, off: { enabled: false } },
      answer: webhookShape,
      errors: ['not_found'],
      handle: call => change(deps, call),
    },
    {
      method: 'DELETE',
      path: '/api/v1/webhooks/:id',
      action,
      summary: 'Delete a webhook with its deliveries',
      answer: null,
      errors: ['not_found'],
      async handle({ principal, params, actor }) {
        const acting = actingAs(deps.database, actor)
        if (!(await deleteEndpoint(acting, principal.accountId, params.id ?? ''))) throw notFound()
        return replyNoContent()
      },
    },
    {
      method: 'POST',
      path: '/api/v1/webhooks/:id/rotate',
      action,
      summary: 'Rotate the signing secret',
      description: 'Requests carry signatures of both secrets until `overlap_seconds` (1 day by default) have passed.',
      body: rotationSchema,
      bodyRequired: false,
      examples: { 'both valid for 1 hour': { overlap_seconds: 3600 } },
      answer: newWebhookShape,
      errors: ['not_found'],
      handle: call => rotate(deps, call),
    },
    ...deliveryRoutes(deps),
  ])
}

async function create(deps: WebhookDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const { url, events = webhookEventTypes, project_id: projectId = null } = await readInput(request, creationSchema)
  refuseBadUrl(deps, url)
  const { accountId } = principal
  await refuseNoProject(deps, accountId, projectId)
  const [id, secret] = [deps.newId('whk'), deps.webhooks.newSecret()]
  const sealedSecret = deps.webhooks.seal.seal(id, secret)
  const endpoint = { id, url: new URL(url).href, events, sealedSecret, projectId }
  if (!(await addEndpoint(actingAs(deps.database, actor), accountId, endpoint)))
    throw new GatewayError('conflict', `An account has at most ${maximumEndpoints} webhooks. Delete one first.`)
  return reply({ ...(await loadWebhook(deps, accountId, id)), secret }, 201)
}

async function change(deps: WebhookDeps, { principal, params, request, actor }: SessionRequest): Promise<Response> {
  const { project_id: projectId, ...wanted } = await readInput(request, changeSchema)
  if (Object.keys(wanted).length === 0 && projectId === undefined)
    throw invalidField('url', 'is required unless another field is sent')
  if (wanted.url !== undefined) refuseBadUrl(deps, wanted.url)
  const { accountId } = principal
  const id = params.id ?? ''
  await refuseNoProject(deps, accountId, projectId ?? null)
  const to = { ...wanted, projectId, url: wanted.url === undefined ? undefined : new URL(wanted.url).href }
  if (!(await changeEndpoint(actingAs(deps.database, actor), accountId, id, to))) throw notFound()
  if (wanted.enabled === true) deps.webhooks.wake()
  return reply(await loadWebhook(deps, accountId, id))
}

async function rotate(deps: WebhookDeps, { principal, params, request, actor }: SessionRequest): Promise<Response> {
  const { overlap_seconds: overlapSeconds = defaultOverlapSeconds } = await readInput(request, rotationSchema)
  const { accountId } = principal
  const [id, secret] = [params.id ?? '', deps.webhooks.newSecret()]
  const fresh = { sealedSecret: deps.webhooks.seal.seal(id, secret), overlapSeconds }
  const rotated = await rotateSecret(actingAs(deps.database, actor), accountId, id, fresh)
  if (!rotated) throw notFound()
  return reply({ ...(await loadWebhook(deps, accountId, id)), secret })
}

/** Throws unless the account has the project and it is not archived; null = no project is wanted. */
async function refuseNoProject({ database }: WebhookDeps, accountId: string, id: string | null): Promise<void> {
  if (id === null) return
  const [project] = await listProjects(database, accountId, [id])
  if (project === undefined || project.archivedAt !== null) throw notFound()
}

function refuseBadUrl({ config }: WebhookDeps, url: string): void {
  const problem = endpointUrlProblem(url, text => checkUrl(text)?.port === 443, config.privateWebhooks)
  if (problem !== null) throw invalidField('url', problem)
}

async function loadWebhook({ database }: WebhookDeps, accountId: string, id: string): Promise<ShownWebhook> {
  const [row] = await listEndpoints(database, accountId, id)
  if (row === undefined) throw notFound()
  return shownWebhook(row)
}

function shownWebhook(row: ListedEndpoint): ShownWebhook {
  return {
    id: row.id,
    url: row.url,
    // A later release may have stored further types.
    events: row.events.filter((event): event is WebhookEventType => webhookEventTypes.some(type => type === event)),
    enabled: row.disabledAtMs === null,
    disabled_by: row.disabledBy,
    disabled_at: isoOrNull(row.disabledAtMs),
    failing_since: isoOrNull(row.failingSinceMs),
    created_at: new Date(row.createdAtMs).toISOString(),
    project_id: row.projectId,
  }
}
