/** Keys of providers that are stored in the database: they join those of the environment and of the configuration file. */
import { environmentKey } from '../core/models/configured-models.ts'
import type { ConfigFile } from './config-file.ts'
import { presets } from './presets.ts'
import { builtIn, type DormantProvider, type ProviderSettings } from './providers.ts'

/** A stored key; `apiKey` null = it was sealed under another secret, and nothing can be called with it. */
export type StoredKey = {
  readonly id: string
  readonly provider: string
  readonly name: string
  readonly apiKey: string | null
}

/**
 * Whose keys of providers may be added in the gateway: none; the operator's; those of all accounts for providers at their
 * public address; those of all accounts for any provider with a key.
 */
export const storedKeysSettings = ['off', 'operator', 'on', 'anywhere'] as const
export type StoredKeysSetting = (typeof storedKeysSettings)[number]

type CompletedConfig = {
  readonly providers: readonly ProviderSettings[]
  readonly dormantProviders: readonly DormantProvider[]
  readonly extraModels: DormantProvider['models']
}

/**
 * Returns the configuration with stored keys. A provider that lacked only a key is served with its models; it stays there
 * while its keys cannot be read, so that no request is answered by a simulation.
 */
export function withStoredKeys<C extends CompletedConfig>(config: C, keys: readonly StoredKey[]): C {
  if (keys.length === 0) return config
  const byProvider = Map.groupBy(keys, ({ provider }) => provider)
  const woken = config.dormantProviders.filter(({ settings }) => byProvider.has(settings.id))
  return {
    ...config,
    providers: [...config.providers, ...woken.map(({ settings }) => settings)].map(settings =>
      withKeys(settings, byProvider.get(settings.id) ?? []),
    ),
    extraModels: [...config.extraModels, ...woken.flatMap(({ models }) => models)],
  }
}

function withKeys(settings: ProviderSettings, stored: readonly StoredKey[]): ProviderSettings {
  if (stored.length === 0 || settings.cloud?.credentials != null) return settings
  const usual = { weight: 1, models: null }
  const { apiKey, pool } = settings
  const own =
    pool?.keys ?? (apiKey === null ? [] : [{ name: environmentKey, apiKey, account: `:${environmentKey}`, ...usual }])
  const added = stored.flatMap(({ id, name, apiKey: key }) =>
    // The account of a key in the file is a name or begins with ":".
    key === null ? [] : [{ name, apiKey: key, account: `=${id}`, ...usual }],
  )
  const keys = [...own, ...added]
  return { ...settings, apiKey: keys[0]?.apiKey ?? null, pool: { keys, quotas: pool?.quotas ?? new Map() } }
}

/** How a provider gets its key. */
export type KnownProvider = {
  readonly id: string
  /** Variable of its key; null = the configuration file names its keys, or it needs none. */
  readonly variable: string | null
  /** Variable of its base URL; null = the configuration file states it. */
  readonly baseVariable: string | null
  /** It is a server of the operator: its address is required, and its key is not. */
  readonly isLocal: boolean
  /** Its public address; null = it has none. */
  readonly url: string | null
}

/** Returns every provider that can have a key: built-in ones, presets, and those of the file. */
export function knownProviders(file: ConfigFile): readonly KnownProvider[] {
  const named = [...builtIn, ...presets]
  return [
    ...named.map(({ id, key, base, url }) => ({ id, variable: key, baseVariable: base, isLocal: url === null, url })),
    ...file.providers
      .filter(({ id }) => !named.some(other => other.id === id))
      // Others on a cloud have credentials of their own kind.
      .filter(({ type, api_key_env: key, keys }) => type === undefined || key !== undefined || keys !== undefined)
      .map(({ id, api_key_env: variable = null }) => ({ id, variable, baseVariable: null, isLocal: false, url: null })),
  ]
}
