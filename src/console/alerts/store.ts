/**
 * Alerts of accounts and projects. An evaluation locks the alert's row, so that one gateway of many evaluates it, and stores the
 * event with the new state. It reads daily sums only: a window is the difference of two readings.
 */

import type { TransactionSql } from 'postgres'
import {
  type AlertMetric,
  alertChange,
  maximumAccountAlerts,
  maximumAlerts,
  spendValue,
  sumsBetween,
  type WindowSums,
  windowValue,
} from '../../core/alerts/alerts.ts'
import { projectTag } from '../../core/request/tags.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import type { Database } from '../../database/database.ts'
import { enqueueEvent, recordAudit } from '../../database/repositories/audit.ts'
import { withAccountRls } from '../../database/statement.ts'

/** An alert; times in epoch milliseconds. */
export type ListedAlert = {
  readonly id: string
  readonly metric: AlertMetric
  readonly threshold: number
  readonly windowMinutes: number
  readonly isFiring: boolean
  readonly value: number | null
  readonly changedAtMs: number | null
  readonly createdAtMs: number
  /** Null = all requests of the account. */
  readonly projectId: string | null
}

/** Returns an account's alerts, oldest first. */
export function listAlerts(database: Database, accountId: string): Promise<ListedAlert[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ListedAlert[]>`
      select id, metric, threshold, window_minutes as "windowMinutes", is_firing as "isFiring", value, project_id as "projectId",
        (extract(epoch from changed_at) * 1000)::float8 as "changedAtMs",
        (extract(epoch from created_at) * 1000)::float8 as "createdAtMs"
      from alert_rules where account_id = ${accountId} order by created_at, id`,
  )
}

type NewAlert = Pick<ListedAlert, 'id' | 'metric' | 'threshold' | 'windowMinutes' | 'projectId'>

/** Why an account or a project accepts no alert: it has the maximum number, or there is no such project. */
export type AlertPlaceProblem = 'full' | 'no_project'

/** Stores an alert. Returns `done`, or the reason against it. */
export function addAlert(database: Database, accountId: string, alert: NewAlert): Promise<'done' | AlertPlaceProblem> {
  const { id, metric, threshold, windowMinutes, projectId } = alert
  return withAccountRls(database, accountId).sql(async step => {
    const problem = await placeProblem(step, accountId, projectId)
    if (problem !== null) return problem
    await step`
      insert into alert_rules (id, account_id, metric, threshold, window_minutes, project_id, created_at)
      values (${id}, ${accountId}, ${metric}, ${threshold}, ${windowMinutes}, ${projectId}, clock_timestamp())`
    const ofProject = projectId === null ? {} : { project_id: projectId }
    const details = { metric, threshold, window_minutes: windowMinutes, ...ofProject }
    await recordAudit(step, database, { accountId, action: 'alert.created', target: id, details })
    return 'done'
  })
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
type FoundAlert = Pick<ListedAlert, 'id' | 'projectId'>

/** New values of an alert; undefined = unchanged. */
type AlertChange = {
  readonly threshold: number | undefined
  readonly windowMinutes: number | undefined
  /** Another project than before; null = none. */
  readonly projectId: string | null | undefined
}

/**
 * Changes an alert. Another window starts at once, so that it holds no requests of the former one. In another project the
 * alert starts like a new one, because its state is that of the former project. Returns `done`, or the reason against it.
 */
export function changeAlert(
  database: Database,
  accountId: string,
  { id, projectId: formerId }: FoundAlert,
  { threshold, windowMinutes, projectId }: AlertChange,
): Promise<'done' | 'not_found' | AlertPlaceProblem> {
  return withAccountRls(database, accountId).sql(async step => {
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
        is_firing = is_firing and not ${isMoved}::boolean,
        value = case when ${isMoved}::boolean then null else value end,
        changed_at = case when ${isMoved}::boolean then null else changed_at end
      where id = ${id} and account_id = ${accountId} and project_id is not distinct from ${formerId} returning id`
    if (rows.length === 0) return 'not_found'
    const details = {
      ...(threshold === undefined ? {} : { threshold }),
      ...(windowMinutes === undefined ? {} : { window_minutes: windowMinutes }),
      ...(projectId === undefined ? {} : { project_id: projectId }),
    }
    await recordAudit(step, database, { accountId, action: 'alert.changed', target: id, details })
    return 'done'
  })
}

/** Deletes an alert. Returns false if there is none of this ID. */
export function deleteAlert(database: Database, accountId: string, { id, projectId }: FoundAlert): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async step => {
    const rows = await step`
      delete from alert_rules
      where id = ${id} and account_id = ${accountId} and project_id is not distinct from ${projectId} returning id`
    if (rows.length === 0) return false
    await recordAudit(step, database, { accountId, action: 'alert.deleted', target: id })
    return true
  })
}

type Due = {
  readonly id: string
  readonly account_id: string
  readonly metric: AlertMetric
  readonly threshold: number
  readonly window_minutes: number
  readonly is_firing: boolean
  readonly since: (WindowSums & { readonly day: string }) | null
  readonly project_id: string | null
  readonly project_name: string | null
}

/** An alert that began to fire, with the email addresses of the account's owners and the project's admins. */
export type FiredAlert = {
  readonly metric: AlertMetric
  readonly threshold: number
  readonly value: number
  /** Name of its project; null = the alert is about the account. */
  readonly project: string | null
  readonly recipients: readonly string[]
}

const spendEveryMs = 60_000

/**
 * Evaluates the alert that has been due for the longest time. Returns `none` if none is due, the alert if it began to
 * fire, and null otherwise. `at` in epoch milliseconds.
 */
export function evaluateNextAlert(database: Database, at: number): Promise<FiredAlert | 'none' | null> {
  return database.run(({ sql }) =>
    sql.begin(async step => {
      // The database counts microseconds: an alert stored within the millisecond of the caller's clock is due.
      const [due] = await step<Due[]>`
        select rule.id, rule.account_id, metric, threshold, window_minutes, is_firing, since, project_id,
          projects.name as project_name
        from alert_rules as rule left join projects on projects.id = project_id
        where due_at <= ${instant(at + 1)}::text::timestamptz and projects.archived_at is null
        order by due_at limit 1 for update of rule skip locked`
      if (due === undefined) return 'none'
      const scan = due.metric === 'spend' ? await readSpend(step, due, at) : await readWindow(step, due, at)
      const { value, since, dueAt } = scan
      const { id, account_id: accountId, is_firing: isFiring, metric, threshold } = due
      const change = alertChange({ isFiring, threshold }, value)
      await step`
        update alert_rules set value = ${value}, due_at = ${instant(dueAt)}::text::timestamptz,
          since = ${since === null ? null : JSON.stringify(since)}::text::jsonb,
          is_firing = ${change === null ? isFiring : change === 'fired'},
          changed_at = case when ${change !== null} then ${instant(at)}::text::timestamptz else changed_at end
        where id = ${id}`
      if (change === null || value === null) return null
      const { project_id: projectId, project_name: projectName } = due
      await enqueueEvent(step, accountId, {
        type: change === 'fired' ? 'alert.fired' : 'alert.resolved',
        data: { alert_id: id, metric, threshold, value },
        project: projectId === null ? null : { id: projectId, name: projectName ?? '' },
      })
      if (change === 'resolved') return null
      const recipients = await step<{ email: string }[]>`
        select email from users
        where account_id = ${accountId} and removed_at is null and (role = 'owner' or exists (
          select from project_members
          where user_id = users.id and project_id = ${projectId} and project_members.role = 'admin'))`
      return { metric, threshold, value, project: projectName, recipients: recipients.map(({ email }) => email) }
    }),
  )
}

type Measurement = { readonly value: number | null; readonly since: Due['since']; readonly dueAt: number }

/** SQL for the daily sums of an alert's account or project. */
const getDays = (step: TransactionSql, { account_id: accountId, project_id: projectId }: Due) =>
  projectId === null
    ? step`usage_daily where account_id = ${accountId}`
    : step`usage_tags_daily where account_id = ${accountId} and tag = ${projectTag(projectId)}`

async function readSpend(step: TransactionSql, due: Due, at: number): Promise<Measurement> {
  const rows = await step<{ microcents: number }[]>`
    select coalesce(sum(billed_microcents), 0)::float8 as microcents from ${getDays(step, due)}
      and day = ${dayText(at)}::text::date`
  return { value: spendValue(rows[0]?.microcents ?? 0), since: null, dueAt: at + spendEveryMs }
}

async function readWindow(step: TransactionSql, due: Due, at: number): Promise<Measurement> {
  const { since, metric, window_minutes: minutes } = due
  const today = dayText(at)
  const now = await sumsFrom(step, due, today)
  const next = { ...now, day: today }
  const dueAt = at + minutes * 60_000
  // Without a previous reading, or after a long stop of all gateways, a window begins.
  if (since === null || metric === 'spend' || since.day < dayText(at - dayMs))
    return { value: null, since: next, dueAt }
  const whole = since.day === today ? now : await sumsFrom(step, due, since.day)
  return { value: windowValue(metric, sumsBetween(since, whole)), since: next, dueAt }
}

/** Returns the sums of an alert's account or project from a UTC day on. */
async function sumsFrom(step: TransactionSql, due: Due, day: string): Promise<WindowSums> {
  const rows = await step<WindowSums[]>`
    select requests::float8 as requests, failed::float8 as failed, array_to_json(latency) as latency
    from ${getDays(step, due)} and day >= ${day}::text::date`
  const latency: number[] = []
  let [requests, failed] = [0, 0]
  for (const row of rows) {
    requests += row.requests
    failed += row.failed
    for (const [index, count] of row.latency.entries()) latency[index] = (latency[index] ?? 0) + count
  }
  return { requests, failed, latency: Array.from(latency, count => count ?? 0) }
}

const instant = (at: number) => new Date(at).toISOString()
const dayText = (at: number) => instant(at).slice(0, 10)
