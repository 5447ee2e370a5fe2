/** Reads the usage ledger: requests of an account and their sums. */
import type { Sql, TransactionSql } from 'postgres'
import { getScopeNames, monthDays, type ScopeUsage } from '../core/limits/scopes.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSum, nothing } from '../core/usage/usage-record.ts'
import { type CountedUsage, countedUsage, getCorrection, mergedRecords } from '../core/usage/usage-truth.ts'
import type { Database } from '../database/database.ts'
import { withAccountRls } from '../database/statement.ts'
import { seesProjects, type UsageScope, visibleRecords } from '../database/visible-requests.ts'
import type { LedgerUsage, LimitLedger } from '../limits/redis.ts'
import type { Journal } from './journal.ts'
import {
  isOfFailed,
  keyColumns,
  type LoggedRequest,
  type LogPage,
  type LogPosition,
  type LogRange,
  matching,
  type RequestFilters,
  requestColumns,
  selectedKeys,
  testsRequests,
} from './request-filters.ts'

/** Returns the ledger's usage of an account on a UTC day (since the epoch). */
export async function getDailyUsage(database: Database, accountId: string, day: number): Promise<DailyUsage> {
  return (await spentBeside(database, accountId, day, [])).spent
}

const logDeadlineMs = 5_000
/** Maximum rows scanned per statement when no index covers the filter, so that a rare match does not make it slow. */
const maximumWalk = 1_000
/** The same for each of a user's keys. */
const maximumKeyWalk = 400
/** Maximum statements per page; after that the page is returned short. */
const maximumRounds = 6
const batchSize = 1_000

/**
 * Returns a page of the request log, newest first: at most `limit` requests below `before`. The work is bounded, so a
 * page may be short or empty if a filter matches little; only a null `next` is the end.
 */
export async function readRequests(
  database: Database,
  scope: UsageScope,
  filters: RequestFilters,
  { before, limit }: LogRange,
): Promise<LogPage> {
  const requests: LoggedRequest[] = []
  let next = before
  for (let round = 0; round < maximumRounds; round++) {
    const page = await scan(database, scope, filters, next, limit - requests.length)
    requests.push(...page.requests)
    next = page.next
    if (next === null || requests.length >= limit) break
  }
  return { requests, next }
}

/**
 * Yields all matching requests, newest first, in batches, which are empty where none of those tested match. Each batch is a separate statement that continues after the
 * previous one. So a slow client holds no connection or snapshot, and the embedded database with its single backend is
 * free in between.
 */
export async function* exportRequests(
  database: Database,
  scope: UsageScope,
  filters: RequestFilters,
): AsyncGenerator<readonly LoggedRequest[], void> {
  let next: LogPosition | null = null
  do {
    const page: LogPage = await scan(database, scope, filters, next, batchSize)
    yield page.requests
    next = page.next
  } while (next !== null)
}

/**
 * Reads one range of the log. Scans the account's index, or each key's own index if only keys are filtered, so that
 * rare requests in a large account are found quickly. Other filters test row by row, on a bounded number of rows.
 */
async function scan(
  database: Database,
  scope: UsageScope,
  filters: RequestFilters,
  before: LogPosition | null,
  limit: number,
): Promise<LogPage> {
  const { keyId, memberId } = filters
  const { accountId } = scope
  // A project's requests have no index of their own: they are found among those of the account.
  const isOfProjects = seesProjects(scope)
  const userId = isOfProjects ? null : scope.userId
  const isSifted = testsRequests(filters) || isOfProjects
  const byKey = userId !== null || keyId !== null || memberId !== null
  // Of two upper bounds, the walk may begin at the higher one.
  const to = before !== null && filters.to !== null && before.atMicros < filters.to * 1000 ? null : filters.to
  const depth = isSifted ? (userId === null && memberId === null ? maximumWalk : maximumKeyWalk) : limit + 1

  const read = async (sql: Queries): Promise<LogPage> => {
    const walked = (orderAndLimit: ReturnType<Sql>) => sql`
      from usage_records
      where ${byKey ? sql`key_id = keys.id` : sql`account_id = ${accountId}`}
        ${isOfFailed(filters) ? sql`and account_id = ${accountId} and status <> 'completed'` : sql``}
        ${filters.unpriced === true ? sql`and account_id = ${accountId} and unpriced is not null` : sql``}
        ${filters.from === null ? sql`` : sql`and at >= ${instant(sql, filters.from * 1000)}`}
        ${to === null ? sql`` : sql`and at < ${instant(sql, to * 1000)}`}
        ${
          before === null
            ? sql``
            : sql`and at <= ${instant(sql, before.atMicros)}
                  and (at, request_id) < (${instant(sql, before.atMicros)}, ${before.requestId})`
        }
      ${orderAndLimit}`
    // Requests of one time are tested together, so that a page can end between two times.
    const tested: ReturnType<Sql> = isSifted
      ? sql`order by at desc fetch first (${depth}::int) rows with ties`
      : sql`order by at desc, request_id desc limit ${depth}`
    const along = (found: ReturnType<Sql>) =>
      byKey
        ? sql`(${selectedKeys(sql, accountId, keyId, [userId, memberId])}) as keys cross join lateral (${found}) as found`
        : sql`(${found}) as found`

    const rows = await sql<LoggedRequest[]>`
      select found.*, ${keyColumns(sql)}
      from ${along(sql`
        select
          ${requestColumns(sql)}
        from (select * ${walked(tested)}) as walked
        where account_id = ${accountId}
          ${isOfProjects ? visibleRecords(sql, scope) : sql``}
          ${matching(sql, filters)}
        order by at desc, request_id desc
        limit ${limit + 1}`)}
      order by at desc, request_id desc
      limit ${limit + 1}`

    // With several keys, one may have been scanned less far than the others. Below that point the result is incomplete.
    const [bottom] =
      isSifted && (byKey || rows.length <= limit)
        ? await sql<{ at_micros: number }[]>`
            select (extract(epoch from at) * 1000000)::float8 as at_micros
            from ${along(sql`select at ${walked(sql`order by at desc offset ${depth - 1} limit 1`)}`)}
            order by at desc
            limit 1`
        : []
    const known = bottom === undefined ? rows : rows.filter(row => row.at_micros >= bottom.at_micros)
    const last = known[limit - 1]
    if (known.length > limit && last !== undefined)
      return { requests: known.slice(0, limit), next: { atMicros: last.at_micros, requestId: last.request_id } }
    // The last request tested may be one that the user does not see: the position names its time only.
    return {
      requests: [...known],
      next: bottom === undefined ? null : { atMicros: bottom.at_micros, requestId: lowestId },
    }
  }

  return withAccountRls(database, accountId).sql(sql => (isSifted ? alongIndexes(sql, read) : read(sql)), logDeadlineMs)
}

type Queries = Sql | TransactionSql

/**
 * Forces the planner to use index order. For a month without statistics, and always for the embedded database, it
 * estimates few rows per account and would fetch and sort them all.
 */
async function alongIndexes<T>(sql: TransactionSql, read: (sql: TransactionSql) => Promise<T>) {
  await sql`set local enable_bitmapscan = off`
  return read(sql)
}

/** Sorts before every request ID. */
const lowestId = '-'

/** Converts microseconds to a Postgres timestamp exactly; the driver's dates have millisecond resolution. */
const instant = (sql: Queries, micros: number) =>
  sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond')`

/**
 * Creates the seed of a memory meter's day counters: the ledger plus unshipped journal records. A record may move
 * between the two, so one statement (one snapshot) returns the sum and which of the waiting records it contains.
 */
export function createUsageSeed(database: Database, journal: Pick<Journal, 'unshipped'>) {
  return async (accountId: string, day: number): Promise<DailyUsage> => {
    const waiting = mergedRecords(journal.unshipped(accountId, day))
    const { spent, present } = await spentBeside(
      database,
      accountId,
      day,
      waiting.map(record => record.request_id),
    )
    return getSum([
      spent,
      ...waiting.map(record => getCorrection(present.get(record.request_id), countedUsage(record))),
    ])
  }
}

/** Creates the seed of a memory meter's scopes, as `createUsageSeed` does: ledger plus unshipped records of the month. */
export function createScopeSeed(database: Database, journal: Pick<Journal, 'unshipped'>) {
  return async (accountId: string, names: readonly string[], day: number): Promise<readonly ScopeUsage[]> => {
    const waiting = mergedRecords(journal.unshipped(accountId, ...monthDays(day)))
    const ids = JSON.stringify(waiting.map(record => record.request_id))
    const rows = await database.run(
      ({ sql }) => sql<(ScopeUsage & { readonly present: string | null })[]>`
        select name, used.tokens::float8, used.microcents::float8, used.month_microcents::float8 as "monthMicrocents",
          ${presentRecords(sql, accountId, ids)} as present
        from json_array_elements_text(${JSON.stringify(names)}::text::json) as name,
          lateral limit_scope_used(${accountId}, name, ${day}::bigint) as used`,
    )
    const present = presentById(rows[0]?.present ?? null)
    return rows.map(({ present: _, ...used }) => {
      const own = waiting.filter(record => getScopeNames(record).includes(used.name))
      const more = own.map(record => ({
        ...getCorrection(present.get(record.request_id), countedUsage(record)),
        isToday: formatDay(record.at_ms) === day,
      }))
      const today = getSum([used, ...more.filter(({ isToday }) => isToday)])
      return { ...used, ...today, monthMicrocents: used.monthMicrocents + getSum(more).microcents }
    })
  }
}

/** Accounts with most usage, and requests of each, from which a starting process learns how long reasoning is. */
const [sampledAccounts, sampledRequests] = [20, 500]
const sampleDeadlineMs = 5_000

/** Returns the reasoning tokens of recent requests by model and effort, of as many as these bounds allow. */
export function readReasoning(database: Database) {
  return database.run(
    ({ sql }) => sql<{ model: string; effort: string; tokens: number; requests: number }[]>`
      select recent.model, recent.effort, sum(reasoning_tokens)::float8 as tokens, count(*)::float8 as requests
      from (
        select account_id from usage_daily where day >= current_date - 2
        group by account_id order by sum(requests) desc limit ${sampledAccounts}
      ) as busy cross join lateral (
        select provider || '/' || model as model, trace ->> 'e' as effort, reasoning_tokens, status, finish_reason
        from usage_records where account_id = busy.account_id order by at desc limit ${sampledRequests}
      ) as recent
      where status = 'completed' and finish_reason = 'stop' and (reasoning_tokens > 0 or effort = 'none')
      group by recent.model, recent.effort having recent.effort is not null`,
    sampleDeadlineMs,
  )
}

/** Creates the ledger's side of limits in Redis: all usage of an account in one statement, hence one snapshot. */
export function createLimitLedger(database: Database): LimitLedger {
  return {
    async load(accountId, day, requestIds) {
      const [row] = await database.run(
        ({ sql }) => sql<
          { tokens: number; microcents: number; present: string | null; scopes: LedgerUsage['scopes'] }[]
        >`
          select
            coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens,
            coalesce(sum(billed_microcents), 0)::float8 as microcents,
            ${presentRecords(sql, accountId, JSON.stringify(requestIds))} as present,
            (select coalesce(json_agg(json_build_object('name', name, 'since', since, 'tokens', used.tokens,
                'microcents', used.microcents, 'monthMicrocents', used.month_microcents)), '[]')
              from limit_scopes(${accountId}), lateral limit_scope_used(${accountId}, name, ${day}::bigint) as used) as scopes
          from usage_daily
          where account_id = ${accountId} and day = date '1970-01-01' + ${day}::int`,
      )
      if (row === undefined) return { ...nothing, present: new Map(), scopes: [] }
      return { ...row, present: presentById(row.present) }
    },
    loadScopes: (accountId, names, day) =>
      database.run(
        ({ sql }) => sql<ScopeUsage[]>`
          select name, used.tokens::float8, used.microcents::float8, used.month_microcents::float8 as "monthMicrocents"
          from json_array_elements_text(${JSON.stringify(names)}::text::json) as name,
            lateral limit_scope_used(${accountId}, name, ${day}::bigint) as used`,
      ),
  }
}

/**
 * Selects what the ledger has of these requests (JSON of their IDs), as JSON. One by one: without statistics, the planner
 * would read all requests of the account instead.
 */
const presentRecords = (sql: Sql, accountId: string, requestIds: string) => sql`
  (select json_agg(json_build_object(
      'id', id, 'truth', truth, 'tokens', input_tokens + output_tokens, 'microcents', billed_microcents))::text
    from json_array_elements_text(${requestIds}::text::json) as id
    cross join lateral (select * from usage_records where request_id = id offset 0) as present
    where account_id = ${accountId})`

function presentById(text: string | null): ReadonlyMap<string, CountedUsage> {
  const present = JSON.parse(text ?? '[]') as (CountedUsage & { readonly id: string })[]
  return new Map(present.map(item => [item.id, item]))
}

/** Returns the sums of a day, and what they contain of each of these requests. */
async function spentBeside(database: Database, accountId: string, day: number, requestIds: readonly string[]) {
  const rows = await database.run(
    ({ sql }) => sql<{ tokens: string; microcents: string; present: string | null }[]>`
      select
        coalesce(sum(input_tokens + output_tokens), 0)::text as tokens,
        coalesce(sum(billed_microcents), 0)::text as microcents,
        ${presentRecords(sql, accountId, JSON.stringify(requestIds))} as present
      from usage_daily
      where account_id = ${accountId} and day = date '1970-01-01' + ${day}::int`,
  )
  const row = rows[0]
  return {
    spent: { tokens: Number(row?.tokens ?? 0), microcents: Number(row?.microcents ?? 0) },
    present: presentById(row?.present ?? null),
  }
}
