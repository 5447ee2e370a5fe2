/** Ends the process after its open requests: not ready, no new requests, usage shipped, and the stores closed. */

import type { Config } from '../config/config.ts'
import type { RequestAbort } from '../core/chat/request-abort.ts'
import type { Clock, Log } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'

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
export class Shutdown {
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
