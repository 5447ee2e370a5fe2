/** Config → deps → app → listen; drains on SIGTERM. */
import { createApp, version, warmUp } from './app.ts'
import { banner, firstAccountLines, localOwner } from './banner.ts'
import { readConfig } from './config.ts'
import { GatewayError } from './core/errors.ts'
import { createDeps } from './deps.ts'
import { problemText } from './problems.ts'
import { findAccountByEmail } from './stores/accounts.ts'

/** How long readers have to fetch the last event of a stream that was ended for them. */
const lastWordsMs = 1_000
/** Letting go of the stores has its own deadlines; this one is for what they forgot. */
const closingDeadlineMs = 15_000

const config = await Promise.try(readConfig).catch(cannotStart)
const deps = await createDeps(config).catch(cannotStart)
const server = await Promise.try(serve).catch(async cause => {
  // Made once and shown once: an address that is taken must not cost the operator the first key.
  if (deps.firstAccount !== null) process.stdout.write(`${firstAccountLines(deps.firstAccount).join('\n')}\n`)
  await deps.close()
  return cannotStart(unlistenable(cause))
})

let draining = false
const { promise: hurried, resolve: hurry } = Promise.withResolvers<void>()
process.on('SIGTERM', () => (draining ? hurry() : stop(0, config.drainNoticeMs)))
// At a terminal there is no balancer that would have to notice first.
process.on('SIGINT', () => (draining ? hurry() : stop(0, 0)))
// One bad promise somewhere must not end everybody's streams.
process.on('unhandledRejection', cause => deps.log.error('unhandled_rejection', { detail: problemText(cause) }))
process.on('uncaughtException', cause => {
  deps.log.error('uncaught_exception', { detail: problemText(cause) })
  if (!draining) stop(1, 0)
})

deps.readiness.isReady = true
const url = `http://${urlHost(config.host)}:${server.port}`
process.stdout.write(`${banner({ baseUrl: url, version, deps, keyOwner: await keyOwner() })}\n`)
for (const warning of config.warnings) deps.log.warn('configuration', { warning })
deps.log.info('ready', {
  host: config.host,
  port: server.port ?? 0,
  version,
  started_in_ms: Math.round(performance.now()),
})

function serve() {
  const app = createApp(deps)
  warmUp(deps)
  app.listen({
    port: config.port,
    hostname: config.host,
    // Shared, a port would silently give every other request to the gateway that was there first.
    reusePort: false,
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
async function keyOwner(): Promise<string | null> {
  const found = await findAccountByEmail(deps.database, localOwner).catch(() => null)
  return found?.user.email ?? null
}

function stop(exitCode: number, noticeMs: number): void {
  draining = true
  drain(noticeMs).then(
    () => process.exit(exitCode),
    cause => {
      deps.log.error('stopped_badly', { detail: problemText(cause) })
      process.exit(1)
    },
  )
}

/** Not ready, then no new work, running streams to their end or the drain deadline, usage shipped. A second signal hurries. */
async function drain(noticeMs: number): Promise<void> {
  deps.readiness.isReady = false
  deps.log.info('draining')
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

/** What `listen` fails with, in words that an operator can act on. */
function unlistenable(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null
  const where = `${config.host}:${config.port}`
  if (code === 'EADDRINUSE') return `${where} is in use. Stop what listens there, or set PORT to another.`
  if (code === 'EACCES') return `${where} takes more rights than this process has. Set PORT to one above 1023.`
  // Among others what a name makes that does not resolve, which Bun reports as a file that exists.
  return `nothing can listen on ${where}. Check HOST and PORT.`
}

function cannotStart(cause: unknown): never {
  process.stderr.write(`gateway-ai cannot start: ${typeof cause === 'string' ? cause : problemText(cause)}\n`)
  process.exit(1)
}
