/**
 * The one way to Postgres: a pool behind a bounded queue and a deadline. A query that is late fails alone. A frozen server hangs
 * queries for ever and the driver with them, so a pool in which nothing was answered for as long as a deadline is replaced. A
 * query that was given up may still be carried out: every write is safe to repeat by its id.
 */

import { readMigrationFiles } from 'drizzle-orm/migrator'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { migrate as applyMigrations } from 'drizzle-orm/postgres-js/migrator'
import postgres, { type Sql } from 'postgres'
import packageJson from '../../package.json'
import { GatewayError } from '../core/validation/errors.ts'
import { createWorkQueue, QueueFull } from './work-queue.ts'

/** A connection string, or the embedded database's socket. */
export type DatabaseAddress = string | { readonly socketPath: string }

/** Both faces of one pool: plain SQL, and Drizzle over the tables. */
export type Connected = { readonly sql: Sql; readonly orm: PostgresJsDatabase }

export type Database = {
  /**
   * Runs `work` on the pool. Throws `GatewayError` `service_unavailable` where Postgres does not answer within
   * `deadlineMs` (unless told 1 s, of the embedded one 10), cannot be reached, or 1,000 others wait already; what Postgres
   * itself refuses is thrown as it comes.
   */
  run<T>(work: (connected: Connected) => PromiseLike<T>, deadlineMs?: number): Promise<T>
  readonly address: DatabaseAddress
  close(): Promise<void>
}

export type DatabaseOptions = {
  /** Connections at most; the embedded database takes them one at a time anyway. */
  readonly connections?: number
}

/** Postgres may be gone; the embedded one is a thread of this machine, which answers for sure, while it is busy late. */
const requestDeadlineMs = { postgres: 1000, embedded: 10_000 }
/** Part of a deadline without any answer that counts as all of it: timers and answers are not told in the same moment. */
const almost = 0.9
/** Queries that may wait for a connection. Ten connections answer as many within a deadline, unless each takes 10 ms. */
const maximumWaiting = 1_000
const migrationDeadlineMs = 60_000
const lockTimeoutMs = 2000
const lockTries = 5
/** Any number will do that no one else uses on this database. */
const migrationLock = 7_245_001_501

type Pool = Connected & {
  /** Queries that were sent and have not ended; of these, those that missed their deadline. */
  unsettled: number
  overdue: number
  /** When it last answered anything, or was asked after a rest, by `performance.now()`. */
  heardAt: number
}
/** One query: the pool that it was sent to, null while it waits for a connection. */
type Query = { pool: Pool | null; isOverdue: boolean }

/** A pool on `address`. Nothing is dialled before the first query. */
export function openDatabase(address: DatabaseAddress, options: DatabaseOptions = {}): Database {
  const connections = options.connections ?? (typeof address === 'string' ? 10 : 4)
  const usualDeadlineMs = deadlineOf(address)
  const open = (): Pool => {
    const sql = dial(address, connections)
    return { sql, orm: drizzle(sql), unsettled: 0, overdue: 0, heardAt: 0 }
  }
  const queue = createWorkQueue({ places: connections, maximumWaiting })
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
      if (!isUnavailable(error)) pool.heardAt = performance.now()
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
    // Rejects what is pending at once; waiting for it would be waiting for the frozen server.
    frozen.sql.end({ timeout: 0 }).catch(() => {})
  }

  /** A late query is no evidence while others are answered: it may be a slow one, or one that waited for its turn. */
  const noteOverdue = (query: Query) => {
    query.isOverdue = true
    if (query.pool !== null) query.pool.overdue++
    const silentMs = performance.now() - current.heardAt
    if (current.overdue > 0 && silentMs >= usualDeadlineMs * almost && !closed) replace()
  }

  return {
    address,
    async run(work, deadlineMs = usualDeadlineMs) {
      const query: Query = { pool: null, isOverdue: false }
      const givenUp = new AbortController()
      const answer = queue.run(() => send(work, query), givenUp.signal)
      try {
        return await deadline(answer, deadlineMs)
      } catch (error) {
        if (error instanceof MissedDeadline) {
          givenUp.abort(error)
          noteOverdue(query)
        }
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
 * Brings the schema up to date, one gateway at a time. Gives up (and throws) rather than queue behind a long transaction:
 * whoever waits for a table's lock stops everybody behind it. Throws `NewerSchema` where a later release has migrated. False where the user may not make the role that `on-account.ts`
 * becomes: then the second wall is missing.
 */
export async function migrate(database: Database): Promise<boolean> {
  const sql = dial(database.address, 1)
  try {
    return await deadline(migrateOn(sql), migrationDeadlineMs)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function migrateOn(sql: Sql): Promise<boolean> {
  await sql.unsafe(`set lock_timeout = ${lockTimeoutMs}`)
  for (let tries = 1; ; tries++) {
    try {
      await sql`select pg_advisory_lock(${migrationLock})`
      break
    } catch (error) {
      if (tries === lockTries) throw error
    }
  }
  try {
    if ((await refuseNewer(sql)) < known().length) {
      await applyMigrations(drizzle(sql), { migrationsFolder })
      await sql.unsafe(`comment on table drizzle.__drizzle_migrations is 'gateway-ai ${packageJson.version}'`)
    }
    const [wall] = await sql<{ stands: boolean }[]>`select gateway_second_wall() as stands`
    return wall?.stands === true
  } finally {
    await sql`select pg_advisory_unlock(${migrationLock})`
  }
}

/** A later release has migrated the database: what its columns mean by now this one cannot know. */
export class NewerSchema extends Error {
  constructor(writer: string | null, migratedAt: number) {
    const by = writer ?? 'a later release of gateway-ai'
    const on = new Date(migratedAt).toISOString().slice(0, 10)
    super(
      `The database was migrated by ${by} (its latest migration is of ${on}), and this is gateway-ai ${packageJson.version}, which does not know that schema. Start ${writer === null ? 'the later release' : `that version or a later one`}, or restore a backup from before the upgrade.`,
    )
    this.name = 'NewerSchema'
  }
}

const migrationsFolder = new URL('../../drizzle', import.meta.url).pathname
/** Migrations of this release by when each was made, which names it in the database too. */
const known = () => readMigrationFiles({ migrationsFolder }).map(({ folderMillis }) => folderMillis)

/** Throws `NewerSchema` where the database has a migration that this release does not; else how many it has. */
export async function refuseNewer(sql: Sql): Promise<number> {
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

/** The wait for `promise` ran out. */
export class MissedDeadline extends Error {
  constructor(deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`)
    this.name = 'MissedDeadline'
  }
}

/** `promise`, or a `MissedDeadline` after `deadlineMs`. What becomes of the promise later is nobody's business. */
export function deadline<T>(promise: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((done, fail) => {
    // One more turn of the loop before giving up: where it was this process that stalled, the answer is there to be read.
    const late = () => setImmediate(() => fail(new MissedDeadline(deadlineMs)))
    const timer = setTimeout(late, deadlineMs)
    promise.then(done, fail).finally(() => clearTimeout(timer))
  })
}

/** Whether a failure says that Postgres is not there (gone, frozen, starting, full), rather than that it refused. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof MissedDeadline || error instanceof QueueFull) return true
  const code = codeOf(error)
  return code !== null && (networkCodes.has(code) || /^(08|53|57P0)/.test(code))
}

/** Postgres' own code for it. */
export const diskFull = '53100'

const networkCodes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'FailedToOpenSocket',
])

/** A driver's or Postgres' error code; Drizzle wraps the error that carries it. */
function codeOf(error: unknown): string | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
  }
  return null
}

function unavailable(error: unknown): GatewayError {
  const code = codeOf(error)
  const reason = code === diskFull ? `its disk is full (${code})` : code
  const detail = `postgres: ${reason ?? (error instanceof Error ? error.message : 'unreachable')}`
  return new GatewayError(
    'service_unavailable',
    'The service cannot reach its database right now. Try again shortly.',
    {
      retryAfterMs: 1000,
      detail,
    },
  )
}

function deadlineOf(address: DatabaseAddress): number {
  return typeof address === 'string' ? requestDeadlineMs.postgres : requestDeadlineMs.embedded
}

function dial(address: DatabaseAddress, connections: number): Sql {
  const options = {
    max: connections,
    connect_timeout: deadlineOf(address) / 1000,
    // One round trip less at each connection; no array type of ours needs it.
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: 'gateway-ai', TimeZone: 'UTC' },
  }
  if (typeof address === 'string') return withoutLastWords(postgres(address, options))
  const { socketPath: path } = address
  return withoutLastWords(
    postgres({ ...options, path, host: 'localhost', user: 'postgres', database: 'postgres', ssl: false }),
  )
}

/**
 * Where a transaction fails because its connection is lost, the driver still writes a ROLLBACK, into a socket that is gone:
 * an error that nobody can catch, and the end of the process. Such a transaction is left unsettled within; to its caller it
 * ends, since the driver ends every transaction with its connection.
 */
function withoutLastWords(sql: Sql): Sql {
  const begin = sql.begin.bind(sql) as (work: (transaction: unknown) => unknown) => Promise<unknown>
  const guarded = (work: (transaction: unknown) => unknown) =>
    begin(async transaction => {
      try {
        return await work(transaction)
      } catch (cause) {
        if (networkCodes.has(codeOf(cause) ?? '')) return new Promise(() => {})
        throw cause
      }
    })
  return Object.assign(sql, { begin: guarded })
}
