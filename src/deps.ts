/**
 * Composition root: for each port the embedded default, or what configuration put in its place. The one file that knows
 * which implementation stands behind what.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { localOwner } from './banner.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Config, ProviderSettings } from './config.ts'
import { catalogue as publishedModels } from './core/catalogue.ts'
import type { GatewayError } from './core/errors.ts'
import { buildCatalogue, type Catalogue, toModel } from './core/models.ts'
import { compileRules, type SafetyRules, safetyRules } from './core/patterns.ts'
import { mintApiKey, randomBase62 } from './core/secrets.ts'
import { allowedHosts } from './http/hosts.ts'
import { type Network, systemNetwork } from './network.ts'
import { createLog, type Log } from './observe/log.ts'
import { createTicker, type PaceClock } from './pipeline/pace.ts'
import type { Endpoint } from './pipeline/route.ts'
import { anthropic } from './providers/anthropic.ts'
import { google } from './providers/google.ts'
import { openai } from './providers/openai.ts'
import type { Provider } from './providers/provider.ts'
import { type Simulator, startSimulator } from './providers/simulator/simulator.ts'
import { createAccount, hasAccounts } from './stores/accounts.ts'
import { lockDataFolder } from './stores/data-folder.ts'
import { type Database, migrate, openDatabase } from './stores/database.ts'
import { openEmbedded } from './stores/embedded.ts'
import { createHealthBook, type HealthBook } from './stores/health.ts'
import { openJournal } from './stores/journal.ts'
import { createKey, createKeyDirectory, type KeyDirectory } from './stores/keys.ts'
import { seedFrom } from './stores/ledger.ts'
import type { Meter } from './stores/meter.ts'
import { createLocalMeter } from './stores/meter-local.ts'
import { createShipper } from './stores/shipper.ts'
import { createTokenizer, type Tokenizer } from './tokenizer.ts'

/** What the first start on an empty embedded database made. Printed once, kept nowhere. */
export type FirstAccount = { readonly email: string; readonly password: string; readonly key: string }

export type Deps = {
  readonly config: Config
  readonly clock: Clock
  readonly paceClock: PaceClock
  readonly network: Network
  readonly log: Log
  readonly newRequestId: () => string
  readonly catalogue: Catalogue
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly simulator: Simulator | null
  readonly simulatedProviders: ReadonlySet<string>
  readonly safetyRules: SafetyRules
  readonly database: Database
  readonly keys: KeyDirectory
  readonly meter: Meter
  readonly health: HealthBook
  readonly tokenizer: Tokenizer
  readonly allowedHosts: ReadonlySet<string> | null
  readonly firstAccount: FirstAccount | null
  /** Where data lives, in words. */
  readonly storage: string
  readonly inFlight: InFlight
  /** Whether new work is welcome. */
  readonly readiness: { isReady: boolean }
  /** Ships what is left of usage and lets go of everything. */
  close(): Promise<void>
}

/** The requests now being answered. */
export type InFlight = {
  add(abort: AbortController): void
  delete(abort: AbortController): void
  endAll(reason: GatewayError): void
}

const shippingDeadlineMs = 5_000

/** What a caller may replace: the log's destination and time, for tests and for commands that print something else. */
export type DepsOptions = {
  readonly clock?: Clock
  readonly network?: Network
  readonly writeLog?: (line: string) => void
}

/**
 * Opens the stores, migrates, makes the first account where there is none, and wires everything up. Throws where a store
 * cannot be opened; nothing then stays open.
 */
export async function createDeps(config: Config, options: DepsOptions = {}): Promise<Deps> {
  const clock = options.clock ?? systemClock
  const log = createLog({
    level: config.logLevel,
    pretty: process.stdout.isTTY,
    now: clock.now,
    write: options.writeLog ?? (line => process.stdout.write(line)),
  })
  const undo: (() => unknown)[] = []
  try {
    const { database, storage, isEmbedded } = await openStores(config, log, undo)
    const firstAccount = isEmbedded ? await makeFirstAccount(database, clock) : null
    const { endpoints, simulator } = await openProviders(config, clock)
    if (simulator !== null) undo.push(() => simulator.stop())
    const journal = openJournal({
      directory: join(config.dataDirectory, 'journal'),
      onDamage: detail => log.error('journal_damaged', { detail }),
    })
    undo.push(() => journal.close())
    const shipper = createShipper({ journal, database, clock, log })
    undo.push(() => shipper.close())
    const keys = createKeyDirectory({ database, clock, random: Math.random })
    undo.push(() => keys.close())
    const tokenizer = createTokenizer()
    undo.push(() => tokenizer.close())
    const configured = config.extraModels.map(({ provider, row }) => toModel(provider, row))
    const aborts = new Set<AbortController>()
    return {
      config,
      clock,
      paceClock: createTicker(clock),
      network: options.network ?? systemNetwork,
      log,
      newRequestId: () => `req_${Bun.randomUUIDv7().replaceAll('-', '')}`,
      catalogue: buildCatalogue([...publishedModels, ...configured].filter(model => endpoints.has(model.provider))),
      endpoints,
      simulator,
      simulatedProviders: new Set([...endpoints.values()].filter(one => one.simulated).map(one => one.id)),
      safetyRules: compileRules(safetyRules),
      database,
      keys,
      meter: createLocalMeter({ clock, journal, seed: seedFrom(database, journal) }),
      health: createHealthBook({ clock }),
      tokenizer,
      allowedHosts: allowedHosts(config.allowedHosts, config.host),
      firstAccount,
      storage,
      inFlight: {
        add: abort => void aborts.add(abort),
        delete: abort => void aborts.delete(abort),
        endAll: reason => {
          for (const abort of aborts) abort.abort(reason)
        },
      },
      readiness: { isReady: false },
      async close() {
        if (!(await shipper.drain(shippingDeadlineMs)))
          log.warn('usage_left_in_journal', { records: journal.backlog() })
        for (const step of undo.reverse()) await step()
      },
    }
  } catch (cause) {
    for (const step of undo.reverse()) await step()
    throw cause
  }
}

async function openStores(config: Config, log: Log, undo: (() => unknown)[]) {
  if (config.databaseUrl !== null) {
    // The journal lives in the data folder in either mode, and two gateways must not write one journal.
    undo.push(lockDataFolder(config.dataDirectory))
    const database = openDatabase(config.databaseUrl)
    undo.push(() => database.close())
    await migrate(database)
    return { database, storage: 'Postgres', isEmbedded: false }
  }
  const embedded = await openEmbedded(config.dataDirectory, detail => log.error('embedded_database_failed', { detail }))
  undo.push(() => embedded.close())
  const database = openDatabase(embedded.address)
  undo.push(() => database.close())
  await migrate(database)
  return { database, storage: `embedded, in ${config.dataDirectory}`, isEmbedded: true }
}

/** One local account on plan `usage`, so that a first answer needs no sign-up; null where there is an account already. */
async function makeFirstAccount(database: Database, clock: Clock): Promise<FirstAccount | null> {
  if (await hasAccounts(database)) return null
  const now = new Date(clock.now())
  const [accountId, userId] = [`acc_${randomBase62(20, randomBytes)}`, `usr_${randomBase62(20, randomBytes)}`]
  const password = randomBase62(20, randomBytes)
  const minted = mintApiKey(randomBytes)
  await createAccount(
    database,
    { id: accountId, name: 'Local', plan: 'usage', createdAt: now },
    {
      id: userId,
      accountId,
      email: localOwner,
      passwordHash: await hashPassword(password),
      role: 'owner',
      createdAt: now,
    },
  )
  await createKey(database, {
    id: `key_${randomBase62(20, randomBytes)}`,
    accountId,
    userId,
    name: 'first key',
    publicId: minted.id,
    digest: minted.digest,
    createdAt: now,
  })
  return { email: localOwner, password, key: minted.key }
}

/** Argon2id at the parameters of OWASP's recommendation; Bun's default takes ten times the memory and time. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 3 })
}

const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<ProviderSettings['format'], Provider>

async function openProviders(config: Config, clock: Clock) {
  const endpoints = new Map<string, Endpoint>()
  const add = ({ id, format, baseUrl, apiKey }: ProviderSettings, simulated: boolean) =>
    endpoints.set(id, { id, provider: formats[format], access: { baseUrl, apiKey }, simulated })
  for (const settings of config.providers) add(settings, false)
  if (endpoints.size > 0) return { endpoints, simulator: null }
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, simulator }
}
