import type { Config } from '../config.ts'
import { toModel, withChanges } from '../core/models/configured-models.ts'
import { buildCatalog, type Catalog, deprecationOf, fullName } from '../core/models/models.ts'
import type { Log } from '../core/ports/log.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'

/** A catalog whose models can be replaced while the gateway runs. Requests in progress keep the models they chose. */
export type ReplaceableCatalog = Catalog & { replace(next: Catalog): void }

/** The part of the configuration that decides which models there are. */
type CatalogConfig = Pick<Config, 'publishedModels' | 'modelChanges' | 'extraModels'>

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers.
 */
export function openCatalogue(
  config: CatalogConfig,
  endpoints: ReadonlyMap<string, ConfiguredProvider>,
): ReplaceableCatalog {
  let current = catalogueOf(config, endpoints)
  return {
    get list() {
      return current.list
    },
    resolve: name => current.resolve(name),
    replace(next) {
      current = next
    },
  }
}

/** Returns the catalog of a configuration. */
export function catalogueOf(config: CatalogConfig, endpoints: ReadonlyMap<string, ConfiguredProvider>): Catalog {
  const configured = config.extraModels.map(({ provider, row }) => toModel(provider, row))
  const known = [...withChanges(config.publishedModels, config.modelChanges), ...configured]
  return buildCatalog(known.filter(model => endpoints.has(model.provider)))
}

/** Logs the models of a new catalog that were not deprecated in the one before. `todayIso` is an ISO time. */
export function announceDeprecations(
  log: Pick<Log, 'warn'>,
  { before, after, todayIso }: { readonly before: Catalog; readonly after: Catalog; readonly todayIso: string },
): void {
  for (const model of after.list) {
    const state = deprecationOf(model, todayIso)
    const old = before.resolve(fullName(model))
    if (state === 'current' || (old !== null && deprecationOf(old, todayIso) === state)) continue
    log.warn('model_deprecated', {
      model: fullName(model),
      state,
      until: model.deprecationDate,
      successor: model.successor,
    })
  }
}
