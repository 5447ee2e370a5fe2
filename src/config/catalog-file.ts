/** The catalog update that `gateway models update` installed. A newer release replaces it. */
import { existsSync, readFileSync } from 'node:fs'
import { Value } from '@sinclair/typebox/value'
import { systemErrorText } from '../core/validation/operator-errors.ts'
import { catalogueDate } from '../models/catalog.ts'
import { type CatalogUpdate, catalogUpdateProblems, catalogUpdateSchema } from '../models/catalog-update.ts'
import { getFaults } from './config-file.ts'

/** A larger file is no catalog. */
export const maximumCatalogBytes = 4_194_304

/** Returns an update from its text, or the problems that it has, one line each. */
export function parseCatalogUpdate(text: string): { readonly update: CatalogUpdate } | { readonly problems: string[] } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problems: ['it is not valid JSON'] }
  }
  if (!Value.Check(catalogUpdateSchema, value)) return { problems: [...getFaults(catalogUpdateSchema, value, '')] }
  const problems = catalogUpdateProblems(value)
  return problems.length > 0 ? { problems: [...problems] } : { update: value }
}

/**
 * Reads the installed update; null = none, or not newer than this release. Adds problems of the file to `problems`: a gateway
 * with half a catalog would bill wrong prices.
 */
export function readCatalogFile(path: string, problems: string[], warnings: string[]): CatalogUpdate | null {
  if (!existsSync(path)) return null
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    problems.push(`MODEL_CATALOG: cannot read ${path}: ${systemErrorText(cause)}`)
    return null
  }
  const read = parseCatalogUpdate(text)
  if ('problems' in read) {
    problems.push(...read.problems.map(problem => `MODEL_CATALOG: ${path}: ${problem}`))
    return null
  }
  if (read.update.date > catalogueDate) return read.update
  warnings.push(
    `MODEL_CATALOG: ${path} (${read.update.date}) is not newer than the catalog of this release (${catalogueDate}): the file is ignored; remove it`,
  )
  return null
}
