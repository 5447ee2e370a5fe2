/**
 * Lets only one gateway use a data folder. The lock stores its holder's process ID and start time, so that the lock of
 * a killed process, or of an earlier container with the same process ID, is recognized as stale.
 */
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const holderSchema = Type.Object({
  pid: Type.Integer({ minimum: 1 }),
  /** Start time of the process in kernel units; null if the system does not report it. */
  began: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
})

type Holder = Static<typeof holderSchema>

/** The folder is locked by another running process. */
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
 * Creates the folder (mode 0700) and locks it for this process. Returns the function that unlocks it. Throws
 * `DataFolderHeld` with the holder's process; takes over the lock of a dead one.
 */
export function lockDataFolder(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  const lock = lockPath(directory)
  const own = `${lock}.${process.pid}.${crypto.randomUUID()}`
  const text = JSON.stringify({ pid: process.pid, began: processBegan(process.pid) } satisfies Holder)
  writeFileSync(own, text, { mode: 0o600, flag: 'wx' })
  try {
    // Creating a link fails if the name exists, so only one of two concurrent starts succeeds. Each attempt removes at
    // most one stale lock.
    for (let tries = 0; tries < 3; tries++) {
      if (linked(own, lock)) return () => releaseLock(lock, text)
      const holder = holderOf(directory)
      if (holder !== null) throw new DataFolderHeld(directory, holder)
      removeDead(lock, own)
    }
    throw new Error(`The lock ${lock} cannot be acquired. Remove it if no gateway runs on this folder.`)
  } finally {
    rmSync(own, { force: true })
  }
}

/** Returns the running process that holds the folder; null = none. */
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

/** Renames the lock before removing it. If another process created a new one in between, it is restored. */
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
    // Already removed, perhaps with the folder.
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

/**
 * Returns boot and start time of a process on Linux, or `ended` for a dead one; null on other systems or if there is no
 * such process.
 */
function processBegan(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    // Fields are counted after the process name, which may contain spaces and brackets. Field 22 is the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie process: it has ended, but signals still reach it.
    if (fields[0] === 'Z') return 'ended'
    return `${boot}/${fields[19] ?? ''}`
  } catch {
    return null
  }
}
