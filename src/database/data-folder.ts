/**
 * Lets only one gateway use a data folder. The kernel holds the lock, by SQLite's exclusive lock on an empty file: it
 * ends with its process, also after `kill -9`, and holds across containers that share a volume. The file is never
 * removed, because a process that waits for the removed file would lock it beside the holder of the new one.
 */

import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import packageJson from '../../package.json'
import { OperatorError } from '../core/validation/operator-errors.ts'

const holderSchema = Type.Object({
  pid: Type.Integer({ minimum: 1 }),
  /** Start time of the process in kernel units; null if the system does not report it. */
  began: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
})

/** The process that holds a folder; `pid` is null if this process cannot see it, as in another container. */
type FolderHolder = { readonly pid: number | null }

/** The folder is locked by another running process. */
export class DataFolderHeld extends OperatorError {
  constructor(directory: string, holder: FolderHolder) {
    super(
      `The data folder ${directory} is in use by ${describeHolder(holder)}. Stop it, or set GATEWAY_DATA_DIR to another folder.`,
    )
  }
}

/** Returns the holder as words for the operator. */
export function describeHolder({ pid }: FolderHolder): string {
  return pid === null ? 'a process of another container' : `process ${pid}`
}

/** Locks of this process. A collected connection would end its lock. */
const held = new Set<Database>()

/**
 * Creates the folder (mode 0700) and locks it for this process. Returns the function that unlocks it. Throws
 * `DataFolderHeld` with the holder's process.
 */
export function lockDataFolder(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  const found = findHolder(directory)
  if (found !== null) throw new DataFolderHeld(directory, found)
  const lock = new Database(lockPath(directory))
  try {
    // `findHolder` of another process locks the file for a moment.
    lock.run(`pragma busy_timeout = ${lookMs}`)
    lock.run('pragma journal_mode = memory')
    lock.run('begin exclusive')
    writeHolder(directory)
  } catch (error) {
    lock.close()
    throw isBusy(error) ? new DataFolderHeld(directory, readHolder(directory)) : error
  }
  held.add(lock)
  return () => {
    if (!held.delete(lock)) return
    rmSync(holderPath(directory), { force: true })
    lock.close()
  }
}

/** Returns the running process that holds the folder; null = none. */
export function findHolder(directory: string): FolderHolder | null {
  if (!existsSync(lockPath(directory))) return null
  const lock = new Database(lockPath(directory), { readonly: true })
  try {
    lock.query('select count(*) from sqlite_master').get()
    return null
  } catch (error) {
    if (isBusy(error)) return readHolder(directory)
    throw error
  } finally {
    lock.close()
  }
}

/** Maximum wait for other processes in `findHolder`. */
const lookMs = 2_000

const lockPath = (directory: string) => join(directory, 'data-folder.lock')
const holderPath = (directory: string) => join(directory, 'gateway.pid')

const isBusy = (error: unknown) => error instanceof SQLiteError && error.code === 'SQLITE_BUSY'

function writeHolder(directory: string): void {
  const holder: Static<typeof holderSchema> = { pid: process.pid, began: processBegan(process.pid) }
  const path = holderPath(directory)
  writeFileSync(`${path}.unfinished`, JSON.stringify(holder), { mode: 0o600 })
  renameSync(`${path}.unfinished`, path)
}

/** Returns the process that last wrote its ID, if it runs here: the same ID may be another process in a container. */
function readHolder(directory: string): FolderHolder {
  try {
    const value: unknown = JSON.parse(readFileSync(holderPath(directory), 'utf8'))
    if (Value.Check(holderSchema, value) && value.began === processBegan(value.pid)) return { pid: value.pid }
  } catch {
    // The holder has not written it yet.
  }
  return { pid: null }
}

/** Returns boot and start time of a process on Linux; null on other systems or if there is no such process. */
function processBegan(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    // Fields are counted after the process name, which may contain spaces and brackets. Field 22 is the start time.
    return `${boot}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''}`
  } catch {
    return null
  }
}

/**
 * The packed folder of a new embedded database: initialized and migrated, without accounts. Creating one takes 8 s of
 * processor time and 1 GB, unpacking it 0.3 s. Its name is a digest of everything that determines its content, so that
 * one of other migrations is never used.
 */

const migrations = new URL('../../drizzle', import.meta.url).pathname
export const packedName = /^embedded-[0-9a-f]{16}\.tar\.zst$/

/** Returns where the packed folder of this release is; `drizzle/pack.ts` creates it. */
export function packedFolder(): string {
  const hasher = new Bun.CryptoHasher('sha256').update(packageJson.dependencies['@electric-sql/pglite'])
  for (const name of readdirSync(migrations).sort())
    if (name.endsWith('.sql')) hasher.update(readFileSync(join(migrations, name)))
  return join(migrations, `embedded-${hasher.digest('hex').slice(0, 16)}.tar.zst`)
}
