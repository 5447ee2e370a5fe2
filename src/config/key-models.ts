import {
  type ConfiguredEmbeddingModel,
  publishedEmbeddingModels,
  toEmbeddingModel,
} from '../core/models/embedding-models.ts'
import { buildCatalog, type Catalog, fullName } from '../core/models/models.ts'
import type { ProviderSettings } from './providers.ts'

/**
 * Returns the settings with the full names of the models that each key may call. Adds a line for each name that is no
 * model of the key's provider.
 */
export function resolveKeyModels(
  settings: readonly ProviderSettings[],
  offered: Catalog,
  embeddingModels: readonly { readonly provider: string; readonly row: ConfiguredEmbeddingModel }[],
  problems: string[],
): readonly ProviderSettings[] {
  const embedding = buildCatalog([
    ...publishedEmbeddingModels,
    ...embeddingModels.map(({ provider, row }) => toEmbeddingModel(provider, row)),
  ])
  const fullNameAt = (provider: string, name: string): string | null => {
    for (const written of [`${provider}/${name}`, name]) {
      const model = offered.resolve(written)
      if (model !== null && (model.provider === provider || model.hosts?.some(({ host }) => host === provider)))
        return fullName(model)
      const vectors = embedding.resolve(written)
      if (vectors !== null && vectors.provider === provider) return fullName(vectors)
    }
    return null
  }
  return settings.map(provider => {
    const { id, pool } = provider
    if (pool === undefined) return provider
    const keys = pool.keys.map(key => ({
      ...key,
      models:
        key.models?.flatMap(name => {
          const known = fullNameAt(id, name)
          if (known === null)
            problems.push(
              `GATEWAY_CONFIG: provider "${id}": key "${key.name}": no model of this provider is named "${name}"`,
            )
          return known ?? []
        }) ?? null,
    }))
    return { ...provider, pool: { ...pool, keys } }
  })
}
