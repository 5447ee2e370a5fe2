import { knownModels } from '../config/providers.ts'
import type { Config } from '../config.ts'
import { withHosts } from '../core/models/model-hosts.ts'
import { buildCatalog, type Catalog } from '../core/models/models.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers, each with its hosts.
 */
export function openCatalogue(config: Config, endpoints: ReadonlyMap<string, ConfiguredProvider>): Catalog {
  return buildCatalog(withHosts(knownModels(config), config.hosts, id => endpoints.has(id)))
}
