/**
 * Composition root: for each port the embedded default, or what configuration put in its place. The one file that knows
 * which implementation stands behind what.
 */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { type RandomBytes, randomBase62 } from '../core/accounts/api-keys.ts'
import type { DifficultyExplainer, PromptAnalyzer } from '../core/analysis/prompt-analysis.ts'
import type { Payments } from '../core/billing/payment-processor.ts'
import type { RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import type { EmbeddingCatalog } from '../core/models/embedding-models.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Log } from '../core/ports/log.ts'
import type { Network } from '../core/ports/network.ts'
import type { Passwords } from '../core/ports/passwords.ts'
import type { LevelShares } from '../core/routing/capability-levels.ts'
import type { Database } from '../database/database.ts'
import { type CacheAffinityTracker, createTieBook } from '../database/learning/cache-affinity.ts'
import { createForesightBook, type EstimateCalibrator } from '../database/learning/estimate-calibrator.ts'
import { createLearningBook, type LearningCache } from '../database/learning/learning-cache.ts'
import type { RecentPrompts } from '../database/learning/recent-prompts.ts'
import type { BudgetTracker } from '../database/repositories/budget-tracker.ts'
import { createHealthBook, type HealthTracker } from '../database/repositories/health-tracker.ts'
import type { IdempotencyBook } from '../database/repositories/idempotency.ts'
import type { KeyDirectory } from '../database/repositories/keys.ts'
import type { SessionDirectory } from '../database/repositories/sessions.ts'
import { type Stores, stores } from '../database/repositories/stores.ts'
import type { ReasoningSeal } from '../dialects/reasoning-seal.ts'
import type { Tokens } from '../http/authentication.ts'
import { type BodyBudget, createBodyBudget } from '../http/body-budget.ts'
import { allowedHosts } from '../http/host-header.ts'
import { createStartQueue, type StartQueue } from '../http/start-queue.ts'
import { createLedgerReader, type LedgerReader } from '../ledger/ledger.ts'
import { checkLimits, type LimitReached } from '../limits/check.ts'
import type { AdmissionRequest, Meter } from '../limits/meter.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Moderation } from '../moderation/moderation.ts'
import { createLog } from '../observability/log.ts'
import type { Telemetry } from '../observability/telemetry.ts'
import type { Repeating } from '../payments/repeating.ts'
import type { BillingWorker } from '../payments/worker.ts'
import { createTicker, type PaceClock } from '../pipeline/delivery/stream-pacing.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { DashboardBundle } from '../routes/dashboard/routes.ts'
import type { Simulator } from '../simulator/simulator.ts'
import type { Web } from '../web/web.ts'
import type { AddressDigests } from './address-digests.ts'
import { runCleanups } from './cleanup.ts'
import { systemClock } from './clock.ts'
import { createDashboardBundle } from './dashboard-bundle.ts'
import { type FirstAccount, makeFirstAccount } from './first-account.ts'
import { createInFlight, type InFlight } from './in-flight.ts'
import { systemNetwork } from './network.ts'
import { openBilling } from './open-billing.ts'
import { openCatalogue } from './open-catalogue.ts'
import { openContent } from './open-content.ts'
import { openEmbeddingCatalog } from './open-embedding-catalog.ts'
import { openIdentity } from './open-identity.ts'
import { openProviders } from './open-providers.ts'
import { openStores } from './open-stores.ts'
import { openTelemetry } from './open-telemetry.ts'
import { openUsage } from './open-usage.ts'
import type { PageOptions } from './open-web.ts'
import { createPasswords } from './passwords.ts'
import { createSharedClock } from './shared-clock.ts'
import type { Tokenizer } from './tokenizer.ts'

export type Deps = {
  readonly config: Config
  readonly clock: Clock
  readonly paceClock: PaceClock
  readonly network: Network
  readonly log: Log
  readonly observe: Telemetry
  readonly newRequestId: () => string
  readonly catalogue: Catalog
  /** Embedding models: never candidates for a chat request. */
  readonly embeddingCatalog: EmbeddingCatalog
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly simulator: Simulator | null
  readonly simulatedProviders: ReadonlySet<string>
  /** Target shares of requests by the level their prompts are worth. */
  readonly shares: LevelShares
  /** Who answered a conversation before. */
  readonly ties: CacheAffinityTracker
  /** What estimates have learnt. */
  readonly foresight: EstimateCalibrator
  /** What a prompt is about, and what it needs. */
  readonly read: PromptAnalyzer
  readonly explain: DifficultyExplainer
  readonly safety: Moderation
  readonly web: Web
  readonly database: Database
  /** Fulfilled once the schema is up to date: at once, unless Postgres was away at the start. */
  readonly migrated: Promise<void>
  readonly stores: Stores
  readonly ledger: LedgerReader
  readonly keys: KeyDirectory
  readonly idempotency: IdempotencyBook
  /** Under which secret a user's requests with an `Idempotency-Key` are remembered. */
  readonly secretOf: (userId: string) => string
  /** Seals reasoning that clients carry from one turn to the next. */
  readonly reasoningSeal: ReasoningSeal
  readonly sessions: SessionDirectory
  /** Keys, people or plans have changed: every gateway looks at once. */
  readonly announce: () => void
  readonly tokens: Tokens
  readonly passwords: Passwords
  /** What a network address is remembered as. */
  readonly addressDigests: AddressDigests
  readonly randomBytes: RandomBytes
  /** `acc` → `acc_` and twenty random characters. */
  readonly newId: (prefix: string) => string
  /** Whose request it is, by address: IPv6 by network, behind trusted proxies the one they name. */
  readonly addressOf: (request: Request, server: Bun.Server<unknown> | null) => string
  /** What an account has used of a UTC day (since the epoch): in the ledger, and on its way there. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  readonly meter: Meter
  /** Why a request would not be admitted now; null = it would be. Reserves nothing. */
  readonly checkLimits: (request: AdmissionRequest) => Promise<LimitReached | null>
  /** Limits of who is no account: in this process, or in Redis while it answers. */
  readonly limits: RateLimiterFactory
  /** Null = no mail is sent. */
  readonly post: Mailer | null
  readonly payments: Payments
  readonly billingWorker: BillingWorker
  /** Null = no mail is sent. */
  readonly noticeWorker: Repeating | null
  readonly budget: BudgetTracker
  readonly health: HealthTracker
  readonly learning: LearningCache
  readonly prompts: RecentPrompts
  /** The catalogue's figure of a model's quality (0–1), by `provider/model`; null = there is none of that name. */
  readonly figureOf: (model: string) => number | null
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly tokenizer: Tokenizer
  readonly allowedHosts: ReadonlySet<string> | null
  readonly firstAccount: FirstAccount | null
  /** Where data lives, in words. */
  readonly storage: string
  /** The dashboard's files. */
  readonly site: DashboardBundle
  readonly inFlight: InFlight
  /** Sheds load of chat requests. */
  readonly startQueue: StartQueue
  /** Bounds the memory of request bodies. */
  readonly bodies: BodyBudget
  /**
   * Resolves when the first request need not wait for what every request takes: keys are read in, and limits can be decided. At most
   * after `waitMs`, and at once where Postgres is away: the gateway then starts all the same.
   */
  warm(waitMs: number): Promise<void>
  /** Whether new work is welcome. */
  readonly readiness: { isReady: boolean }
  /** Ships what is left of usage and lets go of everything. */
  close(): Promise<void>
}

const shippingDeadlineMs = 5_000

/**
 * What a caller may replace, for tests and for commands that print something else: time, the way out, the log's
 * destination. No configuration reaches `pages`: where pages are fetched from is nobody's to set.
 */
export type DepsOptions = {
  readonly clock?: Clock
  readonly network?: Network
  readonly writeLog?: (line: string) => void
  readonly passwords?: Passwords
  readonly pages?: PageOptions
}

/**
 * Opens the stores, migrates, makes the first account where there is none, and wires everything up. Throws where a store
 * cannot be opened; nothing then stays open.
 */
export async function createDeps(config: Config, options: DepsOptions = {}): Promise<Deps> {
  const undo: (() => unknown)[] = []
  try {
    return await openAll(config, options, undo)
  } catch (cause) {
    // Why the start failed matters more than what failed behind it.
    await runCleanups(undo).catch(() => {})
    throw cause
  }
}

async function openAll(config: Config, options: DepsOptions, undo: (() => unknown)[]): Promise<Deps> {
  const { shared, ...own } = openProcess(config, options)
  const { clock, network, log } = own
  const { schema, ...stored } = await openStored(config, { ...options, shared, clock, log }, undo)
  const { database } = stored
  const { endpoints, simulator } = await openProviders(config, clock)
  if (simulator !== null) undo.push(() => simulator.stop())
  const catalogue = openCatalogue(config, endpoints)
  const embeddingCatalog = openEmbeddingCatalog(config, endpoints)
  const figureOf = (name: string) => catalogue.resolve(name)?.figures.quality ?? null
  const learning = createLearningBook({ database, clock, figureOf, log })
  undo.push(() => learning.close())
  const usage = await openUsage(config, { database, clock, log, learn: learning.take }, undo)
  const { meter, spent, limits } = usage
  // Which keys exist: before the first request if the database is there, else at the first poll.
  const isPostgresThere = (await Promise.race([schema.then(() => true), clock.sleep(0)])) === true
  const identity = await openIdentity(config, { database, clock, log, usage, isPostgresThere }, undo)
  const billing = await openBilling(config, { database, clock, network, log, newId }, undo)
  const { pages } = options
  const parts = { clock, network, log, catalogue, endpoints, simulator, ...(pages === undefined ? {} : { pages }) }
  const content = openContent(config, parts, undo)
  const health = createHealthBook({ clock })
  const readiness = { isReady: false }
  const { safety } = content
  const observe = openTelemetry(config, { ...parts, embeddingCatalog, health, readiness, usage, safety }, undo)
  return {
    ...own,
    ...stored,
    ...identity,
    ...billing,
    ...content,
    ...openRequestState(config, clock),
    observe,
    catalogue,
    embeddingCatalog,
    endpoints,
    simulator,
    simulatedProviders: new Set([...endpoints.values()].filter(one => one.simulated).map(one => one.id)),
    ledger: createLedgerReader(database),
    spent,
    meter,
    checkLimits: request => checkLimits(meter, request),
    limits,
    health,
    learning,
    figureOf,
    readiness,
    warm: waitMs => (isPostgresThere ? usage.ready(waitMs) : Promise.resolve()),
    async close() {
      if (!(await usage.drain(shippingDeadlineMs)))
        log.warn('usage_left_in_journal', { records: usage.records.backlog() })
      await runCleanups(undo)
    },
  }
}

/** What a process has of its own: time, the network, its log, randomness and ids. */
function openProcess(config: Config, options: DepsOptions) {
  const shared = createSharedClock(systemClock)
  const clock = options.clock ?? shared.clock
  const log = createLog({
    level: config.logLevel,
    pretty: process.stdout.isTTY,
    now: clock.now,
    write: options.writeLog ?? (line => process.stdout.write(line)),
  })
  return {
    config,
    shared,
    clock,
    paceClock: createTicker(clock),
    network: options.network ?? systemNetwork,
    log,
    random: Math.random,
    randomBytes,
    newId,
    newRequestId: () => `req_${Bun.randomUUIDv7().replaceAll('-', '')}`,
  }
}

type StoredParts = Pick<ReturnType<typeof openProcess>, 'shared' | 'clock' | 'log'> & {
  readonly passwords?: Passwords
}

/** The database, the time that it gives, and the first account. */
async function openStored(config: Config, parts: StoredParts, undo: (() => unknown)[]) {
  const { shared, clock, log, passwords = createPasswords() } = parts
  const { database, migrated: schema, storage, isEmbedded } = await openStores(config, { log, clock }, undo)
  // An embedded database has this machine's clock; one that was handed in is not ours to set.
  const timekeeper = isEmbedded || clock !== shared.clock ? null : shared.follow(database, log)
  undo.push(() => timekeeper?.stop())
  await timekeeper?.ask()
  return {
    database,
    stores,
    storage,
    passwords,
    schema,
    migrated: schema.then(() => timekeeper?.ask()),
    firstAccount: isEmbedded ? await makeFirstAccount(database, passwords, clock, newId) : null,
  }
}

/** What this process knows of requests: in memory, and gone with it. */
function openRequestState(config: Config, clock: Clock) {
  return {
    shares: config.routing,
    ties: createTieBook(clock, randomBytes(32)),
    foresight: createForesightBook({ clock }),
    allowedHosts: allowedHosts(config.allowedHosts, config.host),
    site: createDashboardBundle(),
    inFlight: createInFlight(),
    startQueue: createStartQueue({
      monotonic: clock.monotonic,
      used: processorMs,
      nextTurn: action => void setImmediate(action),
    }),
    bodies: createBodyBudget({ limits: config.bodies, collect: () => Bun.gc(true) }),
  }
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const newId = (prefix: string) => `${prefix}_${randomBase62(20, randomBytes)}`
