import {
  type ConfiguredEmbeddingModel,
  publishedEmbeddingModels,
  toEmbeddingModel,
} from '../core/models/embedding-models.ts'
import { autoModel, buildCatalog, type Catalog, fullName, type Model } from '../core/models/models.ts'
import { prepareRules, type Rule, type RuleRow, ruleProblems } from '../core/policy/rules.ts'
import type { ProviderSettings } from './providers.ts'

type EmbeddingRow = { readonly provider: string; readonly row: ConfiguredEmbeddingModel }

function embeddingCatalogWith(rows: readonly EmbeddingRow[]) {
  return buildCatalog([
    ...publishedEmbeddingModels,
    ...rows.map(({ provider, row }) => toEmbeddingModel(provider, row)),
  ])
}

type TargetNames = {
  /** Also those of providers that lack a key. */
  readonly known: readonly Model[]
  readonly embeddingModels: readonly EmbeddingRow[]
  readonly settings: readonly ProviderSettings[]
}

/** Returns a function that tells whether a name is a possible target of rules. */
export function ruleTargets({ known, embeddingModels, settings }: TargetNames): (name: string) => boolean {
  const catalogs = [buildCatalog(known), embeddingCatalogWith(embeddingModels)]
  // A server that lists its own models has names that only it knows.
  return name =>
    name.toLowerCase() === autoModel ||
    catalogs.some(({ resolve }) => resolve(name) !== null) ||
    settings.some(({ id, discovers }) => discovers === true && name.startsWith(`${id}/`))
}

/** Returns the operator's rules for matching. Adds a line for each problem, such as a target that is no model. */
export function readRules(rows: readonly RuleRow[], names: TargetNames, problems: string[]): readonly Rule[] {
  if (rows.length > 0)
    for (const problem of ruleProblems(rows, ruleTargets(names))) problems.push(`GATEWAY_CONFIG: ${problem}`)
  return prepareRules(rows, 'operator')
}

/**
 * Returns the settings with the full names of the models that each key may call. Adds a line for each name that is no
 * model of the key's provider.
 */
export function resolveKeyModels(
  settings: readonly ProviderSettings[],
  offered: Catalog,
  embeddingModels: readonly EmbeddingRow[],
  problems: string[],
): readonly ProviderSettings[] {
  const embedding = embeddingCatalogWith(embeddingModels)
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
