/** The data that an operator's command works on: the same that the gateway serves from, whether it runs or not. */
import { existsSync } from 'node:fs'
import { readStoreConfig } from '../config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { DataFolderHeld, holderOf } from '../database/data-folder.ts'
import { type Database, migrate, openDatabase, refuseNewer } from '../database/database.ts'
import { connectEmbedded } from '../database/embedded.ts'
import { type AccountWithUser, findAccountByEmail } from '../database/repositories/accounts.ts'
import { CommandFailure } from './command.ts'

/** How long a gateway that is just starting or stopping, or another command, is waited for. */
const patienceMs = 15_000
const retryMs = 100

type Work<T> = (database: Database) => Promise<T>

/**
 * Runs `work` on the database and lets go of it. An embedded one that nobody has open is opened for as long as that takes;
 * whoever has it may leave meanwhile, and then `work` begins again: it must be safe to repeat. `mayBegin` = a database may be
 * made where there is none, `bringUpToDate` = migrate a real one even if it has its tables. Rejects with `ConfigError`,
 * `CommandFailure`, or the store's own error.
 */
export async function withDatabase<T>(
  work: Work<T>,
  options: { readonly mayBegin?: boolean; readonly bringUpToDate?: boolean } = {},
): Promise<T> {
  const { databaseUrl, dataDirectory } = readStoreConfig()
  if (databaseUrl !== null) return onPostgres(databaseUrl, options.bringUpToDate === true, work)
  if (!options.mayBegin && !existsSync(dataDirectory))
    throw new CommandFailure(
      `There is no data in ${dataDirectory} yet. Start the gateway once, or set GATEWAY_DATA_DIR or DATABASE_URL.`,
    )
  for (const until = Date.now() + patienceMs; ; await Bun.sleep(retryMs)) {
    try {
      return await onEmbedded(dataDirectory, work)
    } catch (cause) {
      if (!mayPass(cause) || Date.now() > until) throw cause
    }
  }
}

/** Whoever has the database open may come or go at any moment, in the middle of opening it too. */
function mayPass(cause: unknown): boolean {
  if (cause instanceof DataFolderHeld || cause instanceof GatewayError) return true
  return cause instanceof Error && cause.message.startsWith('The embedded database')
}

/** Runs `work` on the account behind an e-mail address. Rejects where there is none. */
export function withAccount<T>(
  email: string,
  work: (database: Database, found: AccountWithUser) => Promise<T>,
): Promise<T> {
  return withDatabase(async database => {
    const found = await findAccountByEmail(database, email)
    if (found === null) throw new CommandFailure(`There is no account with the e-mail address ${email}.`)
    return work(database, found)
  })
}

async function onPostgres<T>(url: string, bringUpToDate: boolean, work: Work<T>): Promise<T> {
  const database = openDatabase(url, { connections: 1 })
  try {
    if (bringUpToDate || !(await hasTables(database))) await migrate(database)
    else await database.run(({ sql }) => refuseNewer(sql))
    return await work(database)
  } finally {
    await database.close()
  }
}

async function onEmbedded<T>(directory: string, work: Work<T>): Promise<T> {
  const isShared = holderOf(directory) !== null
  const embedded = await connectEmbedded(directory)
  const database = openDatabase(embedded.address, { connections: 1 })
  try {
    if (!isShared) await migrate(database)
    // Its holder is migrating it, and an embedded database has no lock that would keep two apart.
    else if (!(await hasTables(database)))
      throw new GatewayError('service_unavailable', 'The gateway is still starting. Try again in a moment.')
    return await work(database)
  } finally {
    await database.close()
    await embedded.close()
  }
}

async function hasTables(database: Database): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql<{ found: boolean }[]>`select to_regclass('accounts') is not null as found`,
  )
  return rows[0]?.found === true
}
