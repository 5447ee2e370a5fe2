import { join } from 'node:path'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/** Folder of the labeled sets: beside the checkout, never in it. */
const folder = join(import.meta.dir, '../../../shared/data')

/**
 * Returns the rows of one labeled set in file order, including columns that the schema does not name. Throws if the set
 * is absent or a row violates the schema.
 */
export async function readRows<S extends TSchema>(set: string, schema: S): Promise<Static<S>[]> {
  const text = await Bun.file(join(folder, set, 'data.jsonl')).text()
  return text
    .trimEnd()
    .split('\n')
    .map(line => Value.Parse(['Assert'], schema, JSON.parse(line)))
}

/** Returns true if a labeled set is beside this checkout. */
export function isThere(set: string): Promise<boolean> {
  return Bun.file(join(folder, set, 'data.jsonl')).exists()
}
