/** Alerts of an account, for its admins and owners, and of projects, for their admins as well. */

import { Type } from '@sinclair/typebox'
import { isAllowedIn } from '../../core/accounts/roles.ts'
import {
  alertMetrics,
  alertWindowMinutes,
  defaultWindowMinutes,
  maximumAccountAlerts,
  maximumAlerts,
  thresholdProblem,
} from '../../core/alerts/alerts.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Principal } from '../../http/authentication.ts'
import { projectIdSchema } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, forbidden, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import { alertShape, alertsShape, type ShownAlert } from './schemas.ts'
import { type AlertPlaceProblem, addAlert, changeAlert, deleteAlert, type ListedAlert, listAlerts } from './store.ts'

const thresholdSchema = Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000_000 })
const windowSchema = Type.Optional(
  Type.Integer({ minimum: alertWindowMinutes.shortest, maximum: alertWindowMinutes.longest }),
)
const creationSchema = strictObject({
  metric: oneOf(alertMetrics),
  threshold: thresholdSchema,
  window_minutes: windowSchema,
  project_id: nullable(projectIdSchema),
})
const changeSchema = strictObject({
  threshold: Type.Optional(thresholdSchema),
  window_minutes: windowSchema,
  project_id: nullable(projectIdSchema),
})

const action = 'alerts.manage'

/** Routes under `/api/v1/alerts`. */
export function alerts(deps: Pick<ConsoleDeps, 'newId'>, identify: Authenticate) {
  return sessionRoutes('alerts', identify, [
    sessionRoute({
      method: 'GET',
      path: '/api/v1/alerts',
      action,
      summary: 'List alerts, oldest first',
      description: 'Owners and admins of the account see all alerts, admins of a project those of the project.',
      answer: alertsShape,
      handle: async call => ({ data: (await getAlerts(call)).map(shownAlert) }),
    }),
    sessionRoute({
      method: 'POST',
      path: '/api/v1/alerts',
      action,
      summary: 'Create an alert',
      description: `Sends an email to owners, and to admins of its project, and \`alert.fired\` to webhooks when the value reaches the threshold, and \`alert.resolved\` when it falls below 80% of it. At most ${maximumAlerts} per project, ${maximumAlerts} of the account, and ${maximumAccountAlerts} in all. Admins of a project name it in \`project_id\`.`,
      body: creationSchema,
      examples: {
        '5% failed requests': { metric: 'error_rate', threshold: 0.05, window_minutes: 15 },
        '50 USD per day': { metric: 'spend', threshold: 50 },
        'of the account': { metric: 'spend', threshold: 50, project_id: null },
      },
      answer: alertShape,
      status: 201,
      errors: ['not_found', 'conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      method: 'PATCH',
      path: '/api/v1/alerts/:id',
      action,
      summary: 'Change threshold, window or project of an alert',
      description:
        'The new threshold counts from the next evaluation on. Another window starts at once. In another project the alert starts like a new one.',
      body: changeSchema,
      examples: { '100 USD per day': { threshold: 100 } },
      answer: alertShape,
      errors: ['not_found', 'conflict'],
      handle: change,
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/api/v1/alerts/:id',
      action,
      summary: 'Delete an alert',
      answer: null,
      errors: ['not_found'],
      async handle(call) {
        if (!(await deleteAlert(call.database, call.principal.accountId, await managedAlert(call)))) throw notFound()
        return null
      },
    }),
  ])
}

async function create({ newId }: Pick<ConsoleDeps, 'newId'>, call: SessionRequest<typeof creationSchema>) {
  const { principal, body, database } = call
  const { metric, threshold, window_minutes: windowMinutes = defaultWindowMinutes, project_id: projectId = null } = body
  const problem = thresholdProblem(metric, threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  refuseProject(principal, projectId)
  const id = newId('alr')
  const alert = { id, metric, threshold, windowMinutes, projectId }
  orRefuse(await addAlert(database, principal.accountId, alert))
  return shownAlert(await managedAlert({ ...call, id }))
}

async function change(call: SessionRequest<typeof changeSchema>) {
  const { threshold, window_minutes: windowMinutes, project_id: target } = call.body
  if (threshold === undefined && windowMinutes === undefined && target === undefined)
    throw invalidField('threshold', 'is required unless `window_minutes` or `project_id` is sent')
  const before = await managedAlert(call)
  const problem = thresholdProblem(before.metric, threshold ?? before.threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  const projectId = target === before.projectId ? undefined : target
  if (projectId !== undefined) refuseProject(call.principal, projectId)
  const wanted = { threshold, windowMinutes, projectId }
  orRefuse(await changeAlert(call.database, call.principal.accountId, before, wanted))
  return shownAlert(await managedAlert(call))
}

/** Returns the alerts that the user manages. */
async function getAlerts({ principal, database }: SessionRequest): Promise<ListedAlert[]> {
  const all = await listAlerts(database, principal.accountId)
  return all.filter(({ projectId }) => isAllowedIn(principal, action, projectId))
}

/** Returns the alert in the path. The error for an alert that the user does not manage is that of an unknown ID. */
async function managedAlert(call: SessionRequest): Promise<ListedAlert> {
  const found = (await getAlerts(call)).find(({ id }) => id === call.id)
  if (found === undefined) throw notFound()
  return found
}

/** Throws unless the user may have alerts in a project, or in none; 404 for a project that the user does not see. */
function refuseProject(principal: Principal, projectId: string | null): void {
  if (isAllowedIn(principal, action, projectId)) return
  throw projectId === null || principal.projects.has(projectId) ? forbidden() : notFound()
}

function orRefuse(outcome: 'done' | 'not_found' | AlertPlaceProblem): void {
  if (outcome === 'full')
    throw new GatewayError(
      'conflict',
      `An account or project has at most ${maximumAlerts} alerts, and an account ${maximumAccountAlerts} with those of its projects. Delete one first.`,
    )
  if (outcome !== 'done') throw notFound()
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
    project_id: row.projectId,
  }
}
