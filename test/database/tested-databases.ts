import { afterAll, beforeAll } from 'bun:test'
import { rmSync } from 'node:fs'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { openEmbedded } from '../../src/database/embedded.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { realDatabase } from '../harness/database.ts'
import { has } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { isLongVariant } from '../harness/variants.ts'

type Kind = 'embedded' | 'real'

/**
 * Returns the kinds of database that a run tests, each with the function that returns it, migrated and empty, from the
 * first test of the file that calls this to its last: a real Postgres, or the embedded one in the long variant and where
 * this machine has none. The embedded one takes several times the CPU time.
 */
export function testedDatabases(): readonly [readonly [kind: Kind, open: () => Database | null]] {
  const kind: Kind = has('postgres') && !isLongVariant() ? 'real' : 'embedded'
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
