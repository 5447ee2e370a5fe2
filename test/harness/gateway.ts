/** A whole gateway for a test: the real dependencies on a folder of its own, behind a real socket, in this process. */
import { rmSync } from 'node:fs'
import { createApp } from '../../src/app.ts'
import { type Environment, readConfig } from '../../src/config.ts'
import { createDeps, type Deps, type DepsOptions } from '../../src/deps.ts'
import { changeAccount, findAccountByEmail } from '../../src/stores/accounts.ts'
import { freshDataFolder } from './data-folder.ts'

export type Gateway = {
  readonly url: string
  readonly port: number
  /** Key of the first account, whose limits are `limits`, or as good as none. */
  readonly key: string
  readonly accountId: string
  readonly deps: Deps
  /** Lines of the log, as JSON text. */
  readonly logLines: readonly string[]
  post(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  stop(): Promise<void>
}

export type GatewayLimits = {
  readonly requestsPerMinute?: number
  readonly concurrentRequests?: number
  readonly dailyTokens?: number
  readonly dailyCostMicrocents?: number
}

const unlimited = {
  requestsPerMinute: 1_000_000,
  concurrentRequests: 10_000,
  dailyTokens: 1_000_000_000_000,
  dailyCostMicrocents: 1_000_000_000_000_000,
}

/**
 * Starts one. `environment` is what the process would have been started with; nothing of this process's own is read.
 * Without provider keys the providers are simulated.
 */
export async function startGateway(
  environment: Environment = {},
  options: DepsOptions & { readonly limits?: GatewayLimits } = {},
): Promise<Gateway> {
  const folder = await freshDataFolder()
  const logLines: string[] = []
  const config = readConfig({ GATEWAY_DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'debug', ...environment })
  const deps = await createDeps(config, { writeLog: line => void logLines.push(line), ...options })
  const account = deps.firstAccount
  if (account === null) throw new Error('a fresh folder makes a first account')
  const found = await findAccountByEmail(deps.database, account.email)
  if (found === null) throw new Error('the first account is in the database')
  await changeAccount(deps.database, found.account.id, { ...unlimited, ...options.limits })
  const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
  const port = app.server?.port ?? 0
  deps.readiness.isReady = true
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    port,
    key: account.key,
    accountId: found.account.id,
    deps,
    logLines,
    post: (path, body, headers = {}, signal) =>
      fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    async stop() {
      await app.server?.stop(true)
      await deps.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
