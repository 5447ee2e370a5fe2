/**
 * Usage totals and charts. They come from the daily totals, which do not grow with the log. Hours, and filters that the
 * daily totals do not know, sum the log itself over a bounded range.
 */
import type { TransactionSql } from 'postgres'
import { projectTag } from '../core/request/tags.ts'
import { bucketCount } from '../core/usage/latency-histogram.ts'
import { fromNames } from '../core/usage/shown-fields.ts'
import { isTime, summedColumns } from '../core/usage/usage-groups.ts'
import type { Database } from '../database/database.ts'
import { withAccountRls } from '../database/statement.ts'
import type { UsageScope } from '../database/visible-requests.ts'
import {
  countsBySlots,
  getLines,
  readsLog,
  storedCounts,
  type UsageGroup,
  type UsagePeriod,
  type UsageSplit,
} from './usage-lines.ts'

/** Sums over requests. */
export type UsageSums = Readonly<Record<(typeof summedColumns)[number], number>> & {
  /** Latency counts of completed requests in the buckets of `core/usage/latency-histogram.ts`. */
  readonly latency: readonly number[]
  readonly first_token: readonly number[]
}

/**
 * `YYYY-MM-DDTHH:MM`, `YYYY-MM-DDTHH`, `YYYY-MM-DD`, `YYYY-MM`, `provider/model` (empty = no model was reached), the first key of a key
 * lineage, a user, a tag (`name=value`), a dialect (empty = an older request without it), a project (empty = none, only
 * in a split), or a query type (empty = an embedding).
 */
type Unit = { readonly unit: string; readonly name: string | null }

export type GroupedUsage = {
  readonly total: UsageSums
  readonly groups: readonly (UsageSums & Unit)[]
  /** Each group split, most expensive parts first; null = not requested. */
  readonly parts: readonly UsagePart[] | null
}

/** Usage of one part by the groups' units; null = the sum of all other parts. */
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
    const prepared = readsLog(scope, period) ? prepareSum(sql) : null
    const { splitBy } = period
    if (splitBy === null) {
      const [grouped] = await Promise.all([readGroups(sql, scope, period), prepared])
      return { ...grouped, parts: null }
    }
    // All parts together are the groups, so that the log is read once.
    const [parts] = await Promise.all([readParts(sql, scope, period, splitBy), prepared])
    return { ...getGroups(parts), parts }
  }, deadlineMs)
}

/**
 * Sets the planner for one sum over the log. Groups stay in memory instead of on disk. Without sorting, only the index
 * of the account's requests has the order of `getLog`: the planner prefers indexes that read all accounts. Compiling the
 * statement takes longer than running it.
 */
const prepareSum = (sql: TransactionSql) =>
  sql`
    select set_config('work_mem', '32MB', true), set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`.execute()

async function readGroups(
  sql: TransactionSql,
  scope: UsageScope,
  period: UsagePeriod,
): Promise<Omit<GroupedUsage, 'parts'>> {
  const { groupBy } = period
  const [total, ...groups] = await sql<(UsageSums & Unit & { is_total: boolean })[]>`
    select
      grouping(unit) = 1 as is_total, unit, ${getName(sql, groupBy, sql`unit`)} as name,
      ${summed(sql, scope, period)}
    from (select ${getUnit(sql, groupBy)} as unit, lines.* from ${getLines(sql, scope, period)} as lines) as units
    group by grouping sets ((unit), ())
    having grouping(unit) = 1 or sum(requests) > 0
    order by is_total desc, ${isTime(groupBy) ? sql`unit` : sql`billed_microcents desc, unit`}
    limit ${maximumGroups + 1}`
  if (total === undefined || !total.is_total) throw new Error('a sum over no days is a row too')
  if ((groupBy !== 'tag' && groupBy !== 'project') || period.tag) return { total, groups }
  // A request is in one group per tag, and in no group without a project.
  return { total: (await readGroups(sql, scope, { ...period, groupBy: 'month' })).total, groups }
}

async function readParts(sql: TransactionSql, scope: UsageScope, period: UsagePeriod, splitBy: UsageSplit) {
  const rows = await sql<(UsageSums & Unit & { place: number; part: string | null })[]>`
    with lines as (
      select ${getUnit(sql, period.groupBy)} as unit, ${getUnit(sql, splitBy)} as part, lines.*
      from ${getLines(sql, scope, period)} as lines
    ), ranked as (
      select part, least(row_number() over (order by sum(billed_microcents) desc, sum(requests) desc, part), ${maximumParts + 1}::int)::int as place
      from lines group by part having sum(requests) > 0
    )
    select
      place, min(part) filter (where place <= ${maximumParts}::int) as part, unit,
      ${getName(sql, splitBy, sql`min(part)`)} as name,
      ${summed(sql, scope, period)}
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

/** Returns the groups of a period from their parts. */
function getGroups(parts: readonly UsagePart[]): Omit<GroupedUsage, 'parts'> {
  const byUnit = Map.groupBy(
    parts.flatMap(part => [...part.byUnit]),
    ([unit]) => unit,
  )
  const groups = [...byUnit]
    .map(([unit, found]) => ({ unit, name: null, ...sumOfSums(found.map(([, sums]) => sums)) }))
    .filter(({ requests }) => requests > 0)
    .sort((item, other) => (item.unit < other.unit ? -1 : 1))
  return { total: sumOfSums(groups), groups: groups.slice(0, maximumGroups) }
}

function sumOfSums(all: readonly UsageSums[]): UsageSums {
  const counts = (field: 'latency' | 'first_token') =>
    Array.from({ length: bucketCount }, (_, slot) =>
      all.reduce((to, usageSums) => to + (usageSums[field][slot] ?? 0), 0),
    )
  return {
    ...fromNames(summedColumns, field => all.reduce((to, usageSums) => to + usageSums[field], 0)),
    latency: counts('latency'),
    first_token: counts('first_token'),
  }
}

function getUnit(sql: TransactionSql, group: UsageGroup) {
  const units = {
    minute: sql`to_char(hour, 'YYYY-MM-DD"T"HH24:MI')`,
    hour: sql`to_char(hour, 'YYYY-MM-DD"T"HH24')`,
    day: sql`day::text`,
    month: sql`to_char(day, 'YYYY-MM')`,
    model: sql`model`,
    key: sql`coalesce((select line_id from api_keys where id = key_id), key_id)`,
    member: sql`coalesce((select user_id from api_keys where id = key_id), '')`,
    tag: sql`tag`,
    dialect: sql`dialect`,
    project: sql`coalesce(substr(tag, ${projectTag('').length + 1}::int), '')`,
    query_type: sql`query_type`,
  }
  return units[group]
}

/** SQL for the name of a unit: of a key, a user, or a project. */
function getName(sql: TransactionSql, group: UsageGroup, unit: ReturnType<TransactionSql>) {
  if (group === 'key') return sql`(select name from api_keys where id = ${unit})`
  if (group === 'member') return sql`(select email from users where id = ${unit})`
  if (group === 'project') return sql`(select name from projects where id = ${unit})`
  return sql`null`
}

const summed = (sql: TransactionSql, scope: UsageScope, period: UsagePeriod) => sql`
  ${summedColumns.map(name => sql`coalesce(sum(${sql(name)}), 0)::float8 as ${sql(name)}, `)}
  ${readsLog(scope, period) ? countsBySlots(sql, 'latency_ms') : storedCounts(sql, 'latency')} as latency,
  ${readsLog(scope, period) ? countsBySlots(sql, 'first_token_ms') : storedCounts(sql, 'first_token')} as first_token`
