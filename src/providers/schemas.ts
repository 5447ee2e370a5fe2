/** Where a JSON schema holds further schemas: what any rewriting of one walks along. */
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
 * A keyword's value with every schema in it rewritten; what holds none stays as it is. A boolean schema in a map becomes
 * one that says nothing, in a list it is left out.
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

/** Every schema directly inside another one. */
export function subschemas(schema: Json): readonly Json[] {
  const found: Json[] = []
  const collect = (inner: Json) => {
    found.push(inner)
    return inner
  }
  for (const [keyword, value] of Object.entries(schema)) rewritten(keyword, value, collect)
  return found
}

/** True for a schema that describes objects, by its type or, without one, by its properties. */
export function describesObject({ type, properties }: Json): boolean {
  if (type === undefined) return isRecord(properties)
  return type === 'object' || (Array.isArray(type) && type.includes('object'))
}
