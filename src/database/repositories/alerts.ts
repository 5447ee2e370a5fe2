/**
 * Alerts of accounts. An evaluation locks the alert's row, so that one gateway of many evaluates it, and stores the
 * event with the new state. It reads daily sums only: a window is the difference of two readings.
 */

import {
  type AlertMetric,
  alertChange,
  maximumAlerts,
  spendValue,
  sumsBetween,
  type WindowSums,
  windowValue,
} from '../../core/alerts/alerts.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { type Step, statementIn } from '../statement.ts'
import { recordAudit } from './audit.ts'
import { enqueueEvent } from './webhook-events.ts'

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
}

/** Returns an account's alerts, oldest first. */
export function listAlerts(database: Database, accountId: string): Promise<ListedAlert[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ListedAlert[]>`
      select id, metric, threshold, window_minutes as "windowMinutes", is_firing as "isFiring", value,
        (extract(epoch from changed_at) * 1000)::float8 as "changedAtMs",
        (extract(epoch from created_at) * 1000)::float8 as "createdAtMs"
      from alert_rules where account_id = ${accountId} order by created_at, id`,
  )
}

type NewAlert = Pick<ListedAlert, 'id' | 'metric' | 'threshold' | 'windowMinutes'>

/** Stores an alert. Returns false if the account has the maximum number of them. */
export function addAlert(database: Database, accountId: string, alert: NewAlert): Promise<boolean> {
  const { id, metric, threshold, windowMinutes } = alert
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const rows = await step`
      insert into alert_rules (id, account_id, metric, threshold, window_minutes, created_at)
      select ${id}, ${accountId}, ${metric}, ${threshold}, ${windowMinutes}, clock_timestamp()
      where (select count(*) from alert_rules where account_id = ${accountId}) < ${maximumAlerts}
      returning id`
    if (rows.length === 0) return false
    const details = { metric, threshold, window_minutes: windowMinutes }
    await recordAudit(step, database, { accountId, action: 'alert.created', target: id, details })
    return true
  })
}

/**
 * Changes an alert. Another window starts at once, so that it holds no requests of the former one. Returns false if
 * there is no alert of this ID.
 */
export function changeAlert(
  database: Database,
  accountId: string,
  id: string,
  { threshold, windowMinutes }: { readonly threshold: number | undefined; readonly windowMinutes: number | undefined },
): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async step => {
    const rows = await step`
      update alert_rules set
        threshold = coalesce(${threshold ?? null}::float8, threshold),
        window_minutes = coalesce(${windowMinutes ?? null}::int, window_minutes),
        since = case when ${windowMinutes ?? null}::int <> window_minutes then null else since end,
        due_at = case when ${windowMinutes ?? null}::int <> window_minutes then clock_timestamp() else due_at end
      where id = ${id} and account_id = ${accountId} returning id`
    if (rows.length === 0) return false
    const details = {
      ...(threshold === undefined ? {} : { threshold }),
      ...(windowMinutes === undefined ? {} : { window_minutes: windowMinutes }),
    }
    await recordAudit(step, database, { accountId, action: 'alert.changed', target: id, details })
    return true
  })
}

/** Deletes an alert. Returns false if there is none of this ID. */
export function deleteAlert(database: Database, accountId: string, id: string): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async step => {
    const rows = await step`delete from alert_rules where id = ${id} and account_id = ${accountId} returning id`
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
}

/** An alert that began to fire, with the owners to tell. */
export type FiredAlert = {
  readonly metric: AlertMetric
  readonly threshold: number
  readonly value: number
  readonly owners: readonly string[]
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
        select id, account_id, metric, threshold, window_minutes, is_firing, since from alert_rules
        where due_at <= ${instant(at + 1)}::text::timestamptz order by due_at limit 1 for update skip locked`
      if (due === undefined) return 'none'
      const reading = due.metric === 'spend' ? await readSpend(step, due, at) : await readWindow(step, due, at)
      const { value, since, dueAt } = reading
      const { id, account_id: accountId, is_firing: isFiring, metric, threshold } = due
      const change = alertChange({ isFiring, threshold }, value)
      await step`
        update alert_rules set value = ${value}, due_at = ${instant(dueAt)}::text::timestamptz,
          since = ${since === null ? null : JSON.stringify(since)}::text::jsonb,
          is_firing = ${change === null ? isFiring : change === 'fired'},
          changed_at = case when ${change !== null} then ${instant(at)}::text::timestamptz else changed_at end
        where id = ${id}`
      if (change === null || value === null) return null
      const data = { alert_id: id, metric, threshold, value }
      await enqueueEvent(step, accountId, { type: change === 'fired' ? 'alert.fired' : 'alert.resolved', data })
      if (change === 'resolved') return null
      const owners = await step<{ email: string }[]>`
        select email from users where account_id = ${accountId} and role = 'owner' and removed_at is null`
      return { metric, threshold, value, owners: owners.map(({ email }) => email) }
    }),
  )
}

type Reading = { readonly value: number | null; readonly since: Due['since']; readonly dueAt: number }

async function readSpend(step: Step, { account_id: accountId }: Due, at: number): Promise<Reading> {
  const rows = (await statementIn(step)`
    select coalesce(sum(billed_microcents), 0)::float8 as microcents from usage_daily
    where account_id = ${accountId} and day = ${dayText(at)}::text::date`) as readonly { microcents: number }[]
  return { value: spendValue(rows[0]?.microcents ?? 0), since: null, dueAt: at + spendEveryMs }
}

async function readWindow(step: Step, due: Due, at: number): Promise<Reading> {
  const { account_id: accountId, since, metric, window_minutes: minutes } = due
  const today = dayText(at)
  const now = await sumsFrom(step, accountId, today)
  const next = { ...now, day: today }
  const dueAt = at + minutes * 60_000
  // Without a previous reading, or after a long stop of all gateways, a window begins.
  if (since === null || metric === 'spend' || since.day < dayText(at - dayMs))
    return { value: null, since: next, dueAt }
  const whole = since.day === today ? now : await sumsFrom(step, accountId, since.day)
  return { value: windowValue(metric, sumsBetween(since, whole)), since: next, dueAt }
}

/** Returns the sums of an account from a UTC day on. */
async function sumsFrom(step: Step, accountId: string, day: string): Promise<WindowSums> {
  const rows = (await statementIn(step)`
    select requests::float8 as requests, failed::float8 as failed, array_to_json(latency) as latency from usage_daily
    where account_id = ${accountId} and day >= ${day}::text::date`) as readonly WindowSums[]
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
