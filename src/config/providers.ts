import { type ConfiguredModel, toModel } from '../core/models/configured-models.ts'
import { type ConfiguredEmbeddingModel, embeddingModelProblems } from '../core/models/embedding-models.ts'
import { autoModel, buildCatalog, type Catalog, type Model } from '../core/models/models.ts'
import { ownFields } from '../core/validation/own-fields.ts'
import { baseUrlProblem, isPrivateHost, withoutTrailingSlash } from './addresses.ts'
import type { ConfigFile } from './config-file.ts'
import type { EnvironmentReader } from './environment.ts'

export type ProviderSettings = {
  readonly id: string
  readonly format: 'openai' | 'anthropic' | 'google' | 'compatible'
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly extraFields?: readonly string[]
}

/** Providers that only need a key. */
export const builtIn = [
  { id: 'openai', key: 'OPENAI_API_KEY', base: 'OPENAI_BASE_URL', url: 'https://api.openai.com/v1' },
  { id: 'anthropic', key: 'ANTHROPIC_API_KEY', base: 'ANTHROPIC_BASE_URL', url: 'https://api.anthropic.com' },
  { id: 'google', key: 'GEMINI_API_KEY', base: 'GEMINI_BASE_URL', url: 'https://generativelanguage.googleapis.com' },
] as const

/** Returns the providers with a key in the environment, and those of the file with their models. */
export function readProviders(read: EnvironmentReader, file: ConfigFile, problems: string[], warnings: string[]) {
  const settings: ProviderSettings[] = []
  const models: { provider: string; row: ConfiguredModel }[] = []
  const embeddingModels: { provider: string; row: ConfiguredEmbeddingModel }[] = []
  for (const provider of builtIn) {
    const apiKey = read.secret(provider.key)
    const baseUrl = read.baseUrl(provider.base)
    if (apiKey !== null)
      settings.push({ id: provider.id, format: provider.id, baseUrl: baseUrl ?? provider.url, apiKey })
    else if (baseUrl !== null)
      warnings.push(
        `${provider.base} is set without ${provider.key}: provider ${provider.id} is disabled; set both or neither`,
      )
  }
  for (const provider of file.providers) {
    if (settings.some(other => other.id === provider.id) || builtIn.some(other => other.id === provider.id))
      problems.push(`GATEWAY_CONFIG: provider id "${provider.id}" is already used; choose another`)
    const { models: rows = [], embedding_models: embeddingRows = [] } = provider
    // The file's schema reports an empty list.
    if (provider.models === undefined && provider.embedding_models === undefined)
      problems.push(`GATEWAY_CONFIG: provider "${provider.id}" has no \`models\` and no \`embedding_models\`; add one`)
    for (const name of [...nameProblems([...rows, ...embeddingRows]), ...embeddingRows.flatMap(embeddingModelProblems)])
      problems.push(`GATEWAY_CONFIG: provider "${provider.id}": ${name}`)
    const apiKey = provider.api_key_env === undefined ? null : read.secret(provider.api_key_env)
    if (provider.api_key_env !== undefined && apiKey === null)
      problems.push(`GATEWAY_CONFIG: provider "${provider.id}" names ${provider.api_key_env}, which is not set`)
    const problem = baseUrlProblem(provider.base_url)
    if (problem !== null) problems.push(`GATEWAY_CONFIG: provider "${provider.id}": base_url ${problem}`)
    const extraFields = provider.extra_fields ?? []
    for (const name of extraFields.filter(name => ownFields.has(name)))
      problems.push(
        `GATEWAY_CONFIG: provider "${provider.id}": extra_fields contains "${name}", which the gateway sets itself; remove it`,
      )
    settings.push({
      id: provider.id,
      format: 'compatible',
      baseUrl: withoutTrailingSlash(provider.base_url),
      apiKey,
      ...(extraFields.length > 0 && { extraFields }),
    })
    for (const row of rows) models.push({ provider: provider.id, row: withImageUrls(row, provider.base_url) })
    for (const row of embeddingRows) embeddingModels.push({ provider: provider.id, row })
  }
  return { settings, models, embeddingModels }
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
  extra: readonly { readonly provider: string; readonly row: ConfiguredModel }[],
  published: readonly Model[],
): Catalog {
  const ids = new Set<string>((settings.length > 0 ? settings : builtIn).map(({ id }) => id))
  const models = [...published, ...extra.map(({ provider, row }) => toModel(provider, row))]
  return buildCatalog(models.filter(({ provider }) => ids.has(provider)))
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
