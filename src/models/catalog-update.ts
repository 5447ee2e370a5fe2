/**
 * An update of the catalog between releases: rows like the operator's own `models`, checked against the built-in catalog,
 * applied below the operator's changes.
 */

import { type Static, Type } from '@sinclair/typebox'
import { changeProblems, type ModelChange, modelChangeSchema, withChanges } from '../core/models/configured-models.ts'
import { fullName, type Model } from '../core/models/models.ts'
import { strictObject } from '../core/validation/validate.ts'
import { catalog } from './catalog.ts'

/** The form of an update file. A later release may read others. */
const catalogFormat = 'gateway-catalog-1'

export const catalogUpdateSchema = strictObject({
  format: Type.Literal(catalogFormat),
  date: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', maxLength: 10, description: 'a date: YYYY-MM-DD' }),
  models: Type.Array(modelChangeSchema, { minItems: 1, maxItems: 2_000 }),
})

export type CatalogUpdate = Static<typeof catalogUpdateSchema>

/** Returns the catalog with an update; null = none. Prices of the update name it as their source. */
export function withCatalogUpdate(published: readonly Model[], update: CatalogUpdate | null): readonly Model[] {
  return update === null ? published : withChanges(published, update.models, `catalog update of ${update.date}`)
}

/** Returns the problems of an update, one line each. A successor must be in the updated catalog. */
export function catalogUpdateProblems(update: CatalogUpdate): readonly string[] {
  const names = new Set(withCatalogUpdate(catalog, update).flatMap(({ id, aliases }) => [id, ...aliases]))
  const lost = update.models.filter(
    ({ successor }) => successor !== undefined && !names.has(withoutProvider(successor)),
  )
  return [
    ...changeProblems(catalog, update.models),
    ...lost.map(model => `${fullName(model)}: its successor ${model.successor} is not in the catalog`),
  ]
}

function withoutProvider(name: string): string {
  return name.slice(name.indexOf('/') + 1)
}

/** One changed figure of a model. `from` null = the model is new; `to` null = the field was removed. */
export type CatalogDifference = {
  readonly model: string
  readonly field: string
  readonly from: string | null
  readonly to: string | null
}

/** Returns the differences between two catalogs, in the order of the newer one. */
export function catalogDifferences(before: readonly Model[], after: readonly Model[]): readonly CatalogDifference[] {
  const known = new Map(before.map(model => [fullName(model), model]))
  return after.flatMap(model => {
    const name = fullName(model)
    const old = known.get(name)
    if (old === undefined) return [{ model: name, field: 'model', from: null, to: 'added' }]
    const [from, to] = [flat(old), flat(model)]
    return [...new Set([...from.keys(), ...to.keys()])]
      .filter(field => from.get(field) !== to.get(field))
      .map(field => ({ model: name, field, from: from.get(field) ?? null, to: to.get(field) ?? null }))
  })
}

/** Fields that follow from others. */
const derived = /^(?:pricingSource|figures\.estimated|.+\.minutes)$/

/** Returns the figures of a model as texts by path. */
function flat(model: Model): ReadonlyMap<string, string> {
  const paths = new Map<string, string>()
  const add = (path: string, value: unknown) => {
    if (value === undefined || value === null || derived.test(path)) return
    if (typeof value === 'object' && !(Array.isArray(value) && value.every(part => typeof part !== 'object')))
      for (const [key, part] of Object.entries(value)) add(path === '' ? key : `${path}.${key}`, part)
    else paths.set(path, Array.isArray(value) ? value.map(part => JSON.stringify(part)).join(', ') : String(value))
  }
  add('', model)
  return paths
}

/** Returns the figures of an update that do not count, because the operator's own configuration has another. */
export function keptFigures(update: CatalogUpdate, changes: readonly ModelChange[]): readonly CatalogDifference[] {
  const updated = withCatalogUpdate(catalog, update)
  const offered = new Set(catalogDifferences(catalog, updated).map(({ model, field }) => `${model} ${field}`))
  return catalogDifferences(updated, withChanges(updated, changes)).filter(
    ({ model, field }) => offered.has(`${model} ${field}`) || offered.has(`${model} model`),
  )
}
