import { afterAll, beforeAll } from 'bun:test'
import { rmSync } from 'node:fs'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { openEmbedded } from '../../src/database/embedded.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { realDatabase } from '../harness/database.ts'
import { has } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'

type Kind = 'embedded' | 'real'

/** Variable with the kind that `test/faults/embedded-stores.test.ts` runs the same tests on. */
export const databaseKind = 'TEST_DATABASE'

/**
 * Returns the kinds of database that a run tests, each with the function that returns it, migrated and empty, from the
 * first test of the file that calls this to its last: a real Postgres, or the embedded one where this machine has none.
 * The embedded one takes several times the CPU time.
 */
export function testedDatabases(): readonly [readonly [kind: Kind, open: () => Database | null]] {
  const kind: Kind = has('postgres') && process.env[databaseKind] !== 'embedded' ? 'real' : 'embedded'
  let database: Database | null = null
  let close = async () => {}
  beforeAll(async () => {
    if (kind === 'real') {
      const own = await realDatabase()
      if (own === null) throw new Error('a machine that has Postgres starts it')
      database = openDatabase(own.url, patientStore)
      close = own.drop
    } else {
      const folder = await freshDataFolder()
      const embedded = await openEmbedded(folder)
      database = openDatabase(embedded.address, patientStore)
      close = async () => {
        await embedded.close()
        rmSync(folder, { recursive: true, force: true })
      }
    }
  }, 240_000)
  afterAll(async () => {
    await database?.close()
    await close()
  }, 240_000)
  return [[kind, () => database]]
}
