/** Deps → app → listen; drains on SIGTERM, or when the parent says so. */
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
import { watchLauncher } from './launcher.ts'
import { exitWithStartupError, listenErrorText } from './startup-error.ts'
import { warmUp } from './warm-up.ts'
import { createSiblings, type FiguresMessage } from './worker-metrics.ts'

/** From a worker to its parent: it listens, and what to say to a person about it. */
export type WorkerMessage = { readonly type: 'listening'; readonly banner: string }

/** From the parent to a worker: what it was told itself. */
export type SupervisorMessage = 'SIGTERM' | 'SIGINT'

/** A store that decides limits is found within this, or requests wait for it as they do later. */
const warmWithinMs = 3_000
/** How long readers have to fetch the last event of a stream that was ended for them. */
const lastWordsMs = 1_000
/** Letting go of the stores has its own deadlines; this one is for what they forgot. */
const closingDeadlineMs = 15_000

/** Serves until it is told to stop, and ends the process then; with 1 where it cannot start. */
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
    // Made once and shown once: an address that is taken must not cost the operator the first key.
    if (deps.firstAccount !== null) process.stdout.write(`${firstAccountLines(deps.firstAccount).join('\n')}\n`)
    await deps.close()
    return exitWithStartupError(listenErrorText(config, cause))
  })

  let draining = false
  const { promise: hurried, resolve: hurry } = Promise.withResolvers<void>()

  /** Not ready, then no new work, running streams to their end or the drain deadline, usage shipped. A second signal hurries. */
  const drain = async (noticeMs: number) => {
    deps.readiness.isReady = false
    deps.log.info('draining')
    closeConnectionsAfterResponse(app, server)
    await Promise.race([deps.clock.sleep(noticeMs), hurried])
    const stopped = server.stop()
    await Promise.race([stopped, deps.clock.sleep(config.drainMs), hurried])
    deps.inFlight.endAll(
      new GatewayError('service_unavailable', 'The gateway is restarting. Ask again.', { retryAfterMs: 1000 }),
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
        deps.log.error('stopped_badly', { detail: describeError(cause) })
        process.exit(1)
      },
    )
  }

  // At a terminal there is no balancer that would have to notice first.
  const noticeMs = { SIGTERM: config.drainNoticeMs, SIGINT: 0 } as const
  let orders = 0
  const obey = (order: SupervisorMessage) => {
    if (++orders > 1) hurry()
    else if (!draining) stop(0, noticeMs[order])
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // A terminal, or a service manager, signals parent and workers alike: only what the parent passes on can be a second one.
      if (config.worker === null) obey(signal)
      else if (!draining) stop(0, noticeMs[signal])
    })
  if (config.worker !== null) {
    process.on('message', (message: SupervisorMessage | FiguresMessage) =>
      typeof message === 'string' ? obey(message) : siblings?.hear(message),
    )
    // Without a parent nobody would replace it, nor end it.
    process.on('disconnect', () => {
      if (draining) return
      deps.log.warn('parent_gone')
      stop(1, 0)
    })
  }
  // Nobody is left who would wait for a balancer to notice.
  else watchLauncher(() => !draining && stop(0, 0))
  // One bad promise somewhere must not end everybody's streams.
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
    for (const warning of config.warnings) deps.log.warn('configuration', { warning })
  } else process.send?.({ type: 'listening', banner: words } satisfies WorkerMessage)
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
    // Shared, a port would silently give every other request to the gateway that was there first; workers want just that.
    reusePort: config.worker !== null,
    development: false,
  })
  if (app.server === null) throw new Error('the server did not start')
  return app.server
}

/** The host of an address that works from this machine. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Whose further keys a later start advises on; null where only the operator knows. */
async function keyOwner(database: Database): Promise<string | null> {
  const found = await findAccountByEmail(database, localOwner).catch(() => null)
  return found?.user.email ?? null
}
