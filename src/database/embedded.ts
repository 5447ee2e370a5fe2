/** Postgres without a Postgres: the embedded one, started on a data folder, or reached where it already runs. */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { digestOf } from '../core/accounts/api-keys.ts'
import { holderOf, lockDataFolder } from './data-folder.ts'
import type { DatabaseAddress } from './database.ts'
import type { WorkerOrder, WorkerReport } from './embedded-worker.ts'

export type Embedded = { readonly address: DatabaseAddress; close(): Promise<void> }

/** The kernel's limit on a Unix socket's path is 108 bytes with its end, 104 on some systems. */
const maximumSocketPathBytes = 100
const openingDeadlineMs = 60_000
const closingDeadlineMs = 5_000

/**
 * Starts the embedded Postgres on `<directory>/postgres` and takes the folder. Throws `DataFolderHeld` where another process
 * has it, an `Error` where the database does not open. `onFailure` hears of a backend that broke down later.
 */
export async function openEmbedded(
  directory: string,
  onFailure: (detail: string) => void = () => {},
): Promise<Embedded> {
  const release = lockDataFolder(directory)
  try {
    const socketPath = socketPathOf(directory)
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o700 })
    // Fails where a stranger made the folder first.
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
      // A backend that does not close is left to crash recovery, like one that was killed.
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

/** For the operator's commands: the running gateway's database where there is one, else an own one for as long as needed. */
export async function connectEmbedded(directory: string): Promise<Embedded> {
  if (holderOf(directory) === null) return openEmbedded(directory)
  return { address: { socketPath: socketPathOf(directory) }, close: async () => {} }
}

const socketPathOf = (directory: string) => socketPathIn(directory, 'postgres.sock')

/** The path of a socket of this data folder; in a folder of its own under the temporary one where the path is too long. */
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
