import { catalogueDate } from '../core/models/catalog.ts'
import { type Catalog, fullName } from '../core/models/models.ts'
import { deprecationHeaders, type HeaderPairs } from './headers.ts'

/**
 * Returns a function that looks up the deprecation headers of a model (`provider/model`); null = it is not deprecated.
 */
export function createDeprecationLookup({ list }: Pick<Catalog, 'list'>): (model: string) => HeaderPairs | null {
  const deprecated = new Map(
    list
      .filter(model => model.deprecated)
      .map(model => [fullName(model), deprecationHeaders(catalogueDate, model.deprecationDate, model.successor)]),
  )
  return model => deprecated.get(model) ?? null
}
