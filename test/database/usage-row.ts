import type { UsageRow } from '../../drizzle/tables.ts'
import type { Database } from '../../src/database/database.ts'
import { typedRows } from '../../src/database/statement.ts'

/** Returns a request's ledger row; null if there is none of this ID (yet). */
export async function findRequest(database: Database, requestId: string): Promise<UsageRow | null> {
  const [row] = await database.run(({ sql }) =>
    typedRows<UsageRow>(sql`select * from usage_records where request_id = ${requestId}`),
  )
  return row ?? null
}
