import type { Database } from './database.ts'

/** Returns the current time of the database's clock. Throws like `database.run`. */
export async function databaseTime(database: Database): Promise<Date> {
  const rows = await database.run(({ sql }) => sql<{ now: Date }[]>`select clock_timestamp() as now`)
  const now = rows[0]?.now
  if (now === undefined) throw new Error('the database returned no time')
  return new Date(now)
}
