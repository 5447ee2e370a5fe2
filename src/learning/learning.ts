/**
 * Learning in Postgres: one entry per request, read only by its ID, and one cell per account, query type and model for
 * all other reads, so that reads do not slow down with the number of entries. Entries and cells change in one
 * transaction.
 *
 * Every transaction first locks the account's row: shared for new entries, exclusively for ratings and deletions. A
 * deletion increments the row's epoch; an entry routed under an earlier epoch is then rejected, even if it was in a
 * journal or stream meanwhile.
 */
import type { TransactionSql } from 'postgres'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { Database } from '../database/database.ts'
import { recordAudit } from '../database/repositories/audit.ts'
import { type Step, statementIn, withAccountRls } from '../database/statement.ts'
import { type UsageScope, visibleRecords } from '../database/visible-requests.ts'
import { addEntry, type Entry, type QualityEvidence, ratingWeight, replaceEvidence } from './learning-cell.ts'
import { type CellKey, changeCell, lockCells, placeIn, writeCells } from './learning-cells.ts'
import { ratedQuality, repeatCost } from './response-quality.ts'

export type Rating = { readonly stars: number; readonly isHelpful: boolean | null }

const deadlineMs = 5_000

/** Returns how often each account's learning data was deleted. An account that is not included never was. */
export async function readEpochs(database: Database, accountIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await database.run(
    ({ sql }) => sql<{ accountId: string; epoch: number }[]>`
      select account_id as "accountId", epoch from learning_accounts
      where account_id in (select json_array_elements_text(${JSON.stringify(accountIds)}::text::json))`,
  )
  return new Map(rows.map(({ accountId, epoch }) => [accountId, epoch]))
}

/**
 * Returns the accounts with ratings or deletions since `sinceMs` of the database's clock (null = none), and that
 * clock's current time.
 */
export async function readChanges(database: Database, sinceMs: number | null) {
  const rows = await database.run(
    ({ sql }) => sql<{ now: number; accountId: string | null; changedAt: number | null }[]>`
      select
        (extract(epoch from clock_timestamp()) * 1000)::float8 as now, account_id as "accountId",
        (extract(epoch from updated_at) * 1000)::float8 as "changedAt"
      from (select) as one left join learning_accounts on updated_at > to_timestamp(${sinceMs}::float8 / 1000)`,
  )
  return {
    now: rows[0]?.now ?? sinceMs ?? 0,
    changes: rows.flatMap(({ accountId, changedAt }) =>
      accountId === null || changedAt === null ? [] : [{ accountId, changedAt }],
    ),
  }
}

/** A usage record with learning data. */
type Lesson = UsageRecord & { readonly query_type: string; readonly learning: NonNullable<UsageRecord['learning']> }

/**
 * Applies the learning data of usage records; repeated records count once. Returns the accounts whose cells changed.
 */
export async function applyLearningEntries(database: Database, records: readonly UsageRecord[]): Promise<string[]> {
  const lessons = records.filter(isLesson)
  if (lessons.length === 0) return []
  return database.run(
    ({ sql }) =>
      sql.begin(async transaction => {
        const accountIds = [...new Set(lessons.map(lesson => lesson.account_id))].sort()
        await knowAccounts(transaction, accountIds)
        const isNew = await insertEntries(transaction, lessons)
        const taken = lessons.filter(({ request_id }) => isNew.delete(request_id))
        if (taken.length === 0) return []
        const repeated = await regradeRepeated(transaction, taken)
        const cells = await lockCells(transaction, [...taken.map(getPlace), ...repeated.map(({ place }) => place)])
        for (const [place, ofPlace] of byPlace(taken, getPlace))
          changeCell(cells, place, cell => ofPlace.reduce((known, lesson) => addEntry(known, getEntry(lesson)), cell))
        for (const [place, ofPlace] of byPlace(repeated, ({ place }) => place))
          changeCell(cells, place, cell =>
            ofPlace.reduce(
              (known, { before, after, enhanced }) => replaceEvidence(known, before, after, enhanced),
              cell,
            ),
          )
        await writeCells(transaction, [...cells.values()])
        return [...new Set(taken.map(lesson => lesson.account_id))]
      }),
    deadlineMs,
  )
}

function isLesson(record: UsageRecord): record is Lesson {
  return record.learning != null && record.query_type !== null && record.model !== ''
}

function getPlace({ account_id, query_type, provider, model }: Lesson): CellKey {
  return { accountId: account_id, queryType: query_type, model: `${provider}/${model}` }
}

/** Groups items by cell, in their order. */
function byPlace<T>(items: readonly T[], getPlace: (item: T) => CellKey): Iterable<readonly [CellKey, readonly T[]]> {
  const places = new Map<string, [CellKey, T[]]>()
  for (const item of items) {
    const place = getPlace(item)
    const name = `${place.accountId} ${place.queryType} ${place.model}`
    const known = places.get(name)
    if (known === undefined) places.set(name, [place, [item]])
    else known[1].push(item)
  }
  return places.values()
}

function getEntry(lesson: Lesson): Entry {
  return {
    at: lesson.at_ms,
    quality: lesson.learning.quality,
    latencyMs: lesson.latency_ms,
    firstTokenMs: lesson.first_token_ms,
    costMicrocents: lesson.billed_microcents,
    inputTokens: lesson.input_tokens,
    outputTokens: lesson.output_tokens,
    automatic: lesson.routing_mode === 'auto',
    influenced: lesson.learning.influenced,
    enhanced: lesson.learning.enhanced,
  }
}

/**
 * Creates a row for every account, on which deletions wait: without it, a deletion would miss a concurrent transaction.
 */
async function knowAccounts(transaction: TransactionSql, accountIds: readonly string[]): Promise<void> {
  const ids = JSON.stringify(accountIds)
  const known = await transaction<{ accountId: string }[]>`
    select account_id as "accountId" from learning_accounts
    where account_id in (select json_array_elements_text(${ids}::text::json))
    order by account_id for share`
  if (known.length === accountIds.length) return
  await transaction`
    insert into learning_accounts (account_id)
    select id from json_array_elements_text(${ids}::text::json) as id order by id
    on conflict do nothing`
  await transaction`
    select from learning_accounts where account_id in (select json_array_elements_text(${ids}::text::json))
    order by account_id for share`
}

/**
 * Inserts entries that are new and belong to the account's current epoch; without a known epoch, to the time after the
 * last deletion. Returns one text per row here and below, because reading many columns is slow.
 */
async function insertEntries(transaction: TransactionSql, lessons: readonly Lesson[]): Promise<Set<string>> {
  const [inserted] = await transaction<{ ids: string | null }[]>`
    with inserted as (insert into learning_entries (
      account_id, request_id, epoch, at, key_id, provider, model, query_type, quality, latency_ms, first_token_ms,
      input_tokens, output_tokens, cost_microcents, routing_mode, influenced, choice_probability, enhanced)
    select
      account_id, request_id, account.epoch, to_timestamp(at_ms / 1000.0), key_id, provider, model, query_type, quality,
      latency_ms, first_token_ms, input_tokens, output_tokens, billed_microcents, routing_mode, influenced,
      choice_probability, enhanced
    from json_to_recordset(${JSON.stringify(lessons.map(getLine))}::text::json) as lesson(
      account_id text, request_id text, epoch int, at_ms bigint, key_id text, provider text, model text, query_type text,
      quality real, latency_ms bigint, first_token_ms bigint, input_tokens bigint, output_tokens bigint,
      billed_microcents bigint, routing_mode text, influenced boolean, choice_probability real, enhanced boolean)
    join learning_accounts as account using (account_id)
    where case
      when lesson.epoch is not null then lesson.epoch = account.epoch
      else account.erased_at is null or to_timestamp(at_ms / 1000.0) > account.erased_at
    end
    order by account_id, request_id
    on conflict do nothing
    returning request_id)
    select json_agg(request_id)::text as ids from inserted`
  return new Set(JSON.parse(inserted?.ids ?? '[]') as string[])
}

/** Returns an entry field by field: a usage record contains more than learning may store. */
function getLine(record: Lesson) {
  const { learning } = record
  return {
    account_id: record.account_id,
    request_id: record.request_id,
    epoch: learning.epoch,
    at_ms: record.at_ms,
    key_id: record.key_id,
    provider: record.provider,
    model: record.model,
    query_type: record.query_type,
    quality: learning.quality,
    latency_ms: record.latency_ms,
    first_token_ms: record.first_token_ms,
    input_tokens: record.input_tokens,
    output_tokens: record.output_tokens,
    billed_microcents: record.billed_microcents,
    routing_mode: record.routing_mode,
    influenced: learning.influenced,
    choice_probability: learning.choice_probability,
    enhanced: learning.enhanced,
  }
}

type Regraded = {
  readonly place: CellKey
  readonly before: QualityEvidence
  readonly after: QualityEvidence
  readonly enhanced: boolean
}

/** Lowers the quality of responses whose prompt was soon repeated. Ratings stay. */
async function regradeRepeated(transaction: TransactionSql, lessons: readonly Lesson[]): Promise<Regraded[]> {
  const wanted = lessons.flatMap(({ account_id, learning: { repeat_of } }) =>
    repeat_of === null ? [] : [{ account_id, request_id: repeat_of }],
  )
  if (wanted.length === 0) return []
  const [regraded] = await transaction<{ told: string | null }[]>`
    with regraded as (update learning_entries as entry set quality = greatest(0, previous.quality - ${repeatCost}::real)
    from (
      select account_id, request_id, quality from learning_entries
      join json_to_recordset(${JSON.stringify(wanted)}::text::json) as wanted(account_id text, request_id text)
        using (account_id, request_id)
      where rated_at is null
      order by account_id, request_id for update of learning_entries
    ) as previous
    where entry.account_id = previous.account_id and entry.request_id = previous.request_id
    returning
      entry.account_id, query_type, provider || '/' || model as model, (extract(epoch from at) * 1000)::float8 as at,
      previous.quality, entry.quality as lowered, enhanced)
    select json_agg(json_build_array(account_id, query_type, model, at, quality, lowered, enhanced))::text as told
    from regraded`
  type Told = readonly [string, string, string, number, number, number, boolean]
  const rows = JSON.parse(regraded?.told ?? '[]') as Told[]
  return rows.map(([accountId, queryType, model, at, quality, lowered, enhanced]) => ({
    place: { accountId, queryType, model },
    before: { quality, weight: 1, at, isRating: false },
    after: { quality: lowered, weight: 1, at, isRating: false },
    enhanced,
  }))
}

/**
 * Rates one request that the scope sees at time `now`, replacing an earlier rating. Null if there is no learning entry of
 * this request (yet). The usage record, which decides who sees the request, is always written before.
 */
export function rate(
  database: Database,
  scope: UsageScope,
  requestId: string,
  { stars, isHelpful }: Rating,
  now: number,
): Promise<CellKey | null> {
  const { accountId } = scope
  return withAccountRls(database, accountId).sql(async transaction => {
    const [account] = await transaction<{ epoch: number }[]>`
        update learning_accounts set updated_at = clock_timestamp() where account_id = ${accountId} returning epoch`
    if (account === undefined) return null
    type Row = CellKey & {
      at: number
      quality: number
      enhanced: boolean
      ratedQuality: number | null
      ratedAt: number | null
    }
    const [entry] = await transaction<Row[]>`
        select
          account_id as "accountId", query_type as "queryType", provider || '/' || model as model, quality, enhanced,
          rated_quality as "ratedQuality", (extract(epoch from at) * 1000)::float8 as at,
          (extract(epoch from rated_at) * 1000)::float8 as "ratedAt"
        from learning_entries
        where account_id = ${accountId} and request_id = ${requestId} and epoch = ${account.epoch}
          ${
            scope.userId === null
              ? transaction``
              : transaction`and exists (
                  select from usage_records
                  where request_id = ${requestId} and account_id = ${accountId} ${visibleRecords(transaction, scope)})`
          }
        for update`
    if (entry === undefined) return null
    const rated = ratedQuality(stars, isHelpful)
    const before: QualityEvidence =
      entry.ratedQuality === null || entry.ratedAt === null
        ? { quality: entry.quality, weight: 1, at: entry.at, isRating: false }
        : { quality: entry.ratedQuality, weight: ratingWeight, at: entry.ratedAt, isRating: true }
    const after = { quality: rated, weight: ratingWeight, at: now, isRating: true }
    const cells = await lockCells(transaction, [entry])
    changeCell(cells, entry, cell => replaceEvidence(cell, before, after, entry.enhanced))
    await writeCells(transaction, [...cells.values()])
    await transaction`
        update learning_entries set
          rating = ${stars}, is_helpful = ${isHelpful}, rated_quality = ${rated},
          rated_at = to_timestamp(${now}::float8 / 1000)
        where account_id = ${accountId} and request_id = ${requestId}`
    return placeIn(entry)
  })
}

/**
 * Ends the learning data of an account: its entries are of an earlier epoch from now on, which nothing reads and the next purge
 * deletes.
 */
export async function eraseLearningIn(step: Step, accountId: string, now: number): Promise<void> {
  const run = statementIn(step)
  await run`
    insert into learning_accounts (account_id, epoch, erased_at)
    values (${accountId}, 1, to_timestamp(${now}::float8 / 1000))
    on conflict (account_id) do update set
      epoch = learning_accounts.epoch + 1, erased_at = excluded.erased_at, updated_at = clock_timestamp()`
  await run`delete from learning_state where account_id = ${accountId}`
}

/**
 * Deletes an account's learning data of before `now`, including records that arrive later. Its entries are removed
 * afterwards.
 */
export function erase(database: Database, accountId: string, now: number): Promise<void> {
  return withAccountRls(database, accountId).sql(async transaction => {
    await eraseLearningIn(transaction, accountId, now)
    await recordAudit(transaction, database, { accountId, action: 'learning.deleted' })
  })
}

const sweptAtOnce = 10_000

/** Returns at most 100 accounts with entries of deleted epochs. */
export async function accountsToPurge(database: Database): Promise<string[]> {
  const rows = await database.run(
    ({ sql }) => sql<{ accountId: string }[]>`
      select account_id as "accountId" from learning_accounts where swept_epoch < epoch order by account_id limit 100`,
  )
  return rows.map(({ accountId }) => accountId)
}

/**
 * Removes an account's entries of deleted epochs in batches, oldest first, while `goOn` returns true. Blocks no other
 * transaction, since nothing else reads these entries.
 */
export async function purgeEntries(database: Database, accountId: string, goOn: () => boolean): Promise<void> {
  const epoch = (await readEpochs(database, [accountId])).get(accountId) ?? 0
  // Each batch starts after the last: the index still contains deleted entries, and scanning them would take longer
  // each time.
  for (let last = ''; goOn(); ) {
    const [deleted] = await database.run(
      ({ sql }) => sql<{ count: number; last: string | null }[]>`
        with lines as (
          select ctid, request_id from learning_entries
          where account_id = ${accountId} and request_id > ${last} and epoch < ${epoch}
          order by request_id limit ${sweptAtOnce}
        ), deleted as (
          delete from learning_entries where ctid = any (array(select ctid from lines)) and account_id = ${accountId}
        )
        select count(*)::int as count, max(request_id) as last from lines`,
      deadlineMs,
    )
    if (deleted === undefined || deleted.last === null || deleted.count < sweptAtOnce) {
      await database.run(
        ({ sql }) => sql`
          update learning_accounts set swept_epoch = ${epoch} where account_id = ${accountId} and swept_epoch < ${epoch}`,
      )
      return
    }
    last = deleted.last
  }
}
