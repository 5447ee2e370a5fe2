/** Explains why a store could not be opened, and names the variable that the operator can change. */
import { statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { StoreConfig } from '../config/config.ts'
import { systemErrorCode } from '../core/validation/errors.ts'
import { describeError, OperatorError, systemErrorText } from '../core/validation/operator-errors.ts'
import { diskFull, postgresError } from './database.ts'

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
export function isWrongAddress(cause: unknown): boolean {
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
