import { type Catalog, fullName } from '../core/models/models.ts'
import { catalogueDate } from '../models/catalog.ts'
import { deprecationHeaders, type HeaderPairs } from './headers.ts'

/**
 * Returns a function that looks up the deprecation headers of a model (`provider/model`); null = it is not deprecated.
 * Follows a catalog that is replaced.
 */
export function createDeprecationLookup(catalogue: Pick<Catalog, 'list'>): (model: string) => HeaderPairs | null {
  let known = { list: catalogue.list, headers: headersOf(catalogue.list) }
  return model => {
    if (known.list !== catalogue.list) known = { list: catalogue.list, headers: headersOf(catalogue.list) }
    return known.headers.get(model) ?? null
  }
}

function headersOf(list: Catalog['list']): ReadonlyMap<string, HeaderPairs> {
  return new Map(
    list
      .filter(model => model.deprecated)
      .map(model => [fullName(model), deprecationHeaders(catalogueDate, model.deprecationDate, model.successor)]),
  )
}
