/** The port while the gateway starts: bound first, and handed over when the app is ready. Reports a failed start. */
import packageJson from '../../package.json'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { serverLimits } from '../http/body.ts'
import { errorResponse } from '../http/error-response.ts'

type Address = Pick<Config, 'host' | 'port' | 'workers' | 'providers'>

/**
 * Binds the port, or ends the process with advice. Answers `/healthz` and `/health` with 200 and all else with 503 until
 * `serveOn`. With workers, which bind the port themselves, it can be shared from then on.
 */
export function bindPort(config: Address): Bun.Server<unknown> {
  try {
    // With a shared port, another gateway on it would silently receive half of the requests.
    const server = listen(config, config.port, false)
    if (config.workers === 1) return server
    void server.stop(true)
    return listen(config, server.port ?? config.port, true)
  } catch (cause) {
    return exitWithStartupError(listenErrorText(config, cause))
  }
}

function listen({ host, providers }: Address, port: number, reusePort: boolean): Bun.Server<unknown> {
  const health = { status: 'ok', version: packageJson.version, simulated: providers.length === 0 }
  return Bun.serve({
    port,
    hostname: host,
    reusePort,
    development: false,
    ...serverLimits,
    fetch: request =>
      /^\/healthz?$/.test(new URL(request.url).pathname)
        ? Response.json(health, { headers: { 'cache-control': 'no-store' } })
        : errorResponse(isStarting(), `req_${Bun.randomUUIDv7().replaceAll('-', '')}`),
  })
}

const isStarting = () =>
  new GatewayError('service_unavailable', 'The gateway is starting. Retry.', { retryAfterMs: 1000 })

/** An app that creates its own server. */
type Listening = { listen(options: object): unknown; readonly server: Bun.Server<unknown> | null }

/**
 * Lets an app answer on `server`. Elysia computes the routes of its server in `listen`, and knows no other way to
 * serve: for this call, the server that it creates is ours.
 */
export function serveOn(server: Bun.Server<unknown>, app: Listening): void {
  const create = Bun.serve
  Bun.serve = ((options: Parameters<typeof server.reload>[0]) => {
    server.reload(options)
    return server
  }) as typeof create
  try {
    app.listen({ development: false })
  } finally {
    Bun.serve = create
  }
}

/** Writes the reason to stderr and ends the process with exit code 1. */
export function exitWithStartupError(cause: unknown): never {
  process.stderr.write(`gateway-ai cannot start: ${typeof cause === 'string' ? cause : describeError(cause)}\n`)
  process.exit(1)
}

/** Converts an error of listening to advice. */
export function listenErrorText({ host, port }: Pick<Config, 'host' | 'port'>, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') return `${where} is in use. Stop what listens there, or set PORT to another.`
  if (code === 'EACCES') return `${where} takes more rights than this process has. Set PORT to one above 1023.`
  // Includes a host name that does not resolve, for which Bun reports an existing file.
  return `nothing can listen on ${where}. Check HOST and PORT.`
}
