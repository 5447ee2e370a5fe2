/**
 * The only reader of the environment. Every variable stands here once, with its default and its reason; a wrong start is
 * answered with the whole list of what is wrong, so that nobody mends it one restart at a time.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import {
  baseUrlProblem,
  isAnsweredHost,
  isListenAddress,
  isPrivateHost,
  trustedProxies,
  withoutTrailingSlash,
} from './config/addresses.ts'
import { type ConfigFile, readConfigFile } from './config/config-file.ts'
import { type Environment, environmentReader, type Reader } from './config/environment.ts'
import { catalogue } from './core/catalogue.ts'
import {
  type ConfiguredModel,
  changeProblems,
  type ModelChange,
  toModel,
  withChanges,
} from './core/configured-models.ts'
import { type LevelShares, sharesOf, usualShares } from './core/levels.ts'
import { autoModel, buildCatalogue, fullName } from './core/models.ts'
import { fromUsd } from './core/money.ts'
import { type Plans, plansWith } from './core/plans.ts'
import { type WebPrices, webPrices } from './core/web.ts'
import { type SafetySettings, safetySettings } from './safety/settings.ts'

export type { Environment } from './config/environment.ts'

export type ProviderSettings = {
  readonly id: string
  readonly format: 'openai' | 'anthropic' | 'google' | 'compatible'
  readonly baseUrl: string
  readonly apiKey: string | null
}

/** Milliseconds, one for each way an upstream can keep a caller waiting (`contract.md` section 5). */
export type Deadlines = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly silenceMs: number
  readonly firstContentMs: number
  /** First content, where the caller asked for high reasoning effort. */
  readonly firstContentReasoningMs: number
  readonly totalMs: number
}

export type Config = {
  readonly port: number
  readonly host: string
  /** What the gateways of one start share: the embedded database, the session secret. */
  readonly dataDirectory: string
  /** This process's own: journal and checkpoints, which no two gateways may write. */
  readonly ownDirectory: string
  /** Processes on the port; 1 = this one serves. */
  readonly workers: number
  /** Which of them this one is, from 1; null = it was started by the operator. */
  readonly worker: number | null
  /** null = embedded. */
  readonly databaseUrl: string | null
  /** Empty = limits are kept in process. */
  readonly redisUrls: readonly string[]
  /** null only in embedded mode, which makes one and keeps it in the data folder. */
  readonly jwtSecret: string | null
  readonly jwtSecretPrevious: string | null
  /** Empty = the three providers are simulated. */
  readonly providers: readonly ProviderSettings[]
  readonly extraModels: readonly { readonly provider: string; readonly row: ConfiguredModel }[]
  /** What the operator would have different in the catalogue, and adds to it. */
  readonly modelChanges: readonly ModelChange[]
  readonly plans: Plans
  readonly web: WebConfig
  readonly safety: SafetySettings
  /** `provider/model` of the model that rewrites prompts; null = rules alone do. */
  readonly rewriter: string | null
  /** Shares of requests that auto-routing is to send to stronger models. */
  readonly routing: LevelShares
  /** Null = payments are agreed upon by hand. */
  readonly stripe: StripeConfig | null
  /** Null = no mail is sent. */
  readonly mail: MailConfig | null
  readonly defaultMaxOutputTokens: number
  readonly deadlines: Deadlines
  /** How long running streams may go on after SIGTERM. */
  readonly drainMs: number
  /** How long new connections are still accepted after SIGTERM, so that a balancer can notice. */
  readonly drainNoticeMs: number
  readonly allowedHosts: readonly string[] | null
  readonly isTrustedProxy: (address: string) => boolean
  readonly logLevel: LogLevel
  /** For `/metrics` from elsewhere; null = from this machine only. */
  readonly metricsToken: string | null
  /** Null = no telemetry leaves this process but through `/metrics` and the log. */
  readonly otlp: OtlpConfig | null
  readonly warnings: readonly string[]
}

export type WebConfig = {
  /** In the order in which they are asked; none at all beside simulated providers: simulated. */
  readonly search: readonly SearchSettings[]
  readonly prices: WebPrices
}

export type SearchSettings =
  | { readonly id: 'searxng'; readonly baseUrl: string }
  | { readonly id: 'brave' | 'tavily'; readonly baseUrl: string | null; readonly apiKey: string }

export type MailConfig = {
  readonly smtpUrl: string
  readonly from: string
  /** Where people find this gateway; no slash at its end. */
  readonly publicUrl: string
  /** Credentials would leave the private network. */
  readonly requireTls: boolean
}

export type StripeConfig = {
  readonly secretKey: string
  /** One, or two while one is being replaced. */
  readonly webhookSecrets: readonly string[]
  /** Null = Stripe's own address. */
  readonly apiBase: string | null
}

export type OtlpConfig = {
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  /** Share of requests that are traced, 0–1. */
  readonly sampleRatio: number
  readonly metricsEveryMs: number
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** All that is wrong with a configuration, one line each. */
export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

const builtIn = [
  { id: 'openai', key: 'OPENAI_API_KEY', base: 'OPENAI_BASE_URL', url: 'https://api.openai.com/v1' },
  { id: 'anthropic', key: 'ANTHROPIC_API_KEY', base: 'ANTHROPIC_BASE_URL', url: 'https://api.anthropic.com' },
  { id: 'google', key: 'GEMINI_API_KEY', base: 'GEMINI_BASE_URL', url: 'https://generativelanguage.googleapis.com' },
] as const

const minute = 60_000

/** Bun's own bound on `fetch` calls at a time is 256: the next waits in silence, whatever host it is for. */
const fewUpstreamCalls = 1_024
const bunsUpstreamCalls = 256

/** Where the data is: all of the configuration that a command on accounts and keys needs. */
export type StoreConfig = Pick<Config, 'dataDirectory' | 'databaseUrl'>

/** Reads only that, so that a wrong port does not stand in the way of revoking a key. Throws `ConfigError`. */
export function readStoreConfig(environment: Environment = process.env): StoreConfig {
  const problems: string[] = []
  const config = storeConfig(environmentReader(environment, problems))
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function storeConfig(read: Reader): StoreConfig {
  return {
    dataDirectory: read.text('GATEWAY_DATA_DIR') ?? './.data',
    databaseUrl: read.url('DATABASE_URL', ['postgres:', 'postgresql:']),
  }
}

/** Reads only the plans, for commands that show what they give. Throws `ConfigError`. */
export function readPlans(environment: Environment = process.env): Plans {
  const problems: string[] = []
  const { plans } = readConfigFile(environmentReader(environment, problems).text('GATEWAY_CONFIG'), problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return plansWith(plans)
}

/**
 * Reads the configuration from an environment, `process.env` as a rule. Throws `ConfigError` with every problem found.
 */
export function readConfig(environment: Environment = process.env): Config {
  const problems: string[] = []
  const warnings: string[] = []
  const read = environmentReader(environment, problems)

  const { dataDirectory, databaseUrl } = storeConfig(read)
  const redisUrl = read.secret('REDIS_URL')
  const jwtSecret = read.secret('JWT_SECRET')
  const jwtSecretPrevious = read.secret('JWT_SECRET_PREVIOUS')
  if (databaseUrl !== null && jwtSecret === null)
    problems.push(
      'JWT_SECRET: needed beside DATABASE_URL; set it to at least 32 random bytes (openssl rand -base64 48)',
    )
  for (const [name, secret] of [
    ['JWT_SECRET', jwtSecret],
    ['JWT_SECRET_PREVIOUS', jwtSecretPrevious],
  ] as const)
    if (secret !== null && Buffer.byteLength(secret) < 32) problems.push(`${name}: must be at least 32 bytes long`)

  const wanted = read.text('WORKERS') ?? '1'
  if (wanted !== 'auto' && !/^[1-9]\d{0,2}$/.test(wanted)) problems.push('WORKERS: must be a count or "auto"')
  else if (wanted !== '1' && redisUrl === null)
    problems.push('WORKERS: several processes share their limits through Redis; set REDIS_URL or take WORKERS out')
  const worker = read.text(workerVariable) === null ? null : read.integer(workerVariable, 1, 1, 999)
  const redisUrls = redisUrl?.split(',').map(url => url.trim()) ?? []
  if (!redisUrls.every(url => /^rediss?:\/\//.test(url) && URL.canParse(url)))
    problems.push(
      'REDIS_URL: must be a redis:// or rediss:// address, or the addresses of a cluster’s nodes separated by commas',
    )
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY'])
    if (environment[name]) warnings.push(`${name} is set: calls to providers will go through that proxy`)

  const upstreamCalls = read.integer('BUN_CONFIG_MAX_HTTP_REQUESTS', bunsUpstreamCalls, 1, 65_535)
  if (upstreamCalls < fewUpstreamCalls)
    warnings.push(
      `BUN_CONFIG_MAX_HTTP_REQUESTS: only ${upstreamCalls} upstream calls at a time, the rest wait; set it to 8192, as \`bun run start\` does`,
    )

  const host = read.text('HOST') ?? '127.0.0.1'
  if (!isListenAddress(host))
    problems.push('HOST: must be an address or a name, such as 0.0.0.0, without scheme, port or brackets')
  const file = readConfigFile(read.text('GATEWAY_CONFIG'), problems)
  const { settings, models } = readProviders(read, file, problems, warnings)
  for (const problem of changeProblems(catalogue, file.models)) problems.push(`GATEWAY_CONFIG: ${problem}`)
  for (const { id } of builtIn)
    for (const name of nameProblems(withChanges(catalogue, file.models).filter(model => model.provider === id)))
      problems.push(`GATEWAY_CONFIG: models: provider "${id}": ${name}`)

  const config: Config = {
    port: read.integer('PORT', 3000, 0, 65_535),
    host,
    dataDirectory,
    ownDirectory: worker === null ? dataDirectory : join(dataDirectory, `worker-${worker}`),
    workers: worker !== null ? 1 : wanted === 'auto' ? availableParallelism() : Number(wanted),
    worker,
    databaseUrl,
    redisUrls,
    jwtSecret,
    jwtSecretPrevious,
    providers: settings,
    extraModels: models,
    modelChanges: file.models,
    plans: plansWith(file.plans),
    web: { search: readSearch(read), prices: pricesOf(file) },
    safety: safetySettings(file.safety, { secret: read.secret, urlProblem: baseUrlProblem }, problems),
    rewriter: rewriterOf(file, settings, models, problems),
    routing: readShares(file, problems),
    stripe: readStripe(read, problems),
    mail: readMail(read, problems, warnings),
    defaultMaxOutputTokens: read.integer('DEFAULT_MAX_OUTPUT_TOKENS', 16_384, 1, 1_000_000),
    deadlines: {
      connectMs: read.integer('CONNECT_TIMEOUT_MS', 3_000, 1, minute),
      firstByteMs: read.integer('FIRST_BYTE_TIMEOUT_MS', 30_000, 1, 30 * minute),
      silenceMs: read.integer('SILENCE_TIMEOUT_MS', minute, 1, 30 * minute),
      firstContentMs: read.integer('FIRST_CONTENT_TIMEOUT_MS', 2 * minute, 1, 30 * minute),
      firstContentReasoningMs: read.integer('FIRST_CONTENT_REASONING_TIMEOUT_MS', 5 * minute, 1, 30 * minute),
      totalMs: read.integer('TOTAL_TIMEOUT_MS', 10 * minute, 1, 60 * minute),
    },
    drainMs: read.integer('DRAIN_TIMEOUT_MS', 30_000, 0, 10 * minute),
    drainNoticeMs: read.integer('DRAIN_NOTICE_MS', 3_000, 0, minute),
    allowedHosts: readAllowedHosts(read, problems),
    isTrustedProxy: trustedProxies(read.list('TRUSTED_PROXIES') ?? [], problems),
    logLevel: read.oneOf('LOG_LEVEL', logLevels, 'info'),
    metricsToken: readMetricsToken(read, problems),
    otlp: readOtlp(read, problems),
    warnings,
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function readShares({ routing }: ConfigFile, problems: string[]): LevelShares {
  const shares = sharesOf(routing)
  if (shares === null)
    problems.push('GATEWAY_CONFIG: routing: `strong_share` and `middle_share` must be at most 1 together')
  return shares ?? usualShares
}

function readAllowedHosts(read: Reader, problems: string[]): readonly string[] | null {
  const hosts = read.list('ALLOWED_HOSTS')
  if (hosts?.length === 0) problems.push('ALLOWED_HOSTS: names no host; name at least one, or take it out')
  // An entry that can match nothing would shut out whoever it was meant for.
  for (const host of hosts ?? [])
    if (!isAnsweredHost(host))
      problems.push(
        `ALLOWED_HOSTS: "${host}" is no host name; write it as callers do, such as gateway.example.com or [::1], without scheme, port or wildcard`,
      )
  return hosts?.map(name => name.toLowerCase()) ?? null
}

const shortestMetricsToken = 16

function readMetricsToken(read: Reader, problems: string[]): string | null {
  const token = read.secret('METRICS_TOKEN')
  if (token !== null && !new RegExp(`^[\\x21-\\x7e]{${shortestMetricsToken},512}$`).test(token))
    problems.push(
      `METRICS_TOKEN: must be ${shortestMetricsToken} to 512 visible ASCII characters (openssl rand -base64 24)`,
    )
  return token
}

/** OpenTelemetry's own variables, with their own meanings; read even without an endpoint, so that a wrong one is told. */
function readOtlp(read: Reader, problems: string[]): OtlpConfig | null {
  const endpoint = read.baseUrl('OTEL_EXPORTER_OTLP_ENDPOINT')
  const headers: Record<string, string> = {}
  for (const pair of (read.secret('OTEL_EXPORTER_OTLP_HEADERS') ?? '').split(',').filter(one => one.trim() !== '')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(pair) ?? []
    if (name === undefined || value === undefined)
      problems.push('OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs separated by commas')
    else headers[name] = value.includes('%') ? decodedOr(value) : value
  }
  const ratio = read.text('OTEL_TRACES_SAMPLER_ARG') ?? '0.1'
  if (!/^(0|1|[01]?\.\d+)$/.test(ratio) || Number(ratio) > 1)
    problems.push('OTEL_TRACES_SAMPLER_ARG: must be a share of requests from 0 to 1, such as 0.1')
  const metricsEveryMs = read.integer('OTEL_METRIC_EXPORT_INTERVAL', minute, 1_000, 60 * minute)
  return endpoint === null ? null : { endpoint, headers, sampleRatio: Number(ratio), metricsEveryMs }
}

/** The text that percent-encoding stands for; as written where it is none. */
function decodedOr(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const shortestWebhookSecret = 24

/** Without a secret to verify events by, anybody could mark an invoice paid: payments are then not to be had at all. */
function readStripe(read: Reader, problems: string[]): StripeConfig | null {
  const secretKey = read.secret('STRIPE_SECRET_KEY')
  const secret = read.secret('STRIPE_WEBHOOK_SECRET')
  const apiBase = read.baseUrl('STRIPE_API_BASE')
  if (apiBase !== null && URL.canParse(apiBase) && new URL(apiBase).pathname !== '/')
    problems.push('STRIPE_API_BASE: must be an origin, such as https://api.stripe.com, without a path')
  if (secretKey === null && secret === null) return null
  if (secretKey === null) problems.push('STRIPE_SECRET_KEY: needed beside STRIPE_WEBHOOK_SECRET')
  const webhookSecrets = (secret ?? '').split(',').map(one => one.trim())
  if (secret === null)
    problems.push(
      'STRIPE_WEBHOOK_SECRET: needed beside STRIPE_SECRET_KEY; it is the endpoint’s signing secret (whsec_…)',
    )
  else if (webhookSecrets.length > 2 || webhookSecrets.some(one => one.length < shortestWebhookSecret))
    problems.push(
      `STRIPE_WEBHOOK_SECRET: must be one secret of at least ${shortestWebhookSecret} characters, or two separated by a comma while one is replaced`,
    )
  return { secretKey: secretKey ?? '', webhookSecrets, apiBase }
}

const mailAddress = '[^\\s\\x00-\\x1f@<>,;"()]{1,64}@[^\\s\\x00-\\x1f@<>,;"()]{1,190}'
const sender = new RegExp(`^(?:${mailAddress}|[^<>@,;"\\x00-\\x1f]{1,100} <${mailAddress}>)$`)

/** Letters hold links that are as good as passwords: where they lead is the operator's word alone. */
function readMail(read: Reader, problems: string[], warnings: string[]): MailConfig | null {
  const smtpUrl = read.url('SMTP_URL', ['smtp:', 'smtps:'])
  const from = read.text('MAIL_FROM')
  const publicUrl = read.baseUrl('PUBLIC_URL')
  if (publicUrl !== null && URL.canParse(publicUrl) && new URL(publicUrl).origin !== publicUrl)
    problems.push('PUBLIC_URL: must be an origin, such as https://gateway.example.com, without a path')
  if (from !== null && !sender.test(from))
    problems.push('MAIL_FROM: must be an address, such as gateway@example.com or "Gateway <gateway@example.com>"')
  if (smtpUrl === null) {
    if (from !== null) warnings.push('MAIL_FROM is set but SMTP_URL is not: no mail is sent; set both or neither')
    return null
  }
  const { protocol, hostname, username } = new URL(smtpUrl)
  if (hostname === '') problems.push('SMTP_URL: names no host')
  if (from === null) problems.push('MAIL_FROM: needed beside SMTP_URL; it is the address that letters come from')
  if (publicUrl === null)
    problems.push('PUBLIC_URL: needed beside SMTP_URL; it is the address that links in letters lead to')
  const requireTls = protocol === 'smtp:' && username !== '' && !isPrivateHost(hostname)
  return { smtpUrl, from: from ?? '', publicUrl: publicUrl ?? '', requireTls }
}

/** Set by the parent of several processes, for each of them. */
const workerVariable = 'GATEWAY_WORKER'

/** What a worker is started with: all that its parent was, its number, and the port that they share. */
export function workerEnvironment(worker: number, port: number): Environment {
  return { ...process.env, [workerVariable]: String(worker), PORT: String(port) }
}

/** Back ends for web search, in the order in which they are asked. */
function readSearch(read: Reader): readonly SearchSettings[] {
  const settings: SearchSettings[] = []
  const searxng = read.baseUrl('SEARXNG_URL')
  if (searxng !== null) settings.push({ id: 'searxng', baseUrl: searxng })
  for (const [id, name] of [
    ['brave', 'BRAVE'],
    ['tavily', 'TAVILY'],
  ] as const) {
    const apiKey = read.secret(`${name}_API_KEY`)
    const baseUrl = read.baseUrl(`${name}_BASE_URL`)
    if (apiKey !== null) settings.push({ id, baseUrl, apiKey })
  }
  return settings
}

function pricesOf({ web }: ConfigFile): WebPrices {
  return {
    search: web.search_usd === undefined ? webPrices.search : fromUsd(web.search_usd),
    fetch: web.fetch_usd === undefined ? webPrices.fetch : fromUsd(web.fetch_usd),
  }
}

/** Without providers of its own a gateway simulates those built in, so their models are there too. */
function rewriterOf(
  { enhancement, models: changes }: ConfigFile,
  settings: readonly ProviderSettings[],
  extra: Config['extraModels'],
  problems: string[],
): string | null {
  if (enhancement.model === undefined) return null
  const ids = new Set<string>((settings.length > 0 ? settings : builtIn).map(({ id }) => id))
  const configured = extra.map(({ provider, row }) => toModel(provider, row))
  const offered = [...withChanges(catalogue, changes), ...configured].filter(({ provider }) => ids.has(provider))
  const model = buildCatalogue(offered).resolve(enhancement.model)
  if (model === null)
    problems.push('GATEWAY_CONFIG: enhancement.model: no provider configured here has a model of that name')
  return model === null ? null : fullName(model)
}

function readProviders(read: Reader, file: ConfigFile, problems: string[], warnings: string[]) {
  const settings: ProviderSettings[] = []
  const models: { provider: string; row: ConfiguredModel }[] = []
  for (const provider of builtIn) {
    const apiKey = read.secret(provider.key)
    const baseUrl = read.baseUrl(provider.base)
    if (apiKey !== null)
      settings.push({ id: provider.id, format: provider.id, baseUrl: baseUrl ?? provider.url, apiKey })
    else if (baseUrl !== null)
      warnings.push(
        `${provider.base} is set but ${provider.key} is not: ${provider.id} is not asked; set both or neither`,
      )
  }
  for (const provider of file.providers) {
    if (settings.some(other => other.id === provider.id) || builtIn.some(other => other.id === provider.id))
      problems.push(`GATEWAY_CONFIG: provider id "${provider.id}" is taken; choose another`)
    for (const name of nameProblems(provider.models))
      problems.push(`GATEWAY_CONFIG: provider "${provider.id}": ${name}`)
    const apiKey = provider.api_key_env === undefined ? null : read.secret(provider.api_key_env)
    if (provider.api_key_env !== undefined && apiKey === null)
      problems.push(`GATEWAY_CONFIG: provider "${provider.id}" names ${provider.api_key_env}, which is not set`)
    const problem = baseUrlProblem(provider.base_url)
    if (problem !== null) problems.push(`GATEWAY_CONFIG: provider "${provider.id}": base_url ${problem}`)
    settings.push({ id: provider.id, format: 'compatible', baseUrl: withoutTrailingSlash(provider.base_url), apiKey })
    for (const row of provider.models) models.push({ provider: provider.id, row })
  }
  const safety = safetySettings(file.safety, { secret: read.secret, urlProblem: baseUrlProblem }, problems)
  return { settings, models, safety }
}

/** A name that two models of a provider have would always mean the first; the one of auto-routing would never mean either. */
function nameProblems(
  models: readonly { readonly id: string; readonly aliases?: readonly string[] }[],
): readonly string[] {
  const names = models.flatMap(({ id, aliases = [] }) => [id, ...aliases]).map(name => name.toLowerCase())
  const twice = names.filter((name, at) => names.indexOf(name) !== at)
  return [
    ...[...new Set(twice)].map(name => `two models are named "${name}"; choose another name for one`),
    ...(names.includes(autoModel) ? [`a model is named "${autoModel}", which means auto-routing; choose another`] : []),
  ]
}
