/** Config → deps → app → listen; drains on SIGTERM. */
import { createApp, version, warmUp } from './app.ts'
import { banner } from './banner.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { GatewayError } from './core/errors.ts'
import { createDeps } from './deps.ts'

const config = configOrExit()
const deps = await createDeps(config).catch(exitWith)
const t0 = performance.now(); warmUp(deps); process.stderr.write(`warm ${performance.now()-t0}\n`)
const app = createApp(deps).listen({ port: config.port, hostname: config.host, reusePort: false })
const { server } = app
if (server === null) throw new Error('the server did not start')
const baseUrl = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${server.port}`
deps.readiness.isReady = true
process.stdout.write(`${banner({ baseUrl, version, deps })}\n`)
for (const warning of config.warnings) deps.log.warn('configuration', { warning })

// One bad promise somewhere must not end everybody's streams.
process.on('unhandledRejection', cause => deps.log.error('unhandled_rejection', { detail: describe(cause) }))
process.on('uncaughtException', cause => {
  deps.log.error('uncaught_exception', { detail: describe(cause) })
  void drain(1, 0)
})
process.on('SIGTERM', () => void drain(0, config.drainNoticeMs))
// At a terminal there is no balancer that would have to notice first.
process.on('SIGINT', () => void drain(0, 0))

let draining = false

/** Not ready, no new work, running streams to their end or the drain deadline, usage shipped, out. */
async function drain(exitCode: number, noticeMs: number): Promise<void> {
  if (draining) return
  draining = true
  deps.readiness.isReady = false
  deps.log.info('draining')
  await deps.clock.sleep(noticeMs)
  const stopped = server?.stop() ?? Promise.resolve()
  await Promise.race([stopped, deps.clock.sleep(config.drainMs)])
  deps.inFlight.endAll(new GatewayError('service_unavailable', 'The gateway is restarting. Ask again.', { retryAfterMs: 1000 }))
  await Promise.race([stopped, deps.clock.sleep(1_000)])
  await deps.close()
  deps.log.info('stopped')
  process.exit(exitCode)
}

function configOrExit(): Config {
  try {
    return readConfig()
  } catch (cause) {
    return exitWith(cause)
  }
}

function exitWith(cause: unknown): never {
  if (cause instanceof ConfigError)
    process.stderr.write(`gateway-ai cannot start:\n${cause.problems.map(problem => `  - ${problem}`).join('\n')}\n`)
  else process.stderr.write(`gateway-ai cannot start: ${describe(cause)}\n`)
  process.exit(1)
}

function describe(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'a thrown value'
}
