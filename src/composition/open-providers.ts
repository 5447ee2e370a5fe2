import type { CloudType } from '../config/clouds.ts'
import type { KeyPoolSettings } from '../config/key-pools.ts'
import type { ProviderSettings } from '../config/providers.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Network } from '../core/ports/network.ts'
import { anthropic } from '../providers/anthropic.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { EmbeddingsAdapter } from '../providers/embeddings.ts'
import { googleEmbeddings } from '../providers/google/embeddings.ts'
import { google } from '../providers/google.ts'
import type { KeyPool } from '../providers/keys/key-pool.ts'
import { LocalCapacity } from '../providers/keys/local-capacity.ts'
import { type KeyPoolContents, OwnKeyPool } from '../providers/keys/own-key-pool.ts'
import { openaiEmbeddings } from '../providers/openai/embeddings.ts'
import { openai } from '../providers/openai.ts'
import type { Access, Provider } from '../providers/provider.ts'
import { startSimulator } from '../simulator/simulator.ts'
import { cloudAdapters, openAuthorizer } from './open-cloud.ts'

type PlainFormat = Exclude<ProviderSettings['format'], CloudType>

const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<PlainFormat, Provider>

const embeddings: Readonly<Partial<Record<PlainFormat, EmbeddingsAdapter>>> = {
  openai: openaiEmbeddings(true),
  compatible: openaiEmbeddings(false),
  google: googleEmbeddings,
}

/** Opens the configured providers, or three simulated providers if no provider is configured. */
export async function openProviders(config: Config, clock: Clock, network: Network) {
  const endpoints = new Map<string, ConfiguredProvider>()
  const add = (settings: ProviderSettings, simulated: boolean) => {
    const { id, format, pool, cloud, ...plain } = settings
    const credentials = cloud?.credentials ?? null
    const access: Access =
      credentials === null ? plain : { ...plain, authorizer: openAuthorizer({ clock, network }, credentials) }
    const keys = pool === undefined ? null : openKeyPool({ pool, access, clock })
    endpoints.set(id, { id, ...adaptersOf(settings), access, ...(keys === null ? {} : { keys }), simulated })
  }
  for (const settings of config.providers) add(settings, false)
  if (endpoints.size > 0) return { endpoints, simulator: null }
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, simulator }
}

type PoolSource = {
  readonly pool: KeyPoolSettings
  /** URL and fields that all keys share. */
  readonly access: Access
  readonly clock: Clock
}

function openKeyPool({ pool, access, clock }: PoolSource): KeyPool {
  const capacity = new LocalCapacity({ clock, random: Math.random })
  return new OwnKeyPool(toPoolContents(pool, access), { clock, capacity })
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

function adaptersOf({ format, cloud }: ProviderSettings): Pick<ConfiguredProvider, 'provider' | 'embeddings'> {
  if (isCloud(format)) return cloudAdapters(format, cloud ?? { apiVersion: null, credentials: null })
  const adapter = embeddings[format]
  return { provider: formats[format], ...(adapter === undefined ? {} : { embeddings: adapter }) }
}

function isCloud(format: ProviderSettings['format']): format is CloudType {
  return !Object.hasOwn(formats, format)
}
