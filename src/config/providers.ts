import { ownFields } from '../core/chat/provider-features.ts'
import { type ConfiguredModel, type ModelChange, toModel, withChanges } from '../core/models/configured-models.ts'
import { type ConfiguredEmbeddingModel, embeddingModelProblems } from '../core/models/embedding-models.ts'
import { autoModel, buildCatalog, type Catalog, type Model } from '../core/models/models.ts'
import type { PolicyRow } from '../core/policy/constraints.ts'
import { type ConfiguredHost, withHosts } from '../models/model-hosts.ts'
import { baseUrlProblem, isPrivateHost, withoutTrailingSlash } from './addresses.ts'
import { type CloudSettings, type CloudType, readCloud, strayCloudFields, withCloudDefaults } from './clouds.ts'
import type { ConfigFile } from './config-file.ts'
import type { EnvironmentReader } from './environment.ts'
import { type KeyPoolSettings, readKeyPool } from './key-pools.ts'
import { type Preset, presetModels, presets } from './presets.ts'

export type ProviderSettings = {
  readonly id: string
  readonly format: 'openai' | 'anthropic' | 'google' | 'compatible' | CloudType
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly extraFields?: readonly string[]
  /** Its keys; absent = `apiKey` is the only one, without figures. */
  readonly pool?: KeyPoolSettings
  /** Name of its wire-format deviations; absent = found by its host name. */
  readonly dialect?: string
  /** The gateway discovers its models: the server lists them. */
  readonly discovers?: true
  /** Absent = no cloud. */
  readonly cloud?: CloudSettings
  /** What the operator declares; absent = nothing. */
  readonly policy?: PolicyRow
}

/** Providers that only need a key. */
export const builtIn = [
  { id: 'openai', key: 'OPENAI_API_KEY', base: 'OPENAI_BASE_URL', url: 'https://api.openai.com/v1' },
  { id: 'anthropic', key: 'ANTHROPIC_API_KEY', base: 'ANTHROPIC_BASE_URL', url: 'https://api.anthropic.com' },
  { id: 'google', key: 'GEMINI_API_KEY', base: 'GEMINI_BASE_URL', url: 'https://generativelanguage.googleapis.com' },
] as const

/** A provider that lacks only a key, with the models that it then serves. */
export type DormantProvider = {
  readonly settings: ProviderSettings
  readonly models: readonly { readonly provider: string; readonly row: ConfiguredModel }[]
}

type FileProvider = ConfigFile['providers'][number]

/** Problems and warnings of the configuration, collected while it is read. */
type Findings = { readonly problems: string[]; readonly warnings: string[] }

/** Returns the built-in providers and presets that are configured, and the providers of the file, with their models. */
export function readProviders(read: EnvironmentReader, file: ConfigFile, problems: string[], warnings: string[]) {
  const findings = { problems, warnings }
  const isBuiltIn = ({ id }: FileProvider) => builtIn.some(other => other.id === id)
  const dormant: DormantProvider[] = []
  const settings: ProviderSettings[] = builtIn.flatMap(provider => {
    const listed = file.providers.find(({ id }) => id === provider.id)
    const configured = readBuiltIn(read, provider, listed, findings)
    if (configured.apiKey !== null || configured.pool !== undefined) return [configured]
    dormant.push({ settings: configured, models: [] })
    return []
  })
  const models: { provider: string; row: ConfiguredModel }[] = []
  const embeddingModels: { provider: string; row: ConfiguredEmbeddingModel }[] = []
  const hosts: ConfiguredHost[] = []
  for (const [at, provider] of file.providers.entries()) {
    const { id, embedding_models: embeddingRows = [], hosts: hostRows = [] } = provider
    const rows = modelRows(provider)
    if (file.providers.findIndex(other => other.id === id) < at)
      problems.push(`GATEWAY_CONFIG: provider id "${id}" is already used; choose another`)
    if (isBuiltIn(provider)) continue
    for (const problem of modelProblems(provider)) problems.push(`GATEWAY_CONFIG: provider "${id}"${problem}`)
    const { type } = provider
    const configured =
      type === undefined ? readCompatible(read, provider, problems) : readCloudProvider(read, type, provider, problems)
    if (configured === null) continue
    settings.push(configured)
    for (const row of rows)
      models.push({
        provider: id,
        row: type === undefined ? withImageUrls(row, configured.baseUrl) : withCloudDefaults(type, row),
      })
    for (const row of embeddingRows) embeddingModels.push({ provider: id, row })
    for (const row of hostRows) hosts.push({ host: id, row })
  }
  for (const preset of presets) {
    if (file.providers.some(({ id }) => id === preset.id)) continue
    const configured = readPreset(read, preset, warnings)
    if (configured === null) continue
    const { apiKey, baseUrl, discovers } = configured
    const rows = presetModels(preset).map(row => ({ provider: preset.id, row: withImageUrls(row, baseUrl) }))
    if (apiKey === null && discovers !== true) dormant.push({ settings: configured, models: rows })
    else {
      settings.push(configured)
      models.push(...rows)
    }
  }
  const withPolicy = (provider: ProviderSettings): ProviderSettings => {
    const policy = file.providers.find(({ id }) => id === provider.id)?.policy
    return policy === undefined ? provider : { ...provider, policy }
  }
  return {
    ...{ settings: settings.map(withPolicy), models, embeddingModels, hosts },
    dormant: dormant.map(provider => ({ ...provider, settings: withPolicy(provider.settings) })),
  }
}

/** Returns a built-in provider, perhaps without a key. */
function readBuiltIn(
  read: EnvironmentReader,
  provider: (typeof builtIn)[number],
  listed: FileProvider | undefined,
  { problems, warnings }: Findings,
): ProviderSettings {
  const { id } = provider
  const apiKey = read.secret(provider.key)
  const baseUrl = read.baseUrl(provider.base)
  const settings = { id, format: id, baseUrl: baseUrl ?? provider.url }
  if (listed !== undefined) {
    const place = `GATEWAY_CONFIG: provider "${id}"`
    const isPolicyOnly = listed.policy !== undefined && Object.keys(listed).length === 2
    if (listed.keys === undefined && !isPolicyOnly)
      problems.push(
        listed.base_url === undefined
          ? `${place} is built in and has no \`keys\`; add them`
          : `GATEWAY_CONFIG: provider id "${id}" is already used; choose another`,
      )
    else
      for (const field of Object.keys(listed).filter(name => !['id', 'keys', 'accounts', 'policy'].includes(name)))
        problems.push(`${place} is built in and takes no \`${field}\`; remove it, or choose another id`)
    if (apiKey !== null && listed.keys !== undefined)
      warnings.push(`${provider.key} is set and not used: the keys of provider ${id} are those of GATEWAY_CONFIG`)
    const pool = readKeyPool(read, place, listed, problems)
    if (pool !== null) return { ...settings, apiKey: pool.keys[0]?.apiKey ?? null, pool }
  }
  if (apiKey === null && baseUrl !== null)
    warnings.push(`${provider.base} is set without ${provider.key}: provider ${id} is disabled; set both or neither`)
  return { ...settings, apiKey }
}

/** Returns the problems of a configured provider's models and fields, each as the end of a line. */
function modelProblems(provider: FileProvider): readonly string[] {
  const { type, models, embedding_models: embeddingModels, hosts, extra_fields: extra = [] } = provider
  const rows = [...(models ?? []), ...(embeddingModels ?? [])]
  return [
    // The file's schema reports an empty list.
    ...(models === undefined && embeddingModels === undefined && hosts === undefined && !isPreset(provider)
      ? [' has no `models`, `embedding_models` or `hosts`; add one']
      : []),
    ...[...nameProblems(rows), ...(embeddingModels ?? []).flatMap(embeddingModelProblems)].map(name => `: ${name}`),
    ...extra
      .filter(name => ownFields.has(name))
      .map(name => `: extra_fields contains "${name}", which the gateway sets itself; remove it`),
    ...strayCloudFields(provider).map(name =>
      type === undefined
        ? ` has \`${name}\` and no \`type\`; add "azure", "bedrock" or "vertex", or remove the field`
        : ` of type "${type}" takes no \`${name}\`; remove it`,
    ),
  ]
}

/** Returns a provider on a cloud; null = it cannot be called. */
function readCloudProvider(
  read: EnvironmentReader,
  type: CloudType,
  provider: FileProvider,
  problems: string[],
): ProviderSettings | null {
  const { id, extra_fields: extraFields = [] } = provider
  const place = `GATEWAY_CONFIG: provider "${id}"`
  if (provider.api_key_env !== undefined && provider.keys !== undefined)
    problems.push(`${place} has \`api_key_env\` and \`keys\`; remove one`)
  const pool = readKeyPool(read, place, provider, problems)
  const cloud = readCloud(read, type, provider, text => problems.push(`${place} ${text}`))
  if (cloud === null) return null
  return {
    id,
    format: type,
    ...cloud,
    apiKey: pool?.keys[0]?.apiKey ?? cloud.apiKey,
    ...(extraFields.length > 0 && { extraFields }),
    ...(pool !== null && { pool }),
  }
}

/** Returns an OpenAI-compatible provider; null = it has no URL. */
function readCompatible(read: EnvironmentReader, provider: FileProvider, problems: string[]): ProviderSettings | null {
  const { id, extra_fields: extraFields = [] } = provider
  // Under the name of a preset, the file only says what differs from it.
  const preset = provider.base_url === undefined ? findPreset(id) : null
  const baseUrl = provider.base_url ?? (preset && read.baseUrl(preset.base)) ?? preset?.url ?? undefined
  const variable = provider.api_key_env ?? (provider.keys === undefined && preset?.url ? preset.key : undefined)
  const place = `GATEWAY_CONFIG: provider "${id}"`
  const apiKey = variable === undefined ? null : read.secret(variable)
  if (variable !== undefined && apiKey === null) problems.push(`${place} names ${variable}, which is not set`)
  if (variable !== undefined && provider.keys !== undefined)
    problems.push(`${place} has \`api_key_env\` and \`keys\`; remove one`)
  const pool = readKeyPool(read, place, provider, problems)
  if (baseUrl === undefined) {
    problems.push(`${place} has no \`base_url\`; add it`)
    return null
  }
  const problem = baseUrlProblem(baseUrl)
  if (problem !== null) problems.push(`${place}: base_url ${problem}`)
  return {
    id,
    format: 'compatible',
    baseUrl: withoutTrailingSlash(baseUrl),
    apiKey: pool?.keys[0]?.apiKey ?? apiKey,
    ...(preset?.dialect !== undefined && { dialect: preset.dialect }),
    ...(preset?.url === null && provider.models === undefined && { discovers: true }),
    ...(extraFields.length > 0 && { extraFields }),
    ...(pool !== null && { pool }),
  }
}

/** Returns a preset, without a key if its variable is not set; null = it has no URL. A key of a local server is optional. */
function readPreset(read: EnvironmentReader, preset: Preset, warnings: string[]): ProviderSettings | null {
  const { id, key, base, url, dialect } = preset
  const apiKey = read.secret(key)
  const ownUrl = read.baseUrl(base)
  const baseUrl = ownUrl ?? url
  if (baseUrl === null) return null
  if (apiKey === null && url !== null && ownUrl !== null)
    warnings.push(`${base} is set without ${key}: provider ${id} is disabled; set both or neither`)
  return {
    id,
    format: 'compatible',
    baseUrl,
    apiKey,
    ...(dialect !== undefined && { dialect }),
    ...(url === null && { discovers: true }),
  }
}

function isPreset({ id, base_url: baseUrl }: FileProvider): boolean {
  return baseUrl === undefined && findPreset(id) !== null
}

function findPreset(id: string): Preset | null {
  return presets.find(preset => preset.id === id) ?? null
}

/** Returns the models that the file lists for a provider, or those of the preset that it names. */
function modelRows({ id, base_url: baseUrl, models, hosts, embedding_models }: FileProvider) {
  const preset = baseUrl === undefined ? findPreset(id) : null
  const isSilent = models === undefined && hosts === undefined && embedding_models === undefined
  return models ?? (isSilent && preset !== null ? presetModels(preset) : [])
}

/**
 * A server in the operator's network would fetch image URLs from there, and a public name can resolve to a private
 * address. Such a server receives no image URLs unless the operator allows it.
 */
function withImageUrls(row: ConfiguredModel, baseUrl: string): ConfiguredModel {
  const image_urls = URL.canParse(baseUrl) && !isPrivateHost(new URL(baseUrl).hostname)
  return { ...row, capabilities: { image_urls, ...row.capabilities } }
}

/**
 * Returns the models of the configured providers; without any, those of the built-in providers, which are then
 * simulated.
 */
export function offeredModels(
  settings: readonly ProviderSettings[],
  known: readonly Model[],
  hosts: readonly ConfiguredHost[],
): Catalog {
  const ids = new Set<string>((settings.length > 0 ? settings : builtIn).map(({ id }) => id))
  return buildCatalog(withHosts(known, hosts, id => ids.has(id)))
}

/** Returns the catalog with the changes of the configuration, and the models of configured providers. */
export function knownModels({
  publishedModels,
  extraModels,
  modelChanges,
}: {
  readonly publishedModels: readonly Model[]
  readonly extraModels: readonly { readonly provider: string; readonly row: ConfiguredModel }[]
  readonly modelChanges: readonly ModelChange[]
}): readonly Model[] {
  return [
    ...withChanges(publishedModels, modelChanges),
    ...extraModels.map(({ provider, row }) => toModel(provider, row, priceSource(provider, row))),
  ]
}

/** Returns the source of a preset's own prices; those that the file sets have the configuration as theirs. */
function priceSource(provider: string, { pricing }: ConfiguredModel): string {
  const preset = findPreset(provider)
  return preset?.models.some(row => row.pricing === pricing) ? preset.source : 'config'
}

/**
 * Reports ambiguous names: one shared by two models of a provider would always mean the first, and that of automatic
 * routing neither.
 */
export function nameProblems(
  models: readonly { readonly id: string; readonly aliases?: readonly string[] }[],
): readonly string[] {
  const names = models.flatMap(({ id, aliases = [] }) => [id, ...aliases]).map(name => name.toLowerCase())
  const twice = names.filter((name, at) => names.indexOf(name) !== at)
  return [
    ...[...new Set(twice)].map(name => `two models are named "${name}"; choose another name for one`),
    ...(names.includes(autoModel)
      ? [`a model is named "${autoModel}", which requests automatic routing; choose another name`]
      : []),
  ]
}
