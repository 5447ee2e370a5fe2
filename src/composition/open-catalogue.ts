import type { Config } from '../config.ts'
import { catalog as published } from '../core/models/catalog.ts'
import { toModel, withChanges } from '../core/models/configured-models.ts'
import { buildCatalog, type Catalog } from '../core/models/models.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers.
 */
export function openCatalogue(config: Config, endpoints: ReadonlyMap<string, ConfiguredProvider>): Catalog {
  const configured = config.extraModels.map(({ provider, row }) => toModel(provider, row))
  const known = [...withChanges(published, config.modelChanges), ...configured]
  return buildCatalog(known.filter(model => endpoints.has(model.provider)))
}
