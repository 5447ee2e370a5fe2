import { eq } from 'drizzle-orm'
import type { Database } from '../../src/database/database.ts'
import { type UsageRow, usageRecords } from '../../src/database/tables.ts'

/** Returns a request's ledger row; null if there is none of this ID (yet). */
export async function findRequest(database: Database, requestId: string): Promise<UsageRow | null> {
  const [row] = await database.run(({ orm }) =>
    orm.select().from(usageRecords).where(eq(usageRecords.requestId, requestId)),
  )
  return row ?? null
}
