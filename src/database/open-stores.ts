import { statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config, StoreConfig } from '../config/config.ts'
import type { Clock, Log } from '../core/ports.ts'
import { GatewayError, systemErrorCode } from '../core/validation/errors.ts'
import { describeError, OperatorError, systemErrorText } from '../core/validation/operator-errors.ts'
import { lockDataFolder } from './data-folder.ts'
import { type Database, diskFull, isUnavailable, migrate, openDatabase, postgresError } from './database.ts'
import { connectEmbedded, type Embedded, openEmbedded } from './embedded.ts'

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

/** Explains why a store could not be opened, and names the variable that the operator can change. */

/** Returns the explanation, without the password of an address. */
export function toStoreError(
  { databaseUrl, dataDirectory }: Pick<StoreConfig, 'databaseUrl' | 'dataDirectory'>,
  cause: unknown,
): string {
  const path = findPath(cause)
  if (path !== null)
    return `GATEWAY_DATA_DIR: ${path} cannot be used: ${systemErrorText(cause)}. Set it to a folder that this user may write.`
  if (isDiskFull({ databaseUrl, dataDirectory }, cause))
    return `GATEWAY_DATA_DIR: the disk that holds ${dataDirectory} is full. Free space on it, or set it to a folder on another disk.`
  if (isEmbeddedFailure(cause))
    return `GATEWAY_DATA_DIR: ${cause.message} Check that ${dataDirectory} is whole and may be written, or set it to another folder.`
  const code = systemErrorCode(cause)
  if (databaseUrl === null || code === null) return describeError(cause)
  return `DATABASE_URL: ${postgresProblem(new URL(databaseUrl), code, cause)}`
}

/**
 * Returns whether the disk of the data folder is full. The system or the embedded database reports it; otherwise, the
 * free space is too small for one log segment, which the database writes in one step.
 */
function isDiskFull(
  { databaseUrl, dataDirectory }: Pick<StoreConfig, 'databaseUrl' | 'dataDirectory'>,
  cause: unknown,
) {
  if (cause instanceof OperatorError) return false
  const code = systemErrorCode(cause)
  if (code === 'ENOSPC' || code === 'EDQUOT') return true
  return databaseUrl === null && (code === diskFull || freeBytes(dataDirectory) < logSegmentBytes)
}

const logSegmentBytes = 1 << 20

/** Returns the free bytes on the disk of a folder, or of its closest existing parent. */
function freeBytes(folder: string): number {
  for (let path = resolve(folder); ; path = dirname(path)) {
    try {
      const { bavail, bsize } = statfsSync(path)
      return bavail * bsize
    } catch {
      if (path === dirname(path)) return Number.POSITIVE_INFINITY
    }
  }
}

/** Returns the file or folder that the system rejected; null if the cause is something else. */
function findPath(cause: unknown): string | null {
  if (!(cause instanceof Error && 'path' in cause && typeof cause.path === 'string')) return null
  return 'syscall' in cause && cause.syscall === 'connect' ? null : cause.path
}

function isEmbeddedFailure(cause: unknown): cause is Error {
  return cause instanceof Error && cause.message.startsWith('The embedded database')
}

function postgresProblem(url: URL, code: string, cause: unknown): string {
  const place = `${url.hostname || 'localhost'}:${url.port || 5432}`
  const own = postgresError(cause)
  if (own !== null)
    return `Postgres at ${place} says: ${own.message}. ${remedies.get(code) ?? 'Correct the address or that.'}`
  if (code === 'ENOTFOUND') return `no host is known as ${url.hostname}. Correct the address.`
  return `Postgres does not answer at ${place} (${code}). Start it there, or correct the address.`
}

/** Returns whether Postgres rejected the user or the name of the database: the operator must correct `DATABASE_URL`. */
function isWrongAddress(cause: unknown): boolean {
  return /^(?:28...|3D000)$/.test(systemErrorCode(cause) ?? '')
}

/** Advice by SQLSTATE. */
const remedies: ReadonlyMap<string, string> = new Map([
  ['28P01', 'Correct the user or the password.'],
  ['28000', 'Correct the user, or let it in by pg_hba.conf.'],
  ['3D000', 'Create the database, or correct its name.'],
  ['42501', 'Grant the user CREATE on the database and its schema.'],
  [diskFull, 'Free space on its disk.'],
  ['53300', 'Raise max_connections, or close what holds them.'],
])
