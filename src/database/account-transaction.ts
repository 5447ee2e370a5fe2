/**
 * Row-level security for one account. Work runs in a transaction that sees only that account's rows, so a query without
 * its filter returns nothing of other accounts. Costs one or two round trips, so it is used for interactive routes.
 * Work across accounts (shipping, billing, key and session look-ups, operator commands) uses `database.run`.
 */
import { sql as text } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { TransactionSql } from 'postgres'
import type { Database } from './database.ts'

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
