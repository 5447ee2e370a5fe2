/**
 * Runs Postgres without an installation: starts the embedded database on a data folder, or connects to a running one.
 */
import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { getDigest } from '../core/accounts/api-keys.ts'
import type { Log } from '../core/ports.ts'
import { findHolder, lockDataFolder } from './data-folder.ts'
import type { DatabaseAddress } from './database.ts'
import type { WorkerOrder, WorkerReport } from './embedded-worker.ts'
import { QueueFull } from './work-queue.ts'

export type Embedded = {
  readonly address: DatabaseAddress
  /** Resolves with the reason if the backend fails later. */
  readonly failed: Promise<string>
  /** Calls `listener` soon after a write of any process; absent = another process runs the database. */
  readonly onWrite?: (listener: () => void) => void
  close(): Promise<void>
}

/** The kernel limits the path of a Unix socket to 108 bytes including its terminator, 104 on some systems. */
const maximumSocketPathBytes = 100
/** Of a database that exists, whose log is replayed after a kill; and of one that is created first. */
const openingDeadlineMs = { existing: 300_000, fresh: 600_000 }
const closingDeadlineMs = 5_000
/** Transactions that may wait for the thread. */
const maximumTransactions = 8

/**
 * Starts the embedded Postgres on `<directory>/postgres` and locks the folder. Throws `DataFolderHeld` if another
 * process has it, an `Error` if the database cannot be opened, or not within `deadlineMs`. `log` reports that a
 * database is created.
 */
export async function openEmbedded(
  directory: string,
  { log, deadlineMs }: { readonly log?: Pick<Log, 'info'> | undefined; readonly deadlineMs?: number } = {},
): Promise<Embedded> {
  const release = lockDataFolder(directory)
  try {
    const socketPath = getSocketPath(directory)
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o700 })
    // Fails if another user created the folder first.
    chmodSync(dirname(socketPath), 0o700)
    rmSync(socketPath, { force: true })
    const postgres = join(resolve(directory), 'postgres')
    const age = existsSync(postgres) ? 'existing' : 'fresh'
    if (age === 'fresh') log?.info('creating_database')
    const worker = new Worker(new URL('./embedded-worker.ts', import.meta.url))
    try {
      const waitMs = deadlineMs ?? openingDeadlineMs[age]
      await ordered(worker, { type: 'open', directory: postgres, socketPath }, 'ready', waitMs, lateText[age](waitMs))
      chmodSync(socketPath, 0o600)
    } catch (error) {
      worker.terminate()
      throw error
    }
    const listeners: (() => void)[] = []
    const transactions = new Map<number, PromiseWithResolvers<string>>()
    let made = 0
    const failed = new Promise<string>(fail => {
      worker.onmessage = event => {
        const report: WorkerReport = event.data
        if (report.type === 'failed') fail(report.detail)
        else if (report.type === 'written') for (const listener of listeners) listener()
        else if (report.type === 'committed') settle(report.id)?.resolve(report.output)
        else if (report.type === 'refused') settle(report.id)?.reject(toPostgresError(report))
      }
    })
    const settle = (id: number) => {
      const transaction = transactions.get(id)
      transactions.delete(id)
      return transaction
    }
    const transact = async (module: string, input: string) => {
      // Those that missed their deadline wait here too.
      if (transactions.size >= maximumTransactions) throw new QueueFull(transactions.size)
      const transaction = Promise.withResolvers<string>()
      transactions.set(++made, transaction)
      worker.postMessage({ type: 'transact', id: made, module, input } satisfies WorkerOrder)
      return transaction.promise
    }
    let closing: Promise<void> | null = null
    const close = async () => {
      // A backend that does not close is left to crash recovery, as after a kill.
      const late = 'The embedded database did not close in time.'
      await ordered(worker, { type: 'close' }, 'closed', closingDeadlineMs, late).catch(() => {})
      worker.terminate()
      rmSync(socketPath, { force: true })
      if (dirname(socketPath) !== resolve(directory)) rmSync(dirname(socketPath), { recursive: true, force: true })
      release()
    }
    return {
      address: { socketPath, transact },
      failed,
      onWrite: listener => void listeners.push(listener),
      close: () => (closing ??= close()),
    }
  } catch (error) {
    release()
    throw error
  }
}

/** Connects operator commands to the running gateway's database, or starts one for the duration of the command. */
export async function connectEmbedded(directory: string): Promise<Embedded> {
  if (findHolder(directory) === null) return openEmbedded(directory)
  return { address: { socketPath: getSocketPath(directory) }, failed: new Promise(() => {}), close: async () => {} }
}

const socketName = 'postgres.sock'

/** Returns the path of the socket of this data folder; in a temporary folder if the path would be too long. */
function getSocketPath(directory: string): string {
  const path = join(resolve(directory), socketName)
  if (Buffer.byteLength(path) <= maximumSocketPathBytes) return path
  return join(tmpdir(), `gateway-${getDigest(path).slice(0, 24)}`, socketName)
}

/** Returns Postgres' error as the driver throws it. */
function toPostgresError({ code, message }: { readonly code: string; readonly message: string }): Error {
  return Object.assign(new Error(message), { name: 'PostgresError', code })
}

const lateText = {
  existing: (waitMs: number) => `The embedded database did not open within ${waitMs / 1000} s.`,
  // Nothing in the folder is damaged: an incomplete database is never used.
  fresh: (waitMs: number) =>
    `Creating the embedded database took longer than ${waitMs / 1000} s: this machine is busy, or its disk slow. Start again; an incomplete database is removed.`,
}

function ordered(
  worker: Worker,
  order: WorkerOrder,
  awaited: WorkerReport['type'],
  deadlineMs: number,
  late: string,
): Promise<void> {
  return new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(late)), deadlineMs)
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
