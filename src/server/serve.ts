/** Creates the dependencies and the app, listens, and drains on SIGTERM or on a message of the supervisor. */
import { createApp, version } from '../app.ts'
import { createDeps } from '../composition/deps.ts'
import { describeError } from '../composition/error-text.ts'
import { localOwner } from '../composition/first-account.ts'
import { toStoreError } from '../composition/store-errors.ts'
import type { Config } from '../config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { Database } from '../database/database.ts'
import { findAccountByEmail } from '../database/repositories/accounts.ts'
import { banner, firstAccountLines } from './banner.ts'
import { closeConnectionsAfterResponse } from './close-connections.ts'
import { onHangup } from './hangup.ts'
import { watchLauncher } from './launcher.ts'
import { storeReload } from './reload-result.ts'
import { exitWithStartupError, listenErrorText } from './startup-error.ts'
import { warmUp } from './warm-up.ts'
import { createSiblings, type FiguresMessage } from './worker-metrics.ts'

/** Message from a worker to its supervisor: it listens, with the startup message for the operator. */
export type ReadyMessage = { readonly type: 'listening'; readonly banner: string }

type StopOrder = 'SIGTERM' | 'SIGINT'

/** Message from the supervisor to a worker: a signal that the supervisor received. */
export type SupervisorMessage = StopOrder | 'SIGHUP'

/** Maximum wait for a store that decides limits at startup; later requests wait for it themselves. */
const warmWithinMs = 3_000
/** Time for clients to read the last event of a stream that the drain ended. */
const lastWordsMs = 1_000
/** Closing the stores has its own deadlines; this one covers resources without a deadline. */
const closingDeadlineMs = 15_000

/** Serves until a stop signal and then ends the process; exit code 1 if it cannot start. */
export async function serve(config: Config): Promise<void> {
  const deps = await createDeps(config).catch(cause => exitWithStartupError(toStoreError(config, cause)))
  const siblings =
    config.worker === null
      ? null
      : createSiblings(config.worker, { send: message => process.send?.(message) }, deps.observe.families)
  await deps.warm(warmWithinMs)
  const app = createApp(deps, siblings)
  warmUp(deps)
  const server = await Promise.try(() => listen(config, app)).catch(async cause => {
    // Created once and shown once: a port that is in use must not cost the operator the first key.
    if (deps.firstAccount !== null) process.stdout.write(`${firstAccountLines(deps.firstAccount).join('\n')}\n`)
    await deps.close()
    return exitWithStartupError(listenErrorText(config, cause))
  })

  let draining = false
  const { promise: hurried, resolve: hurry } = Promise.withResolvers<void>()

  /**
   * Drain: not ready, then no new requests, open streams until the drain deadline, usage shipped. A second signal
   * shortens it.
   */
  const drain = async (noticeMs: number) => {
    deps.readiness.isReady = false
    deps.log.info('draining')
    closeConnectionsAfterResponse(app, server)
    await Promise.race([deps.clock.sleep(noticeMs), hurried])
    const stopped = server.stop()
    await Promise.race([stopped, deps.clock.sleep(config.drainMs), hurried])
    deps.inFlight.endAll(
      new GatewayError('service_unavailable', 'The gateway is restarting. Send the request again.', {
        retryAfterMs: 1000,
      }),
    )
    await Promise.race([stopped, deps.clock.sleep(lastWordsMs)])
    await Promise.race([deps.close(), deps.clock.sleep(closingDeadlineMs)])
    deps.log.info('stopped')
  }

  const stop = (exitCode: number, noticeMs: number) => {
    draining = true
    drain(noticeMs).then(
      () => process.exit(exitCode),
      cause => {
        deps.log.error('shutdown_failed', { detail: describeError(cause) })
        process.exit(1)
      },
    )
  }

  // In a terminal there is no load balancer that must notice first.
  const noticeMs = { SIGTERM: config.drainNoticeMs, SIGINT: 0 } as const
  let orders = 0
  const reload = () => storeReload(config.ownDirectory, deps.reloadConfig())
  const obey = (order: SupervisorMessage) => {
    if (order === 'SIGHUP') return reload()
    if (++orders > 1) hurry()
    else if (!draining) stop(0, noticeMs[order])
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // A terminal or a service manager signals supervisor and workers, so a worker counts only the supervisor's
      // messages as second signals.
      if (config.worker === null) obey(signal)
      else if (!draining) stop(0, noticeMs[signal])
    })
  // A worker reloads by the supervisor's message, whichever process received the signal.
  onHangup({ reload: () => config.worker === null && reload(), stop: () => !draining && stop(0, 0) })
  if (config.worker !== null) {
    process.on('message', (message: SupervisorMessage | FiguresMessage) =>
      typeof message === 'string' ? obey(message) : siblings?.hear(message),
    )
    // Without a supervisor no process would replace or stop this one.
    process.on('disconnect', () => {
      if (draining) return
      deps.log.warn('supervisor_lost')
      stop(1, 0)
    })
  }
  // No load balancer waits for this instance.
  else watchLauncher(() => !draining && stop(0, 0))
  // One rejected promise must not end all streams.
  process.on('unhandledRejection', cause => deps.log.error('unhandled_rejection', { detail: describeError(cause) }))
  process.on('uncaughtException', cause => {
    deps.log.error('uncaught_exception', { detail: describeError(cause) })
    if (!draining) stop(1, 0)
  })

  void deps.migrated.then(() => {
    deps.readiness.isReady = !draining
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
