/**
 * Composition root: opens for each port the embedded default or the configured implementation. Only this folder knows
 * which implementation serves a port.
 */
import packageJson from '../../package.json'
import type { Config } from '../config/config.ts'
import { createConfigReload } from '../config/reload.ts'
import { makeFirstAccount } from '../console/account/first-account.ts'
import { createPasswords } from '../console/auth/password-hashing.ts'
import { findOwnKeyObstacle } from '../console/provider-keys/store.ts'
import type { Passwords } from '../core/accounts/passwords.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { automaticCacheMarks } from '../core/chat/provider-features.ts'
import { createActiveSet, type RequestAbort } from '../core/chat/request-abort.ts'
import { createTicker } from '../core/chat/stream-pacing.ts'
import type { Clock } from '../core/ports.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import type { Embedded } from '../database/embedded.ts'
import { openStores } from '../database/open-stores.ts'
import { BodyBudget } from '../http/body-budget.ts'
import { allowedHosts } from '../http/pages.ts'
import { StartQueue } from '../http/start-queue.ts'
import { createCacheAffinity } from '../learning/cache-affinity.ts'
import { createEstimateCalibration } from '../learning/estimate-calibration.ts'
import { createLearningCache } from '../learning/learning-cache.ts'
import { RejectionLog } from '../ledger/find-request.ts'
import { readReasoning } from '../ledger/ledger.ts'
import type { AdmissionRequest } from '../limits/meter.ts'
import { createHealthTracker } from '../models/health-tracker.ts'
import { HedgeBudget } from '../models/hedging.ts'
import { createTelemetryObserver } from '../observability/telemetry.ts'
import { OwnKeys } from '../providers/keys/own-keys.ts'
import { reportModelHealth, routingHealth } from '../request/routing/hosts.ts'
import { ShadowJobs } from '../request/shadow/compare.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { openConsole, openIdentity } from './console.ts'
import { announceDeprecations, openCatalog, openContent } from './models.ts'
import { openProcess, type Process, type ProcessOptions } from './process.ts'
import { formats, isSimulated, openProviders } from './providers.ts'
import { openUsage, type Usage } from './usage.ts'

const shippingDeadlineMs = 5_000

/** What tests, commands and the start may replace or add. */
export type DepsOptions = ProcessOptions & {
  readonly passwords?: Passwords
  /** Other deadlines than those of the configuration. */
  readonly deadlines?: Partial<ServiceDeadlines>
  /** The embedded database, if it is being opened already. */
  readonly opening?: Promise<Embedded> | undefined
  /** Work for the time in which the database opens. */
  readonly meanwhile?: (content: { readonly read: PromptAnalyzer; readonly moderation: Moderation }) => void
}

export type Deps = Awaited<ReturnType<typeof openAll>>

/**
 * Opens the stores, runs migrations, creates the first account if there is no account, and connects all parts. Throws
 * if a store cannot be opened; everything that was open is closed then.
 */
export async function createDeps(config: Config, options: DepsOptions = {}): Promise<Deps> {
  const undo = new AsyncDisposableStack()
  try {
    return await openAll(config, options, undo)
  } catch (cause) {
    // The cause of the failed start matters more than a failure during cleanup.
    await undo.disposeAsync().catch(() => {})
    throw cause
  }
}

async function openAll(given: Config, options: DepsOptions, undo: AsyncDisposableStack) {
  // Every reader of the plans and of the routing shares keeps these objects, whose values a reload replaces.
  const config = {
    ...given,
    plans: { ...given.plans },
    routing: { ...given.routing },
    serviceDeadlines: { ...given.serviceDeadlines, ...options.deadlines },
  }
  const rules = { operator: config.rules }
  const own = openProcess(config, options)
  const { clock, log } = own
  const storing = openStored(config, own, options, undo)
  // It is awaited later, when its failure is reported.
  storing.catch(() => {})
  const { content, catalogs, replacements } = await openModels(config, own, undo).catch(async cause => {
    await storing.catch(() => {})
    throw cause
  })
  const { catalog, embeddingCatalog, endpoints, useSwitches } = catalogs
  options.meanwhile?.(content)
  const { schema, ...stored } = await storing
  const { database } = stored
  /** The catalog's quality of a model (0–1), by `provider/model`; null = unknown model. */
  const findFigure = (name: string) => catalog.resolve(name)?.figures.quality ?? null
  const learning = createLearningCache({ database, clock, findFigure, log })
  undo.defer(() => learning.close())
  const health = createHealthTracker({ clock })
  const ownKeys = new OwnKeys({
    ...{ clock, endpoints, health },
    isAllowed: provider => findOwnKeyObstacle(given, provider.id, provider) === null,
  })
  const { reloadConfig, useStoredKeys } = createConfigReload({
    config: given,
    log,
    ...replacements,
    replaceProviders(providers) {
      replacements.replaceProviders(providers)
      ownKeys.forget()
    },
    retryCredentials: health.retryCredentials,
    replacePlans: next => void Object.assign(config.plans, next.plans),
    replaceRouting(next) {
      Object.assign(config.routing, next.routing)
      rules.operator = next.rules
    },
  })
  const usage = openUsage(config, { database, clock, log, onLearned: learning.refresh }, undo)
  const { meter, spent, limits, redis } = usage
  // Loads the keys before the first request if the database is available, otherwise at the first poll.
  const isPostgresThere = (await Promise.race([schema.then(() => true), clock.sleep(0)])) === true
  const identity = await openIdentity(
    config,
    { database, clock, log, usage, isPostgresThere, useStoredKeys, ownKeys, useSwitches },
    undo,
  )
  const rejections = new RejectionLog({ database, log })
  undo.defer(() => rejections.close())
  const consoleParts = await openConsole(
    config,
    {
      ...own,
      ...identity,
      database,
      redis,
      catalog,
      health: () => reportModelHealth({ catalog, embeddingCatalog, health }),
    },
    undo,
  )
  const readiness = createReadiness(usage.records)
  const telemetry = createTelemetryObserver({
    ...own,
    state: {
      version: packageJson.version,
      get models() {
        return [...catalog.list, ...embeddingCatalog.list]
      },
      getHealth: model => routingHealth(health, model).state,
      isReady: () => readiness.isReady,
      usage: usage.records,
      sharedLimits: usage.sharedRatio,
      moderation: content.moderation.figures,
    },
    otlp: config.otlp === null ? null : { ...config.otlp, fetch: own.network.fetch },
    worker: config.worker,
  })
  undo.defer(() => telemetry.close())
  const observe: typeof telemetry = {
    ...telemetry,
    settled(request) {
      telemetry.settled(request)
      consoleParts.budget.settled(request.record)
    },
  }
  const requestState = openRequestState(config, clock, identity.conversationSecret)
  // Beside the first requests. Without the ledger lengths begin with their priors.
  void schema
    .then(() => readReasoning(database))
    .then(rows => requestState.calibration.reasoning.seed(rows))
    .catch(() => {})
  const shadow = new ShadowJobs(telemetry.compared)
  return {
    config,
    ...own,
    ...stored,
    ...identity,
    ...consoleParts,
    ...content,
    ...requestState,
    rules,
    shadow,
    observe,
    ...catalogs,
    reloadConfig,
    /** Whether the providers are simulated, until a stored key ends it. */
    isSimulated: () => isSimulated(endpoints),
    rejections,
    spent,
    meter,
    redis,
    /** Whether Redis decides limits: 1, or 0; null = not configured. */
    sharedLimits: usage.sharedRatio,
    /** Returns the error with which a request would be rejected now; null = it would be admitted. Reserves nothing. */
    checkLimits: (request: AdmissionRequest) => meter.check(request),
    limits,
    health,
    learning,
    findFigure,
    ownKeys,
    decisionWire: formats.compatible,
    readiness,
    isPostgresThere,
    /**
     * Resolves when keys are loaded and limits can be decided, at the latest after `waitMs`. Resolves immediately if
     * Postgres is unavailable: the gateway then starts without it.
     */
    warm: (waitMs: number) => (isPostgresThere ? usage.ready(waitMs) : Promise.resolve()),
    /** Ships unshipped usage records and closes all resources. */
    async close() {
      await shadow.close()
      if (!(await usage.drain(shippingDeadlineMs)))
        log.warn('usage_unshipped_at_exit', { records: usage.records.backlog() })
      await undo.disposeAsync()
    },
  }
}

/** Everything that needs no database: providers, catalogs, prompt analysis, moderation and web access. */
async function openModels(config: Config, parts: Process, undo: AsyncDisposableStack) {
  const { clock, network, log } = parts
  const { endpoints, simulator, replaceProviders } = await openProviders(config, parts)
  if (simulator !== null) undo.defer(() => simulator.stop())
  const catalogs = await openCatalog(config, { clock, network, log, endpoints }, undo)
  const { catalog, embeddingCatalog, configuredModels, useSwitches } = catalogs
  const { content, replaceModeration } = openContent(config, { ...parts, catalog, endpoints, simulator }, undo)
  const replaceModels = (next: Config) => {
    const before = catalogs.reload(next)
    announceDeprecations(log, { before, after: catalog, todayIso: new Date(clock.now()).toISOString() })
  }
  return {
    content,
    catalogs: { catalog, embeddingCatalog, configuredModels, useSwitches, endpoints, simulator },
    replacements: { replaceProviders, replaceModeration, replaceModels },
  }
}

/** The database, its clock, and the first account. */
async function openStored(
  config: Config,
  { shared, clock, log, newId }: Process,
  { passwords = createPasswords(), opening }: DepsOptions,
  undo: AsyncDisposableStack,
) {
  const { database, migrated: schema, storage, isEmbedded } = await openStores(config, { log, clock, opening }, undo)
  // An embedded database uses this machine's clock. The clock of a database from outside is not set here.
  const timekeeper = isEmbedded || clock !== shared.clock ? null : shared.follow(database, log)
  undo.defer(() => timekeeper?.stop())
  await timekeeper?.measure()
  return {
    database,
    /** Description of where data is stored. */
    storage,
    isEmbedded,
    passwords,
    schema,
    /** Fulfilled when the schema is current: immediately, unless Postgres was unavailable at startup. */
    migrated: schema.then(() => timekeeper?.measure()),
    firstAccount: isEmbedded ? await makeFirstAccount(database, passwords, clock, newId) : null,
  }
}

/** Share of the journal's bound from which on this instance is not ready: others take its requests before it rejects them. */
const journalAlmostFull = 0.9

/** Whether this instance accepts new requests: it has started, and its journal has room. */
function createReadiness({ fill }: Pick<Usage['records'], 'fill'>) {
  let isServing = false
  return {
    get isReady() {
      return isServing && fill() < journalAlmostFull
    },
    set isReady(isSo: boolean) {
      isServing = isSo
    },
  }
}

/** State of recent requests in the memory of this process; a restart loses it. */
function openRequestState(config: Config, clock: Clock, conversationSecret: string) {
  const ties = createCacheAffinity(clock, conversationSecret)
  return {
    // As a rejection it is logged, and the process goes on.
    ticker: createTicker(clock, thrown => void Promise.reject(thrown)),
    /** Target shares of requests per capability level. */
    shares: config.routing,
    runaway: config.runaway === null ? null : { bounds: config.runaway, clock },
    hedges: new HedgeBudget(config.hedgeShare),
    /** Which model answered a conversation before. */
    ties,
    cacheMarks: (accountId: string, request: ChatRequest) =>
      config.automaticCacheMarks ? automaticCacheMarks(request, ties.seen(accountId, request)) : null,
    calibration: createEstimateCalibration({ clock }),
    allowedHosts: allowedHosts(config.allowedHosts, config.host),
    /** Requests in progress. */
    inFlight: createActiveSet<RequestAbort>(),
    startQueue: new StartQueue({
      waitMs: config.serviceDeadlines.startMs,
      monotonic: clock.monotonic,
      used: processorMs,
      nextTurn: action => void setImmediate(action),
    }),
    bodies: new BodyBudget({ limits: config.bodies, collect: () => Bun.gc(true) }),
  }
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
