/**
 * Config → a gateway in this process, or the parent of several. The port is bound before anything slow begins, so that
 * a port in use is reported at once and probes see a process that lives. Each loads only what it needs.
 */
import packageJson from '../../package.json'
import { readConfig } from '../config/config.ts'
import { openEmbedded } from '../database/embedded.ts'
import { consoleLog } from '../observability/log.ts'
import { bindPort, exitWithStartupError } from './bind-port.ts'

/** Starts to serve, and returns. The process ends at a stop signal; exit code 1 if it cannot start. */
export async function start(): Promise<void> {
  const config = await Promise.try(readConfig).catch(exitWithStartupError)
  const log = consoleLog(config.logLevel)
  if (config.worker !== null) return (await import('./serve.ts')).serve(config, { log })
  log.info('starting', { version: packageJson.version })
  const server = bindPort(config)
  log.info('port_bound', { host: config.host, port: server.port ?? 0 })
  if (config.workers > 1) return (await import('./workers.ts')).superviseWorkers(config, { log, server })
  // The database opens in its own thread while this one loads the rest.
  const embedded = config.databaseUrl === null ? openEmbedded(config.dataDirectory, { log }) : undefined
  embedded?.catch(() => {})
  await (await import('./serve.ts')).serve(config, { log, server, embedded })
}
