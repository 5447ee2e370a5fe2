/** Learning cells in Postgres: `LearningCell` of `learning-cell.ts` with its key, and how usage records change them. */
import { snakeName } from '../core/usage/shown-fields.ts'
import { servingModel, type UsageRecord } from '../core/usage/usage-record.ts'
import type { Database } from '../database/database.ts'
import { getStatements, type Statements } from '../database/transact.ts'
import { addEntry, emptyCell, type LearningCell, type QualityEvidence, replaceEvidence } from './learning-cell.ts'
import { repeatCost } from './response-quality.ts'

/** Key of a cell: `model` is `provider/model`. */
export type CellKey = { readonly accountId: string; readonly queryType: string; readonly model: string }
export type CandidateCell = CellKey & LearningCell

/** Returns the cells of accounts, for all query types and models. */
export async function readCells(database: Database, accountIds: readonly string[]): Promise<readonly CandidateCell[]> {
  return database.run(({ sql }) =>
    getStatements(sql).query<CandidateCell>(
      `select ${columns} from learning_state where account_id in (select json_array_elements_text($1::text::json))
        order by account_id, query_type, model`,
      [JSON.stringify(accountIds)],
    ),
  )
}

/** Locks and returns the cells with these keys until the transaction ends; creates missing ones empty. */
export async function lockCells(
  statements: Statements,
  places: readonly CellKey[],
): Promise<Map<string, CandidateCell>> {
  const wanted = new Map(places.map(place => [getName(place), placeIn(place)]))
  const read = (of: readonly CellKey[]) =>
    statements.query<CandidateCell>(
      `select ${columns} from learning_state
      join json_to_recordset($1::text::json) as wanted("accountId" text, "queryType" text, name text)
        on account_id = wanted."accountId" and query_type = wanted."queryType" and model = wanted.name
      order by account_id, query_type, model for update of learning_state`,
      [JSON.stringify(of)],
    )
  const named = [...wanted.values()].map(place => ({ ...place, name: place.model }))
  const cells = new Map((await read(named)).map(cell => [getName(cell), cell]))
  const missing = named.filter(place => !cells.has(getName(place)))
  if (missing.length === 0) return cells
  await writeCells(
    statements,
    missing.map(place => ({ ...emptyCell, ...placeIn(place) })),
  )
  for (const cell of await read(missing)) cells.set(getName(cell), cell)
  return cells
}

export const placeIn = ({ accountId, queryType, model }: CellKey): CellKey => ({ accountId, queryType, model })
const getName = ({ accountId, queryType, model }: CellKey) => `${accountId} ${queryType} ${model}`

/** Changes one of the locked cells. */
export function changeCell(
  cells: Map<string, CandidateCell>,
  place: CellKey,
  how: (cell: LearningCell) => LearningCell,
): void {
  const name = getName(place)
  cells.set(name, { ...how(cells.get(name) ?? emptyCell), ...placeIn(place) })
}

/** Writes cells. An empty cell is only inserted if missing and never overwrites. */
export async function writeCells(statements: Statements, cells: readonly CandidateCell[]): Promise<void> {
  const rows = cells.map(cell => Object.fromEntries(names.map(name => [snakeName(name), cell[name]])))
  await statements.query(
    `insert into learning_state (${listed}) select ${listed} from json_populate_recordset(null::learning_state, $1::text::json)
      order by 1, 2, 3
      on conflict (account_id, query_type, model) do update set ${figures.map(name => `${name} = excluded.${name}`).join()}
      where excluded.requests > 0`,
    [JSON.stringify(rows, asReal)],
  )
}

const cellNames = Object.keys(emptyCell) as readonly (keyof LearningCell)[]
const figures = cellNames.map(snakeName)
const names = ['accountId', 'queryType', 'model', ...cellNames] as const
const listed = names.map(snakeName).join()
const columns = names
  .map(name => `${snakeName(name)}${name === 'since' || name === 'at' ? '::float8' : ''} as "${name}"`)
  .join()

/**
 * Converts to a single-precision value. Decayed evidence becomes arbitrarily small, and Postgres rejects a `real` that
 * would underflow to 0.
 */
function asReal(_name: string, value: unknown): unknown {
  return typeof value === 'number' && Math.abs(value) < smallestReal ? 0 : value
}

/** The smallest normal single-precision number. */
const smallestReal = 2 ** -126

/** A usage record with learning data. */
type RecordedLesson = UsageRecord & {
  readonly query_type: string
  readonly learning: NonNullable<UsageRecord['learning']>
}

/**
 * Locks the accounts of records with learning data against ratings and deletions. Returns for each record the account's
 * epoch if it may be learned from; null = it has no learning data, or that was deleted while the record was on its way.
 * Creates missing rows, on which a deletion waits.
 */
export async function lockEpochs(
  statements: Statements,
  records: readonly UsageRecord[],
): Promise<readonly (number | null)[]> {
  const accountIds = [...new Set(records.filter(isLesson).map(record => record.account_id))].sort()
  if (accountIds.length === 0) return []
  const ids = JSON.stringify(accountIds)
  const lock = () =>
    statements.query<{ id: string; epoch: number; erasedAt: number | null }>(
      `select account_id as id, epoch, (extract(epoch from erased_at) * 1000)::float8 as "erasedAt"
        from learning_accounts where account_id in (select json_array_elements_text($1::text::json))
        order by account_id for share`,
      [ids],
    )
  let accounts = await lock()
  if (accounts.length < accountIds.length) {
    await statements.query(
      `insert into learning_accounts (account_id)
        select id from json_array_elements_text($1::text::json) as id order by id
        on conflict do nothing`,
      [ids],
    )
    accounts = await lock()
  }
  const known = new Map(accounts.map(account => [account.id, account]))
  return records.map(record => {
    const account = known.get(record.account_id)
    if (account === undefined || !isLesson(record)) return null
    // Without an epoch, the record must be of a time after the last deletion.
    const isCurrent =
      record.learning.epoch === null ? record.at_ms > (account.erasedAt ?? -1) : record.learning.epoch === account.epoch
    return isCurrent ? account.epoch : null
  })
}

/** Applies the learning data of new usage records of current epochs. Returns the accounts whose cells changed. */
export async function applyLessons(statements: Statements, records: readonly UsageRecord[]): Promise<string[]> {
  const lessons = records.filter(isLesson)
  if (lessons.length === 0) return []
  const repeated = await regradeRepeated(statements, lessons)
  const cells = await lockCells(statements, [...lessons.map(getPlace), ...repeated.map(({ place }) => place)])
  for (const [place, ofPlace] of byPlace(lessons, getPlace))
    changeCell(cells, place, cell => ofPlace.reduce(addEntry, cell))
  for (const [place, ofPlace] of byPlace(repeated, ({ place }) => place))
    changeCell(cells, place, cell =>
      ofPlace.reduce((known, { before, after, enhanced }) => replaceEvidence(known, before, after, enhanced), cell),
    )
  await writeCells(statements, [...cells.values()])
  return [...new Set(lessons.map(lesson => lesson.account_id))]
}

function isLesson(record: UsageRecord): record is RecordedLesson {
  return record.learning != null && record.query_type !== null && record.model !== ''
}

function getPlace(lesson: RecordedLesson): CellKey {
  return { accountId: lesson.account_id, queryType: lesson.query_type, model: servingModel(lesson) }
}

/** Groups items by cell, in their order. */
function byPlace<T>(items: readonly T[], getPlace: (item: T) => CellKey): Iterable<readonly [CellKey, readonly T[]]> {
  const places = new Map<string, [CellKey, T[]]>()
  for (const item of items) {
    const place = getPlace(item)
    const name = getName(place)
    const known = places.get(name)
    if (known === undefined) places.set(name, [place, [item]])
    else known[1].push(item)
  }
  return places.values()
}

type Regraded = {
  readonly place: CellKey
  readonly before: QualityEvidence
  readonly after: QualityEvidence
  readonly enhanced: boolean
}

/** Lowers the quality of responses whose prompt was soon repeated. Ratings stay. */
async function regradeRepeated(statements: Statements, lessons: readonly RecordedLesson[]): Promise<Regraded[]> {
  const wanted = lessons.flatMap(({ account_id, learning: { repeat_of } }) =>
    repeat_of === null ? [] : [{ account_id, id: repeat_of }],
  )
  if (wanted.length === 0) return []
  type Row = CellKey & { at: number; quality: number; lowered: number; enhanced: boolean }
  const rows = await statements.query<Row>(
    `update usage_records as entry set quality = greatest(0, previous.quality - ${repeatCost}::real)
    from (
      select known.* from (
        select * from json_to_recordset($1::text::json) as line(account_id text, id text)
        join learning_accounts using (account_id) order by account_id, id
      ) as wanted cross join lateral (
        select request_id, at, quality from usage_records
        -- Without statistics, the planner would read all requests of the account by an index that begins with it.
        where request_id = id and account_id || '' = wanted.account_id and rated_at is null and learning_epoch = epoch
        for update
      ) as known
    ) as previous
    where entry.request_id = previous.request_id and entry.at = previous.at
    returning
      entry.account_id as "accountId", query_type as "queryType", provider || '/' || model as model,
      (extract(epoch from entry.at) * 1000)::float8 as at, previous.quality, entry.quality as lowered, enhanced`,
    [JSON.stringify(wanted)],
  )
  return rows.map(({ at, quality, lowered, enhanced, ...row }) => ({
    place: placeIn(row),
    before: { quality, weight: 1, at, isRating: false },
    after: { quality: lowered, weight: 1, at, isRating: false },
    enhanced,
  }))
}
