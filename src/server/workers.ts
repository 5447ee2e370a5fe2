/**
 * Several gateway processes on one port. A supervisor that serves no requests starts them, replaces one that dies,
 * passes on signals, and ends after all. The kernel assigns connections (`SO_REUSEPORT`); Redis
 * decides limits. The first worker starts before the others: it migrates, creates the first
 * account, and prints the startup message. Each worker has its own folder, which its replacement takes over.
 */

import { type Config, workerEnvironment } from '../config/config.ts'
import type { Log } from '../core/ports.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { lockDataFolder } from '../database/data-folder.ts'
import { toStoreError } from '../database/open-stores.ts'
import { exitWithStartupError } from './bind-port.ts'
import { onHangup, sendToProcess, watchLauncher } from './launcher.ts'
import type { ReadyMessage, SupervisorMessage } from './serve.ts'
import { createGathering, type FiguresMessage } from './worker-metrics.ts'

const firstRetryMs = 100
const maximumRetryMs = 5_000
/** A worker that ran for this long did not die of a failed start. */
const soundMs = 10_000
/** Maximum time for a worker to stop, besides the notice and the drain. */
const stoppingMs = 20_000

/**
 * Runs `config.workers` gateways until a stop signal, and then ends the process: exit code 0 if all drained. `server`
 * answers on the shared port until the first worker listens.
 */
export async function superviseWorkers(
  config: Config,
  { log, server }: { readonly log: Log; readonly server: Bun.Server<unknown> },
): Promise<void> {
  const close = await openShared(config, log).catch(cause => exitWithStartupError(toStoreError(config, cause)))
  const port = server.port ?? config.port
  const workers = new Workers(log, config.serviceDeadlines.workerFiguresMs, worker => workerEnvironment(worker, port))

  const end = async (exitCode: number) => {
    await close()
    process.exit(exitCode)
  }
  let stopping = false
  const stop = (order: 'SIGTERM' | 'SIGINT') => {
    log.info('stopping', { signal: order })
    workers.order(order)
    if (stopping) return
    stopping = true
    setTimeout(() => workers.kill(), config.drainNoticeMs + config.drainMs + stoppingMs).unref()
    void workers.ended().then(end)
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  watchLauncher(() => !stopping && stop('SIGINT'))
  onHangup({ reload: () => workers.reload(), stop: () => !stopping && stop('SIGINT') })
  let replacing = false
  process.on('SIGUSR2', async () => {
    if (replacing || stopping) return
    replacing = true
    log.info('replacing_workers', { workers: config.workers })
    for (let worker = 1; worker <= config.workers && !stopping; worker++) await workers.replace(worker)
    if (!stopping) log.info('workers_replaced', { workers: config.workers })
    replacing = false
  })
  process.on('unhandledRejection', cause => log.error('unhandled_rejection', { detail: describeError(cause) }))
  process.on('uncaughtException', cause => log.error('uncaught_exception', { detail: describeError(cause) }))

  const first = await workers.start(1)
  // The worker has already reported the reason.
  if (first === null) return stopping ? undefined : end(1)
  void server.stop()
  process.stdout.write(`${first}\n`)
  for (const warning of config.warnings) log.warn('config_warning', { warning })
  await Promise.all(Array.from({ length: config.workers - 1 }, (_, index) => workers.start(index + 2)))
  if (!stopping) log.info('workers_ready', { workers: config.workers, port })
}

/** The worker processes: starts them, and replaces one that dies. */
class Workers {
  private readonly running = new Map<Bun.Subprocess, number>()
  /** Draining workers that are being replaced, with the functions that start their successors. */
  private readonly leaving = new Map<Bun.Subprocess, () => void>()
  private readonly codes: number[] = []
  private readonly gathering: ReturnType<typeof createGathering>
  private readonly allEnded = Promise.withResolvers<void>()
  private ordered: SupervisorMessage | null = null
  private hasStarted = false

  constructor(
    private readonly log: Log,
    figuresMs: number,
    private readonly environment: (worker: number) => Readonly<Record<string, string | undefined>>,
  ) {
    this.gathering = createGathering(figuresMs)
  }

  /**
   * Starts a worker and keeps it running. Returns its startup message when it listens, or null if it ended before.
   * `failures`: how many times in a row it has died early.
   */
  start(worker: number, failures = 0): Promise<string | null> {
    const isFirst = !this.hasStarted
    this.hasStarted = true
    if (this.ordered !== null) return Promise.resolve(null)
    const { promise: banner, resolve: heard } = Promise.withResolvers<string | null>()
    const startedAt = performance.now()
    let listened = false
    const child = Bun.spawn([process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
      env: { ...this.environment(worker) },
      stdin: 'ignore',
      stdout: 'inherit',
      stderr: 'inherit',
      serialization: 'json',
      ipc: (message: ReadyMessage | FiguresMessage, from) => {
        if (message.type !== 'listening') return this.gathering.hear(from, message, this.running.keys())
        listened = true
        heard(message.banner)
      },
    })
    this.running.set(child, worker)
    void child.exited.then(code => {
      this.running.delete(child)
      heard(null)
      if (this.noteOrderedEnd(child, code)) return
      // If the very first worker never listened, another attempt would fail too.
      if (isFirst && !listened) return
      const failed = performance.now() - startedAt < soundMs ? failures + 1 : 1
      const waitMs = Math.min(maximumRetryMs, firstRetryMs * 2 ** (failed - 1))
      this.log.error('worker_exited', { worker, code, signal: child.signalCode, replaced_in_ms: waitMs })
      setTimeout(() => void this.start(worker, failed), waitMs)
    })
    return banner
  }

  /** Drains a worker and starts a new one. Resolves when the new one listens, or after a signal to all. */
  async replace(worker: number): Promise<void> {
    const child = [...this.running].find(([, number]) => number === worker)?.[0]
    // A worker that has just died is already being replaced.
    if (child === undefined || this.ordered !== null) return
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    this.leaving.set(child, resolve)
    sendToProcess(child, 'SIGTERM' satisfies SupervisorMessage)
    await ended
    await this.start(worker)
  }

  /** After a stop signal, no worker is started or replaced. */
  order(order: SupervisorMessage): void {
    this.ordered ??= order
    for (const child of this.running.keys()) sendToProcess(child, order)
    if (this.running.size === 0) this.allEnded.resolve()
  }

  /** Every worker reads the credentials again. */
  reload(): void {
    for (const child of this.running.keys()) sendToProcess(child, 'SIGHUP' satisfies SupervisorMessage)
  }

  kill(): void {
    for (const child of this.running.keys()) child.kill('SIGKILL')
  }

  /** Fulfilled when all workers have ended: 0 if all ended cleanly after a signal, otherwise 1. */
  async ended(): Promise<number> {
    await this.allEnded.promise
    return this.codes.every(code => code === 0) ? 0 : 1
  }

  /** Returns true for a process that ended by an order or to be replaced, and notes its end. */
  private noteOrderedEnd(child: Bun.Subprocess, code: number): boolean {
    const replace = this.leaving.get(child)
    this.leaving.delete(child)
    if (this.ordered !== null) {
      this.codes.push(code)
      if (this.running.size === 0) this.allEnded.resolve()
    }
    replace?.()
    return this.ordered !== null || replace !== undefined
  }
}

/**
 * Resources that workers share besides Redis and Postgres: the data folder, in it the embedded database. Returns a
 * function that closes them.
 */
async function openShared(config: Config, log: Log): Promise<() => Promise<void>> {
  if (config.databaseUrl !== null) {
    const release = lockDataFolder(config.dataDirectory)
    return async () => release()
  }
  const [{ openEmbedded }, { migrate, openDatabase }] = await Promise.all([
    import('../database/embedded.ts'),
    import('../database/database.ts'),
  ])
  const embedded = await openEmbedded(config.dataDirectory, { log })
  void embedded.failed.then(detail => log.error('embedded_database_failed', { detail }))
  const database = openDatabase(embedded.address, {
    connections: 1,
    deadlineMs: config.serviceDeadlines.embeddedDatabaseMs,
  })
  try {
    await migrate(database, log)
    await database.close()
    return embedded.close
  } catch (cause) {
    await embedded.close()
    throw cause
  }
}
