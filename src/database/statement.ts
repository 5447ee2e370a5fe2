import type { TransactionSql } from 'postgres'
import { camelName, snakeName } from '../core/text/key-names.ts'
import type { Database } from './database.ts'

type Value = string | number | boolean | null

/** Returns the rows of a query under the names of their type: the column `created_at` is the field `createdAt`. */
export async function typedRows<Row>(query: PromiseLike<readonly Readonly<Record<string, unknown>>[]>): Promise<Row[]> {
  const rows = await query
  // Converted once: a start reads thousands of keys.
  const names = Object.keys(rows[0] ?? {}).map(column => [column, camelName(column)] as const)
  return rows.map(row => {
    const typed: Record<string, unknown> = {}
    for (const [column, name] of names) typed[name] = row[column]
    return typed as Row
  })
}

/** Returns fields as columns for `insert` and `update`. Absent ones are left out. */
export function toColumns(fields: object): Record<string, Value | Date> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([name, value]) => [snakeName(name), value]))
}

/** Returns the current time of the database's clock. Throws like `database.run`. */
export async function databaseTime(database: Database): Promise<Date> {
  const rows = await database.run(({ sql }) => sql<{ now: Date }[]>`select clock_timestamp() as now`)
  const now = rows[0]?.now
  if (now === undefined) throw new Error('the database returned no time')
  return now
}

/** Runs work in one transaction. Throws like `database.run`. */
export async function inTransaction<T>(
  database: Database,
  work: (step: TransactionSql) => PromiseLike<T>,
  deadlineMs?: number,
): Promise<T> {
  const { result } = await database.run(
    ({ sql }) => sql.begin(async step => ({ result: await work(step) })),
    deadlineMs,
  )
  return result
}

/**
 * Runs work in one transaction that sees only the rows of one account (row-level security), so a query without its filter
 * returns nothing of other accounts. Costs one or two round trips, so it is used for interactive routes. Work across
 * accounts (shipping, billing, key and session look-ups, operator commands) uses `database.run`. Throws like it.
 */
export function withAccountRls<T>(
  database: Database,
  accountId: string,
  work: (step: TransactionSql) => PromiseLike<T>,
  deadlineMs?: number,
): Promise<T> {
  const inside = async (step: TransactionSql): Promise<T> => {
    // Sent first without waiting: if it is rejected, so is everything after it.
    const entered = step`select gateway_enter(${accountId})`.execute()
    const [result] = await Promise.all([Promise.resolve().then(() => work(step)), entered])
    return result
  }
  return inTransaction(database, inside, deadlineMs)
}
