/** Creates the dependencies and the app, listens, and drains on SIGTERM or on a message of the supervisor. */
import { createApp, version } from '../app.ts'
import { createDeps } from '../composition/deps.ts'
import { describeError } from '../composition/error-text.ts'
import { localOwner } from '../composition/first-account.ts'
import { toStoreError } from '../composition/store-errors.ts'
import type { Config } from '../config.ts'
import type { Log } from '../core/ports/log.ts'
import type { Database } from '../database/database.ts'
import { findAccountByEmail } from '../database/repositories/accounts.ts'
import { banner, firstAccountLines } from './banner.ts'
import { onHangup } from './hangup.ts'
import { watchLauncher } from './launcher.ts'
import { type StoredProblems, storeReload } from './reload-result.ts'
import { Shutdown, type SupervisorMessage } from './shutdown.ts'
import { exitWithStartupError, listenErrorText } from './startup-error.ts'
import { warmUp } from './warm-up.ts'
import { createSiblings, type FiguresMessage } from './worker-metrics.ts'

/** Message from a worker to its supervisor: it listens, with the startup message for the operator. */
export type ReadyMessage = { readonly type: 'listening'; readonly banner: string }

/** Maximum wait for a store that decides limits at startup; later requests wait for it themselves. */
const warmWithinMs = 3_000

/** Serves until a stop signal and then ends the process; exit code 1 if it cannot start. */
export async function serve(config: Config): Promise<void> {
  const deps = await createDeps(config).catch(cause => exitWithStartupError(toStoreError(config, cause)))
  const siblings =
    config.worker === null
      ? null
      : createSiblings(
          { worker: config.worker, answerMs: config.serviceDeadlines.workerFiguresMs },
          { send: message => process.send?.(message) },
          deps.observe.families,
        )
  await deps.warm(warmWithinMs)
  const app = createApp(deps, siblings)
  warmUp(deps)
  const server = await Promise.try(() => listen(config, app)).catch(async cause => {
    // Created once and shown once: a port that is in use must not cost the operator the first key.
    if (deps.firstAccount !== null) process.stdout.write(`${firstAccountLines(deps.firstAccount).join('\n')}\n`)
    await deps.close()
    return exitWithStartupError(listenErrorText(config, cause))
  })

  const shutdown = new Shutdown(config, deps, { app, server })
  receiveOrders(config, deps, { shutdown, hear: siblings?.hear })

  void deps.migrated.then(() => {
    deps.readiness.isReady = !shutdown.hasBegun
  })
  const url = `http://${urlHost(config.host)}:${server.port}`
  const words = banner({ baseUrl: url, version, deps, keyOwner: await keyOwner(deps.database) })
  if (config.worker === null) {
    process.stdout.write(`${words}\n`)
    for (const warning of config.warnings) deps.log.warn('config_warning', { warning })
  } else process.send?.({ type: 'listening', banner: words } satisfies ReadyMessage)
  deps.log.info('ready', {
    host: config.host,
    port: server.port ?? 0,
    version,
    started_in_ms: Math.round(performance.now()),
    ...(config.worker === null ? {} : { worker: config.worker }),
  })
}

/** Stops and reloads by signals, and in a worker by messages of its supervisor. */
function receiveOrders(
  { worker, ownDirectory }: Pick<Config, 'worker' | 'ownDirectory'>,
  { log, reloadConfig }: { readonly log: Log; readonly reloadConfig: () => StoredProblems },
  { shutdown, hear }: { readonly shutdown: Shutdown; readonly hear: ((message: FiguresMessage) => void) | undefined },
): void {
  const reload = () => storeReload(ownDirectory, reloadConfig())
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // A terminal or a service manager signals supervisor and workers, so a worker counts only the supervisor's
      // messages as second signals.
      if (worker === null) shutdown.order(signal)
      else shutdown.begin(signal)
    })
  // A worker reloads by the supervisor's message, whichever process received the signal.
  onHangup({
    reload: () => worker === null && reload(),
    stop: () => shutdown.begin('SIGINT'),
  })
  if (worker !== null) {
    process.on('message', (message: SupervisorMessage | FiguresMessage) => {
      if (typeof message !== 'string') hear?.(message)
      else if (message === 'SIGHUP') void reload()
      else shutdown.order(message)
    })
    // Without a supervisor no process would replace or stop this one.
    process.on('disconnect', () => {
      if (shutdown.hasBegun) return
      log.warn('supervisor_lost')
      shutdown.fail()
    })
  }
  // No load balancer waits for this instance.
  else watchLauncher(() => shutdown.begin('SIGINT'))
  // One rejected promise must not end all streams.
  process.on('unhandledRejection', cause => log.error('unhandled_rejection', { detail: describeError(cause) }))
  process.on('uncaughtException', cause => {
    log.error('uncaught_exception', { detail: describeError(cause) })
    shutdown.fail()
  })
}

function listen(config: Config, app: ReturnType<typeof createApp>): Bun.Server<unknown> {
  app.listen({
    port: config.port,
    hostname: config.host,
    // With a shared port, another gateway on it would silently receive half of the requests. Only workers share their
    // port.
    reusePort: config.worker !== null,
    development: false,
  })
  if (app.server === null) throw new Error('the server did not start')
  return app.server
}

/** Returns a host name of the address that works on this machine. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Email address in the advice on further keys; null if only the operator knows it. */
async function keyOwner(database: Database): Promise<string | null> {
  const found = await findAccountByEmail(database, localOwner).catch(() => null)
  return found?.user.email ?? null
}
