/**
 * Composition root: opens for each port the embedded default or the configured implementation. Only this file knows
 * which implementation serves a port.
 */

import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import type { IdentityProvider } from '../console/auth/identity-provider.ts'
import type { SessionDirectory } from '../console/auth/stores/sessions.ts'
import type { Payments } from '../console/billing/payment-processor.ts'
import type { BillingWorker } from '../console/billing/worker.ts'
import type { KeyDirectory } from '../console/keys/stores/keys.ts'
import { type RandomBytes, randomBase62 } from '../core/accounts/api-keys.ts'
import type { Passwords } from '../core/accounts/passwords.ts'
import { type AutomaticCacheMarks, automaticCacheMarks } from '../core/chat/cache-marks.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { intervalTimer, type Repeating, type RepeatTimer } from '../core/jobs/repeating.ts'
import type { RateLimiterFactory } from '../core/limits/rate-limits.ts'
import { keysOf, partitionOf, RedisUnavailableError } from '../core/limits/redis.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import type { EmbeddingCatalog } from '../core/models/embedding-models.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import type { Database } from '../database/database.ts'
import type { Embedded } from '../database/embedded.ts'
import type { Redis } from '../database/redis.ts'
import type { BudgetTracker } from '../database/repositories/budget-tracker.ts'
import type { IdempotencyBook } from '../database/repositories/idempotency.ts'
import type { ReasoningSeal } from '../dialects/reasoning-seal.ts'
import type { Tokens } from '../http/authentication.ts'
import { type BodyBudget, createBodyBudget } from '../http/body-budget.ts'
import { allowedHosts } from '../http/pages.ts'
import { StartQueue } from '../http/start-queue.ts'
import type { TextSeal } from '../http/text-seal.ts'
import { type CacheAffinityTracker, createTieBook } from '../learning/cache-affinity.ts'
import { createForesightBook, type EstimateCalibrator } from '../learning/estimate-calibrator.ts'
import { createLearningBook, type LearningCache } from '../learning/learning-cache.ts'
import type { RecentPrompts } from '../learning/recent-prompts.ts'
import { RejectionLog } from '../ledger/find-request.ts'
import { createLedgerReader, type LedgerReader } from '../ledger/ledger.ts'
import type { AdmissionRequest, LimitReached, Meter } from '../limits/meter.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { LevelShares } from '../models/capability-levels.ts'
import { createHealthBook, type HealthTracker } from '../models/health-tracker.ts'
import { HedgeBudget } from '../models/hedging.ts'
import { createLog } from '../observability/log.ts'
import type { Telemetry } from '../observability/telemetry.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { createTicker, type PaceClock } from '../request/delivery/stream-pacing.ts'
import { reportModelHealth } from '../request/routing/health-report.ts'
import type { DashboardBundle } from '../routes/dashboard/routes.ts'
import type { Simulator } from '../simulator/simulator.ts'
import type { DifficultyExplainer, PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import type { Web } from '../web/web.ts'
import type { AddressDigests } from './address-digests.ts'
import { runCleanups } from './cleanup.ts'
import { systemClock } from './clock.ts'
import { createDashboardBundle } from './dashboard-bundle.ts'
import { type FirstAccount, makeFirstAccount } from './first-account.ts'
import { createInFlight, type InFlight } from './in-flight.ts'
import { modelEvents } from './model-events.ts'
import { systemNetwork } from './network.ts'
import { openAlerts } from './open-alerts.ts'
import { openBilling } from './open-billing.ts'
import { announceDeprecations, openCatalogue } from './open-catalogue.ts'
import { openContent } from './open-content.ts'
import { openEmbeddingCatalog } from './open-embedding-catalog.ts'
import { openIdentity } from './open-identity.ts'
import { openProviders } from './open-providers.ts'
import { openSingleSignOn } from './open-single-sign-on.ts'
import { openStores } from './open-stores.ts'
import { openTelemetry } from './open-telemetry.ts'
import { openUsage } from './open-usage.ts'
import type { PageOptions } from './open-web.ts'
import { openWebhooks } from './open-webhooks.ts'
import { createPasswords } from './passwords.ts'
import { createConfigReload } from './reload-config.ts'
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
  /** Reads the configuration again. Reports an invalid one and keeps the running one. */
  readonly reloadConfig: ReturnType<typeof createConfigReload>
  readonly simulator: Simulator | null
  readonly simulatedProviders: ReadonlySet<string>
  /** Target shares of requests per capability level. */
  readonly shares: LevelShares
  readonly hedges: HedgeBudget
  /** Which model answered a conversation before. */
  readonly ties: CacheAffinityTracker
  readonly cacheMarks: (accountId: string, ask: ChatRequest) => AutomaticCacheMarks | null
  /** Calibration of cost estimates. */
  readonly foresight: EstimateCalibrator
  /** Prompt analysis. */
  readonly read: PromptAnalyzer
  readonly explain: DifficultyExplainer
  readonly safety: Moderation
  readonly web: Web
  readonly database: Database
  /** False if Postgres was unavailable at startup. */
  readonly isPostgresThere: boolean
  /** Fulfilled when the schema is current: immediately, unless Postgres was unavailable at startup. */
  readonly migrated: Promise<void>
  readonly ledger: LedgerReader
  /** Explains requests that were rejected before admission. */
  readonly rejections: RejectionLog
  readonly keys: KeyDirectory
  readonly idempotency: IdempotencyBook
  /** Derives the secret under which a user's requests with an `Idempotency-Key` are stored. */
  readonly secretOf: (userId: string) => string
  /** Returns the name under which a provider caches an account's conversation: the same on every gateway instance. */
  readonly promptCacheKeyOf: (accountId: string, name: string) => string
  /** Seals reasoning that clients send back with the next turn. */
  readonly reasoningSeal: ReasoningSeal
  /** Seals the secrets of two-factor sign-in. */
  readonly totpSeal: TextSeal
  readonly sessions: SessionDirectory
  /** Reports a change of keys, users or plans, so that every gateway instance reads them immediately. */
  readonly announce: () => void
  readonly tokens: Tokens
  readonly passwords: Passwords
  /** Null = single sign-on is not configured. */
  readonly identityProvider: IdentityProvider | null
  /** Returns the stored digests of a network address. */
  readonly addressDigests: AddressDigests
  readonly randomBytes: RandomBytes
  /**
   * Deletes the limit counters of a deleted account in Redis, whose scopes name tags for two days more. An open request settles
   * as after the loss of one key.
   */
  readonly forgetCounters: (accountId: string) => Promise<void>
  /** `acc` → `acc_` and twenty random characters. */
  readonly newId: (prefix: string) => string
  /**
   * IP address of a request's client: an IPv6 address as its network; behind a trusted proxy the address that the proxy
   * reports.
   */
  readonly addressOf: (request: Request, server: Bun.Server<unknown> | null) => string
  /** Daily usage of an account on a UTC day (days since the epoch): shipped and unshipped records. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  readonly meter: Meter
  /** Returns the error with which a request would be rejected now; null = it would be admitted. Reserves nothing. */
  readonly checkLimits: (request: AdmissionRequest) => Promise<LimitReached | null>
  /** Limits for clients without an account: in this process, or in Redis while Redis is available. */
  readonly limits: RateLimiterFactory
  /** Null = no mail server is configured. */
  readonly post: Mailer | null
  readonly payments: Payments
  readonly billingWorker: BillingWorker
  /** Null = no mail server is configured. */
  readonly noticeWorker: Repeating | null
  readonly webhooks: ReturnType<typeof openWebhooks>
  readonly alertWorker: Repeating
  readonly budget: BudgetTracker
  readonly health: HealthTracker
  readonly learning: LearningCache
  readonly prompts: RecentPrompts
  /** The catalog's quality of a model (0–1), by `provider/model`; null = unknown model. */
  readonly figureOf: (model: string) => number | null
  /** Random number, 0 ≤ x < 1. */
  readonly random: () => number
  readonly tokenizer: Tokenizer
  readonly allowedHosts: ReadonlySet<string> | null
  readonly firstAccount: FirstAccount | null
  /** Description of where data is stored. */
  readonly storage: string
  readonly isEmbedded: boolean
  /** Null = not configured. */
  readonly redis: Pick<Redis, 'isReady'> | null
  /** Whether Redis decides limits: 1, or 0; null = not configured. */
  readonly sharedLimits: () => number | null
  /** Files of the dashboard. */
  readonly site: DashboardBundle
  readonly inFlight: InFlight
  /** Sheds load of chat requests. */
  readonly startQueue: StartQueue
  /** Bounds the memory of request bodies. */
  readonly bodies: BodyBudget
  /**
   * Resolves when keys are loaded and limits can be decided, at the latest after `waitMs`. Resolves immediately if
   * Postgres is unavailable: the gateway then starts without it.
   */
  warm(waitMs: number): Promise<void>
  /** Whether this instance accepts new requests. */
  readonly readiness: { isReady: boolean }
  /** Ships unshipped usage records and closes all resources. */
  close(): Promise<void>
}

const shippingDeadlineMs = 5_000

/**
 * Dependencies that tests and commands may replace: clock, network, log destination. Configuration never sets `pages`:
 * the source of page fetches is fixed.
 */
export type DepsOptions = {
  readonly clock?: Clock
  readonly network?: Network
  readonly writeLog?: (line: string) => void
  readonly passwords?: Passwords
  readonly pages?: PageOptions
  /** Other deadlines than those of the configuration. */
  readonly deadlines?: Partial<ServiceDeadlines>
  /** Starts the runs of billing, notices, webhooks and alerts. */
  readonly timer?: RepeatTimer
  /** The embedded database, if it is being opened already. */
  readonly opening?: Promise<Embedded> | undefined
  /** Work for the time in which the database opens. */
  readonly meanwhile?: (content: { readonly read: PromptAnalyzer; readonly safety: Moderation }) => void
}

/**
 * Opens the stores, runs migrations, creates the first account if there is no account, and connects all parts. Throws
 * if a store cannot be opened; everything that was open is closed then.
 */
export async function createDeps(config: Config, options: DepsOptions = {}): Promise<Deps> {
  const undo: (() => unknown)[] = []
  try {
    return await openAll(config, options, undo)
  } catch (cause) {
    // The cause of the failed start matters more than a failure during cleanup.
    await runCleanups(undo).catch(() => {})
    throw cause
  }
}

async function openAll(given: Config, options: DepsOptions, undo: (() => unknown)[]): Promise<Deps> {
  // Every reader of the plans and of the routing shares keeps these objects, whose values a reload replaces.
  const config = {
    ...given,
    plans: { ...given.plans },
    routing: { ...given.routing },
    serviceDeadlines: { ...given.serviceDeadlines, ...options.deadlines },
  }
  const { shared, ...own } = openProcess(config, options)
  const { clock, network, log } = own
  const { pages, timer = intervalTimer } = options
  const storing = openStored(config, { ...options, shared, clock, log }, undo)
  let redis: Redis | null = null
  const evaluate: Redis['evaluate'] = async (...call) => {
    if (redis === null) throw new RedisUnavailableError('not opened yet')
    return redis.evaluate(...call)
  }
  const parts = { clock, network, log, ...(pages === undefined ? {} : { pages }) }
  const { content, catalogs, replacements } = await openModels(config, { ...own, ...parts, evaluate }, undo).catch(
    async cause => {
      await storing.catch(() => {})
      throw cause
    },
  )
  const { catalogue, embeddingCatalog, endpoints } = catalogs
  options.meanwhile?.(content)
  const { schema, ...stored } = await storing
  const { database } = stored
  const figureOf = (name: string) => catalogue.resolve(name)?.figures.quality ?? null
  const learning = createLearningBook({ database, clock, figureOf, log })
  undo.push(() => learning.close())
  const usage = await openUsage(config, { database, clock, log, learn: learning.take }, undo)
  redis = usage.redis
  const { meter, spent, limits } = usage
  // Loads the keys before the first request if the database is available, otherwise at the first poll.
  const isPostgresThere = (await Promise.race([schema.then(() => true), clock.sleep(0)])) === true
  const { sessionSecret, ...identity } = await openIdentity(
    config,
    { database, clock, log, usage, isPostgresThere },
    undo,
  )
  const billing = await openBilling(config, { database, clock, network, log, newId, timer }, undo)
  const forgetCounters = async (accountId: string) => {
    const name = keysOf(partitionOf(accountId)).account(accountId)
    await redis?.send(name, ['DEL', name])
  }
  const webhooks = openWebhooks(
    config,
    { database, clock, log, newId, forgetCounters, sessionSecret, pages: pages ?? {}, timer },
    undo,
  )
  const rejections = new RejectionLog({ database, log })
  undo.push(() => rejections.close())
  const health = createHealthBook({ clock })
  const alertWorker = openAlerts(
    {
      database,
      clock,
      log,
      post: billing.post,
      timer,
      modelEvents: () =>
        modelEvents(catalogue, reportModelHealth({ catalogue, embeddingCatalog, health }), clock.now()),
    },
    undo,
  )
  const readiness = { isReady: false }
  const { safety } = content
  const telemetry = openTelemetry(config, { ...parts, ...catalogs, health, readiness, usage, safety }, undo)
  const observe: typeof telemetry = {
    ...telemetry,
    settled(request) {
      telemetry.settled(request)
      billing.budget.settled(request.record)
    },
  }
  return {
    ...own,
    ...stored,
    ...identity,
    ...billing,
    ...content,
    ...openRequestState(config, clock),
    identityProvider: await openSingleSignOn(config, { clock, network }),
    webhooks,
    forgetCounters,
    observe,
    ...catalogs,
    reloadConfig: createConfigReload({
      config: given,
      log,
      ...replacements,
      replacePlans: next => void Object.assign(config.plans, next.plans),
      replaceRouting: next => void Object.assign(config.routing, next.routing),
    }),
    simulatedProviders: new Set([...endpoints.values()].filter(one => one.simulated).map(one => one.id)),
    ledger: createLedgerReader(database),
    rejections,
    spent,
    meter,
    redis,
    sharedLimits: usage.sharedRatio,
    checkLimits: request => meter.check(request),
    limits,
    health,
    alertWorker,
    learning,
    figureOf,
    readiness,
    isPostgresThere,
    warm: waitMs => (isPostgresThere ? usage.ready(waitMs) : Promise.resolve()),
    async close() {
      if (!(await usage.drain(shippingDeadlineMs)))
        log.warn('usage_unshipped_at_exit', { records: usage.records.backlog() })
      await runCleanups(undo)
    },
  }
}

type ModelParts = {
  readonly clock: Clock
  readonly network: Network
  readonly log: Log
  readonly pages?: PageOptions
  readonly evaluate: Redis['evaluate']
}

/** Everything that needs no database: providers, catalogs, prompt analysis, moderation and web access. */
async function openModels(config: Config, parts: ModelParts, undo: (() => unknown)[]) {
  const { clock, network, log } = parts
  const { endpoints, simulator, replaceProviders } = await openProviders(config, parts)
  if (simulator !== null) undo.push(() => simulator.stop())
  const { catalogue, reload: reloadCatalogue } = await openCatalogue(config, { clock, network, log, endpoints }, undo)
  const { catalog: embeddingCatalog, reload: reloadEmbeddings } = openEmbeddingCatalog(config, endpoints)
  const { content, replaceModeration } = openContent(config, { ...parts, catalogue, endpoints, simulator }, undo)
  const replaceModels = (next: Config) => {
    reloadEmbeddings(next)
    const before = reloadCatalogue(next)
    announceDeprecations(log, { before, after: catalogue, todayIso: new Date(clock.now()).toISOString() })
  }
  return {
    content,
    catalogs: { catalogue, embeddingCatalog, endpoints, simulator },
    replacements: { replaceProviders, replaceModeration, replaceModels },
  }
}

/** Resources of the process itself: clock, network, log, random numbers and IDs. */
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
  readonly opening?: Promise<Embedded> | undefined
}

/** The database, its clock, and the first account. */
async function openStored(config: Config, parts: StoredParts, undo: (() => unknown)[]) {
  const { shared, clock, log, passwords = createPasswords(), opening } = parts
  const { database, migrated: schema, storage, isEmbedded } = await openStores(config, { log, clock, opening }, undo)
  // An embedded database uses this machine's clock. The clock of a database from outside is not set here.
  const timekeeper = isEmbedded || clock !== shared.clock ? null : shared.follow(database, log)
  undo.push(() => timekeeper?.stop())
  await timekeeper?.ask()
  return {
    database,
    storage,
    isEmbedded,
    passwords,
    schema,
    migrated: schema.then(() => timekeeper?.ask()),
    firstAccount: isEmbedded ? await makeFirstAccount(database, passwords, clock, newId) : null,
  }
}

/** State of recent requests in the memory of this process; a restart loses it. */
function openRequestState(config: Config, clock: Clock) {
  const ties = createTieBook(clock, randomBytes(32))
  return {
    shares: config.routing,
    hedges: new HedgeBudget(config.hedgeShare),
    ties,
    cacheMarks: (accountId: string, ask: ChatRequest) =>
      config.automaticCacheMarks ? automaticCacheMarks(ask, ties.seen(accountId, ask)) : null,
    foresight: createForesightBook({ clock }),
    allowedHosts: allowedHosts(config.allowedHosts, config.host),
    site: createDashboardBundle(),
    inFlight: createInFlight(),
    startQueue: new StartQueue({
      burstMs: config.serviceDeadlines.burstMs,
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
