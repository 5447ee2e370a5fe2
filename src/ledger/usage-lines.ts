/**
 * What usage totals are summed from: lines of the daily totals, which do not grow with the log, or lines of the log itself,
 * for hours and for filters that the daily totals do not know.
 */
import type { Sql, TransactionSql } from 'postgres'
import { projectTag, projectTagName } from '../core/request/tags.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { bucketCount, durationBoundsMs } from '../core/usage/latency-histogram.ts'
import {
  needsLog,
  summedColumns,
  summedMoney,
  summedTokens,
  type usageGroups,
  type usageSplits,
} from '../core/usage/usage-groups.ts'
import {
  ofOwnKey,
  ofProjects,
  seesProjects,
  type UsageScope,
  visibleRecords,
  visibleTagDays,
} from '../database/visible-requests.ts'
import { matching, type RequestFilters, selectedKeys } from './request-filters.ts'

export type UsageGroup = (typeof usageGroups)[number]
export type UsageSplit = (typeof usageSplits)[number]

/** UTC days `YYYY-MM-DD`, inclusive. Only groups by time or query type can be split further: a request is in one of them. */
export type UsagePeriod = {
  readonly from: string
  readonly to: string
  readonly groupBy: UsageGroup
  readonly splitBy: UsageSplit | null
  /** Only requests with this tag: `name=value`, or a name with any value; null = all. Required to split by tag. */
  readonly tag?: string | null
  /** Their times narrow the days; null = all requests of the days. */
  readonly filters?: RequestFilters | null
}

/** Returns true if only the log knows these totals: the daily totals of a tag do not have the project. */
export function readsLog(scope: UsageScope, { groupBy, tag = null, filters, splitBy }: UsagePeriod): boolean {
  if (needsLog(groupBy, filters, splitBy)) return true
  const isOfProject = (filters?.projectId ?? null) !== null || seesProjects(scope)
  return isOfProject && (tag !== null || groupBy === 'tag')
}

/** SQL for the lines of a period; those of the log have `slots` in place of latency counts. */
export function getLines(sql: TransactionSql, scope: UsageScope, period: UsagePeriod) {
  return readsLog(scope, period) ? sql`(${getLog(sql, scope, period)})` : sql`(${getDays(sql, scope, period)})`
}

/** Failed requests that a sum by model attributes to the requested model: the newest ones. */
const maximumAttributed = 20_000

/**
 * Returns the daily totals of a period. Requests that no model served count for the model that they named: the totals
 * have them under an empty name, so each is subtracted there and added here.
 */
function getDays(sql: TransactionSql, scope: UsageScope, period: UsagePeriod) {
  const { from, to, groupBy, splitBy, filters } = period
  const isTagged = readsTags(period)
  const { provider = null, model = null } = filters ?? {}
  const ofKey = getKeys(sql, scope, filters)
  const ofTag = isTagged ? taggedBy(sql, period) : sql``
  const linesIn = (isOfTag: boolean, own: ReturnType<typeof visibleRecords>) => sql`
    select day, key_id, model, ${isTagged ? sql`tag` : sql`null`} as tag, ${sql(summedColumns)},
      latency, first_token
    from ${isOfTag ? sql`usage_tags_daily` : sql`usage_daily`}
    where account_id = ${scope.accountId} and day between ${from}::text::date and ${to}::text::date ${ofKey} ${own} ${ofTag}`
  const { userId, projectIds = [] } = scope
  const all = isTagged
    ? linesIn(true, visibleTagDays(sql, scope))
    : userId === null
      ? linesIn(false, sql``)
      : projectIds.length === 0
        ? linesIn(false, sql`and ${ofOwnKey(sql, scope)}`)
        : // A request has at most one project, so the totals of projects count none of their requests twice.
          sql`${linesIn(false, sql`and ${ofOwnKey(sql, scope)}`)} union all
            ${linesIn(true, sql`and ${ofProjects(sql, projectIds)} and not ${ofOwnKey(sql, scope)}`)}`
  const isDivided = splitBy === 'project' && !isTagged
  const days = isDivided ? sql`${all} union all ${movedToProjects(sql, scope, period)}` : all
  if (groupBy !== 'model' && splitBy !== 'model' && provider === null && model === null) return days
  const unserved = sql`
      union all
      select (at at time zone 'UTC')::date, key_id, moved.model, tag, moved.sign, 0,
        moved.sign * (status in ('failed', 'blocked'))::int, 0, 0, 0, 0, 0, 0, 0, 0, '{}', '{}'
      from (
        select at, key_id, status, requested_model, ${isTagged ? sql`tag` : isDivided ? getProjectTag(sql) : sql`null`} as tag
        from usage_records ${isTagged ? eachTag(sql) : sql``}
        where account_id = ${scope.accountId} and status <> 'completed' and model = '' and requested_model is not null
          ${withinDays(sql, period)} ${ofKey} ${visibleRecords(sql, scope)} ${ofTag}
        order by at desc limit ${maximumAttributed}) as unserved
      cross join lateral (values (requested_model, 1), ('', -1)) as moved(model, sign)`
  return sql`
    select * from (${days} ${unserved}) as attributed
    where true
      ${provider === null ? sql`` : sql`and starts_with(model, ${`${provider}/`})`}
      ${model === null ? sql`` : sql`and substr(model, strpos(model, '/') + 1) = ${model}`}`
}

/**
 * SQL for lines that move usage to its project: beside lines without a project, each line of a project is added under its
 * tag, and subtracted without it. Summed first: without the columns that nothing reads, few lines are left to be doubled.
 */
function movedToProjects(sql: TransactionSql, scope: UsageScope, period: UsagePeriod) {
  const { from, to, groupBy, filters } = period
  const hasKeys = groupBy === 'key' || groupBy === 'member'
  const hasModels = groupBy === 'model' || (filters?.provider ?? null) !== null || (filters?.model ?? null) !== null
  const counts = (column: 'latency' | 'first_token') =>
    sql`case sign when 1 then ${sql(column)} else array(select -count from unnest(${sql(column)}) as count) end`
  return sql`
    select day, key_id, model, case sign when 1 then tag end, ${summedColumns.map(name => sql`sign * ${sql(name)}, `)}
      ${counts('latency')}, ${counts('first_token')}
    from (
      select day, ${hasKeys ? sql`key_id` : sql`null`} as key_id, ${hasModels ? sql`model` : sql`null`} as model, tag,
        ${summedColumns.map(name => sql`sum(${sql(name)}) as ${sql(name)}, `)}
        ${addedCounts(sql, 'latency')} as latency, ${addedCounts(sql, 'first_token')} as first_token
      from usage_tags_daily
      where account_id = ${scope.accountId} and day between ${from}::text::date and ${to}::text::date
        and starts_with(tag, ${projectTag('')}) ${getKeys(sql, scope, filters)} ${visibleTagDays(sql, scope)}
      group by 1, 2, 3, 4) as sums
    cross join lateral (values (1), (-1)) as moved(sign)`
}

/** SQL for the tag of a request's project; null = none. */
const getProjectTag = (sql: TransactionSql) => sql`${projectTag('')}::text || (tags ->> ${projectTagName}::text)`

/**
 * SQL condition for the requests of a period's days. It compares times with times: another type, such as a day with a
 * time zone, depends on the session's zone, uses no index, and reads every month of the log.
 */
function withinDays(sql: TransactionSql, { from, to }: UsagePeriod) {
  const after = new Date(Date.parse(to) + dayMs).toISOString()
  return sql`and at >= ${`${from}T00:00:00Z`}::timestamptz and at < ${after}::timestamptz`
}

/** SQL that joins a request with each of its tags. */
const eachTag = (sql: TransactionSql) =>
  sql`cross join lateral (select key || '=' || value as tag from jsonb_each_text(tags)) as tagged`

/** Returns true if the lines are those of tags: of a client's tag, or of a project. */
function readsTags({ groupBy, tag = null, filters }: UsagePeriod): boolean {
  return tag !== null || groupBy === 'tag' || groupBy === 'project' || (filters?.projectId ?? null) !== null
}

/**
 * SQL condition for the lines of the tags that a period is about: `name=value`, a name with any value, a project, or all
 * tags that clients set.
 */
function taggedBy(sql: TransactionSql, { groupBy, tag = null, filters }: UsagePeriod) {
  const ofProject = projectTag('')
  if (tag !== null) return tag.includes('=') ? sql`and tag = ${tag}` : sql`and starts_with(tag, ${`${tag}=`})`
  if (groupBy === 'tag') return sql`and not starts_with(tag, ${ofProject})`
  const projectId = filters?.projectId ?? null
  return projectId === null ? sql`and starts_with(tag, ${ofProject})` : sql`and tag = ${projectTag(projectId)}`
}

/**
 * SQL for lines like the daily totals from the requests that match, with only the columns that the groups need: fewer
 * groups are several times faster. Instead of latency counts they have `slots`, by which they are grouped too: counting
 * every request into an array took as long as everything else.
 */
function getLog(sql: TransactionSql, scope: UsageScope, period: UsagePeriod) {
  const { groupBy, splitBy, tag = null, filters } = period
  const isTagged = tag !== null || groupBy === 'tag' || groupBy === 'project'
  const has = (group: UsageGroup) => groupBy === group || splitBy === group
  return sql`
    select
      ${has('minute') || has('hour') ? sql`date_trunc(${groupBy}::text, at, 'UTC') at time zone 'UTC'` : sql`null::timestamp`} as hour,
      ${has('day') || has('month') ? sql`(at at time zone 'UTC')::date` : sql`null::date`} as day,
      ${has('key') || has('member') ? sql`key_id` : sql`null`} as key_id,
      ${has('model') ? sql`case when model = '' then coalesce(requested_model, '') else provider || '/' || model end` : sql`null`} as model,
      ${has('tag') || has('project') ? sql`tag` : sql`null`} as tag,
      ${has('dialect') ? sql`coalesce(dialect, '')` : sql`null`} as dialect,
      ${has('query_type') ? sql`coalesce(query_type, '')` : sql`null`} as query_type,
      count(*) as requests, count(*) filter (where status = 'completed') as completed,
      count(*) filter (where status in ('failed', 'blocked')) as failed,
      ${[...summedTokens, ...summedMoney].map(name => sql`coalesce(sum(${sql(name)}), 0) as ${sql(name)}, `)} slots
    from (
      select *, ${getDurationSlots(sql)} as slots ${has('project') && !isTagged ? sql`, ${getProjectTag(sql)} as tag` : sql``}
      from usage_records ${isTagged ? eachTag(sql) : sql``}
      where account_id = ${scope.accountId} ${withinDays(sql, period)}
        ${filters?.from == null ? sql`` : sql`and at >= to_timestamp(${filters.from}::float8 / 1000)`}
        ${filters?.to == null ? sql`` : sql`and at < to_timestamp(${filters.to}::float8 / 1000)`}
        ${filters == null ? sql`` : matching(sql, filters)}
        ${getKeys(sql, scope, filters)}
        ${visibleRecords(sql, scope)}
        ${isTagged ? taggedBy(sql, period) : sql``}
      order by at desc, request_id desc offset 0
    ) as requests
    group by 1, 2, 3, 4, 5, 6, 7, slots`
}

function getKeys(sql: TransactionSql, { accountId }: UsageScope, filters: UsagePeriod['filters']) {
  const { keyId = null, memberId = null } = filters ?? {}
  if (keyId === null && memberId === null) return sql``
  return sql`and key_id in (${selectedKeys(sql, accountId, keyId, [memberId])})`
}

type Queries = Sql | TransactionSql

const bounds = `{${durationBoundsMs.join()}}`
/** More than a bucket number; a power of two. */
const radix = 64

type Milliseconds = 'latency_ms' | 'first_token_ms'

/** SQL for the bucket of a row by a column of milliseconds; null if the request did not complete. */
export const getDurationSlot = (sql: Queries, milliseconds: Milliseconds) =>
  // The subselect reads the bounds once instead of for each row. Postgres has a fast search for doubles only.
  sql`case when status = 'completed' then width_bucket(${sql(milliseconds)}::float8, (select ${bounds}::text::float8[])) end`

/** SQL for both buckets of a row as one integer, so that rows can be grouped by it; null if the request did not complete. */
const getDurationSlots = (sql: Queries) => sql`
  ${getDurationSlot(sql, 'latency_ms')} * ${radix}::int + coalesce(${getDurationSlot(sql, 'first_token_ms')}, ${radix - 1}::int)`

/** Sums of elements are plain SQL: an aggregate function of our own takes ten times as long over many rows. */
const countSums = (counts: 'latency' | 'first_token', type: 'float8' | 'int') =>
  Array.from({ length: bucketCount }, (_, slot) => `coalesce(sum(${counts}[${slot + 1}]), 0)::${type}`)

/** SQL for the sums of stored counts per bucket. */
export const storedCounts = (sql: Queries, counts: 'latency' | 'first_token') =>
  sql.unsafe(`json_build_array(${countSums(counts, 'float8')})`)

/** SQL for the same sums in the form of stored counts, so that they can be summed further. */
const addedCounts = (sql: Queries, counts: 'latency' | 'first_token') =>
  sql.unsafe(`array[${countSums(counts, 'int')}]`)

/**
 * SQL for the sums of `requests` per bucket over rows that are grouped by `slots` (`getDurationSlots`). Sums of filtered
 * rows are plain SQL, which Postgres can run in parallel, and there are few such rows.
 */
export const countsBySlots = (sql: Queries, milliseconds: Milliseconds) => {
  const slot = milliseconds === 'latency_ms' ? `slots / ${radix}` : `slots % ${radix}`
  const sums = Array.from(
    { length: bucketCount },
    (_, number) => `coalesce(sum(requests) filter (where ${slot} = ${number}), 0)::float8`,
  )
  // Text of constants only: a parameter for each number would make the statement as large again.
  return sql.unsafe(`json_build_array(${sums})`)
}
