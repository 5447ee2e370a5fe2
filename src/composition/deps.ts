/**
 * Composition root: for each port the embedded default, or what configuration put in its place. The one file that knows
 * which implementation stands behind what.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import packageJson from '../../package.json'
import type { Config } from '../config.ts'
import { type RandomBytes, randomBase62 } from '../core/accounts/api-keys.ts'
import { createFeatureReader } from '../core/analysis/features.ts'
import type { DifficultyExplainer, PromptAnalyzer } from '../core/analysis/prompt-analysis.ts'
import type { Payments } from '../core/billing/payment-processor.ts'
import type { RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Log } from '../core/ports/log.ts'
import type { Network } from '../core/ports/network.ts'
import type { Passwords } from '../core/ports/passwords.ts'
import type { LevelShares } from '../core/routing/capability-levels.ts'
import { createKeyedDigests } from '../core/text/keyed-digests.ts'
import type { Database } from '../database/database.ts'
import { type CacheAffinityTracker, createTieBook } from '../database/learning/cache-affinity.ts'
import { createForesightBook, type EstimateCalibrator } from '../database/learning/estimate-calibrator.ts'
import { createLearningBook, type LearningCache } from '../database/learning/learning-cache.ts'
import { createPromptBook, type RecentPrompts } from '../database/learning/recent-prompts.ts'
import type { BudgetTracker } from '../database/repositories/budget-tracker.ts'
import { createHealthBook, type HealthTracker } from '../database/repositories/health-tracker.ts'
import { createIdempotencyBook, type IdempotencyBook } from '../database/repositories/idempotency.ts'
import { createKeyDirectory, type KeyDirectory } from '../database/repositories/keys.ts'
import { createSessionDirectory, type SessionDirectory } from '../database/repositories/sessions.ts'
import { type Stores, stores } from '../database/stores.ts'
import { createReasoningSeal, type ReasoningSeal } from '../dialects/reasoning-seal.ts'
import { callerAddress, createTokens, type Tokens } from '../http/authentication.ts'
import { type BodyBudget, createBodyBudget } from '../http/body-budget.ts'
import { allowedHosts } from '../http/host-header.ts'
import { userSecrets } from '../http/idempotency.ts'
import { createLedgerReader, type LedgerReader } from '../ledger/ledger.ts'
import { checkLimits, type LimitReached } from '../limits/check.ts'
import type { AdmissionRequest, Meter } from '../limits/meter.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Moderation } from '../moderation/moderation.ts'
import { createLog } from '../observability/log.ts'
import { createObserve, type Telemetry } from '../observability/telemetry.ts'
import { manualPayments } from '../payments/manual.ts'
import { startNoticeWorker } from '../payments/notice-worker.ts'
import type { Repeating } from '../payments/repeating.ts'
import { type BillingWorker, startBillingWorker } from '../payments/worker.ts'
import { createTicker, type PaceClock } from '../pipeline/delivery/stream-pacing.ts'
import { healthKey } from '../pipeline/routing/health-key.ts'
import type { ConfiguredProvider } from '../providers/provider.ts'
import type { DashboardBundle } from '../routes/dashboard/routes.ts'
import type { Simulator } from '../simulator/simulator.ts'
import type { Web } from '../web/web.ts'
import { type AddressDigests, createAddressDigests } from './address-digests.ts'
import { runCleanups } from './cleanup.ts'
import { systemClock } from './clock.ts'
import { createDashboardBundle } from './dashboard-bundle.ts'
import { type FirstAccount, makeFirstAccount } from './first-account.ts'
import { createInFlight, type InFlight } from './in-flight.ts'
import { systemNetwork } from './network.ts'
import { openBudget } from './open-budget.ts'
import { openCatalogue } from './open-catalogue.ts'
import { openMailer } from './open-mailer.ts'
import { openSafety } from './open-moderation.ts'
import { openPayments } from './open-payments.ts'
import { openReaders } from './open-prompt-analyzer.ts'
import { openProviders } from './open-providers.ts'
import { openStores } from './open-stores.ts'
import { openUsage } from './open-usage.ts'
import { openWeb, type PageOptions } from './open-web.ts'
import { createPasswords } from './passwords.ts'
import { loadOrCreateSessionSecret } from './session-secret.ts'
import { createSharedClock } from './shared-clock.ts'
import { createTokenizer, type Tokenizer } from './tokenizer.ts'

export type Deps = {
  readonly config: Config
  readonly clock: Clock
  readonly paceClock: PaceClock
  readonly network: Network
  readonly log: Log
  readonly observe: Telemetry
  readonly newRequestId: () => string
  readonly catalogue: Catalog
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
  const shared = createSharedClock(systemClock)
  const clock = options.clock ?? shared.clock
  const network = options.network ?? systemNetwork
  const log = createLog({
    level: config.logLevel,
    pretty: process.stdout.isTTY,
    now: clock.now,
    write: options.writeLog ?? (line => process.stdout.write(line)),
  })
  const undo: (() => unknown)[] = []
  try {
    const { database, migrated: schema, storage, isEmbedded } = await openStores(config, { log, clock }, undo)
    // An embedded database has this machine's clock; one that was handed in is not ours to set.
    const timekeeper = isEmbedded || options.clock !== undefined ? null : shared.follow(database, log)
    undo.push(() => timekeeper?.stop())
    await timekeeper?.ask()
    const migrated = schema.then(() => timekeeper?.ask())
    const passwords = options.passwords ?? createPasswords()
    const firstAccount = isEmbedded ? await makeFirstAccount(database, passwords, clock, newId) : null
    const { endpoints, simulator } = await openProviders(config, clock)
    if (simulator !== null) undo.push(() => simulator.stop())
    const catalogue = openCatalogue(config, endpoints)
    const figureOf = (name: string) => catalogue.resolve(name)?.figures.quality ?? null
    const learning = createLearningBook({ database, clock, figureOf, log })
    undo.push(() => learning.close())
    const { take: learn } = learning
    const usage = await openUsage(config, { database, clock, log, learn }, undo)
    const { meter, redis, spent } = usage
    const keys = createKeyDirectory({
      database,
      clock,
      plans: config.plans,
      maximumShortfall: config.maximumShortfall,
      random: Math.random,
    })
    undo.push(() => keys.close())
    // Which keys exist: before the first request if the database is there, else at the first poll.
    const isPostgresThere = (await Promise.race([schema.then(() => true), clock.sleep(0)])) === true
    if (isPostgresThere) await keys.look()
    const sessionDirectory = createSessionDirectory({ database, clock })
    const look = () => {
      sessionDirectory.forget()
      void keys.look()
    }
    const channel = usage.channel(look)
    undo.push(() => channel?.close())
    const idempotency = createIdempotencyBook({ database, redis, log })
    undo.push(() => idempotency.close())
    const jwtSecret = config.jwtSecret ?? loadOrCreateSessionSecret(join(config.dataDirectory, 'session-secret'))
    const tokenizer = createTokenizer()
    undo.push(() => tokenizer.close())
    const payments = await openPayments(config, network, clock)
    const post = await openMailer(config, { clock, log }, undo)
    const billingWorker = startBillingWorker({
      database,
      stores,
      payments,
      manual: manualPayments,
      clock,
      newId,
      log,
    })
    undo.push(() => billingWorker.close())
    const notices = { database, stores: stores.billingNotices, clock, log }
    const noticeWorker = post === null ? null : startNoticeWorker({ ...notices, post })
    undo.push(() => noticeWorker?.close())
    const readFeatures = createFeatureReader()
    const digests = createKeyedDigests(randomBytes(32))
    const { read, explain } = openReaders(readFeatures)
    const asking = { clock, network, log, catalogue, endpoints }
    const safety = openSafety(config, asking, { digests, readFeatures })
    undo.push(() => safety.close())
    const web = openWeb(config, { ...options, network, clock, log, simulator, safety })
    undo.push(() => web.pages.close())
    const health = createHealthBook({ clock })
    const readiness = { isReady: false }
    const observe = createObserve({
      state: {
        version: packageJson.version,
        models: catalogue.list,
        healthOf: model => health.stateOf(healthKey({ model })),
        isReady: () => readiness.isReady,
        usage: usage.records,
        sharedLimits: usage.sharedRatio,
        safety: safety.figures,
      },
      log,
      clock,
      otlp: config.otlp === null ? null : { ...config.otlp, fetch: network.fetch },
      worker: config.worker,
      random: Math.random,
      randomBytes,
    })
    undo.push(() => observe.close())
    return {
      config,
      clock,
      paceClock: createTicker(clock),
      network,
      log,
      observe,
      newRequestId: () => `req_${Bun.randomUUIDv7().replaceAll('-', '')}`,
      catalogue,
      endpoints,
      simulator,
      simulatedProviders: new Set([...endpoints.values()].filter(one => one.simulated).map(one => one.id)),
      shares: config.routing,
      ties: createTieBook(clock, randomBytes(32)),
      foresight: createForesightBook({ clock }),
      read,
      explain,
      safety,
      web,
      database,
      migrated,
      stores,
      ledger: createLedgerReader(database),
      keys,
      idempotency,
      secretOf: userSecrets(config.jwtSecretPrevious ?? jwtSecret),
      reasoningSeal: createReasoningSeal(jwtSecret, config.jwtSecretPrevious),
      sessions: sessionDirectory,
      announce() {
        look()
        channel?.publish()
      },
      tokens: createTokens({
        secret: jwtSecret,
        previousSecret: config.jwtSecretPrevious,
        clock,
      }),
      passwords,
      addressDigests: createAddressDigests(jwtSecret, config.jwtSecretPrevious),
      randomBytes,
      newId,
      addressOf: (request, server) =>
        callerAddress(
          server?.requestIP(request)?.address ?? null,
          request.headers.get('x-forwarded-for'),
          config.isTrustedProxy,
        ),
      spent,
      meter,
      checkLimits: request => checkLimits(meter, request),
      limits: usage.limits,
      post,
      payments,
      billingWorker,
      noticeWorker,
      budget: openBudget(database, { clock, log, post }),
      health,
      learning,
      prompts: createPromptBook(read, digests),
      figureOf,
      random: Math.random,
      tokenizer,
      allowedHosts: allowedHosts(config.allowedHosts, config.host),
      firstAccount,
      storage,
      site: createDashboardBundle(),
      inFlight: createInFlight(),
      bodies: createBodyBudget({ limits: config.bodies, collect: () => Bun.gc(true) }),
      readiness,
      warm: waitMs => (isPostgresThere ? usage.ready(waitMs) : Promise.resolve()),
      async close() {
        if (!(await usage.drain(shippingDeadlineMs)))
          log.warn('usage_left_in_journal', { records: usage.records.backlog() })
        await runCleanups(undo)
      },
    }
  } catch (cause) {
    // Why the start failed matters more than what failed behind it.
    await runCleanups(undo).catch(() => {})
    throw cause
  }
}

const newId = (prefix: string) => `${prefix}_${randomBase62(20, randomBytes)}`
