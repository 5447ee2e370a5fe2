import type { CloudCredentials, CloudSettings, CloudType } from '../config/clouds.ts'
import type { Config } from '../config/config.ts'
import type { KeyPoolSettings } from '../config/key-pools.ts'
import type { ProviderSettings } from '../config/providers.ts'
import type { Clock, Network } from '../core/ports.ts'
import { awsAuthorizer } from '../credentials/aws.ts'
import { type CredentialDeps, entraAuthorizer, serviceAccountAuthorizer } from '../credentials/credential-cache.ts'
import { toReceiver } from '../models/receivers.ts'
import { anthropic } from '../providers/anthropic.ts'
import { azure } from '../providers/azure.ts'
import { bedrock } from '../providers/bedrock.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { google } from '../providers/google.ts'
import { KeyPool, type KeyPoolContents } from '../providers/keys/key-pool.ts'
import { openai } from '../providers/openai.ts'
import type { Access, Authorizer, Provider } from '../providers/provider.ts'
import { vertex } from '../providers/vertex.ts'

type PlainFormat = Exclude<ProviderSettings['format'], CloudType>

export const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<PlainFormat, Provider>

type Process = { readonly clock: Clock; readonly network: Network }

type Parts = Process & Pick<Config, 'processes'>

/** Changed only by a reload. */
type OpenProvider = {
  endpoint: { -readonly [Field in keyof ConfiguredProvider]: ConfiguredProvider[Field] }
  /** Where it is and what it speaks. */
  readonly place: string
  pool: KeyPool | null
}

/** Opens the configured providers, or three simulated providers if no provider is configured. */
export async function openProviders(config: Config, { clock, network }: Process) {
  const parts = { clock, network, processes: config.processes }
  const opened = new Map<string, OpenProvider>()
  const endpoints = new Map<string, ConfiguredProvider>()
  const add = (settings: ProviderSettings, simulated: boolean) => {
    const { id } = settings
    const endpoint = {
      id,
      provider: getAdapter(settings),
      access: getAccess(settings, parts),
      simulated,
      receiver: toReceiver(settings, simulated),
      loadsModels: settings.discovers === true,
    }
    const provider = { endpoint, place: getPlace(settings), pool: null }
    setCredentials(provider, settings, parts)
    opened.set(id, provider)
    endpoints.set(id, endpoint)
  }
  for (const settings of config.providers) add(settings, false)
  /**
   * Replaces the providers by those of another configuration: adds, moves and removes them, and replaces credentials.
   * Running attempts keep theirs. The first real provider ends the simulation, which only a start begins: a gateway that
   * lost its last key answers no request.
   */
  const replaceProviders = (providers: readonly ProviderSettings[]): void => {
    if (providers.length === 0 && isSimulated(endpoints)) return
    for (const [id, { simulated }] of endpoints)
      if (simulated) {
        opened.delete(id)
        endpoints.delete(id)
      }
    for (const settings of providers) {
      const provider = opened.get(settings.id)
      // At another address the counts of a key pool mean nothing.
      if (provider === undefined || provider.place !== getPlace(settings)) add(settings, false)
      else setCredentials(provider, settings, parts)
    }
    for (const id of opened.keys())
      if (providers.every(other => other.id !== id)) {
        opened.delete(id)
        endpoints.delete(id)
      }
  }
  if (endpoints.size > 0) return { endpoints, replaceProviders, simulator: null }
  const { startSimulator } = await import('../simulator/simulator.ts')
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, replaceProviders, simulator }
}

/** Returns whether the providers are simulated. */
export function isSimulated(endpoints: ReadonlyMap<string, Pick<ConfiguredProvider, 'simulated'>>): boolean {
  return endpoints.values().some(({ simulated }) => simulated)
}

function getAccess({ baseUrl, apiKey, extraFields, dialect, cloud }: ProviderSettings, process: Process): Access {
  const credentials = cloud?.credentials ?? null
  return {
    baseUrl,
    apiKey,
    ...(extraFields === undefined ? {} : { extraFields }),
    ...(dialect === undefined ? {} : { dialect }),
    ...(credentials === null ? {} : { authorizer: openAuthorizer(process, credentials) }),
  }
}

function getPlace({ format, baseUrl, cloud }: ProviderSettings): string {
  return JSON.stringify([format, baseUrl, cloud?.apiVersion ?? null])
}

/** Sets the credentials of a provider. An existing pool keeps what it counted. */
function setCredentials(provider: OpenProvider, settings: ProviderSettings, parts: Parts): void {
  const { endpoint } = provider
  const { pool } = settings
  endpoint.access = getAccess(settings, parts)
  endpoint.receiver = toReceiver(settings, endpoint.simulated)
  if (pool === undefined) {
    provider.pool = null
    delete endpoint.keys
    return
  }
  const contents = toPoolContents(pool, endpoint.access, parts)
  if (provider.pool === null) provider.pool = new KeyPool(contents, parts.clock)
  else provider.pool.replace(contents)
  endpoint.keys = provider.pool
}

/** The processes of one gateway do not know each other's use, so they divide each quota. */
function toPoolContents({ keys, quotas }: KeyPoolSettings, access: Access, { processes }: Parts): KeyPoolContents {
  const findShare = (rate: number | null) => (rate === null ? null : rate / processes)
  return {
    quotas: new Map(
      [...quotas].map(([account, { requests, tokens }]) => [
        account,
        { requests: findShare(requests), tokens: findShare(tokens) },
      ]),
    ),
    keys: keys.map(({ apiKey, models, ...key }) => ({
      ...key,
      access: { ...access, apiKey },
      models: models === null ? null : new Set(models),
    })),
  }
}

function getAdapter({ format, cloud }: ProviderSettings): Provider {
  return isCloud(format) ? cloudAdapter(format, cloud ?? { apiVersion: null }) : formats[format]
}

function isCloud(format: ProviderSettings['format']): format is CloudType {
  return !Object.hasOwn(formats, format)
}

/** Returns the adapter of a cloud. */
function cloudAdapter(type: CloudType, { apiVersion }: Pick<CloudSettings, 'apiVersion'>): Provider {
  switch (type) {
    case 'azure':
      return azure({ apiVersion })
    case 'bedrock':
      return bedrock
    case 'vertex':
      return vertex
  }
}

/** Creates the authorizer of a provider. */
function openAuthorizer(deps: CredentialDeps, credentials: CloudCredentials): Authorizer {
  switch (credentials.kind) {
    case 'entra':
      return entraAuthorizer(deps, credentials.entra)
    case 'aws':
      return awsAuthorizer(deps, credentials.aws, { region: credentials.region, service: 'bedrock' })
    case 'service_account':
      return serviceAccountAuthorizer(deps, credentials.account)
  }
}
