import { afterAll, beforeAll } from 'bun:test'
import { rmSync } from 'node:fs'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { type Embedded, openEmbedded } from '../../src/database/embedded.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { type OwnDatabase, realDatabase } from '../harness/database.ts'
import { patientStore } from '../harness/patience.ts'

/**
 * The embedded database and a real one, migrated and empty, for the tests of the file that calls it: there from its first test
 * to its last. Null before, and for good where this machine has no Postgres.
 */
export function twoDatabases(): { readonly embedded: Database | null; readonly real: Database | null } {
  const databases: { embedded: Database | null; real: Database | null } = { embedded: null, real: null }
  let folder = ''
  let embedded: Embedded | null = null
  let server: OwnDatabase | null = null
  beforeAll(async () => {
    folder = await freshDataFolder()
    embedded = await openEmbedded(folder)
    databases.embedded = openDatabase(embedded.address, patientStore)
    server = await realDatabase()
    if (server === null) return
    databases.real = openDatabase(server.url, patientStore)
  }, 240_000)
  afterAll(async () => {
    await databases.embedded?.close()
    await embedded?.close()
    await databases.real?.close()
    await server?.drop()
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)
  return databases
}
