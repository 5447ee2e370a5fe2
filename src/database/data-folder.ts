/**
 * One gateway at a time on a data folder. The lock names its holder's process and when that process began, so that the lock
 * of a killed one, or of an earlier container whose process had the same number, is told from a living one's.
 */
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const holderSchema = Type.Object({
  pid: Type.Integer({ minimum: 1 }),
  /** When the process began, in the kernel's own count; null where the system does not tell. */
  began: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
})

export type Holder = Static<typeof holderSchema>

/** The folder belongs to another living process. */
export class DataFolderHeld extends Error {
  readonly holder: Holder

  constructor(directory: string, holder: Holder) {
    super(
      `The data folder ${directory} is in use by process ${holder.pid}. Stop it, or set GATEWAY_DATA_DIR to another folder.`,
    )
    this.name = 'DataFolderHeld'
    this.holder = holder
  }
}

/**
 * Makes the folder (0700) and takes it for this process. Returns the function that gives it back. Throws `DataFolderHeld`
 * naming the process that has it; a dead one's lock is taken over.
 */
export function lockDataFolder(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  const lock = lockPath(directory)
  const own = `${lock}.${process.pid}.${crypto.randomUUID()}`
  const text = JSON.stringify({ pid: process.pid, began: processBegan(process.pid) } satisfies Holder)
  writeFileSync(own, text, { mode: 0o600, flag: 'wx' })
  try {
    // A link fails where the name exists: of two that start at once, one gets it. Each try removes at most one dead lock.
    for (let tries = 0; tries < 3; tries++) {
      if (linked(own, lock)) return () => releaseLock(lock, text)
      const holder = holderOf(directory)
      if (holder !== null) throw new DataFolderHeld(directory, holder)
      removeDead(lock, own)
    }
    throw new Error(`The lock ${lock} cannot be taken: remove it if no gateway runs on this folder.`)
  } finally {
    rmSync(own, { force: true })
  }
}

/** The living process that has the folder; null where there is none. */
export function holderOf(directory: string): Holder | null {
  const holder = readHolder(lockPath(directory))
  return holder !== null && isAlive(holder) ? holder : null
}

const lockPath = (directory: string) => join(directory, 'gateway.lock')

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Moved aside before it is removed: if another process took the name meanwhile, its lock is put back. */
function removeDead(lock: string, own: string): void {
  const aside = `${own}.dead`
  try {
    renameSync(lock, aside)
  } catch {
    return
  }
  const holder = readHolder(aside)
  if (holder !== null && isAlive(holder)) linked(aside, lock)
  rmSync(aside, { force: true })
}

function releaseLock(lock: string, text: string): void {
  try {
    if (readFileSync(lock, 'utf8') === text) rmSync(lock, { force: true })
  } catch {
    // Already gone, with the whole folder perhaps.
  }
}

function readHolder(path: string): Holder | null {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Value.Check(holderSchema, value) ? value : null
  } catch {
    return null
  }
}

function isAlive(holder: Holder): boolean {
  const began = processBegan(holder.pid)
  if (began !== null && holder.began !== null) return began === holder.began
  try {
    process.kill(holder.pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Boot and start time of a process as Linux tells them, `ended` of one that is dead; null elsewhere, or where there is no such process. */
function processBegan(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    // Fields are counted from behind the name, which may itself hold spaces and brackets; field 22 is the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // It has ended, though nobody has asked how: a signal still finds it.
    if (fields[0] === 'Z') return 'ended'
    return `${boot}/${fields[19] ?? ''}`
  } catch {
    return null
  }
}
