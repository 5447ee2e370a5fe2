import { test } from 'bun:test'
import type { Database } from '../../src/database/database.ts'

/** Declares tests on one database, which report a missing database. */
export function onDatabaseOf(name: string, open: () => Database | null, timeoutMs: number) {
  return (title: string, body: (database: Database) => Promise<void>, ownTimeoutMs = timeoutMs) =>
    test(
      title,
      async () => {
        const database = open()
        if (database === null) process.stdout.write(`did not run on ${name}: ${title}\n`)
        else await body(database)
      },
      ownTimeoutMs,
    )
}
