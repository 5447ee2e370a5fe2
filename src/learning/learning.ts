/**
 * Learning in Postgres: columns of the usage record, read only by its ID, and one cell per account, query type and model
 * for all other reads, so that reads do not slow down with the number of records. Both change in the transaction that
 * stores the record (`ledger/store-usage.ts`).
 *
 * Every transaction first locks the account's row: shared for new entries, exclusively for ratings and deletions. A
 * deletion increments the row's epoch; an entry routed under an earlier epoch is then rejected, even if it was in a
 * journal or stream meanwhile.
 */
import type { Database } from '../database/database.ts'
import { recordAudit } from '../database/repositories/audit.ts'
import { type Step, statementIn, withAccountRls } from '../database/statement.ts'
import { getStatements } from '../database/transact.ts'
import { type UsageScope, visibleRecords } from '../database/visible-requests.ts'
import { type QualityEvidence, ratingWeight, replaceEvidence } from './learning-cell.ts'
import { type CellKey, changeCell, lockCells, placeIn, writeCells } from './learning-cells.ts'
import { ratedQuality } from './response-quality.ts'

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
    // Without statistics, the planner would look for the ID in the index of all requests of the account.
    const [entry] = await transaction<Row[]>`
        select
          account_id as "accountId", query_type as "queryType", provider || '/' || model as model, quality, enhanced,
          rated_quality as "ratedQuality", (extract(epoch from at) * 1000)::float8 as at,
          (extract(epoch from rated_at) * 1000)::float8 as "ratedAt"
        from usage_records
        where request_id = ${requestId} and account_id || '' = ${accountId} and learning_epoch = ${account.epoch}
          ${visibleRecords(transaction, scope)}
        for update`
    if (entry === undefined) return null
    const rated = ratedQuality(stars, isHelpful)
    const before: QualityEvidence =
      entry.ratedQuality === null || entry.ratedAt === null
        ? { quality: entry.quality, weight: 1, at: entry.at, isRating: false }
        : { quality: entry.ratedQuality, weight: ratingWeight, at: entry.ratedAt, isRating: true }
    const after = { quality: rated, weight: ratingWeight, at: now, isRating: true }
    const statements = getStatements(transaction)
    const cells = await lockCells(statements, [entry])
    changeCell(cells, entry, cell => replaceEvidence(cell, before, after, entry.enhanced))
    await writeCells(statements, [...cells.values()])
    await transaction`
        update usage_records set
          rating = ${stars}, is_helpful = ${isHelpful}, rated_quality = ${rated},
          rated_at = to_timestamp(${now}::float8 / 1000)
        where request_id = ${requestId} and account_id || '' = ${accountId}`
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

const sweptAtOnce = 2_000

/** Returns at most 100 accounts with learning data of deleted epochs. */
export async function accountsToPurge(database: Database): Promise<string[]> {
  const rows = await database.run(
    ({ sql }) => sql<{ accountId: string }[]>`
      select account_id as "accountId" from learning_accounts where swept_epoch < epoch order by account_id limit 100`,
  )
  return rows.map(({ accountId }) => accountId)
}

/** Removes an account's learning data of deleted epochs in batches, newest first, while `goOn` returns true. */
export async function purgeEntries(database: Database, accountId: string, goOn: () => boolean): Promise<void> {
  const epoch = (await readEpochs(database, [accountId])).get(accountId) ?? 0
  // Each batch starts after the last: scanning what is done again would take longer each time.
  for (let last = { at: 'infinity', id: '' }; goOn(); ) {
    const purged = await database.run(
      ({ sql }) => sql<{ at: string; id: string }[]>`
        with lines as materialized (
          select request_id, at from usage_records
          where account_id = ${accountId} and (at, request_id) < (${last.at}::text::timestamptz, ${last.id})
            and learning_epoch < ${epoch}
          order by at desc, request_id desc limit ${sweptAtOnce}
        ), purged as (
          update usage_records as entry set
            learning_epoch = null, quality = null, influenced = null, choice_probability = null, enhanced = null,
            rating = null, is_helpful = null, rated_quality = null, rated_at = null
          from lines where entry.request_id = lines.request_id and entry.at = lines.at
        )
        select at::text as at, request_id as id from lines order by lines.at, request_id`,
      deadlineMs,
    )
    if (purged.length < sweptAtOnce) {
      await database.run(
        ({ sql }) => sql`
          update learning_accounts set swept_epoch = ${epoch} where account_id = ${accountId} and swept_epoch < ${epoch}`,
      )
      return
    }
    last = purged[0] ?? last
  }
}
