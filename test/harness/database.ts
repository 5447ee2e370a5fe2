/**
 * Creates databases on the Postgres that a run of all tests shares, as copies of a migrated, empty one. If a file runs
 * on its own there is none, and the embedded database is used.
 */
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { startPostgres } from './postgres.ts'

export type OwnDatabase = { readonly url: string; drop(): Promise<void> }

/** Variable with the shared server's URL. */
export const sharedPostgres = 'TEST_POSTGRES_URL'

const template = 'gateway_template'
const deadlineMs = 60_000

/** Creates the template that `newDatabase` copies. */
export async function makeTemplate(url: string): Promise<void> {
  await onServer(url, `create database ${template}`)
  const database = openDatabase(named(url, template), { connections: 1, deadlineMs })
  await migrate(database)
  await database.close()
}

/** Returns null if no server is shared. */
export async function newDatabase(): Promise<OwnDatabase | null> {
  const server = process.env[sharedPostgres]
  if (server === undefined) return null
  const name = `test_${Bun.randomUUIDv7().replaceAll('-', '')}`
  await onServer(server, `create database ${name} template ${template} strategy file_copy`)
  return { url: named(server, name), drop: () => onServer(server, `drop database ${name} with (force)`) }
}

/** A migrated and empty database on a real Postgres: the shared server, or else one of its own. Null where this machine has none. */
export async function realDatabase(): Promise<OwnDatabase | null> {
  const own = await newDatabase()
  if (own !== null) return own
  const server = await startPostgres()
  if (server === null) return null
  const database = openDatabase(server.url, { connections: 1, deadlineMs })
  await migrate(database)
  await database.close()
  return { url: server.url, drop: () => server.stop() }
}

/** One connection for all databases of a process. */
const servers = new Map<string, Database>()

async function onServer(url: string, statement: string): Promise<void> {
  const server = servers.get(url) ?? openDatabase(url, { connections: 1, deadlineMs })
  servers.set(url, server)
  await server.run(({ sql }) => sql.unsafe(statement))
}

const named = (url: string, name: string) => url.replace(/[^/]+$/, name)
