import { knownModels } from '../config/providers.ts'
import type { Config } from '../config.ts'
import { withHosts } from '../core/models/model-hosts.ts'
import { buildCatalog, type Catalog, deprecationOf, fullName } from '../core/models/models.ts'
import type { Log } from '../core/ports/log.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'

/** A catalog whose models can be replaced while the gateway runs. Requests in progress keep the models they chose. */
export type ReplaceableCatalog = Catalog & {
  /** Returns the catalog before. */
  replace(next: Catalog): Catalog
}

/** The part of the configuration that decides which models there are. */
export type CatalogConfig = Pick<Config, 'publishedModels' | 'modelChanges' | 'extraModels' | 'hosts'>

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers, each with its hosts.
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
      const before = current
      current = next
      return before
    },
  }
}

/** Returns the catalog of a configuration. */
export function catalogueOf(config: CatalogConfig, endpoints: ReadonlyMap<string, ConfiguredProvider>): Catalog {
  return buildCatalog(withHosts(knownModels(config), config.hosts, id => endpoints.has(id)))
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
