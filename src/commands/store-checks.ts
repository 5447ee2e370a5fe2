/** Checks of Postgres and Redis for `doctor`. */

import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { shellCommand } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { type Database, NewerSchema, openDatabase, pendingMigrations } from '../database/database.ts'
import type { Redis } from '../database/redis.ts'
import { databaseTime } from '../database/statement.ts'
import {
  type Check,
  clockCheck,
  failedCheck,
  okCheck,
  redisMemoryCheck,
  storeVersionCheck,
  warningCheck,
} from './checks.ts'
import { CommandFailure } from './command.ts'
import { withDatabase, withRedis } from './open-database.ts'

/** The embedded database is opened only beside a running gateway: opening it otherwise would migrate it. */
export async function embeddedChecks(isRunning: boolean): Promise<Check[]> {
  if (!isRunning) return [okCheck('database', 'embedded; not opened, because no gateway runs')]
  return onDatabase('Restart the gateway, and read its log.', () => withDatabase(databaseChecks))
}

/** Checks the Postgres of `DATABASE_URL`. */
export async function postgresChecks(url: string, { postgresMs: deadlineMs }: ServiceDeadlines): Promise<Check[]> {
  const database = openDatabase(url, { connections: 1, deadlineMs })
  try {
    return await onDatabase('Check DATABASE_URL, and that Postgres runs and accepts this user.', () =>
      databaseChecks(database),
    )
  } finally {
    await database.close()
  }
}

async function onDatabase(action: string, work: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await work()
  } catch (cause) {
    return [
      failedCheck('database', describeError(cause), cause instanceof NewerSchema ? 'Start that release.' : action),
    ]
  }
}

async function databaseChecks(database: Database): Promise<Check[]> {
  const [row] = await database.run(
    ({ sql }) => sql<{ version: string; wall: boolean }[]>`
      select current_setting('server_version') as version, to_regproc('gateway_second_wall') is not null as wall`,
  )
  const askedAt = Date.now()
  const told = await databaseTime(database)
  const answeredAt = Date.now()
  const pending = await database.run(({ sql }) => pendingMigrations(sql))
  return [
    storeVersionCheck('postgres', row?.version ?? 'unknown', '15'),
    clockCheck('postgres', told.getTime() - (askedAt + answeredAt) / 2, answeredAt - askedAt),
    pending === 0
      ? okCheck('migrations', 'up to date')
      : warningCheck(
          'migrations',
          `${pending} pending`,
          `They run at the next start, or now:  ${shellCommand('migrate')}`,
        ),
    ...(row?.wall === true ? [await rowSecurityCheck(database)] : []),
  ]
}

async function rowSecurityCheck(database: Database): Promise<Check> {
  const [row] = await database.run(({ sql }) => sql<{ stands: boolean }[]>`select gateway_second_wall() as stands`)
  return row?.stands === true
    ? okCheck('row-level security', 'active')
    : warningCheck('row-level security', 'not active', 'Connect as a user that may create roles. See SECURITY.md.')
}

/** Checks the Redis of `REDIS_URL`. */
export async function redisChecks(urls: readonly string[], deadlines: ServiceDeadlines): Promise<Check[]> {
  try {
    return await withRedis(urls, deadlines, connectedRedisChecks)
  } catch (cause) {
    if (cause instanceof CommandFailure)
      return [failedCheck('redis', cause.message, 'Check REDIS_URL, and that Redis runs and accepts it.')]
    return [failedCheck('redis', describeError(cause), 'Allow INFO and TIME for the user of REDIS_URL.')]
  }
}

async function connectedRedisChecks(redis: Redis): Promise<Check[]> {
  const info = async (section: string) => String(await redis.send('doctor', ['INFO', section]))
  const askedAt = Date.now()
  const told = epochMsIn(await redis.send('doctor', ['TIME']))
  const answeredAt = Date.now()
  const version = /^redis_version:(\S+)/m.exec(await info('server'))?.[1] ?? 'unknown'
  return [
    storeVersionCheck('redis', version, '7.0'),
    ...(told === null ? [] : [clockCheck('redis', told - (askedAt + answeredAt) / 2, answeredAt - askedAt)]),
    redisMemoryCheck(await info('memory')),
  ]
}

/** `TIME` answers seconds and microseconds. */
function epochMsIn(answer: unknown): number | null {
  if (!Array.isArray(answer)) return null
  const [seconds, microseconds] = answer.map(Number)
  return seconds === undefined || microseconds === undefined ? null : seconds * 1000 + microseconds / 1000
}
