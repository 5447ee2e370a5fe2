/** Alerts of an account, for admins and owners. */
import { Type } from '@sinclair/typebox'
import {
  alertMetrics,
  alertWindowMinutes,
  defaultWindowMinutes,
  maximumAlerts,
  thresholdProblem,
} from '../../core/alerts/alerts.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { checker, invalidField, oneOf } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { ListedAlert } from '../../database/repositories/alerts.ts'
import type { Stores } from '../../database/repositories/stores.ts'
import {
  type Authenticate,
  notFound,
  readInput,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import { alertShape, alertsShape, type ShownAlert } from './schemas.ts'

type AlertDeps = {
  readonly database: Database
  readonly stores: Pick<Stores, 'alerts'>
  readonly newId: (prefix: string) => string
}

const strict = { additionalProperties: false } as const
const thresholdSchema = Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000_000 })
const windowSchema = Type.Optional(
  Type.Integer({ minimum: alertWindowMinutes.shortest, maximum: alertWindowMinutes.longest }),
)
const creationSchema = Type.Object(
  { metric: oneOf(alertMetrics), threshold: thresholdSchema, window_minutes: windowSchema },
  strict,
)
const changeSchema = Type.Object({ threshold: Type.Optional(thresholdSchema), window_minutes: windowSchema }, strict)
const checkCreation = checker(creationSchema)
const checkChange = checker(changeSchema)

/** Routes under `/api/v1/alerts`. */
export function alerts(deps: AlertDeps, identify: Authenticate) {
  const action = 'alerts.manage'
  return sessionRoutes('alerts', identify, [
    {
      method: 'GET',
      path: '/api/v1/alerts',
      action,
      summary: 'List alerts, oldest first',
      answer: alertsShape,
      handle: async ({ principal }) => reply({ data: await shownAlerts(deps, principal.accountId) }),
    },
    {
      method: 'POST',
      path: '/api/v1/alerts',
      action,
      summary: 'Create an alert',
      description: `Sends an email to owners and \`alert.fired\` to webhooks when the value reaches the threshold, and \`alert.resolved\` when it falls below 80% of it. At most ${maximumAlerts} per account.`,
      body: creationSchema,
      examples: {
        '5% failed requests': { metric: 'error_rate', threshold: 0.05, window_minutes: 15 },
        '50 USD per day': { metric: 'spend', threshold: 50 },
      },
      answer: alertShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    },
    {
      method: 'PATCH',
      path: '/api/v1/alerts/:id',
      action,
      summary: 'Change threshold or window of an alert',
      description: 'The new threshold counts from the next evaluation on. Another window starts at once.',
      body: changeSchema,
      examples: { '100 USD per day': { threshold: 100 } },
      answer: alertShape,
      errors: ['not_found'],
      handle: call => change(deps, call),
    },
    {
      method: 'DELETE',
      path: '/api/v1/alerts/:id',
      action,
      summary: 'Delete an alert',
      answer: null,
      errors: ['not_found'],
      async handle({ principal, params, actor }) {
        const acting = actingAs(deps.database, actor)
        if (!(await deps.stores.alerts.deleteAlert(acting, principal.accountId, params.id ?? ''))) throw notFound()
        return replyNoContent()
      },
    },
  ])
}

async function create(deps: AlertDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const {
    metric,
    threshold,
    window_minutes: windowMinutes = defaultWindowMinutes,
  } = await readInput(request, checkCreation)
  const problem = thresholdProblem(metric, threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  const { accountId } = principal
  const id = deps.newId('alr')
  const alert = { id, metric, threshold, windowMinutes }
  if (!(await deps.stores.alerts.addAlert(actingAs(deps.database, actor), accountId, alert)))
    throw new GatewayError('conflict', `An account has at most ${maximumAlerts} alerts. Delete one first.`)
  const made = (await shownAlerts(deps, accountId)).find(one => one.id === id)
  if (made === undefined) throw notFound()
  return reply(made, 201)
}

async function change(deps: AlertDeps, { principal, params, request, actor }: SessionRequest): Promise<Response> {
  const { threshold, window_minutes: windowMinutes } = await readInput(request, checkChange)
  if (threshold === undefined && windowMinutes === undefined)
    throw invalidField('threshold', 'is required unless `window_minutes` is sent')
  const { accountId } = principal
  const id = params.id ?? ''
  const find = async () => (await shownAlerts(deps, accountId)).find(one => one.id === id)
  const before = await find()
  if (before === undefined) throw notFound()
  const problem = thresholdProblem(before.metric, threshold ?? before.threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  await deps.stores.alerts.changeAlert(actingAs(deps.database, actor), accountId, id, { threshold, windowMinutes })
  const changed = await find()
  if (changed === undefined) throw notFound()
  return reply(changed)
}

async function shownAlerts({ database, stores }: AlertDeps, accountId: string): Promise<ShownAlert[]> {
  return (await stores.alerts.listAlerts(database, accountId)).map(shownAlert)
}

function shownAlert(row: ListedAlert): ShownAlert {
  return {
    id: row.id,
    metric: row.metric,
    threshold: row.threshold,
    window_minutes: row.windowMinutes,
    firing: row.isFiring,
    value: row.value,
    changed_at: row.changedAtMs === null ? null : new Date(row.changedAtMs).toISOString(),
    created_at: new Date(row.createdAtMs).toISOString(),
  }
}
