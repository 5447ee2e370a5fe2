import type { Config } from '../config.ts'
import {
  buildEmbeddingCatalog,
  type EmbeddingCatalog,
  publishedEmbeddingModels,
  toEmbeddingModel,
} from '../core/models/embedding-models.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'

/**
 * Opens the catalog of embedding models: the published and the configured ones of providers that serve embeddings.
 * `reload` replaces them by those of another configuration.
 */
export function openEmbeddingCatalog(config: Config, endpoints: ReadonlyMap<string, ConfiguredProvider>) {
  let current = build(config, endpoints)
  const catalog: EmbeddingCatalog = {
    get list() {
      return current.list
    },
    resolve: name => current.resolve(name),
    hostsOf: model => current.hostsOf(model),
  }
  return {
    catalog,
    reload(next: Config) {
      current = build(next, endpoints)
    },
  }
}

function build(config: Config, endpoints: ReadonlyMap<string, ConfiguredProvider>): EmbeddingCatalog {
  const configured = config.embeddingModels.map(({ provider, row }) => toEmbeddingModel(provider, row))
  const known = [...publishedEmbeddingModels, ...configured]
  return buildEmbeddingCatalog(known.filter(({ provider }) => endpoints.get(provider)?.embeddings !== undefined))
}
