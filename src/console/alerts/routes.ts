/** Alerts of an account, for its admins and owners, and of projects, for their admins as well. */

import { Type } from '@sinclair/typebox'
import { isAllowedIn } from '../../core/accounts/roles.ts'
import {
  alertMetrics,
  alertWindowMinutes,
  budgetKinds,
  budgetSpans,
  canBeInProject,
  defaultWindowMinutes,
  maximumAccountAlerts,
  maximumAlerts,
  thresholdProblem,
} from '../../core/alerts/alerts.ts'
import type { RateLimiter } from '../../core/limits/rate-limits.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Principal } from '../../http/authentication.ts'
import { projectIdSchema } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  emptyBody,
  forbidden,
  notFound,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { enforceTestLimit, testLimiter } from '../webhooks/routes.ts'
import { alertShape, alertsShape, type ShownAlert, testedAlertShape } from './schemas.ts'
import {
  type AlertPlaceProblem,
  addAlert,
  changeAlert,
  countAlertWebhooks,
  deleteAlert,
  listAlerts,
  testAlert,
} from './store.ts'

const thresholdSchema = Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000_000 })
const windowSchema = Type.Optional(
  Type.Integer({ minimum: alertWindowMinutes.shortest, maximum: alertWindowMinutes.longest }),
)
const creationSchema = strictObject({
  metric: oneOf(alertMetrics),
  threshold: thresholdSchema,
  window_minutes: windowSchema,
  budget: nullable(oneOf(budgetKinds)),
  span: nullable(oneOf(budgetSpans)),
  project_id: nullable(projectIdSchema),
})
const changeSchema = strictObject({
  threshold: Type.Optional(thresholdSchema),
  window_minutes: windowSchema,
  project_id: nullable(projectIdSchema),
})

const action = 'alerts.manage'

type AlertDeps = Pick<ConsoleDeps, 'newId' | 'post' | 'limits' | 'webhooks'>

/** Routes under `/api/v1/alerts`. */
export function alerts(deps: AlertDeps, identify: Authenticate) {
  const limiter = testLimiter(deps)
  return sessionRoutes('alerts', identify, [
    sessionRoute({
      route: 'GET /api/v1/alerts',
      action,
      summary: 'List alerts, oldest first',
      description: 'Owners and admins of the account see all alerts, admins of a project those of the project.',
      answer: alertsShape,
      async handle(call) {
        const { accountId } = call.principal
        const webhooks = await countAlertWebhooks(call.database, accountId)
        return { data: await getAlerts(call), delivery: { email: deps.post !== null, webhooks } }
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/alerts',
      action,
      summary: 'Create an alert',
      description: `Sends an email to owners, and to admins of its project, and \`alert.fired\` to webhooks (\`budget.reached\` for \`budget\`) when a value reaches the threshold, and \`alert.resolved\` when it falls below 80% of it. At most ${maximumAlerts} per project, ${maximumAlerts} of the account, and ${maximumAccountAlerts} in all. Admins of a project name it in \`project_id\`.`,
      body: creationSchema,
      answer: alertShape,
      status: 201,
      errors: ['not_found', 'conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'PATCH /api/v1/alerts/:id',
      action,
      summary: 'Change threshold, window or project of an alert',
      description:
        'The new threshold counts from the next evaluation on. Another window starts at once. In another project the alert starts like a new one.',
      body: changeSchema,
      answer: alertShape,
      errors: ['not_found', 'conflict'],
      handle: change,
    }),
    sessionRoute({
      route: 'DELETE /api/v1/alerts/:id',
      action,
      summary: 'Delete an alert',
      answer: null,
      errors: ['not_found'],
      async handle(call) {
        refuseUnlessDone<never>(
          await deleteAlert(call.database, call.principal.accountId, await managedAlert(call)),
          {},
        )
        return null
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/alerts/:id/test',
      action,
      summary: 'Test an alert',
      description:
        'Sends a test by email, and to the webhooks that the alert would reach, with `"test": true` in `data`. The response tells how many emails the mail server accepted. The limit of test events applies.',
      ...emptyBody,
      answer: testedAlertShape,
      errors: ['not_found', 'requests_per_minute_exceeded'],
      handle: call => test(deps, limiter, call),
    }),
  ])
}

async function create({ newId }: AlertDeps, call: SessionRequest<typeof creationSchema>) {
  const { principal, body, database } = call
  const {
    metric,
    threshold,
    window_minutes = defaultWindowMinutes,
    project_id = null,
    budget = null,
    span = null,
  } = body
  const problem = thresholdProblem(metric, threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  if (metric !== 'budget' && budget !== null) throw invalidField('budget', 'is only for the metric `budget`')
  if (metric !== 'budget' && span !== null) throw invalidField('span', 'is only for the metric `budget`')
  refuseProject(principal, project_id, budget)
  const id = newId('alr')
  const alert = { id, metric, threshold, window_minutes, budget, span, project_id }
  orRefuse(await addAlert(database, principal.accountId, alert))
  return managedAlert({ ...call, id })
}

async function change(call: SessionRequest<typeof changeSchema>) {
  const { threshold, window_minutes: windowMinutes, project_id: target } = call.body
  if (threshold === undefined && windowMinutes === undefined && target === undefined)
    throw invalidField('threshold', 'is required unless `window_minutes` or `project_id` is sent')
  const before = await managedAlert(call)
  const problem = thresholdProblem(before.metric, threshold ?? before.threshold)
  if (problem !== null) throw invalidField('threshold', problem)
  const projectId = target === before.project_id ? undefined : target
  if (projectId !== undefined) refuseProject(call.principal, projectId, before.budget)
  const wanted = { threshold, window_minutes: windowMinutes, project_id: projectId }
  orRefuse(await changeAlert(call.database, call.principal.accountId, before, wanted))
  return managedAlert(call)
}

async function test({ post, webhooks }: AlertDeps, limiter: RateLimiter, call: SessionRequest) {
  const { accountId } = call.principal
  const alert = await managedAlert(call)
  await enforceTestLimit(limiter, accountId)
  const { email, recipients, webhooks: reached } = await testAlert(call.database, accountId, alert)
  webhooks.wake()
  const sent = post === null ? [] : await Promise.all(recipients.map(to => post.alert(to, email)))
  const arrived = sent.filter(delivery => delivery === 'sent').length
  return { emails: { sent: arrived, failed: sent.length - arrived }, webhooks: reached }
}

/** Returns the alerts that the user manages. */
async function getAlerts({ principal, database }: SessionRequest): Promise<ShownAlert[]> {
  const all = await listAlerts(database, principal.accountId)
  return all.filter(({ project_id }) => isAllowedIn(principal, action, project_id))
}

/** Returns the alert in the path. The error for an alert that the user does not manage is that of an unknown ID. */
async function managedAlert(call: SessionRequest): Promise<ShownAlert> {
  const found = (await getAlerts(call)).find(({ id }) => id === call.id)
  if (found === undefined) throw notFound()
  return found
}

/** Throws unless the user may have alerts in a project, or in none; 404 for a project that the user does not see. */
function refuseProject(principal: Principal, projectId: string | null, budget: ShownAlert['budget']): void {
  if (projectId !== null && !canBeInProject(budget))
    throw invalidField('project_id', `must be absent or null for the budget \`${budget}\`, which is of no project`)
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
