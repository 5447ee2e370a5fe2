import { type SQL, sql, sql as text } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { TransactionSql } from 'postgres'
import type { Database } from './database.ts'

/** A transaction of either interface. */
export type Step = Transaction | TransactionSql

type Value = string | number | boolean | null

/** Returns a template tag that runs statements in `step`, for functions that callers of both interfaces use. */
export function statementIn(step: Step): (text: TemplateStringsArray, ...values: Value[]) => Promise<unknown> {
  if (typeof step === 'function') return async (text, ...values) => step(text, ...values)
  return async (text, ...values) =>
    step.execute((sql as (text: TemplateStringsArray, ...values: Value[]) => SQL)(text, ...values))
}

/** Returns the current time of the database's clock. Throws like `database.run`. */
export async function databaseTime(database: Database): Promise<Date> {
  const rows = await database.run(({ sql }) => sql<{ now: Date }[]>`select clock_timestamp() as now`)
  const now = rows[0]?.now
  if (now === undefined) throw new Error('the database returned no time')
  return new Date(now)
}

/**
 * Row-level security for one account. Work runs in a transaction that sees only that account's rows, so a query without
 * its filter returns nothing of other accounts. Costs one or two round trips, so it is used for interactive routes.
 * Work across accounts (shipping, billing, key and session look-ups, operator commands) uses `database.run`.
 */

export type Transaction = Parameters<Parameters<PostgresJsDatabase['transaction']>[0]>[0]

type AccountDatabase = {
  /** Drizzle over the tables, in one transaction. Throws like `database.run`. */
  orm<T>(work: (step: Transaction) => PromiseLike<T>, deadlineMs?: number): Promise<T>
  /** Plain SQL, in one transaction. */
  sql<T>(work: (sql: TransactionSql) => PromiseLike<T>, deadlineMs?: number): Promise<T>
}

/** Returns database access that is limited to the rows of one account. */
export function withAccountRls(database: Database, accountId: string): AccountDatabase {
  return {
    orm: (work, deadlineMs) =>
      database.run(
        ({ orm }) =>
          orm.transaction(async step => {
            await step.execute(text`select gateway_enter(${accountId})`)
            return work(step)
          }),
        deadlineMs,
      ),
    async sql(work, deadlineMs) {
      const { result } = await database.run(
        ({ sql }) =>
          sql.begin(async step => {
            // Sent first without waiting: if it is rejected, so is everything after it.
            const entered = step`select gateway_enter(${accountId})`.execute()
            const [result] = await Promise.all([Promise.resolve().then(() => work(step)), entered])
            return { result }
          }),
        deadlineMs,
      )
      return result
    },
  }
}
