/**
 * Runs Postgres without an installation: starts the embedded database on a data folder, or connects to a running one.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { digestOf } from '../core/accounts/api-keys.ts'
import { holderOf, lockDataFolder } from './data-folder.ts'
import type { DatabaseAddress } from './database.ts'
import type { WorkerOrder, WorkerReport } from './embedded-worker.ts'

export type Embedded = { readonly address: DatabaseAddress; close(): Promise<void> }

/** The kernel limits the path of a Unix socket to 108 bytes including its terminator, 104 on some systems. */
const maximumSocketPathBytes = 100
const openingDeadlineMs = 60_000
const closingDeadlineMs = 5_000

/**
 * Starts the embedded Postgres on `<directory>/postgres` and locks the folder. Throws `DataFolderHeld` if another
 * process has it, an `Error` if the database cannot be opened. `onFailure` is called if the backend fails later.
 */
export async function openEmbedded(
  directory: string,
  onFailure: (detail: string) => void = () => {},
): Promise<Embedded> {
  const release = lockDataFolder(directory)
  try {
    const socketPath = socketPathOf(directory)
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o700 })
    // Fails if another user created the folder first.
    chmodSync(dirname(socketPath), 0o700)
    rmSync(socketPath, { force: true })
    const worker = new Worker(new URL('./embedded-worker.ts', import.meta.url))
    try {
      await ordered(
        worker,
        { type: 'open', directory: join(resolve(directory), 'postgres'), socketPath },
        'ready',
        openingDeadlineMs,
      )
      chmodSync(socketPath, 0o600)
    } catch (error) {
      worker.terminate()
      throw error
    }
    worker.onmessage = event => {
      const report: WorkerReport = event.data
      if (report.type === 'failed') onFailure(report.detail)
    }
    let closing: Promise<void> | null = null
    const close = async () => {
      // A backend that does not close is left to crash recovery, as after a kill.
      await ordered(worker, { type: 'close' }, 'closed', closingDeadlineMs).catch(() => {})
      worker.terminate()
      rmSync(socketPath, { force: true })
      if (dirname(socketPath) !== resolve(directory)) rmSync(dirname(socketPath), { recursive: true, force: true })
      release()
    }
    return { address: { socketPath }, close: () => (closing ??= close()) }
  } catch (error) {
    release()
    throw error
  }
}

/** Connects operator commands to the running gateway's database, or starts one for the duration of the command. */
export async function connectEmbedded(directory: string): Promise<Embedded> {
  if (holderOf(directory) === null) return openEmbedded(directory)
  return { address: { socketPath: socketPathOf(directory) }, close: async () => {} }
}

const socketPathOf = (directory: string) => socketPathIn(directory, 'postgres.sock')

/** Returns the path of a socket of this data folder; in a temporary folder if the path would be too long. */
export function socketPathIn(directory: string, name: string): string {
  const path = join(resolve(directory), name)
  if (Buffer.byteLength(path) <= maximumSocketPathBytes) return path
  return join(tmpdir(), `gateway-${digestOf(path).slice(0, 24)}`, name)
}

function ordered(worker: Worker, order: WorkerOrder, awaited: WorkerReport['type'], deadlineMs: number): Promise<void> {
  return new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`The embedded database did not ${order.type} in time.`)), deadlineMs)
    const settled = (action: () => void) => {
      clearTimeout(timer)
      action()
    }
    worker.onmessage = event => {
      const report: WorkerReport = event.data
      if (report.type === awaited) settled(done)
      else if (report.type === 'failed')
        settled(() => fail(new Error(`The embedded database failed: ${report.detail}`)))
    }
    worker.onerror = event => settled(() => fail(new Error(`The embedded database failed: ${event.message}`)))
    worker.postMessage(order)
  })
}
