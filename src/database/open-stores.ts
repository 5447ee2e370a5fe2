import type { Config } from '../config/config.ts'
import type { Clock, Log } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { lockDataFolder } from './data-folder.ts'
import { type Database, isUnavailable, migrate, openDatabase } from './database.ts'
import { connectEmbedded, type Embedded, openEmbedded } from './embedded.ts'
import { isWrongAddress, toStoreError } from './store-errors.ts'

type Parts = {
  readonly log: Log
  readonly clock: Clock
  /** The embedded database, if it is being opened already. */
  readonly opening?: Promise<Embedded> | undefined
}

type Opened = {
  readonly database: Database
  readonly migrated: Promise<void>
  readonly storage: string
  readonly isEmbedded: boolean
}

/**
 * Opens the configured database, embedded or external, and migrates its schema. `undo` receives the functions that
 * close it. Throws if the database cannot be opened.
 */
export async function openStores(
  config: Config,
  { log, clock, opening }: Parts,
  undo: AsyncDisposableStack,
): Promise<Opened> {
  if (config.databaseUrl !== null) {
    // The journal is in the data folder in both modes, and two gateways must not write one journal.
    undo.defer(lockDataFolder(config.ownDirectory))
    return {
      ...(await openPostgres(config, config.databaseUrl, { log, clock }, undo)),
      storage: 'Postgres',
      isEmbedded: false,
    }
  }
  const storage = `embedded, in ${config.dataDirectory}`
  // The supervisor of a worker holds the embedded database and has migrated it.
  if (config.worker !== null) undo.defer(lockDataFolder(config.ownDirectory))
  const embedded = await (opening ??
    (config.worker === null ? openEmbedded(config.dataDirectory, { log }) : connectEmbedded(config.dataDirectory)))
  undo.defer(() => embedded.close())
  const failed = embedded.failed.then(detail => {
    log.error('embedded_database_failed', { detail })
    throw new Error(`The embedded database failed: ${detail}.`)
  })
  failed.catch(() => {})
  const { embeddedDatabaseMs: deadlineMs } = config.serviceDeadlines
  const database = { ...openDatabase(embedded.address, { deadlineMs }), onWrite: embedded.onWrite }
  undo.defer(() => database.close())
  // A failed database process no longer responds, so its last error is reported instead of a timeout.
  if (config.worker === null) tellOfWall(await Promise.race([migrate(database, log), failed]), log)
  return { database, migrated: Promise.resolve(), storage, isEmbedded: true }
}

const firstMigrationRetryMs = 100
const maximumMigrationRetryMs = 500

/**
 * Connects to Postgres and migrates it. If Postgres is unavailable, the gateway starts without it: database calls fail
 * immediately, and this function retries in the background. Throws if Postgres rejects the address or the migration.
 */
async function openPostgres(config: Config, url: string, { log, clock }: Parts, undo: AsyncDisposableStack) {
  const pool = openDatabase(url, { deadlineMs: config.serviceDeadlines.postgresMs })
  let isClosed = false
  undo.defer(() => {
    isClosed = true
    return pool.close()
  })
  let isMigrated = false
  const bringUpToDate = async () => {
    tellOfWall(await migrate(pool, log), log)
    isMigrated = true
  }
  const keepTrying = async () => {
    for (let waitMs = firstMigrationRetryMs, told = ''; !isMigrated; ) {
      await clock.sleep(waitMs)
      if (isClosed) return
      await bringUpToDate().catch((cause: unknown) => {
        const detail = describeError(cause)
        if (detail !== told && !isUnavailable(cause)) log.error('migration_failed', { detail })
        told = detail
      })
      waitMs = Math.min(waitMs * 2, maximumMigrationRetryMs)
    }
    log.info('postgres_connected')
  }
  const database: Database = {
    ...pool,
    run: (work, deadlineMs, isUrgent) =>
      isMigrated ? pool.run(work, deadlineMs, isUrgent) : Promise.reject(notThereYet()),
    transact: (work, input, deadlineMs) =>
      isMigrated ? pool.transact(work, input, deadlineMs) : Promise.reject(notThereYet()),
  }
  try {
    await bringUpToDate()
    return { database, migrated: Promise.resolve() }
  } catch (cause) {
    if (!isUnavailable(cause) || isWrongAddress(cause)) throw cause
    log.warn('postgres_unavailable', { detail: toStoreError(config, cause) })
    return { database, migrated: keepTrying() }
  }
}

function tellOfWall(stands: boolean, log: Log): void {
  if (stands) return
  log.warn('row_level_security_missing', {
    detail:
      'the database user may not make the role gateway_app, so row-level security is off; let it create roles, or run as a superuser: create role gateway_app nologin; grant gateway_app to the user',
  })
}

function notThereYet(): GatewayError {
  return new GatewayError('service_unavailable', 'Database unavailable. Retry.', {
    retryAfterMs: 1000,
    detail: 'postgres: unavailable since the start',
  })
}
