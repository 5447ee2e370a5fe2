/** Learning cells in Postgres: `Cell` of `learning/learning-cell.ts` with its key. */
import type { Sql, TransactionSql } from 'postgres'
import type { Database } from '../database/database.ts'
import { emptyCell, type LearningCell } from './learning-cell.ts'

/** Key of a cell: `model` is `provider/model`. */
export type CellKey = { readonly accountId: string; readonly queryType: string; readonly model: string }
export type CandidateCell = CellKey & LearningCell

type Queries = Sql | TransactionSql

/** Returns the cells of accounts, for all query types and models. */
export function readCells(database: Database, accountIds: readonly string[]): Promise<CandidateCell[]> {
  return database.run(
    ({ sql }) => sql<CandidateCell[]>`
      select ${columns(sql)} from learning_state
      where account_id in (select json_array_elements_text(${JSON.stringify(accountIds)}::text::json))
      order by account_id, query_type, model`,
  )
}

/** Locks and returns the cells with these keys until the transaction ends; creates missing ones empty. */
export async function lockCells(
  transaction: TransactionSql,
  places: readonly CellKey[],
): Promise<Map<string, CandidateCell>> {
  const wanted = new Map(places.map(place => [getName(place), placeIn(place)]))
  const read = (of: readonly CellKey[]) => transaction<CandidateCell[]>`
    select ${columns(transaction)} from learning_state
    join json_to_recordset(${JSON.stringify(of)}::text::json) as wanted("accountId" text, "queryType" text, name text)
      on account_id = wanted."accountId" and query_type = wanted."queryType" and model = wanted.name
    order by account_id, query_type, model for update of learning_state`
  const named = [...wanted.values()].map(place => ({ ...place, name: place.model }))
  const cells = new Map((await read(named)).map(cell => [getName(cell), cell]))
  const missing = named.filter(place => !cells.has(getName(place)))
  if (missing.length === 0) return cells
  await writeCells(
    transaction,
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
export async function writeCells(transaction: TransactionSql, cells: readonly CandidateCell[]): Promise<void> {
  await transaction`
    insert into learning_state (
      account_id, query_type, model, requests, entries, since, at, weight, quality, spread, slump, slump_weight,
      slump_quality, latency_ms, first_token_ms, cost_microcents, ratio, ratio_variance, ratings, rating, automatic,
      influenced, enhanced, enhanced_quality, plain_quality)
    select * from json_to_recordset(${JSON.stringify(cells, asReal)}::text::json) as cell(
      "accountId" text, "queryType" text, model text, requests int, entries int, since bigint, at bigint, weight real,
      quality real, spread real, slump real, "slumpWeight" real, "slumpQuality" real, "latencyMs" real,
      "firstTokenMs" real, "costMicrocents" real, ratio real, "ratioVariance" real, ratings int, rating real,
      automatic int, influenced int, enhanced int, "enhancedQuality" real, "plainQuality" real)
    order by 1, 2, 3
    on conflict (account_id, query_type, model) do update set
      requests = excluded.requests, entries = excluded.entries, since = excluded.since, at = excluded.at,
      weight = excluded.weight, quality = excluded.quality, spread = excluded.spread, slump = excluded.slump,
      slump_weight = excluded.slump_weight, slump_quality = excluded.slump_quality, latency_ms = excluded.latency_ms,
      first_token_ms = excluded.first_token_ms, cost_microcents = excluded.cost_microcents, ratio = excluded.ratio,
      ratio_variance = excluded.ratio_variance, ratings = excluded.ratings, rating = excluded.rating,
      automatic = excluded.automatic, influenced = excluded.influenced, enhanced = excluded.enhanced,
      enhanced_quality = excluded.enhanced_quality, plain_quality = excluded.plain_quality
    where excluded.requests > 0`
}

function columns(sql: Queries) {
  return sql`
    account_id as "accountId", query_type as "queryType", model, requests, entries, since::float8, at::float8, weight,
    quality, spread, slump, slump_weight as "slumpWeight", slump_quality as "slumpQuality", latency_ms as "latencyMs",
    first_token_ms as "firstTokenMs", cost_microcents as "costMicrocents", ratio, ratio_variance as "ratioVariance",
    ratings, rating, automatic, influenced, enhanced, enhanced_quality as "enhancedQuality",
    plain_quality as "plainQuality"`
}

/**
 * Converts to a single-precision value. Decayed evidence becomes arbitrarily small, and Postgres rejects a `real` that
 * would underflow to 0.
 */
function asReal(_name: string, value: unknown): unknown {
  return typeof value === 'number' && Math.abs(value) < smallestReal ? 0 : value
}

/** The smallest normal single-precision number. */
const smallestReal = 2 ** -126
