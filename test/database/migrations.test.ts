/** The schema in its three forms: both `tables.ts`, the migrations, and the packed folder that new databases start from. */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import journal from '../../drizzle/meta/_journal.json'
import * as otherTables from '../../drizzle/tables.ts'
import packageJson from '../../package.json'
import { packedFolder } from '../../src/database/data-folder.ts'
import { migrate, openDatabase, pendingMigrations } from '../../src/database/database.ts'
import { openEmbedded } from '../../src/database/embedded.ts'
import * as tables from '../../src/database/tables.ts'
import { patientStore } from '../harness/patience.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('migrations: leave no difference between the tables of the code and of the database', async () => {
  const newest = String(journal.entries.length - 1).padStart(4, '0')
  const migrated = await Bun.file(join(import.meta.dir, `../../drizzle/meta/${newest}_snapshot.json`)).json()
  expect(await generateMigration(migrated, generateDrizzleJson({ ...tables, ...otherTables }, migrated.id))).toEqual([])
})

// `bun run pack` creates it.
test('packed folder: matches these migrations and this PGlite', () => {
  expect(existsSync(packedFolder())).toBe(true)
})

test('packed folder: opens as a migrated database with row-level security and without accounts', async () => {
  const events: string[] = []
  const embedded = await openEmbedded(folder, { log: { info: event => void events.push(event) } })
  const database = openDatabase(embedded.address, patientStore)
  try {
    expect(await database.run(({ sql }) => pendingMigrations(sql))).toBe(0)
    const [found] = await database.run(
      ({ sql }) => sql`select gateway_may_enter() as may_enter, (select count(*)::int from accounts) as accounts`,
    )
    expect(found).toEqual({ may_enter: true, accounts: 0 })
    expect(events).toEqual(['creating_database'])
  } finally {
    await database.close()
    await embedded.close()
  }
})

test('migrate: rejects a database of a later release with both versions, and leaves it intact for that release', async () => {
  const embedded = await openEmbedded(folder)
  const database = openDatabase(embedded.address, patientStore)
  try {
    await database.run(({ sql }) =>
      sql.unsafe(`
        insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', ${Date.UTC(2031, 4, 6)});
        comment on table drizzle.__drizzle_migrations is 'gateway-ai 99.1.0'`),
    )
    await expect(migrate(database)).rejects.toThrow(
      `The database was migrated by gateway-ai 99.1.0 (its latest migration is of 2031-05-06), and this is gateway-ai ${packageJson.version}, which does not know that schema.`,
    )
    const rows = await database.run(({ sql }) => sql`select hash from drizzle.__drizzle_migrations order by id`)
    expect([rows.length, rows.at(-1)?.hash]).toEqual([journal.entries.length + 1, 'later'])
  } finally {
    await database.close()
    await embedded.close()
  }
})

test('embedded database: names the phase that missed its deadline', async () => {
  const fresh = join(folder, 'fresh')
  await expect(openEmbedded(fresh, { deadlineMs: 0 })).rejects.toThrow('Creating the embedded database took longer')
  await expect(openEmbedded(folder, { deadlineMs: 0 })).rejects.toThrow('The embedded database did not open')
})
