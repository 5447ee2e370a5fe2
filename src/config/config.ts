/**
 * The only reader of the environment: every variable with its default and reason. A failed start reports all problems
 * at once, so that they can be fixed in one step.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type WebPrices, webPrices } from '../core/chat/web-sources.ts'
import { applyPlanOverrides, highestLimits, type Plans } from '../core/limits/plans.ts'
import { changeProblems, withChanges } from '../core/models/configured-models.ts'
import { fullName } from '../core/models/models.ts'
import { maximumTotalMinutes } from '../core/models/pricing.ts'
import { type Deadlines, deadlinesOfAtLeast } from '../core/request/deadlines.ts'
import { isSentinelUrl, sentinelProblem } from '../core/text/sentinel-urls.ts'
import { fromUsd } from '../core/usage/money.ts'
import { OperatorError } from '../core/validation/operator-errors.ts'
import { type BodyLimits, bodyMegabytes } from '../http/body-budget.ts'
import { defaultLevelShares, type LevelShares, parseLevelShares } from '../models/capability-levels.ts'
import { catalog, catalogueDate } from '../models/catalog.ts'
import { withCatalogUpdate } from '../models/catalog-update.ts'
import { defaultHedgeShare } from '../models/hedging.ts'
import { hostProblems } from '../models/model-hosts.ts'
import { moderationSettings } from '../text/moderation/layers/settings.ts'
import { baseUrlProblem, isAnsweredHost, isListenAddress, loopbackOrigin, trustedProxies } from './addresses.ts'
import { readCatalogFile } from './catalog-file.ts'
import { type ConfigFile, readConfigFile } from './config-file.ts'
import { type Environment, type EnvironmentReader, environmentReader } from './environment.ts'
import { readRules, resolveKeyModels } from './key-models.ts'
import { builtIn, knownModels, nameProblems, offeredModels, readProviders } from './providers.ts'
import { readMail, readOtlp, readOwnerUpgrades, readPublicUrl, readSearch, readStripe } from './services.ts'
import { readOidc, readRegistration } from './sign-in.ts'
import { knownProviders, storedKeysSettings } from './stored-keys.ts'

export type { Environment } from './environment.ts'

const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** All problems of a configuration, one line each. */
export class ConfigError extends OperatorError {
  constructor(readonly problems: readonly string[]) {
    super(['the configuration is wrong.', ...problems].join('\n  - '))
  }
}

const minute = 60_000

/** Bun allows 256 concurrent `fetch` calls by default; further ones wait silently, for any host. */
const fewUpstreamCalls = 1_024
const bunsUpstreamCalls = 256

/** Location of the data: all that account and key commands need. */
export type StoreConfig = Readonly<ReturnType<typeof storeConfig>>

/** Reads only this part, so that an unrelated error does not prevent revoking a key. Throws `ConfigError`. */
export function readStoreConfig(environment: Environment = process.env): StoreConfig {
  const problems: string[] = []
  const config = storeConfig(environmentReader(environment, problems))
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function storeConfig(read: EnvironmentReader) {
  return {
    dataDirectory: read.text('GATEWAY_DATA_DIR') ?? './.data',
    databaseUrl: read.url('DATABASE_URL', ['postgres:', 'postgresql:']),
    serviceDeadlines: deadlinesOfAtLeast(read.integer('MINIMUM_DEADLINE_MS', 0, 0, 10 * minute)),
    /** null only in embedded mode, which generates one in the data folder. */
    jwtSecret: read.secret('JWT_SECRET'),
    jwtSecretPrevious: read.secret('JWT_SECRET_PREVIOUS'),
    storedKeys: read.oneOf('STORED_PROVIDER_KEYS', storedKeysSettings, 'on'),
  }
}

/** Reads only the plans, for commands that show them. Throws `ConfigError`. */
export function readPlans(environment: Environment = process.env): Plans {
  const problems: string[] = []
  const { plans } = readConfigFile(environmentReader(environment, problems).text('GATEWAY_CONFIG'), problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return applyPlanOverrides(plans)
}

function redisUrlProblem(urls: readonly string[]): string | null {
  if (!urls.every(url => /^rediss?(\+sentinel)?:\/\//.test(url) && URL.canParse(url)))
    return 'must be a redis:// or rediss:// URL, or the URLs of a cluster’s nodes separated by commas, or those of Sentinels (redis+sentinel://host:26379/name)'
  return urls.some(isSentinelUrl) ? sentinelProblem(urls) : null
}

export type Config = Readonly<ReturnType<typeof readConfig>>

/** Reads the configuration from an environment, by default `process.env`. Throws `ConfigError` with every problem. */
export function readConfig(environment: Environment = process.env) {
  const problems: string[] = []
  const warnings: string[] = []
  const read = environmentReader(environment, problems)

  const store = storeConfig(read)
  const { dataDirectory, databaseUrl, serviceDeadlines, jwtSecret, jwtSecretPrevious, storedKeys } = store
  const redisUrl = read.secret('REDIS_URL')
  if (databaseUrl !== null && jwtSecret === null)
    problems.push(
      'JWT_SECRET: required with DATABASE_URL; set it to at least 32 random bytes (openssl rand -base64 48)',
    )
  for (const [name, secret] of [
    ['JWT_SECRET', jwtSecret],
    ['JWT_SECRET_PREVIOUS', jwtSecretPrevious],
  ] as const)
    if (secret !== null && Buffer.byteLength(secret) < 32) problems.push(`${name}: must be at least 32 bytes long`)

  const wanted = read.text('WORKERS') ?? '1'
  if (wanted !== 'auto' && !/^[1-9]\d{0,2}$/.test(wanted)) problems.push('WORKERS: must be a count or "auto"')
  const processes = wanted === 'auto' ? availableParallelism() : Number(wanted)
  const worker = read.text(workerVariable) === null ? null : read.integer(workerVariable, 1, 1, 999)
  const redisUrls = redisUrl?.split(',').map(url => url.trim()) ?? []
  const redisProblem = redisUrlProblem(redisUrls)
  if (redisProblem !== null) problems.push(`REDIS_URL: ${redisProblem}`)
  if (processes > 1 && redisUrls.length === 0)
    problems.push(`WORKERS: ${processes} processes share limits in Redis; set REDIS_URL, or WORKERS=1`)
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY'])
    if (environment[name]) warnings.push(`${name} is set: calls to providers will go through that proxy`)

  const upstreamCalls = read.integer('BUN_CONFIG_MAX_HTTP_REQUESTS', bunsUpstreamCalls, 1, 65_535)
  if (upstreamCalls < fewUpstreamCalls)
    warnings.push(
      `BUN_CONFIG_MAX_HTTP_REQUESTS: only ${upstreamCalls} concurrent upstream calls, others wait; set it to 8192, as \`bun run start\` does`,
    )

  const host = read.text('HOST') ?? '127.0.0.1'
  if (!isListenAddress(host))
    problems.push('HOST: must be an address or a name, such as 0.0.0.0, without scheme, port or brackets')
  const file = readConfigFile(read.text('GATEWAY_CONFIG'), problems)
  const catalogFile = read.text('MODEL_CATALOG') ?? join(dataDirectory, 'catalog.json')
  const update = readCatalogFile(catalogFile, problems, warnings)
  const publishedModels = withCatalogUpdate(catalog, update)
  const { settings, models, embeddingModels, hosts, dormant } = readProviders(read, file, problems, warnings)
  for (const problem of changeProblems(catalog, file.models)) problems.push(`GATEWAY_CONFIG: ${problem}`)
  for (const { id } of builtIn)
    for (const name of nameProblems(withChanges(publishedModels, file.models).filter(model => model.provider === id)))
      problems.push(`GATEWAY_CONFIG: models: provider "${id}": ${name}`)

  const moderation = moderationSettings(file.safety, { secret: read.secret, urlProblem: baseUrlProblem }, problems)
  const known = knownModels({ publishedModels, extraModels: models, modelChanges: file.models })
  const offered = offeredModels(settings, known, hosts)
  for (const problem of hostProblems(known, hosts)) problems.push(`GATEWAY_CONFIG: ${problem}`)
  const providers = resolveKeyModels(settings, offered, embeddingModels, problems)
  /** Returns the full name of a model that the file names; null = none, or unknown. */
  const findModel = (place: string, name: string | undefined): string | null => {
    const model = name === undefined ? null : offered.resolve(name)
    if (name !== undefined && model === null)
      problems.push(`GATEWAY_CONFIG: ${place}: no configured provider has a model of that name`)
    return model === null ? null : fullName(model)
  }
  // With a URL, the name belongs to the endpoint.
  if (moderation.moderation?.url === null)
    findModel('safety.moderation.model', moderation.moderation.model ?? undefined)

  const port = read.integer('PORT', 3000, 0, 65_535)
  const publicUrl = readPublicUrl(read, problems)
  const mail = readMail(read, publicUrl, problems, warnings)
  const isReachable = databaseUrl !== null || publicUrl !== null || loopbackOrigin(host, port) === null
  const ownOrigin = publicUrl ?? loopbackOrigin(host, port)
  const stripe = readStripe(read, ownOrigin, problems)
  const ownerUpgrades = readOwnerUpgrades(read, stripe !== null, problems)
  const reach = { hasMail: mail !== null, isReachable, ownerUpgrades }
  const registration = readRegistration(read, reach, problems, warnings)

  const config = {
    port,
    host,
    /** Shared by the instances of one start: the embedded database, the session secret. */
    dataDirectory,
    /** Of this process only: journal and checkpoints, which must have one writer. */
    ownDirectory: worker === null ? dataDirectory : join(dataDirectory, `worker-${worker}`),
    /** Bytes of usage records on disk from which on this process rejects requests: Postgres has been away for long. */
    journalMaximumBytes: read.integer('USAGE_JOURNAL_MAX_BYTES', 1 << 30, 1 << 20, Number.MAX_SAFE_INTEGER),
    /** Number of worker processes; 1 = this process serves itself. */
    workers: worker === null ? processes : 1,
    /** Number of gateway processes on this machine: all workers, also in a worker's own configuration. */
    processes,
    /** Number of this worker, from 1; null = the operator started it. */
    worker,
    /** null = embedded. */
    databaseUrl,
    /** Empty = limits are counted in process. */
    redisUrls,
    jwtSecret,
    jwtSecretPrevious,
    /** Empty = the three providers are simulated. */
    providers,
    /** Those that a stored key completes. */
    dormantProviders: dormant,
    knownProviders: knownProviders(file),
    storedKeys,
    extraModels: models,
    embeddingModels,
    /** The built-in models with the installed catalog update. */
    publishedModels,
    /** Where `gateway models update` installs an update. */
    catalogFile,
    /** Date of the catalog, `YYYY-MM-DD`. */
    catalogDate: update?.date ?? catalogueDate,
    /** Configured providers that serve models of other providers. */
    hosts,
    modelChanges: file.models,
    plans: applyPlanOverrides(file.plans),
    web: {
      /** In calling order; empty with simulated providers = simulated. */
      search: readSearch(read),
      prices: getPrices(file),
      /** What the operator declares of all search services. */
      policy: file.web.policy,
    },
    moderation,
    /** `provider/model` of the model that rewrites prompts; null = only rules. */
    rewriter: findModel('enhancement.model', file.enhancement.model),
    /** Target shares of requests for stronger models, and what routing is compared with. */
    routing: {
      ...readShares(file, problems),
      /** `provider/model`; null = the strongest configured model. */
      baselineModel: findModel('routing.baseline_model', file.routing.baseline_model),
      /** `provider/model` that judges shadow evaluation; null = no account can turn it on. */
      judgeModel: findModel('routing.judge_model', file.routing.judge_model),
    },
    /** Rules of the operator, in the order of the file. */
    rules: readRules(file.rules, { known, embeddingModels, settings }, problems),
    /** Bounds of runaway conversations; null = none. */
    runaway: file.routing.runaway ?? null,
    /** Share (0–1) of an account's requests with hedging that may hedge. */
    hedgeShare: file.routing.hedge_share ?? defaultHedgeShare,
    /** Null = manual invoicing. */
    stripe,
    /** Without Stripe, owners change their accounts to plan `usage`; otherwise only the operator does. */
    ownerUpgrades,
    /** Null = no emails are sent. */
    mail,
    /** Origin at which users reach this gateway; null = unknown. */
    publicUrl,
    registration,
    /** Null = users sign in with a password only. */
    singleSignOn: readOidc(read, { publicUrl: ownOrigin, isOpen: registration.mode === 'open' }, problems),
    defaultMaxOutputTokens: read.integer('DEFAULT_MAX_OUTPUT_TOKENS', 16_384, 1, 1_000_000),
    /** The gateway sets cache marks for providers that cache only marked input, if the client sets none. */
    automaticCacheMarks: read.oneOf('PROMPT_CACHE_MARKS', ['auto', 'off'], 'auto') === 'auto',
    /** Integer of 1e-8 USD: an account with a larger shortfall is paused. */
    maximumShortfall: readMaximumShortfall(read),
    deadlines: {
      connectMs: read.integer('CONNECT_TIMEOUT_MS', 3_000, 1, minute),
      firstByteMs: read.integer('FIRST_BYTE_TIMEOUT_MS', 30_000, 1, 30 * minute),
      silenceMs: read.integer('SILENCE_TIMEOUT_MS', minute, 1, 30 * minute),
      firstContentMs: read.integer('FIRST_CONTENT_TIMEOUT_MS', 2 * minute, 1, 30 * minute),
      firstContentReasoningMs: read.integer('FIRST_CONTENT_REASONING_TIMEOUT_MS', 5 * minute, 1, 30 * minute),
      totalMs: read.integer('TOTAL_TIMEOUT_MS', 10 * minute, 1, maximumTotalMinutes * minute),
    } satisfies Deadlines,
    serviceDeadlines,
    /** Free token counts of one account. */
    tokenCountsPerMinute: read.integer('TOKEN_COUNTS_PER_MINUTE', 120, 1, 1_000_000),
    /** Maximum bytes of request bodies in this process, in total and per account. */
    bodies: readBodies(read, problems),
    /** How long running streams may continue after SIGTERM. */
    drainMs: read.integer('DRAIN_TIMEOUT_MS', 30_000, 0, 10 * minute),
    /** How long new connections are still accepted after SIGTERM, so that a load balancer can react. */
    drainNoticeMs: read.integer('DRAIN_NOTICE_MS', 3_000, 0, minute),
    /** Webhooks may use `http://` and addresses that are not public. */
    privateWebhooks: read.oneOf('WEBHOOKS_PRIVATE_HOSTS', ['allow', 'refuse'], 'refuse') === 'allow',
    allowedHosts: readAllowedHosts(read, problems),
    isTrustedProxy: trustedProxies(read.list('TRUSTED_PROXIES') ?? [], problems),
    logLevel: read.oneOf('LOG_LEVEL', logLevels, 'info'),
    /** Required for `/metrics` from other hosts; null = only from this machine. */
    metricsToken: readMetricsToken(read, problems),
    /** Null = no telemetry export. */
    otlp: readOtlp(read, problems),
    warnings,
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/**
 * Far above any normal difference between the gateway's bound and an upstream's count; about a week of the evaluation
 * plan.
 */
function readMaximumShortfall(read: EnvironmentReader): number {
  return fromUsd(read.usd('MAX_SHORTFALL_USD', 1, highestLimits.dailyUsd))
}

/** Returns the shortfall limit for a command. Throws `ConfigError`. */
export function getMaximumShortfall(): number {
  const problems: string[] = []
  const limit = readMaximumShortfall(environmentReader(process.env, problems))
  if (problems.length > 0) throw new ConfigError(problems)
  return limit
}

function readShares({ routing }: ConfigFile, problems: string[]): LevelShares {
  const shares = parseLevelShares(routing)
  if (shares === null)
    problems.push('GATEWAY_CONFIG: routing: `strong_share` and `middle_share` must be at most 1 together')
  return shares ?? defaultLevelShares
}

const megabyte = 1_048_576

function readBodies(read: EnvironmentReader, problems: string[]): BodyLimits {
  const { process, owner, largest } = bodyMegabytes
  const all = read.integer('BODIES_IN_FLIGHT_MB', process.default, process.smallest, largest)
  const each = read.integer('BODIES_IN_FLIGHT_PER_ACCOUNT_MB', owner.default, owner.smallest, largest)
  if (each > all)
    problems.push('BODIES_IN_FLIGHT_PER_ACCOUNT_MB: must not exceed BODIES_IN_FLIGHT_MB; lower it, or raise the other')
  return { process: all * megabyte, owner: each * megabyte }
}

function readAllowedHosts(read: EnvironmentReader, problems: string[]): readonly string[] | null {
  const hosts = read.list('ALLOWED_HOSTS')
  if (hosts?.length === 0) problems.push('ALLOWED_HOSTS: is empty; list at least one host or unset it')
  // An entry that can never match would reject the clients that it was meant for.
  for (const host of hosts ?? [])
    if (!isAnsweredHost(host))
      problems.push(
        `ALLOWED_HOSTS: "${host}" is not a host name; write it as clients do, such as gateway.example.com or [::1], without scheme, port or wildcard`,
      )
  return hosts?.map(name => name.toLowerCase()) ?? null
}

const shortestMetricsToken = 16

function readMetricsToken(read: EnvironmentReader, problems: string[]): string | null {
  const token = read.secret('METRICS_TOKEN')
  if (token !== null && !new RegExp(`^[\\x21-\\x7e]{${shortestMetricsToken},512}$`).test(token))
    problems.push(
      `METRICS_TOKEN: must be ${shortestMetricsToken} to 512 visible ASCII characters (openssl rand -base64 24)`,
    )
  return token
}

/** Set by the supervisor for each worker. */
const workerVariable = 'GATEWAY_WORKER'

/** Returns the environment of a worker: the supervisor's, plus its number and the shared port. */
export function workerEnvironment(worker: number, port: number): Environment {
  return { ...process.env, [workerVariable]: String(worker), PORT: String(port) }
}

function getPrices({ web }: ConfigFile): WebPrices {
  return {
    search: web.search_usd === undefined ? webPrices.search : fromUsd(web.search_usd),
    fetch: web.fetch_usd === undefined ? webPrices.fetch : fromUsd(web.fetch_usd),
  }
}
