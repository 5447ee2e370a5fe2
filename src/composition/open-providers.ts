import type { KeyPoolSettings } from '../config/key-pools.ts'
import type { ProviderSettings } from '../config/providers.ts'
import type { Config } from '../config.ts'
import type { Script } from '../core/limits/script.ts'
import type { Clock } from '../core/ports/clock.ts'
import { anthropic } from '../providers/anthropic.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { EmbeddingsAdapter } from '../providers/embeddings.ts'
import { googleEmbeddings } from '../providers/google/embeddings.ts'
import { google } from '../providers/google.ts'
import { LocalCapacity } from '../providers/keys/local-capacity.ts'
import { type KeyPoolContents, OwnKeyPool } from '../providers/keys/own-key-pool.ts'
import { RedisCapacity } from '../providers/keys/redis-capacity.ts'
import { openaiEmbeddings } from '../providers/openai/embeddings.ts'
import { openai } from '../providers/openai.ts'
import type { Access, Provider } from '../providers/provider.ts'
import { startSimulator } from '../simulator/simulator.ts'

const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<ProviderSettings['format'], Provider>

const embeddings: Readonly<Partial<Record<ProviderSettings['format'], EmbeddingsAdapter>>> = {
  openai: openaiEmbeddings(true),
  compatible: openaiEmbeddings(false),
  google: googleEmbeddings,
}

/** Connection to Redis, if it is configured. */
type Shared = { evaluate(script: Script, keys: readonly string[], values: readonly string[]): Promise<unknown> }

type Parts = { readonly clock: Clock; readonly shared: Shared | null; readonly processes: number }

/** Changed only by a reload. */
type OpenProvider = {
  endpoint: { -readonly [Field in keyof ConfiguredProvider]: ConfiguredProvider[Field] }
  pool: OwnKeyPool | null
}

/** Opens the configured providers, or three simulated providers if no provider is configured. */
export async function openProviders(config: Config, clock: Clock, shared: Shared | null = null) {
  const parts = { clock, shared: config.redisUrls.length === 0 ? null : shared, processes: config.processes }
  const opened = new Map<string, OpenProvider>()
  const endpoints = new Map<string, ConfiguredProvider>()
  const add = (settings: ProviderSettings, simulated: boolean) => {
    const { id, format } = settings
    const access = accessOf(settings)
    const endpoint = { id, provider: formats[format], access, simulated, ...embeddingsOf(format) }
    const provider = { endpoint, pool: null }
    setCredentials(provider, settings, parts)
    opened.set(id, provider)
    endpoints.set(id, endpoint)
  }
  for (const settings of config.providers) add(settings, false)
  /** Replaces the credentials of these providers. Running attempts keep theirs. */
  const replaceCredentials = (providers: readonly ProviderSettings[]) => {
    for (const settings of providers) {
      const provider = opened.get(settings.id)
      if (provider !== undefined) setCredentials(provider, settings, parts)
    }
  }
  if (endpoints.size > 0) return { endpoints, replaceCredentials, simulator: null }
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, replaceCredentials, simulator }
}

function accessOf({ baseUrl, apiKey, extraFields }: ProviderSettings): Access {
  return { baseUrl, apiKey, ...(extraFields === undefined ? {} : { extraFields }) }
}

/** Sets the credentials of a provider. An existing pool keeps what it counted. */
function setCredentials(provider: OpenProvider, settings: ProviderSettings, parts: Parts): void {
  const { endpoint } = provider
  const { id, pool } = settings
  endpoint.access = accessOf(settings)
  if (pool === undefined) {
    provider.pool = null
    delete endpoint.keys
    return
  }
  const contents = toPoolContents(pool, endpoint.access)
  if (provider.pool === null) provider.pool = openKeyPool(id, contents, parts)
  else provider.pool.replace(contents)
  endpoint.keys = provider.pool
}

/** Without figures there is nothing to share: each process learns of a 429 by its own next request. */
function openKeyPool(poolId: string, contents: KeyPoolContents, { clock, shared, processes }: Parts): OwnKeyPool {
  const deps = { clock, random: Math.random }
  const capacity =
    shared === null || contents.quotas.size === 0
      ? new LocalCapacity(deps, { processes: () => processes })
      : new RedisCapacity({ ...deps, redis: shared, instanceId: Bun.randomUUIDv7(), poolId })
  return new OwnKeyPool(contents, { clock, capacity })
}

function toPoolContents({ keys, quotas }: KeyPoolSettings, access: Access): KeyPoolContents {
  return {
    quotas,
    keys: keys.map(({ apiKey, models, ...key }) => ({
      ...key,
      access: { ...access, apiKey },
      models: models === null ? null : new Set(models),
    })),
  }
}

function embeddingsOf(format: ProviderSettings['format']): Pick<ConfiguredProvider, 'embeddings'> {
  const adapter = embeddings[format]
  return adapter === undefined ? {} : { embeddings: adapter }
}
