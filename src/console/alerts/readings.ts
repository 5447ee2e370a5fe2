/**
 * The values of an alert, read in the transaction that holds its row. Sums come from the daily totals; a window of error rate
 * or latency is the difference of two readings. Models and sessions come from the newest records of the window.
 */

import type { TransactionSql } from 'postgres'
import {
  type AlertMetric,
  type AlertReading,
  type Budget,
  type BudgetKind,
  type BudgetSpan,
  budgetReading,
  modelReading,
  type SessionShares,
  sessionReading,
  sumsBetween,
  unpricedReading,
  valueReading,
  type WindowSums,
  windowValue,
} from '../../core/alerts/alerts.ts'
import { budgetPeriod, periodKey } from '../../core/billing/grace.ts'
import { hedgeLost, requestFailures } from '../../core/chat/attempts.ts'
import type { PlanName, Plans } from '../../core/limits/plans.ts'
import type { ScopeLimits } from '../../core/limits/scopes.ts'
import { projectTag, projectTagName } from '../../core/request/tags.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import { spentInPeriod } from '../../database/repositories/budget-tracker.ts'

/** An alert that is evaluated. */
export type DueAlert = {
  readonly account_id: string
  readonly metric: AlertMetric
  readonly window_minutes: number
  readonly budget: BudgetKind | null
  readonly span: BudgetSpan | null
  readonly since: (WindowSums & { readonly day: string }) | null
  readonly project_id: string | null
}

type Scan = {
  readonly readings: readonly AlertReading[]
  readonly since: DueAlert['since']
  /** When the alert is evaluated next, in epoch milliseconds. */
  readonly dueAt: number
}

type When = {
  /** Epoch milliseconds. */
  readonly at: number
  readonly plans: Plans
  /** Budgets of keys, tags and projects by account: all alerts of one run read them once. */
  readonly budgets: Map<string, readonly Budget[]>
}

const everyMs = 60_000
/** Records of one window that are read, the newest. */
const maximumRecords = 20_000
/** A model with fewer calls in the window, and a session with fewer requests on either side of its beginning, has no value. */
const minimumCalls = 3
/** Windows before the present one that a session is compared with. */
const windowsBefore = 4
/** A session with a lower share of cached input loses too little. */
const minimumCachedShare = 0.2

export const instant = (at: number) => new Date(at).toISOString()
const dayText = (at: number) => instant(at).slice(0, 10)

export async function scanAlert(step: TransactionSql, due: DueAlert, when: When): Promise<Scan> {
  const { at } = when
  const soon = (readings: readonly AlertReading[]) => ({ readings, since: null, dueAt: at + everyMs })
  switch (due.metric) {
    case 'spend':
      return soon([await readSpend(step, due, at)])
    case 'budget':
      return soon((await readBudgets(step, due, when)).map(budgetReading))
    case 'model_failures':
      return soon((await readModels(step, due, at)).map(modelReading))
    case 'cache_drop':
      return soon((await readSessions(step, due, at)).map(sessionReading))
    case 'unpriced':
      return soon((await readUnpriced(step, due, at)).map(unpricedReading))
    case 'runaway':
      return soon([await readRunaway(step, due, at)])
    default:
      return readWindow(step, due, due.metric, at)
  }
}

/** SQL for the daily sums of an alert's account or project. */
const getDays = (step: TransactionSql, { account_id: accountId, project_id: projectId }: DueAlert) =>
  projectId === null
    ? step`usage_daily where account_id = ${accountId}`
    : step`usage_tags_daily where account_id = ${accountId} and tag = ${projectTag(projectId)}`

async function readSpend(step: TransactionSql, due: DueAlert, at: number): Promise<AlertReading> {
  const rows = await step<{ microcents: number }[]>`
    select coalesce(sum(billed_microcents), 0)::float8 as microcents from ${getDays(step, due)}
      and day = ${dayText(at)}::text::date`
  return valueReading('spend', toUsd(rows[0]?.microcents ?? 0))
}

async function readWindow(
  step: TransactionSql,
  due: DueAlert,
  metric: 'error_rate' | 'latency',
  at: number,
): Promise<Scan> {
  const { since, window_minutes: minutes } = due
  const today = dayText(at)
  const now = await sumsFrom(step, due, today)
  const next = { since: { ...now, day: today }, dueAt: at + minutes * 60_000 }
  // Without a previous reading, or after a long stop of all gateways, a window begins.
  if (since === null || since.day < dayText(at - dayMs)) return { readings: [], ...next }
  const whole = since.day === today ? now : await sumsFrom(step, due, since.day)
  const value = windowValue(metric, sumsBetween(since, whole))
  return { readings: [valueReading(metric, value)], ...next }
}

/** Returns the sums of an alert's account or project from a UTC day on. */
async function sumsFrom(step: TransactionSql, due: DueAlert, day: string): Promise<WindowSums> {
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

/** Reads the budgets that an alert covers: those of its project and of the keys in it, or all of the account. */
async function readBudgets(step: TransactionSql, due: DueAlert, when: When): Promise<readonly Budget[]> {
  const { budget, span, project_id: projectId } = due
  const all = [
    ...(projectId === null && (budget ?? 'account') === 'account' ? await accountBudgets(step, due, when) : []),
    ...(budget === 'account' ? [] : await knownBudgets(step, due, when)),
  ]
  return all.filter(item => item.limit > 0 && [null, item.kind].includes(budget) && [null, item.span].includes(span))
}

async function knownBudgets(step: TransactionSql, due: DueAlert, when: When): Promise<readonly Budget[]> {
  const { account_id: accountId, project_id: projectId } = due
  const known = when.budgets.get(accountId) ?? (await scopeBudgets(step, accountId, when.at))
  when.budgets.set(accountId, known)
  return projectId === null ? known : known.filter(({ project }) => project?.id === projectId)
}

async function accountBudgets(step: TransactionSql, due: DueAlert, { at, plans }: When): Promise<readonly Budget[]> {
  const { account_id: accountId } = due
  const [account] = await step<{ plan: PlanName; daily: number | null; cap: number | null; cycle: number | null }[]>`
    select plan, daily_cost_microcents::float8 as daily, soft_cap_microcents::float8 as cap,
      (extract(epoch from cycle_started_at) * 1000)::float8 as cycle
    from accounts where id = ${accountId}`
  if (account === undefined) return []
  const { plan, daily, cap, cycle } = account
  const ofAccount = { kind: 'account', id: '', name: '', project: null } as const
  const midnight = at - (at % dayMs)
  const limit = daily ?? plans[plan].dailyCostMicrocents
  const used = await spentInPeriod(step, accountId, { startsAt: midnight, endsAt: midnight + dayMs })
  const ofDay = { ...ofAccount, span: 'day', period: dayText(at), limit, used } as const
  if (cap === null) return [ofDay]
  const period = budgetPeriod(cycle, at)
  const spent = await spentInPeriod(step, accountId, period)
  return [ofDay, { ...ofAccount, span: 'month', period: periodKey(period), limit: cap, used: spent }]
}

type ScopeRow = Pick<Budget, 'id' | 'name' | 'project'> & {
  readonly kind: 'key' | 'tag' | 'project'
  readonly limits: ScopeLimits
  readonly today: number
  readonly month: number
}

/** Reads the budgets of lineages of keys, tags and projects: each table of sums is read once. */
async function scopeBudgets(step: TransactionSql, accountId: string, at: number): Promise<readonly Budget[]> {
  const today = dayText(at)
  const sums = step`
    coalesce(sum(billed_microcents) filter (where day = ${today}::text::date), 0)::float8 as today,
    coalesce(sum(billed_microcents), 0)::float8 as month`
  const inMonth = step`day between date_trunc('month', ${today}::text::date)::date and ${today}::text::date`
  const rows = await step<ScopeRow[]>`
    with keys as (
      select distinct on (coalesce(line_id, id)) coalesce(line_id, id) as line, name, limits, project_id
      from api_keys
      where account_id = ${accountId} and limits is not null and (revoked_at is null or revoked_at > ${instant(at)}::text::timestamptz)
      order by coalesce(line_id, id), created_at desc),
    key_sums as (
      select coalesce(line_id, api_keys.id) as line, ${sums}
      from usage_daily join api_keys on api_keys.id = key_id
      where usage_daily.account_id = ${accountId} and ${inMonth} group by 1),
    tags as (
      select name, value, name || '=' || value as tag, limits,
        case when name = ${projectTagName} then value end as project_id
      from tag_limits where account_id = ${accountId}),
    tag_sums as (
      select tag, ${sums} from usage_tags_daily
      where account_id = ${accountId} and tag in (select tag from tags) and ${inMonth} group by tag),
    scopes as (
      select 'key' as kind, line as id, name, limits, project_id, today, month from keys left join key_sums using (line)
      union all
      select case when project_id is null then 'tag' else 'project' end, coalesce(project_id, tag), tag, limits, project_id,
        today, month
      from tags left join tag_sums using (tag))
    select kind, scopes.id, case when kind = 'project' then projects.name else scopes.name end as name, limits,
      case when projects.id is not null then json_build_object('id', projects.id, 'name', projects.name) end as project,
      coalesce(today, 0) as today, coalesce(month, 0) as month
    from scopes left join projects on projects.id = project_id`
  return rows.flatMap(({ limits, today: used, month, ...scope }) => [
    { ...scope, span: 'day' as const, period: today, limit: limits.dailyCostMicrocents ?? 0, used },
    {
      ...scope,
      span: 'month' as const,
      period: today.slice(0, 7),
      limit: limits.monthlyCostMicrocents ?? 0,
      used: month,
    },
  ])
}

/**
 * SQL for the newest records of an alert's account or project since a time. The maximum counts records of the account: a project
 * with few of them would otherwise read all of the others.
 */
const recordsSince = (
  step: TransactionSql,
  { account_id: accountId, project_id: projectId }: DueAlert,
  since: number,
) =>
  step`
    select * from (
      select at, provider, model, status, tried, unpriced, trace, tags, input_tokens, cached_input_tokens from usage_records
      where account_id = ${accountId} and at >= ${instant(since)}::text::timestamptz
      order by at desc limit ${maximumRecords}) as newest
    where ${projectId}::text is null or tags ->> ${projectTagName} = ${projectId}`

/** Reads how many calls of each model failed in the window, without those that the request made fail. */
function readModels(step: TransactionSql, due: DueAlert, at: number) {
  const ignored = JSON.stringify([hedgeLost, ...requestFailures])
  return step<{ model: string; calls: number; failed: number }[]>`
    select attempt ->> 0 as model, count(*)::int as calls,
      (count(*) filter (where attempt ->> 1 <> 'served'))::int as failed
    from (${recordsSince(step, due, at - due.window_minutes * 60_000)}) as recent, jsonb_array_elements(tried) as attempt
    where attempt ->> 1 not in (select json_array_elements_text(${ignored}::text::json))
    group by 1 having count(*) >= ${minimumCalls} order by 1`
}

/** Reads how many requests of each model that served in the window have usage without a known price. */
function readUnpriced(step: TransactionSql, due: DueAlert, at: number) {
  return step<{ model: string; unpriced: number }[]>`
    select provider || '/' || model as model, count(unpriced)::int as unpriced
    from (${recordsSince(step, due, at - due.window_minutes * 60_000)}) as recent
    where model <> '' group by 1 order by 1`
}

/**
 * Reads how many requests in the window had reached a step of runaway protection. A stopped request has no record: a conversation
 * is warned before.
 */
async function readRunaway(step: TransactionSql, due: DueAlert, at: number): Promise<AlertReading> {
  const rows = await step<{ runaway: number }[]>`
    select count(trace ->> 'w')::int as runaway
    from (${recordsSince(step, due, at - due.window_minutes * 60_000)}) as recent`
  return valueReading('runaway', rows[0]?.runaway ?? 0)
}

/**
 * Reads the cached share of each session in the window, and in the windows before. A session with too few requests on one side has
 * no shares: while its requests are in sight it keeps its state, so that a slow session is not reported again.
 */
function readSessions(step: TransactionSql, due: DueAlert, at: number) {
  const windowMs = due.window_minutes * 60_000
  const isNow = step`at >= ${instant(at - windowMs)}::text::timestamptz`
  return step<SessionShares[]>`
    select session, case when is_valid then before end as before, case when is_valid then now end as now
    from (
      select *, coalesce(least(count_now, count_before) >= ${minimumCalls} and before >= ${minimumCachedShare}, false)
        and now is not null as is_valid
      from (
        select tags ->> 'session' as session,
          count(*) filter (where ${isNow}) as count_now, count(*) filter (where not ${isNow}) as count_before,
          sum(cached_input_tokens) filter (where ${isNow}) / nullif(sum(input_tokens) filter (where ${isNow}), 0)::float8 as now,
          sum(cached_input_tokens) filter (where not ${isNow})
            / nullif(sum(input_tokens) filter (where not ${isNow}), 0)::float8 as before
        from (${recordsSince(step, due, at - (1 + windowsBefore) * windowMs)}) as recent
        where status = 'completed' and tags ->> 'session' is not null group by 1) as sums) as sessions
    order by 1`
}
