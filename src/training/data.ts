import { join } from 'node:path'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/** Where the labelled sets lie: beside the checkout, never in it. */
const folder = join(import.meta.dir, '../../../shared/data')

/**
 * The rows of one labelled set, in the file's order, columns that the schema does not name left in. Throws where the set is
 * absent or a row is not of the schema.
 */
export async function readRows<S extends TSchema>(set: string, schema: S): Promise<Static<S>[]> {
  const text = await Bun.file(join(folder, set, 'data.jsonl')).text()
  return text
    .trimEnd()
    .split('\n')
    .map(line => Value.Parse(['Assert'], schema, JSON.parse(line)))
}

/** Whether a labelled set is beside this checkout. */
export function isThere(set: string): Promise<boolean> {
  return Bun.file(join(folder, set, 'data.jsonl')).exists()
}
