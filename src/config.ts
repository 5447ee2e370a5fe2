/**
 * The only reader of the environment. Every variable stands here once, with its default and its reason; a wrong start is
 * answered with the whole list of what is wrong, so that nobody mends it one restart at a time.
 */
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { autoModel, configuredModelSchema } from './core/models.ts'

export type Environment = Readonly<Record<string, string | undefined>>

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
  readonly extraModels: readonly { readonly provider: string; readonly row: Static<typeof configuredModelSchema> }[]
  /** Null = payments are agreed upon by hand. */
  readonly stripe: StripeConfig | null
  readonly defaultMaxOutputTokens: number
  readonly deadlines: Deadlines
  /** How long running streams may go on after SIGTERM. */
  readonly drainMs: number
  /** How long new connections are still accepted after SIGTERM, so that a balancer can notice. */
  readonly drainNoticeMs: number
  readonly allowedHosts: readonly string[] | null
  readonly isTrustedProxy: (address: string) => boolean
  readonly logLevel: LogLevel
  readonly warnings: readonly string[]
}

export type StripeConfig = {
  readonly secretKey: string
  /** One, or two while one is being replaced. */
  readonly webhookSecrets: readonly string[]
  /** Null = Stripe's own address. */
  readonly apiBase: string | null
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

/** GATEWAY_CONFIG: OpenAI-compatible providers next to the three built in. */
const fileSchema = Type.Object(
  {
    providers: Type.Optional(
      Type.Array(
        Type.Object(
          {
            id: Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }),
            base_url: Type.String({ minLength: 8, maxLength: 2048 }),
            /** Name of the environment variable that holds the key; absent = no key is sent. */
            api_key_env: Type.Optional(Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' })),
            models: Type.Array(configuredModelSchema, { minItems: 1, maxItems: 256 }),
          },
          { additionalProperties: false },
        ),
        { maxItems: 64 },
      ),
    ),
  },
  { additionalProperties: false },
)

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
  const config = storeConfig(reader(environment, problems))
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function storeConfig(read: Reader): StoreConfig {
  return {
    dataDirectory: read.text('GATEWAY_DATA_DIR') ?? './.data',
    databaseUrl: read.url('DATABASE_URL', ['postgres:', 'postgresql:']),
  }
}

/**
 * Reads the configuration from an environment, `process.env` as a rule. Throws `ConfigError` with every problem found.
 */
export function readConfig(environment: Environment = process.env): Config {
  const problems: string[] = []
  const warnings: string[] = []
  const read = reader(environment, problems)

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
  const { settings, models } = readProviders(read, problems)

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
    stripe: readStripe(read, problems),
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
    allowedHosts: read.list('ALLOWED_HOSTS')?.map(name => name.toLowerCase()) ?? null,
    isTrustedProxy: trustedProxies(read.list('TRUSTED_PROXIES') ?? [], problems),
    logLevel: read.oneOf('LOG_LEVEL', logLevels, 'info'),
    warnings,
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
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

/** Set by the parent of several processes, for each of them. */
const workerVariable = 'GATEWAY_WORKER'

/** What a worker is started with: all that its parent was, its number, and the port that they share. */
export function workerEnvironment(worker: number, port: number): Environment {
  return { ...process.env, [workerVariable]: String(worker), PORT: String(port) }
}

function readProviders(read: Reader, problems: string[]) {
  const settings: ProviderSettings[] = []
  const models: { provider: string; row: Static<typeof configuredModelSchema> }[] = []
  for (const provider of builtIn) {
    const apiKey = read.secret(provider.key)
    const baseUrl = read.baseUrl(provider.base) ?? provider.url
    if (apiKey !== null) settings.push({ id: provider.id, format: provider.id, baseUrl, apiKey })
  }
  const file = readConfigFile(read.text('GATEWAY_CONFIG'), problems)
  for (const provider of file.providers ?? []) {
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
  return { settings, models }
}

/** A name that two models of a provider have would always mean the first; the one of auto-routing would never mean either. */
function nameProblems(models: readonly Static<typeof configuredModelSchema>[]): readonly string[] {
  const names = models.flatMap(({ id, aliases = [] }) => [id, ...aliases]).map(name => name.toLowerCase())
  const twice = names.filter((name, at) => names.indexOf(name) !== at)
  return [
    ...[...new Set(twice)].map(name => `two models are named "${name}"; choose another name for one`),
    ...(names.includes(autoModel) ? [`a model is named "${autoModel}", which means auto-routing; choose another`] : []),
  ]
}

function readConfigFile(path: string | null, problems: string[]): Static<typeof fileSchema> {
  if (path === null) return {}
  try {
    return checkedFile(JSON.parse(readFileSync(path, 'utf8')), fileSchema, problems)
  } catch (cause) {
    problems.push(`GATEWAY_CONFIG: cannot read ${path} as JSON (${cause instanceof Error ? cause.message : 'unknown'})`)
    return {}
  }
}

function checkedFile<S extends TSchema>(
  value: unknown,
  schema: S,
  problems: string[],
): Static<S> | Record<string, never> {
  if (Value.Check(schema, value)) return value
  for (const error of [...Value.Errors(schema, value)].slice(0, 16))
    problems.push(`GATEWAY_CONFIG: ${error.path.slice(1).replaceAll('/', '.') || 'the file'}: ${error.message}`)
  return {}
}

type Reader = ReturnType<typeof reader>

function reader(environment: Environment, problems: string[]) {
  const text = (name: string): string | null => environment[name]?.trim() || null
  return {
    text,
    /** A secret, from `NAME_FILE` before `NAME`: a mounted file is safer than an environment that every child inherits. */
    secret(name: string): string | null {
      const path = text(`${name}_FILE`)
      if (path === null) return text(name)
      try {
        return readFileSync(path, 'utf8').trim() || null
      } catch {
        problems.push(`${name}_FILE: cannot read ${path}`)
        return null
      }
    },
    integer(name: string, fallback: number, minimum: number, maximum: number): number {
      const raw = text(name)
      if (raw === null) return fallback
      const value = Number(raw)
      if (/^\d+$/.test(raw) && value >= minimum && value <= maximum) return value
      problems.push(`${name}: must be a whole number from ${minimum} to ${maximum}`)
      return fallback
    },
    oneOf<const T extends string>(name: string, choices: readonly T[], fallback: T): T {
      const raw = text(name)?.toLowerCase() ?? fallback
      const choice = choices.find(candidate => candidate === raw)
      if (choice !== undefined) return choice
      problems.push(`${name}: must be one of ${choices.join(', ')}`)
      return fallback
    },
    list(name: string): readonly string[] | null {
      const raw = text(name)
      return raw === null
        ? null
        : raw
            .split(',')
            .map(item => item.trim())
            .filter(item => item !== '')
    },
    url(name: string, protocols: readonly string[]): string | null {
      const raw = this.secret(name)
      if (raw === null) return null
      if (URL.canParse(raw) && protocols.includes(new URL(raw).protocol)) return raw
      problems.push(`${name}: must be a ${protocols.map(protocol => `${protocol}//`).join(' or ')} address`)
      return null
    },
    baseUrl(name: string): string | null {
      const raw = text(name)
      if (raw === null) return null
      const problem = baseUrlProblem(raw)
      if (problem !== null) problems.push(`${name}: ${problem}`)
      return withoutTrailingSlash(raw)
    },
  }
}

/** Keys travel to these addresses: https, or plain http where nothing leaves the machine or the private network. */
function baseUrlProblem(raw: string): string | null {
  if (!URL.canParse(raw)) return 'must be an http(s) address'
  const url = new URL(raw)
  if (url.username !== '' || url.password !== '') return 'must not hold credentials'
  if (url.protocol === 'https:') return null
  if (url.protocol !== 'http:') return 'must be an http(s) address'
  return isPrivateHost(url.hostname) ? null : 'must be https; plain http is taken only on loopback or private networks'
}

function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (isIP(host) !== 0) return privateNetworks().check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
  // A single label or a private suffix is what container networks call their neighbours.
  return host === 'localhost' || !host.includes('.') || /\.(localhost|local|internal|home\.arpa)$/.test(host)
}

function privateNetworks(): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of [
    ['127.0.0.0', 8],
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
  ] as const)
    list.addSubnet(network, prefix, 'ipv4')
  list.addAddress('::1', 'ipv6')
  list.addSubnet('fc00::', 7, 'ipv6')
  return list
}

function trustedProxies(cidrs: readonly string[], problems: string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [, network = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(cidr) ?? []
    const family = isIP(network)
    const longest = family === 6 ? 128 : 32
    const prefix = bits === undefined ? longest : Number(bits)
    if (family === 0 || prefix > longest) problems.push(`TRUSTED_PROXIES: "${cidr}" is not an address or CIDR range`)
    else list.addSubnet(network, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
  if (cidrs.length === 0) return () => false
  return address => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

function withoutTrailingSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
