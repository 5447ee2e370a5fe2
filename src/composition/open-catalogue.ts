import { knownModels } from '../config/providers.ts'
import type { Config } from '../config.ts'
import { withHosts } from '../core/models/model-hosts.ts'
import { buildCatalog, type Catalog, type Model } from '../core/models/models.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { discoverModels, replaceableCatalog } from './discover-models.ts'

type CatalogueDeps = Parameters<typeof discoverModels>[0] & {
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
}

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers, each with its hosts, and the models that local servers list. `undo` receives what ends the listing.
 */
export async function openCatalogue(config: Config, deps: CatalogueDeps, undo: (() => void)[]): Promise<Catalog> {
  const known = knownModels(config)
  const build = (discovered: readonly Model[]) =>
    buildCatalog(withHosts([...known, ...discovered], config.hosts, id => deps.endpoints.has(id)))
  if (!config.providers.some(({ discovers }) => discovers)) return build([])
  const { catalog, replace } = replaceableCatalog(build([]))
  const discovery = await discoverModels(deps, config.providers, () => replace(build(discovery.models())))
  undo.push(discovery.stop)
  replace(build(discovery.models()))
  return catalog
}
