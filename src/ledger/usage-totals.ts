/** Usage totals and charts from the daily totals. Does not read the log, so its length does not matter. */
import type { TransactionSql } from 'postgres'
import type { usageGroups } from '../core/usage/usage-groups.ts'
import { withAccountRls } from '../database/account-transaction.ts'
import type { Database } from '../database/database.ts'

/** An account's usage, or that of one user's keys. Required by every query, so that none is unscoped. */
export type UsageScope = { readonly accountId: string; readonly userId: string | null }

export type UsageGroup = (typeof usageGroups)[number]
const usageSplits = ['model', 'key'] as const
type UsageSplit = (typeof usageSplits)[number]

/** UTC days `YYYY-MM-DD`, inclusive. Only time groups can be split further. */
export type UsagePeriod = {
  readonly from: string
  readonly to: string
  readonly groupBy: UsageGroup
  readonly splitBy: UsageSplit | null
  /** Only requests with this tag: `name=value`, or a name with any value; null = all. */
  readonly tag?: string | null
}

/** Sums over requests. Money is an integer of 1e-8 USD. */
export type UsageSums = {
  readonly requests: number
  readonly completed: number
  /** Failed or blocked requests; client disconnects are in neither count. */
  readonly failed: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly billed_microcents: number
  /** Latency counts of completed requests in the buckets of `core/usage/latency-histogram.ts`. */
  readonly latency: readonly number[]
  readonly first_token: readonly number[]
}

/**
 * `YYYY-MM-DD`, `YYYY-MM`, `provider/model` (empty = no model was reached), the first key of a key lineage, a user, or a tag
 * (`name=value`).
 */
type Unit = { readonly unit: string; readonly name: string | null }

export type GroupedUsage = {
  readonly total: UsageSums
  readonly groups: readonly (UsageSums & Unit)[]
  /** Each group split by model or key, most expensive parts first; null = not requested. */
  readonly parts: readonly UsagePart[] | null
}

/** Usage of one model or key by the groups' units; null = the sum of all other models or keys. */
export type UsagePart = { readonly part: Unit | null; readonly byUnit: ReadonlyMap<string, UsageSums> }

const deadlineMs = 5_000
/**
 * More than the days of three years, and than the models or keys that a chart can show. The most expensive ones are
 * returned.
 */
const maximumGroups = 1_200
/** As many as are distinguishable in one chart. */
const maximumParts = 8

/** Returns sums over a period. Time groups ascend; others are ordered by cost, highest first. */
export function readUsage(database: Database, scope: UsageScope, period: UsagePeriod): Promise<GroupedUsage> {
  return withAccountRls(database, scope.accountId).sql(async sql => {
    const [grouped, parts] = await Promise.all([
      readGroups(sql, scope, period),
      period.splitBy === null ? null : readParts(sql, scope, period, period.splitBy),
    ])
    return { ...grouped, parts }
  }, deadlineMs)
}

async function readGroups(
  sql: TransactionSql,
  scope: UsageScope,
  period: UsagePeriod,
): Promise<Omit<GroupedUsage, 'parts'>> {
  const { groupBy } = period
  const named = {
    key: sql`(select name from api_keys where id = unit)`,
    member: sql`(select email from users where id = unit)`,
  }
  const [total, ...groups] = await sql<(UsageSums & Unit & { is_total: boolean })[]>`
    select
      grouping(unit) = 1 as is_total, unit, ${groupBy === 'key' || groupBy === 'member' ? named[groupBy] : sql`null`} as name,
      ${summed(sql)}
    from (select ${unitOf(sql, groupBy)} as unit, days.* from ${daysOf(sql, scope, period)}) as lines
    group by grouping sets ((unit), ())
    order by is_total desc, ${groupBy === 'day' || groupBy === 'month' ? sql`unit` : sql`billed_microcents desc, unit`}
    limit ${maximumGroups + 1}`
  if (total === undefined || !total.is_total) throw new Error('a sum over no days is a row too')
  if (groupBy !== 'tag' || period.tag) return { total, groups }
  // A request with several tags is in several groups.
  return { total: (await readGroups(sql, scope, { ...period, groupBy: 'month' })).total, groups }
}

async function readParts(sql: TransactionSql, scope: UsageScope, period: UsagePeriod, splitBy: UsageSplit) {
  const rows = await sql<(UsageSums & Unit & { place: number; part: string | null })[]>`
    with lines as (
      select ${unitOf(sql, period.groupBy)} as unit, ${unitOf(sql, splitBy)} as part, days.*
      from ${daysOf(sql, scope, period)}
    ), ranked as (
      select part, least(row_number() over (order by sum(billed_microcents) desc, sum(requests) desc, part), ${maximumParts + 1}::int)::int as place
      from lines group by part
    )
    select
      place, min(part) filter (where place <= ${maximumParts}::int) as part, unit,
      ${splitBy === 'key' ? sql`(select name from api_keys where id = min(part))` : sql`null`} as name,
      ${summed(sql)}
    from lines join ranked using (part)
    group by place, unit
    order by place`
  return [...Map.groupBy(rows, ({ place }) => place).values()].map((ofPart): UsagePart => {
    const [first] = ofPart
    return {
      part: first === undefined || first.part === null ? null : { unit: first.part, name: first.name },
      byUnit: new Map(ofPart.map(row => [row.unit, row])),
    }
  })
}

function daysOf(
  sql: TransactionSql,
  { accountId, userId }: UsageScope,
  { from, to, groupBy, tag = null }: UsagePeriod,
) {
  const isTagged = tag !== null || groupBy === 'tag'
  return sql`${isTagged ? sql`usage_tags_daily` : sql`usage_daily`} as days
    where account_id = ${accountId} and day between ${from}::text::date and ${to}::text::date
      ${
        userId === null
          ? sql``
          : sql`and key_id in (select id from api_keys where account_id = ${accountId} and user_id = ${userId})`
      }
      ${tag === null ? sql`` : tag.includes('=') ? sql`and tag = ${tag}` : sql`and starts_with(tag, ${`${tag}=`})`}`
}

function unitOf(sql: TransactionSql, group: UsageGroup) {
  const units = {
    day: sql`day::text`,
    month: sql`to_char(day, 'YYYY-MM')`,
    model: sql`model`,
    key: sql`coalesce((select line_id from api_keys where id = key_id), key_id)`,
    member: sql`coalesce((select user_id from api_keys where id = key_id), '')`,
    tag: sql`tag`,
  }
  return units[group]
}

const summed = (sql: TransactionSql) => sql`
  coalesce(sum(requests), 0)::float8 as requests,
  coalesce(sum(completed), 0)::float8 as completed,
  coalesce(sum(failed), 0)::float8 as failed,
  coalesce(sum(input_tokens), 0)::float8 as input_tokens,
  coalesce(sum(cached_input_tokens), 0)::float8 as cached_input_tokens,
  coalesce(sum(output_tokens), 0)::float8 as output_tokens,
  coalesce(sum(reasoning_tokens), 0)::float8 as reasoning_tokens,
  coalesce(sum(billed_microcents), 0)::float8 as billed_microcents,
  to_json(gateway_counts_sum(latency)) as latency,
  to_json(gateway_counts_sum(first_token)) as first_token`
