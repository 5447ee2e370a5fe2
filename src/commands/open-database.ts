/** Database and Redis of operator commands: the gateway's own data, whether it runs or not. */
import { existsSync } from 'node:fs'
import { readStoreConfig, type StoreConfig } from '../config/config.ts'
import { actingAs } from '../core/audit/audit.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { DataFolderHeld, findHolder } from '../database/data-folder.ts'
import { type Database, migrate, openDatabase, refuseNewer } from '../database/database.ts'
import { connectEmbedded } from '../database/embedded.ts'
import { openRedis, type Redis } from '../database/redis.ts'
import { type AccountWithUser, findAccountByEmail } from '../database/repositories/accounts.ts'
import { CommandFailure } from './command.ts'

/** Milliseconds to wait for a gateway that is starting or stopping, or for another command. */
const patienceMs = 15_000
const retryMs = 100

type Work<T> = (database: Database) => Promise<T>

/**
 * Runs `work` on the database and closes it. An embedded database is opened for the duration unless a gateway has it
 * open; if that gateway stops meanwhile, `work` starts again, so it must be safe to repeat. `mayBegin` = a new database
 * may be created, `bringUpToDate` = migrate an existing one too. Rejects with `ConfigError`, `CommandFailure`, or the
 * store's own error.
 */
export async function withDatabase<T>(
  work: Work<T>,
  options: { readonly mayBegin?: boolean; readonly bringUpToDate?: boolean } = {},
): Promise<T> {
  const config = readStoreConfig()
  const { databaseUrl, dataDirectory } = config
  if (databaseUrl !== null) return onPostgres(databaseUrl, config, options.bringUpToDate === true, work)
  if (!options.mayBegin && !existsSync(dataDirectory))
    throw new CommandFailure(
      `No data in ${dataDirectory}. Start the gateway once, or set GATEWAY_DATA_DIR or DATABASE_URL.`,
    )
  for (const until = Date.now() + patienceMs; ; await Bun.sleep(retryMs)) {
    try {
      return await onEmbedded(config, work)
    } catch (cause) {
      if (!mayPass(cause) || Date.now() > until) throw cause
    }
  }
}

/** Returns true for errors of a gateway that starts or stops, even while the database is being opened. */
function mayPass(cause: unknown): boolean {
  if (cause instanceof DataFolderHeld || cause instanceof GatewayError) return true
  if (!(cause instanceof Error)) return false
  // The holder closed its socket after it was found.
  const isGone = 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ECONNREFUSED')
  return isGone || cause.message.startsWith('The embedded database')
}

/** Runs `work` on the account of an email address. Rejects if there is none. */
export function withAccount<T>(
  email: string,
  work: (database: Database, found: AccountWithUser) => Promise<T>,
): Promise<T> {
  return withDatabase(async database => {
    const found = await findAccountByEmail(database, email)
    if (found === null) throw new CommandFailure(`No account with email ${email}.`)
    return work(database, found)
  })
}

async function onPostgres<T>(
  url: string,
  { serviceDeadlines }: StoreConfig,
  bringUpToDate: boolean,
  work: Work<T>,
): Promise<T> {
  const database = openDatabase(url, { connections: 1, deadlineMs: serviceDeadlines.postgresMs })
  try {
    if (bringUpToDate || !(await hasTables(database))) await migrate(database)
    else await database.run(({ sql }) => refuseNewer(sql))
    return await work(actingAs(database, { kind: 'cli' }))
  } finally {
    await database.close()
  }
}

async function onEmbedded<T>({ dataDirectory: directory, serviceDeadlines }: StoreConfig, work: Work<T>): Promise<T> {
  const isShared = findHolder(directory) !== null
  const embedded = await connectEmbedded(directory)
  const database = openDatabase(embedded.address, { connections: 1, deadlineMs: serviceDeadlines.embeddedDatabaseMs })
  try {
    if (!isShared) await migrate(database)
    // The gateway that holds it is migrating it; an embedded database has no lock against a second migration.
    else if (!(await hasTables(database)))
      throw new GatewayError('service_unavailable', 'The gateway is still starting. Retry.')
    return await work(actingAs(database, { kind: 'cli' }))
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

/** Connections that failed, each with an error of its own or after the whole deadline. */
const maximumFailed = 3

/**
 * Runs `work` on the Redis of `REDIS_URL`. Rejects with `CommandFailure` if it cannot be reached. No request waits for a
 * command, so that its deadline is not that of a request: a busy machine misses that one.
 */
export async function withRedis<T>(
  urls: readonly string[],
  { commandConnectMs: patienceMs }: Pick<ServiceDeadlines, 'commandConnectMs'>,
  work: (redis: Redis) => Promise<T>,
): Promise<T> {
  let reason = `no answer within ${patienceMs / 1_000} s`
  const redis = openRedis({
    urls,
    deadlineMs: patienceMs,
    onEvent: (event, detail) => {
      if (event === 'redis_unavailable') reason = detail
    },
  })
  try {
    for (const until = Date.now() + patienceMs; !redis.isReady(); await Bun.sleep(20))
      if (Date.now() > until || redis.failedConnections() >= maximumFailed)
        throw new CommandFailure(`Redis is unreachable: ${reason}.`)
    return await work(redis)
  } finally {
    redis.close()
  }
}
