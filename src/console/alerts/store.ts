/**
 * Alerts of accounts and projects. An evaluation locks the alert's row, so that one gateway of many evaluates it, and stores
 * events and emails with the new state: a crossing is reported once, also if the gateway is killed before it sends them.
 */

import { createHash } from 'node:crypto'
import type { TransactionSql } from 'postgres'
import {
  type AlertEmail,
  type AlertReading,
  alertChanges,
  type Budget,
  defaultWindowMinutes,
  highestValue,
  maximumAccountAlerts,
  maximumAlerts,
} from '../../core/alerts/alerts.ts'
import type { Plans } from '../../core/limits/plans.ts'
import { systemErrorCode } from '../../core/validation/errors.ts'
import type { WebhookEvent } from '../../core/webhooks/events.ts'
import type { Database } from '../../database/database.ts'
import { changeAudited, enqueueEvent, recordAudit, retentionDeadlineMs } from '../../database/repositories/audit.ts'
import { type Step, statementIn, withAccountRls } from '../../database/statement.ts'
import { type DueAlert, instant, scanAlert } from './readings.ts'
import type { ShownAlert } from './schemas.ts'

/** Returns an account's alerts, oldest first. */
export function listAlerts(database: Database, accountId: string): Promise<ShownAlert[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownAlert[]>`
      select id, metric, threshold, window_minutes, budget, span, firing <> '[]' as firing,
        jsonb_array_length(firing) as firing_subjects, value, iso_time(changed_at) as changed_at,
        iso_time(created_at) as created_at, project_id
      from alert_rules where account_id = ${accountId} order by alert_rules.created_at, id`,
  )
}

/** Returns how many enabled webhooks of an account receive alerts. */
export async function countAlertWebhooks(database: Database, accountId: string): Promise<number> {
  const [row] = await withAccountRls(database, accountId).sql(
    sql => sql<{ webhooks: number }[]>`
      select count(*)::int as webhooks from webhook_endpoints
      where account_id = ${accountId} and disabled_at is null and events && '{alert.fired,budget.reached}'`,
  )
  return row?.webhooks ?? 0
}

type NewAlert = Pick<ShownAlert, 'id' | 'metric' | 'threshold' | 'window_minutes' | 'budget' | 'span' | 'project_id'>

/** Why an account or a project accepts no alert: it has the maximum number, or there is no such project. */
export type AlertPlaceProblem = 'full' | 'no_project'

/** Stores an alert. Returns `done`, or the reason against it. */
export function addAlert(database: Database, accountId: string, alert: NewAlert): Promise<'done' | AlertPlaceProblem> {
  return changeAudited<AlertPlaceProblem>(database, accountId, async step => {
    const { id, ...values } = alert
    const problem = await placeProblem(step, accountId, alert.project_id)
    if (problem !== null) return problem
    const { metric, threshold, window_minutes, budget, span, project_id } = alert
    await step`
      insert into alert_rules (id, account_id, metric, threshold, window_minutes, budget, span, project_id, created_at)
      values (${id}, ${accountId}, ${metric}, ${threshold}, ${window_minutes}, ${budget}, ${span}, ${project_id}, clock_timestamp())`
    const details = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
    return { action: 'alert.created', target: id, details }
  })
}

/**
 * Creates the alerts at 80% and 100% of a soft cap, unless an alert covers the account's monthly budget already. `ids` are those
 * of the new ones.
 */
export async function addSoftCapAlerts(
  step: Step,
  by: Pick<Database, 'actor'>,
  accountId: string,
  ids: readonly [string, string],
): Promise<void> {
  const rows = (await statementIn(step)`
    insert into alert_rules (id, account_id, metric, threshold, window_minutes, budget, span, created_at)
    select id, ${accountId}, 'budget', threshold, ${defaultWindowMinutes}, 'account', 'month', clock_timestamp()
    from (values (${ids[0]}, 0.8::float8), (${ids[1]}, 1::float8)) as wanted (id, threshold)
    where not exists (
      select from alert_rules
      where account_id = ${accountId} and metric = 'budget' and project_id is null
        and coalesce(budget, 'account') = 'account' and coalesce(span, 'month') = 'month')
    returning id, threshold`) as readonly { id: string; threshold: number }[]
  for (const { id: target, threshold } of rows) {
    const details = { metric: 'budget', threshold, budget: 'account', span: 'month' }
    await recordAudit(step, by, { accountId, action: 'alert.created', target, details })
  }
}

/** Locks the account, so that changes count its alerts one after another. */
async function placeProblem(
  step: TransactionSql,
  accountId: string,
  projectId: string | null,
): Promise<AlertPlaceProblem | null> {
  await step`select 1 from accounts where id = ${accountId} for no key update`
  const [place] = await step<{ isOpen: boolean; isFull: boolean }[]>`
    select
      ${projectId}::text is null or exists (
        select from projects where id = ${projectId} and account_id = ${accountId} and archived_at is null) as "isOpen",
      (select count(*) >= ${maximumAccountAlerts}
          or count(*) filter (where project_id is not distinct from ${projectId}) >= ${maximumAlerts}
        from alert_rules where account_id = ${accountId}) as "isFull"`
  if (place?.isOpen !== true) return 'no_project'
  return place.isFull ? 'full' : null
}

/** An alert in the project that the user's rights were checked for: an alert that moved meanwhile is another one. */
type FoundAlert = Pick<ShownAlert, 'id' | 'project_id'>

/** New values of an alert. A project is another one than before. */
type AlertChange = { readonly [Name in 'threshold' | 'window_minutes' | 'project_id']?: ShownAlert[Name] | undefined }

/**
 * Changes an alert. Another window starts at once, so that it holds no requests of the former one. In another project the
 * alert starts like a new one, because its state is that of the former project. Returns `done`, or the reason against it.
 */
export function changeAlert(
  database: Database,
  accountId: string,
  { id, project_id: formerId }: FoundAlert,
  { threshold, window_minutes: windowMinutes, project_id: projectId }: AlertChange,
): Promise<'done' | 'not_found' | AlertPlaceProblem> {
  return changeAudited<'not_found' | AlertPlaceProblem>(database, accountId, async step => {
    const problem = projectId === undefined ? null : await placeProblem(step, accountId, projectId)
    if (problem !== null) return problem
    const isMoved = projectId !== undefined
    const isRestarted = step`${isMoved}::boolean or coalesce(${windowMinutes ?? null}::int <> window_minutes, false)`
    const rows = await step`
      update alert_rules set
        threshold = coalesce(${threshold ?? null}::float8, threshold),
        window_minutes = coalesce(${windowMinutes ?? null}::int, window_minutes),
        since = case when ${isRestarted} then null else since end,
        due_at = case when ${isRestarted} then clock_timestamp() else due_at end,
        project_id = case when ${isMoved}::boolean then ${projectId ?? null} else project_id end,
        firing = case when ${isMoved}::boolean then '[]' else firing end,
        value = case when ${isMoved}::boolean then null else value end,
        changed_at = case when ${isMoved}::boolean then null else changed_at end
      where id = ${id} and account_id = ${accountId} and project_id is not distinct from ${formerId} returning id`
    if (rows.length === 0) return 'not_found'
    const details = { threshold, window_minutes: windowMinutes, project_id: projectId }
    return { action: 'alert.changed', target: id, details }
  })
}

/** Deletes an alert. */
export function deleteAlert(
  database: Database,
  accountId: string,
  { id, project_id: projectId }: FoundAlert,
): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const rows = await step`
      delete from alert_rules
      where id = ${id} and account_id = ${accountId} and project_id is not distinct from ${projectId} returning id`
    return rows.length === 0 ? 'not_found' : { action: 'alert.deleted', target: id }
  })
}

/** Stores the events of a test of an alert. Returns their number, and the email with its receivers. */
export async function testAlert(
  database: Database,
  accountId: string,
  alert: ShownAlert,
): Promise<{ readonly email: AlertEmail; readonly recipients: readonly string[]; readonly webhooks: number }> {
  const text = 'This is a test of an alert'
  const measured = { subject: '', value: alert.threshold, text, data: { test: true }, project: null }
  let [recipients, project, webhooks]: [readonly string[], string | null, number] = [[], null, 0]
  await changeAudited(database, accountId, async step => {
    const [found] = await step<{ name: string }[]>`select name from projects where id = ${alert.project_id}`
    project = found?.name ?? null
    const due = { ...alert, account_id: accountId, project_name: project }
    webhooks = await enqueueEvent(step, accountId, toEvent(due, 'fired', measured))
    recipients = (await findRecipients(step, accountId, alert.project_id)).map(({ email }) => email)
    return { action: 'alert.tested', target: alert.id }
  })
  return { email: { metric: alert.metric, threshold: alert.threshold, project, texts: [text] }, recipients, webhooks }
}

type Due = DueAlert & {
  readonly id: string
  readonly threshold: number
  readonly firing: readonly string[]
  readonly project_name: string | null
}

/** An alert that began to fire, with the email addresses of the account's owners and the project's admins. */
export type FiredAlert = AlertEmail & { readonly value: number | null; readonly recipients: readonly string[] }

type Moment = {
  /** Epoch milliseconds. */
  readonly at: number
  readonly plans: Plans
  readonly budgets: Map<string, readonly Budget[]>
  /** False = the gateway has no mail server: no email is stored. */
  readonly sendsMail: boolean
}

/** An alert whose evaluation failed, with the error code of the database. */
type FailedAlert = { readonly accountId: string; readonly code: string | null }

/**
 * Evaluates the alert that has been due for the longest time. Returns `none` if none is due, the alert if it began to
 * fire for some subject, and null otherwise. An alert whose evaluation fails waits, so that those behind it are evaluated.
 */
export function evaluateNextAlert(
  database: Database,
  moment: Moment,
): Promise<FiredAlert | FailedAlert | 'none' | null> {
  return database.run(
    ({ sql }) =>
      sql.begin(async step => {
        const { at } = moment
        // The database counts microseconds: an alert stored within the millisecond of the caller's clock is due.
        const [due] = await step<Due[]>`
          select rule.id, rule.account_id, metric, threshold, window_minutes, budget, span, firing, since, project_id,
            projects.name as project_name
          from alert_rules as rule left join projects on projects.id = project_id
          where due_at <= ${instant(at + 1)}::text::timestamptz and projects.archived_at is null
          order by due_at limit 1 for update of rule skip locked`
        if (due === undefined) return 'none'
        try {
          return await step.savepoint(inner => evaluate(inner, due, moment))
        } catch (cause) {
          await step`
            update alert_rules set due_at = ${instant(at + failureWaitMs)}::text::timestamptz where id = ${due.id}`
          return { accountId: due.account_id, code: systemErrorCode(cause) }
        }
      }),
    retentionDeadlineMs,
  )
}

/** Until the next evaluation of an alert that failed. */
const failureWaitMs = 5 * 60_000

async function evaluate(step: TransactionSql, due: Due, moment: Moment): Promise<FiredAlert | null> {
  const { id, account_id: accountId, metric, threshold, project_name: project } = due
  const { readings, since, dueAt } = await scanAlert(step, due, moment)
  const digested = readings.map(measured => ({ ...measured, subject: getDigest(measured.subject) }))
  const { fired, resolved, firing } = alertChanges(due, digested)
  const value = highestValue(readings)
  const isChanged = fired.length + resolved.length > 0
  await step`
    update alert_rules set value = ${value}, due_at = ${instant(dueAt)}::text::timestamptz,
      since = ${since === null ? null : JSON.stringify(since)}::text::jsonb,
      firing = ${JSON.stringify(firing)}::text::jsonb,
      changed_at = case when ${isChanged} then ${instant(moment.at)}::text::timestamptz else changed_at end
    where id = ${id}`
  for (const measured of fired) await enqueueEvent(step, accountId, toEvent(due, 'fired', measured))
  // The next period of a budget is no news.
  if (metric !== 'budget')
    for (const measured of resolved) await enqueueEvent(step, accountId, toEvent(due, 'resolved', measured))
  if (fired.length === 0) return null
  const recipients = await findRecipients(step, accountId, due.project_id)
  const email: AlertEmail = { metric, threshold, project, texts: fired.map(({ text }) => text) }
  if (moment.sendsMail)
    await step`
      insert into email_notices (account_id, kind, subject, user_id, due_at, created_at, body)
      select ${accountId}, 'alert', ${`${id} ${instant(moment.at)}`}, id, ${instant(moment.at)}::text::timestamptz,
        ${instant(moment.at)}::text::timestamptz, ${JSON.stringify(email)}::text::jsonb
      from users where id in (select json_array_elements_text(${JSON.stringify(recipients.map(({ id: user }) => user))}::text::json))`
  return { ...email, value, recipients: recipients.map(({ email: to }) => to) }
}

function toEvent(
  {
    id,
    metric,
    threshold,
    project_id: projectId,
    project_name: name,
  }: Pick<Due, 'id' | 'metric' | 'threshold' | 'project_id' | 'project_name'>,
  change: 'fired' | 'resolved',
  { value, text, data, project }: AlertReading,
): WebhookEvent {
  const own = projectId === null ? null : { id: projectId, name: name ?? '' }
  const where = own === null ? text : `${own.name}: ${text}`
  return {
    type: metric === 'budget' ? 'budget.reached' : `alert.${change}`,
    data: {
      ...{ alert_id: id, metric, threshold, value },
      ...(metric === 'budget' ? { percent: Math.round(threshold * 100) } : {}),
      ...data,
      text: `${where}.${change === 'resolved' ? ' The alert is resolved.' : ''}`,
    },
    project: own ?? project,
  }
}

/** Returns the account's owners, and of the admins of a project. */
async function findRecipients(step: TransactionSql, accountId: string, projectId: string | null) {
  return step<{ id: string; email: string }[]>`
    select id, email from users
    where account_id = ${accountId} and removed_at is null and (role = 'owner' or exists (
      select from project_members
      where user_id = users.id and project_id = ${projectId} and project_members.role = 'admin'))`
}

/** Names of keys, tags and sessions are personal: the row keeps only which of them fire. */
const getDigest = (subject: string) => createHash('sha256').update(subject).digest('base64url').slice(0, 16)
