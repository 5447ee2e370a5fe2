/** The generated half of the schema: `tables.ts` and the newest snapshot of the migrations describe the same tables. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import journal from '../../drizzle/meta/_journal.json'
import * as tables from '../../src/database/tables.ts'

test('migrations: leave no difference between the tables of the code and of the database', async () => {
  const newest = String(journal.entries.length - 1).padStart(4, '0')
  const migrated = await Bun.file(join(import.meta.dir, `../../drizzle/meta/${newest}_snapshot.json`)).json()
  expect(await generateMigration(migrated, generateDrizzleJson({ ...tables }, migrated.id))).toEqual([])
})
