import { knownModels } from '../config/providers.ts'
import type { Config } from '../config.ts'
import { buildCatalog, type Catalog, deprecationOf, fullName, type Model } from '../core/models/models.ts'
import type { Log } from '../core/ports.ts'
import { withHosts } from '../models/model-hosts.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { discoverModels } from './discover-models.ts'

type CatalogueDeps = Omit<Parameters<typeof discoverModels>[0], 'timeoutMs'> & {
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
}

/** The part of the configuration that decides which models the gateway offers. */
export type CatalogConfig = Pick<Config, 'publishedModels' | 'modelChanges' | 'extraModels' | 'hosts'>

type OpenedCatalogue = {
  /** Its models can be replaced while the gateway runs. Requests in progress keep the models they chose. */
  readonly catalogue: Catalog
  /** Replaces the models by those of another configuration. Returns the previous catalog. */
  reload(config: CatalogConfig): Catalog
}

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers, each with its hosts, and the models that local servers list. `undo` receives the end of the discovery.
 */
export async function openCatalogue(
  config: Config,
  deps: CatalogueDeps,
  undo: (() => void)[],
): Promise<OpenedCatalogue> {
  let used: CatalogConfig = config
  let discovered: () => readonly Model[] = () => []
  const build = () =>
    buildCatalog(withHosts([...knownModels(used), ...discovered()], used.hosts, id => deps.endpoints.has(id)))
  let current = build()
  const renew = (): Catalog => {
    const before = current
    current = build()
    return before
  }
  if (config.providers.some(({ discovers }) => discovers)) {
    const discovery = await discoverModels(
      { ...deps, timeoutMs: config.serviceDeadlines.discoveryMs },
      config.providers,
      renew,
    )
    undo.push(discovery.stop)
    discovered = discovery.models
    renew()
  }
  return {
    catalogue: {
      get list() {
        return current.list
      },
      resolve: name => current.resolve(name),
    },
    reload(next) {
      used = next
      return renew()
    },
  }
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
