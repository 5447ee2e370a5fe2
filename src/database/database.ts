/**
 * The only access to Postgres: a pool behind a bounded queue and a deadline. A slow query fails without affecting
 * others. A frozen server blocks queries forever and the driver with them, so a pool without any answer for a full
 * deadline is replaced. A timed-out query may still be executed: every write is safe to repeat by its ID.
 */

import { readMigrationFiles } from 'drizzle-orm/migrator'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres, { type Sql, type TransactionSql } from 'postgres'
import packageJson from '../../package.json'
import type { Actor } from '../core/audit/audit.ts'
import type { Log } from '../core/ports.ts'
import { usualDeadlines } from '../core/request/deadlines.ts'
import { GatewayError, systemErrorCode } from '../core/validation/errors.ts'
import { OperatorError } from '../core/validation/operator-errors.ts'
import { getStatements, type Work } from './transact.ts'
import { createWorkQueue, QueueFull } from './work-queue.ts'

/** A connection string, or the embedded database's socket. */
export type DatabaseAddress =
  | string
  | {
      readonly socketPath: string
      /** Runs `Work` in the thread of the database; absent = another process has it. */
      readonly transact?: (module: string, input: string) => Promise<string>
    }

/** Two interfaces to one pool: plain SQL, and Drizzle over the tables. */
type Connected = { readonly sql: Sql; readonly orm: PostgresJsDatabase }

export type Database = {
  /**
   * Runs `work` on the pool. Throws `GatewayError` `service_unavailable` if Postgres does not answer within
   * `deadlineMs` (default 1 s, for the embedded database 10 s), cannot be reached, or 1,000 other queries wait.
   * Postgres' own errors are thrown unchanged. An urgent query starts before those that wait.
   */
  run<T>(work: (connected: Connected) => PromiseLike<T>, deadlineMs?: number, isUrgent?: boolean): Promise<T>
  /** Runs work in one transaction and returns its output. Throws like `run`. */
  transact(work: Work, input: string, deadlineMs: number): Promise<string>
  readonly address: DatabaseAddress
  /** Calls `listener` soon after a write of any process to the database; absent = writes are not reported. */
  readonly onWrite?: ((listener: () => void) => void) | undefined
  /** Who makes the changes, for the audit log (`actingAs`); absent = the gateway itself. */
  readonly actor?: Actor | undefined
  close(): Promise<void>
}

type DatabaseOptions = {
  /** Maximum connections. The embedded database serves them one after another anyway. */
  readonly connections?: number
  /** Maximum time of a query in milliseconds that states none of its own; stated ones change by the same factor. */
  readonly deadlineMs?: number
}

/**
 * Share of a deadline without any answer that counts as all of it, since timers and answers are not processed at the
 * same moment.
 */
const almost = 0.9
/** Queries that may wait for a connection: as many as ten connections answer within a deadline, at 10 ms each. */
const maximumWaiting = 1_000
const migrationDeadlineMs = 60_000
const lockTimeoutMs = 2000
const lockTries = 5
/** Any number that nothing else uses on this database. */
const migrationLock = 7_245_001_501

type Pool = Connected & {
  /** Queries sent and not finished, and how many of these missed their deadline. */
  unsettled: number
  overdue: number
  /** When the pool last answered, or was first used after a pause, by `performance.now()`. */
  heardAt: number
}
/** One query and the pool it was sent to; null while it waits for a connection. */
type Query = { pool: Pool | null; isOverdue: boolean }

/** Creates a pool for `address`. Connects on the first query. */
export function openDatabase(address: DatabaseAddress, options: DatabaseOptions = {}): Database {
  const connections = options.connections ?? (typeof address === 'string' ? 10 : 4)
  const usualDeadlineMs = options.deadlineMs ?? getDeadline(address)
  const factor = usualDeadlineMs / getDeadline(address)
  const open = (): Pool => {
    const sql = dial(address, connections, usualDeadlineMs)
    return { sql, orm: drizzle(sql), unsettled: 0, overdue: 0, heardAt: 0 }
  }
  const queue = createWorkQueue({ places: connections, urgentPlaces: connections > 1 ? 1 : 0, maximumWaiting })
  let current = open()
  let closed = false

  const send = async <T>(work: (connected: Connected) => PromiseLike<T>, query: Query): Promise<T> => {
    const pool = current
    query.pool = pool
    if (pool.unsettled++ === 0) pool.heardAt = performance.now()
    try {
      const answer = await work(pool)
      pool.heardAt = performance.now()
      return answer
    } catch (error) {
      if (isAnswer(error)) pool.heardAt = performance.now()
      throw error
    } finally {
      pool.unsettled--
      if (query.isOverdue) pool.overdue--
    }
  }

  const replace = () => {
    const frozen = current
    current = open()
    queue.reset()
    // Rejects pending queries at once; a graceful end would wait for the frozen server.
    frozen.sql.end({ timeout: 0 }).catch(() => {})
  }

  /** A late query is no evidence while others are answered: it may be slow, or have waited for its turn. */
  const noteOverdue = (query: Query) => {
    query.isOverdue = true
    if (query.pool !== null) query.pool.overdue++
    const silentMs = performance.now() - current.heardAt
    if (current.overdue > 0 && silentMs >= usualDeadlineMs * almost && !closed) replace()
  }

  const run: Database['run'] = async (work, deadlineMs = getDeadline(address), isUrgent = false) => {
    const query: Query = { pool: null, isOverdue: false }
    const givenUp = new AbortController()
    const answer = queue.run(() => send(work, query), givenUp.signal, isUrgent)
    try {
      return await deadline(answer, deadlineMs * factor)
    } catch (error) {
      if (error instanceof MissedDeadline) {
        givenUp.abort(error)
        noteOverdue(query)
      }
      throw isUnavailable(error) ? unavailable(error) : error
    }
  }

  return {
    address,
    run,
    async transact(work, input, deadlineMs) {
      const isServer = typeof address === 'string'
      if (isServer || address.transact === undefined)
        return run(({ sql }) => sql.begin(step => work.run(getStatements(step, isServer), input)), deadlineMs)
      try {
        return await deadline(address.transact(work.module, input), deadlineMs * factor)
      } catch (error) {
        throw isUnavailable(error) ? unavailable(error) : error
      }
    },
    async close() {
      closed = true
      await current.sql.end({ timeout: 1 })
    },
  }
}

/**
 * Migrates the schema, one instance at a time. Throws instead of queuing behind a long transaction, since a waiting
 * table lock blocks all later queries. Throws `NewerSchema` if a later release has migrated. Returns false if the user
 * may not create the role `gateway_app`: then row-level security is not active. `log` reports that
 * migrations are applied.
 */
export async function migrate(database: Database, log?: Pick<Log, 'info'>): Promise<boolean> {
  const sql = dial(database.address, 1, getDeadline(database.address))
  try {
    return await deadline(migrateOn(sql, log), migrationDeadlineMs)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/**
 * One transaction holds the lock and everything else, so that a pooler in transaction mode keeps it on one connection.
 * Only the wait for another instance's migration is repeated.
 */
async function migrateOn(sql: Sql, log?: Pick<Log, 'info'>): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    let isLocked = false
    try {
      return await sql.begin(async transaction => {
        await transaction.unsafe(`set local lock_timeout = ${lockTimeoutMs}`)
        await transaction`select pg_advisory_xact_lock(${migrationLock})`
        isLocked = true
        await applyMigrations(transaction, log)
        const [wall] = await transaction<{ stands: boolean }[]>`select gateway_second_wall() as stands`
        return wall?.stands === true
      })
    } catch (error) {
      if (isLocked || tries === lockTries) throw error
    }
  }
}

/** Applies the missing migrations and records them in Drizzle's table. Drizzle's own function needs a connection. */
async function applyMigrations(transaction: TransactionSql, log?: Pick<Log, 'info'>): Promise<void> {
  const applied = await refuseNewer(transaction)
  const missing = readMigrationFiles({ migrationsFolder }).slice(applied)
  if (missing.length === 0) return
  log?.info('migrating_database', { count: missing.length })
  await transaction.unsafe(`create schema if not exists drizzle;
    create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`)
  for (const { sql: statements, hash, folderMillis } of missing) {
    for (const statement of statements) await transaction.unsafe(statement)
    await transaction`insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`
  }
  await transaction.unsafe(`comment on table drizzle.__drizzle_migrations is 'gateway-ai ${packageJson.version}'`)
}

/** A later release has migrated the database, so the meaning of its columns is unknown. */
export class NewerSchema extends OperatorError {
  constructor(writer: string | null, migratedAt: number) {
    const by = writer ?? 'a later release of gateway-ai'
    const on = new Date(migratedAt).toISOString().slice(0, 10)
    super(
      `The database was migrated by ${by} (its latest migration is of ${on}), and this is gateway-ai ${packageJson.version}, which does not know that schema. Start ${writer === null ? 'the later release' : `that version or a later one`}, or restore a backup from before the upgrade.`,
    )
  }
}

const migrationsFolder = new URL('../../drizzle', import.meta.url).pathname
/** Migrations of this release by creation time, which identifies them in the database. */
const known = () => readMigrationFiles({ migrationsFolder }).map(({ folderMillis }) => folderMillis)

/**
 * Returns the number of applied migrations. Throws `NewerSchema` if the database has one that this release does not
 * know.
 */
export async function refuseNewer(sql: Sql | TransactionSql): Promise<number> {
  const [found] = await sql<
    { exists: boolean }[]
  >`select to_regclass('drizzle.__drizzle_migrations') is not null as exists`
  if (found?.exists !== true) return 0
  const rows = await sql<{ at: number; writer: string | null }[]>`
    select created_at::float8 as at, obj_description('drizzle.__drizzle_migrations'::regclass) as writer
    from drizzle.__drizzle_migrations order by created_at`
  const ours = new Set(known())
  const unknown = rows.findLast(({ at }) => !ours.has(at))
  if (unknown !== undefined) throw new NewerSchema(unknown.writer, unknown.at)
  return rows.length
}

/** Returns the number of migrations of this release that the database lacks. Throws `NewerSchema` like `refuseNewer`. */
export async function pendingMigrations(sql: Sql): Promise<number> {
  return known().length - (await refuseNewer(sql))
}

/** A promise did not settle before its deadline. */
class MissedDeadline extends Error {
  constructor(deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`)
    this.name = 'MissedDeadline'
  }
}

/** Returns `promise`, or rejects with `MissedDeadline` after `deadlineMs`. A later result is ignored. */
function deadline<T>(promise: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((done, fail) => {
    // Waits one more turn of the event loop: if this process stalled, the answer is ready to be read.
    const late = () => setImmediate(() => fail(new MissedDeadline(deadlineMs)))
    const timer = setTimeout(late, deadlineMs)
    promise.then(done, fail).finally(() => clearTimeout(timer))
  })
}

/**
 * Returns true if a failure means that Postgres cannot do its work now: down, frozen, full, read-only, or for a reason
 * that this program does not know. Errors about the statement itself are excluded.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof MissedDeadline || error instanceof QueueFull) return true
  // An error of this program has a code of its own.
  if (error instanceof GatewayError) return false
  const code = systemErrorCode(error)
  return code !== null && !ofStatement.test(code)
}

/** Returns true if Postgres rejected the values of a row. Any other failure can pass with the same row. */
export function isRowFault(error: unknown): boolean {
  return /^2[23]...$/.test(systemErrorCode(error) ?? '')
}

/** Postgres' error code for a full disk. */
export const diskFull = '53100'

/** Postgres' classes for values, constraints, conflicts, syntax and `raise`, and the driver's codes for wrong use. */
const ofStatement =
  /^(?:(?:22|23|40|42|P0)...|UNDEFINED_VALUE|NOT_TAGGED_CALL|MAX_PARAMETERS_EXCEEDED|UNSAFE_TRANSACTION)$/

/** Returns true if Postgres is alive: it, or this program, rejected the query. */
function isAnswer(error: unknown): boolean {
  return !isUnavailable(error) || (postgresError(error) !== null && !/^(?:08|57P0)/.test(systemErrorCode(error) ?? ''))
}

/** Returns Postgres' own error, as opposed to one of the driver; null = none. */
export function postgresError(error: unknown): Error | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++)
    if (at.name === 'PostgresError') return at
  return null
}

function unavailable(error: unknown): GatewayError {
  const code = systemErrorCode(error)
  const text = code === diskFull ? 'its disk is full' : postgresError(error)?.message
  const reason = text === undefined ? code : `${text} (${code})`
  const detail = `postgres: ${reason ?? (error instanceof Error ? error.message : 'unreachable')}`
  return new GatewayError('service_unavailable', 'Database unavailable. Retry.', {
    retryAfterMs: 1000,
    detail,
  })
}

function getDeadline(address: DatabaseAddress): number {
  return typeof address === 'string' ? usualDeadlines.postgresMs : usualDeadlines.embeddedDatabaseMs
}

function dial(address: DatabaseAddress, connections: number, deadlineMs: number): Sql {
  const options = {
    max: connections,
    connect_timeout: deadlineMs / 1000,
    // Saves one round trip per connection; no array type is needed.
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: 'gateway-ai', TimeZone: 'UTC' },
  }
  if (typeof address === 'string') return withoutTrailingWords(postgres(address, options))
  const { socketPath: path } = address
  return withoutTrailingWords(
    postgres({ ...options, path, host: 'localhost', user: 'postgres', database: 'postgres', ssl: false }),
  )
}

/**
 * Prevents a crash in the driver: if a transaction fails because its connection is lost, the driver writes a ROLLBACK
 * to the closed socket, an error that cannot be caught. The inner transaction stays unsettled; its caller still gets
 * the error, since the driver ends all transactions of a lost connection.
 */
function withoutTrailingWords(sql: Sql): Sql {
  const begin = sql.begin.bind(sql) as (work: (transaction: unknown) => unknown) => Promise<unknown>
  const guarded = (work: (transaction: unknown) => unknown) =>
    begin(async transaction => {
      try {
        return await work(transaction)
      } catch (cause) {
        if (isUnavailable(cause) && postgresError(cause) === null) return new Promise(() => {})
        throw cause
      }
    })
  return Object.assign(sql, { begin: guarded })
}
