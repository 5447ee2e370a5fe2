/**
 * The second wall around an account. What is done here is done in a transaction that sees that account's rows alone, by
 * Postgres' own row-level security: a query that forgets its filter finds nothing of anybody else's. It gives up one or two
 * round trips for that, so it is for what people do at a screen. What must see every account (shipping, billing, the lookup
 * of a key or a session, the operator) goes by `database.run`.
 */
import { sql as text } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { TransactionSql } from 'postgres'
import type { Database } from './database.ts'

export type Transaction = Parameters<Parameters<PostgresJsDatabase['transaction']>[0]>[0]

export type AccountDatabase = {
  /** Drizzle over the tables, in one transaction. Throws as `database.run` does. */
  orm<T>(work: (step: Transaction) => PromiseLike<T>, deadlineMs?: number): Promise<T>
  /** Plain SQL, in one transaction. */
  sql<T>(work: (sql: TransactionSql) => PromiseLike<T>, deadlineMs?: number): Promise<T>
}

/** What may be done with the rows of one account, and with no others. */
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
            // Sent first, and not waited for: were it refused, so would be everything behind it.
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
