/** Creates the dependencies and the app, listens, and drains on SIGTERM or on a message of the supervisor. */
import { createApp, version } from '../app.ts'
import { createDeps } from '../compose/deps.ts'
import type { Config } from '../config/config.ts'
import { type ReloadResult, storeReload } from '../config/reload.ts'
import { localOwner } from '../console/account/first-account.ts'
import type { RequestAbort } from '../core/chat/request-abort.ts'
import type { Clock, Log } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import type { Database } from '../database/database.ts'
import type { Embedded } from '../database/embedded.ts'
import { toStoreError } from '../database/open-stores.ts'
import { findAccountByEmail, hasAccounts } from '../database/repositories/accounts.ts'
import { readCompatible } from '../dialects/chat-completions/request.ts'
import { readMessages } from '../dialects/messages/request.ts'
import { readNative } from '../dialects/native/request.ts'
import { createReasoningSeal } from '../dialects/reasoning-seal.ts'
import { readResponses } from '../dialects/responses/request.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import { banner, firstAccountCommand } from './banner.ts'
import { exitWithStartupError, listenErrorText, serveOn } from './bind-port.ts'
import { onHangup, watchLauncher } from './launcher.ts'
import { createSiblings, type FiguresMessage } from './worker-metrics.ts'

/** Message from a worker to its supervisor: it listens, with the startup message for the operator. */
export type ReadyMessage = { readonly type: 'listening'; readonly banner: string }

/** Maximum wait for a store that decides limits at startup; later requests wait for it themselves. */
const warmWithinMs = 3_000

type Started = {
  readonly log: Log
  /** The bound port; absent in a worker, which binds it when it can serve. */
  readonly server?: Bun.Server<unknown>
  readonly embedded?: Promise<Embedded> | undefined
}

/** Serves until a stop signal and then ends the process; exit code 1 if it cannot start. */
export async function serve(config: Config, { log, server: bound, embedded }: Started): Promise<void> {
  const deps = await createDeps(config, { opening: embedded, meanwhile: warmUp }).catch(cause =>
    exitWithStartupError(toStoreError(config, cause)),
  )
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
  if (bound !== undefined) serveOn(bound, app)
  const server =
    bound ??
    (await Promise.try(() => listenAsWorker(config, app)).catch(async cause => {
      await deps.close()
      return exitWithStartupError(listenErrorText(config, cause))
    }))

  const shutdown = new Shutdown(config, deps, { app, server })
  receiveOrders(config, deps, { shutdown, hear: siblings?.hear })

  const url = `http://${urlHost(config.host)}:${server.port}`
  const owner = deps.isPostgresThere ? await keyOwner(deps.database) : null
  const words = banner({ baseUrl: url, version, deps, keyOwner: owner })
  if (config.worker === null) {
    process.stdout.write(`${words}\n`)
    for (const warning of config.warnings) log.warn('config_warning', { warning })
  } else process.send?.({ type: 'listening', banner: words } satisfies ReadyMessage)
  if (!deps.isPostgresThere) log.info('waiting_for_postgres')
  void deps.migrated.then(async () => {
    if (shutdown.hasBegun) return
    if (!deps.isPostgresThere && (await keyOwner(deps.database)) === undefined)
      log.warn('account_missing', { detail: `Create the first one: ${firstAccountCommand()}` })
    deps.readiness.isReady = true
    log.info('ready', {
      host: config.host,
      port: server.port ?? 0,
      version,
      started_in_ms: Math.round(performance.now()),
      ...(config.worker === null ? {} : { worker: config.worker }),
    })
  })
}

/** Stops and reloads by signals, and in a worker by messages of its supervisor. */
function receiveOrders(
  { worker, ownDirectory }: Pick<Config, 'worker' | 'ownDirectory'>,
  { log, reloadConfig }: { readonly log: Log; readonly reloadConfig: () => ReloadResult },
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

/** Listens on the port that workers share. */
function listenAsWorker({ host, port }: Config, app: ReturnType<typeof createApp>): Bun.Server<unknown> {
  app.listen({ port, hostname: host, reusePort: true, development: false })
  if (app.server === null) throw new Error('the server did not start')
  return app.server
}

/** Returns a host name of the address that works on this machine. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Email address in the advice on further keys; `undefined` if no account exists, null if only the operator knows it. */
async function keyOwner(database: Database): Promise<string | null | undefined> {
  const found = await findAccountByEmail(database, localOwner).catch(() => null)
  if (found !== null) return found.user.email
  return (await hasAccounts(database).catch(() => true)) ? null : undefined
}

/** Enough for the compiler to optimize the loops, and few enough to cost the start only milliseconds. */
const rounds = 20

type WarmUpDeps = {
  readonly read: PromptAnalyzer
  readonly moderation: Pick<Moderation, 'screenMessages'>
}

/**
 * Runs work on a sample that would otherwise delay the first request: request schemas are compiled at their first use,
 * and the loops over a prompt's text are slow until they have run often.
 */
export function warmUp({ read, moderation }: WarmUpDeps): void {
  const sample = { messages: [{ role: 'user', content: 'Explain in two sentences why the sky is blue. '.repeat(20) }] }
  const noHeaders = new Headers()
  // The sample has no sealed reasoning.
  const seal = createReasoningSeal('', null)
  const opener = { seal, accountId: '' }
  for (let round = 0; round < rounds; round++) {
    const request = readNative(sample, noHeaders, 0)
    readCompatible(sample, noHeaders, 0)
    readResponses({ input: sample.messages }, { headers: noHeaders, text: '' }, opener)
    readMessages({ ...sample, max_tokens: 1 }, { headers: noHeaders, text: '', accountId: '' }, seal)
    read(request.messages)
    estimateInputTokens(request)
    moderation.screenMessages(request.messages)
  }
}

/** Ends the process after its open requests: not ready, no new requests, usage shipped, and the stores closed. */

type StopOrder = 'SIGTERM' | 'SIGINT'

/** Message from the supervisor to a worker: a signal that the supervisor received. */
export type SupervisorMessage = StopOrder | 'SIGHUP'

/** Time for clients to read the last event of a stream that the drain ended. */
const lastWordsMs = 1_000
/** Closing the stores has its own deadlines; this one covers resources without a deadline. */
const closingDeadlineMs = 15_000

type Served = { readonly app: RequestHandler; readonly server: Bun.Server<unknown> }

type ShutdownDeps = {
  readonly log: Log
  readonly clock: Pick<Clock, 'sleep'>
  readonly readiness: { isReady: boolean }
  /** Requests in progress. */
  readonly inFlight: Iterable<Pick<RequestAbort, 'abort'>>
  /** Ships usage and closes the stores. */
  close(): Promise<void>
}

/** The end of a gateway process. */
class Shutdown {
  hasBegun = false
  private orders = 0
  private readonly hurried = Promise.withResolvers<void>()

  constructor(
    private readonly config: Pick<Config, 'drainNoticeMs' | 'drainMs'>,
    private readonly deps: ShutdownDeps,
    private readonly served: Served,
  ) {}

  /** Begins with the first order; a second one shortens the drain. */
  order(order: StopOrder): void {
    if (++this.orders > 1) this.hurried.resolve()
    else this.begin(order)
  }

  /** Drains and ends the process with exit code 0, unless that has begun. */
  begin(order: StopOrder): void {
    // In a terminal there is no load balancer that must notice first.
    this.end(0, order === 'SIGTERM' ? this.config.drainNoticeMs : 0)
  }

  /** Drains and ends the process with exit code 1, unless that has begun. */
  fail(): void {
    this.end(1, 0)
  }

  private end(exitCode: number, noticeMs: number): void {
    if (this.hasBegun) return
    this.hasBegun = true
    this.drain(noticeMs).then(
      () => process.exit(exitCode),
      cause => {
        this.deps.log.error('shutdown_failed', { detail: describeError(cause) })
        process.exit(1)
      },
    )
  }

  /** Not ready, then no new requests, open streams until the drain deadline, usage shipped. */
  private async drain(noticeMs: number): Promise<void> {
    const { deps, config, served } = this
    const hurried = this.hurried.promise
    deps.readiness.isReady = false
    deps.log.info('draining')
    closeConnectionsAfterResponse(served.app, served.server)
    await Promise.race([deps.clock.sleep(noticeMs), hurried])
    const stopped = served.server.stop()
    await Promise.race([stopped, deps.clock.sleep(config.drainMs), hurried])
    const reason = new GatewayError('service_unavailable', 'The gateway is restarting. Send the request again.', {
      retryAfterMs: 1000,
    })
    for (const request of [...deps.inFlight]) request.abort(reason)
    await Promise.race([stopped, deps.clock.sleep(lastWordsMs)])
    await Promise.race([deps.close(), deps.clock.sleep(closingDeadlineMs)])
    deps.log.info('stopped')
  }
}

/** Handler of requests, for example an Elysia instance. */
type RequestHandler = { readonly fetch: (request: Request) => Response | Promise<Response> }

/**
 * Adds `connection: close` to every response, so that clients with an open connection connect to another instance
 * before this one stops. Wraps the whole server only when it is about to stop, so that normal responses have no
 * overhead.
 */
function closeConnectionsAfterResponse(app: RequestHandler, server: Bun.Server<unknown>): void {
  const { fetch } = app
  server.reload({
    routes: {},
    async fetch(request) {
      const response = await fetch.call(app, request)
      response.headers.set('connection', 'close')
      return response
    },
  })
}
