/** A complete gateway for tests: real dependencies with their own data, behind a real socket, in this process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps, type DepsOptions } from '../../src/compose/deps.ts'
import { type Environment, readConfig } from '../../src/config/config.ts'
import { type FirstAccount, makeFirstAccount } from '../../src/console/account/first-account.ts'
import { createPasswords } from '../../src/console/auth/password-hashing.ts'
import { changeAccount, findAccountByEmail } from '../../src/database/repositories/accounts.ts'
import { freshDataFolder } from './data-folder.ts'
import { newDatabase } from './database.ts'
import { patientEnvironment } from './patience.ts'

export type Gateway = {
  readonly url: string
  readonly port: number
  /** Key of the first account, whose limits are `limits` or practically unlimited. */
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

/** Background jobs run only when a test asks: a run of the timer would act between two of its steps. */
export const withoutTimer = { timer: () => () => {} } as const

/** Password hashing is expensive by design, and tests need many hashes; dedicated tests cover the real cost. */
export const cheapHashing = { memoryCost: 64, timeCost: 1 }
const secret = 'a secret of the tests, long enough to be taken'

/**
 * Starts a gateway. `environment` is the process environment; this process's own is not read. Without provider keys the
 * providers are simulated. `embedded` = use the embedded database even if a real one is available; `port` = a port that was chosen before;
 * `file` = the configuration file.
 */
export async function startGateway(
  environment: Environment = {},
  options: DepsOptions & {
    readonly limits?: GatewayLimits
    readonly embedded?: boolean
    readonly port?: number
    readonly file?: object
  } = {},
): Promise<Gateway> {
  const own = options.embedded ? null : await newDatabase()
  const folder = own === null ? await freshDataFolder() : mkdtempSync(join(tmpdir(), 'gateway-ai-'))
  const stores = own === null ? {} : { DATABASE_URL: own.url, JWT_SECRET: secret }
  const logLines: string[] = []
  // On a server the default is closed.
  const usual = environment.OIDC_ONLY === undefined ? { REGISTRATION: 'open' } : {}
  const path = join(folder, 'gateway.json')
  if (options.file !== undefined) writeFileSync(path, JSON.stringify(options.file))
  const settings = {
    ...patientEnvironment,
    ...(options.file === undefined ? {} : { GATEWAY_CONFIG: path }),
    GATEWAY_DATA_DIR: folder,
    PORT: '0',
    LOG_LEVEL: 'debug',
    ...usual,
    ...stores,
  }
  const config = readConfig({ ...settings, ...environment })
  const deps = await createDeps(config, {
    writeLog: line => void logLines.push(line),
    passwords: createPasswords(cheapHashing),
    ...options,
  })
  const account = deps.firstAccount ?? (await getFirstAccount(deps))
  const found = await answered(() => findAccountByEmail(deps.database, account.email))
  if (found === null) throw new Error('the first account is in the database')
  await changeAccount(deps.database, found.account.id, { ...unlimited, ...options.limits })
  const app = createApp(deps).listen({ port: options.port ?? 0, hostname: '127.0.0.1' })
  const port = app.server?.port ?? 0
  deps.readiness.isReady = true
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    port,
    key: account.key,
    accountId: found.account.id,
    deps: { ...deps, firstAccount: account },
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
      await own?.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Creates the first account. On a busy machine an attempt may store one whose answer comes too late: it is removed. */
async function getFirstAccount({ database, passwords, clock, newId }: Deps): Promise<FirstAccount> {
  for (let tries = 0; tries < 10; tries++) {
    const account = await answered(() => makeFirstAccount(database, passwords, clock, newId))
    if (account !== null) return account
    await answered(() => database.run(({ sql }) => sql`truncate accounts cascade`))
  }
  throw new Error('a fresh database makes a first account')
}

/** Retries until the database answers: on a busy machine the first connection may take longer than a query may. */
export async function answered<T>(send: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + 60_000; ; await Bun.sleep(50))
    try {
      return await send()
    } catch (cause) {
      if (performance.now() > until) throw cause
    }
}

/** Returns the environment for one upstream that plays all three providers, each under its own path. */
export const providersAt = (url: string) => ({
  OPENAI_API_KEY: 'k',
  OPENAI_BASE_URL: `${url}/openai/v1`,
  ANTHROPIC_API_KEY: 'k',
  ANTHROPIC_BASE_URL: `${url}/anthropic`,
  GEMINI_API_KEY: 'k',
  GEMINI_BASE_URL: `${url}/google`,
})
