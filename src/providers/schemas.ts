/** Finds nested schemas in a JSON schema. */
import { isRecord, type Json, record, records } from './json.ts'

const holders: ReadonlyMap<string, 'map' | 'list' | 'one'> = new Map([
  ['properties', 'map'],
  ['$defs', 'map'],
  ['definitions', 'map'],
  ['anyOf', 'list'],
  ['oneOf', 'list'],
  ['allOf', 'list'],
  ['prefixItems', 'list'],
  ['items', 'one'],
  ['additionalProperties', 'one'],
])

/**
 * Returns a keyword's value with every schema in it rewritten; other values stay unchanged. A boolean schema becomes an
 * empty one in a map and is dropped from a list.
 */
export function rewritten(keyword: string, value: unknown, rewrite: (schema: Json) => Json): unknown {
  switch (holders.get(keyword)) {
    case 'map':
      return Object.fromEntries(Object.entries(record(value)).map(([name, schema]) => [name, rewrite(record(schema))]))
    case 'list':
      return records(value).map(rewrite)
    case 'one':
      return isRecord(value) ? rewrite(value) : value
    case undefined:
      return value
  }
}

/** Returns every schema directly inside another one. */
export function subschemas(schema: Json): readonly Json[] {
  const found: Json[] = []
  const collect = (inner: Json) => {
    found.push(inner)
    return inner
  }
  for (const [keyword, value] of Object.entries(schema)) rewritten(keyword, value, collect)
  return found
}

/** Returns true for a schema of objects, by its type or, without one, by its properties. */
export function describesObject({ type, properties }: Json): boolean {
  if (type === undefined) return isRecord(properties)
  return type === 'object' || (Array.isArray(type) && type.includes('object'))
}
