/** Finds nested schemas in a JSON schema. */
import { isRecord, type Json, record, records } from './json.ts'

/** Decides whether OpenAI accepts a schema as strict. It answers 400 to any other; without `strict` it accepts every schema. */

/** Source: OpenAI's guide to structured outputs, "Supported schemas". */
const keywords: ReadonlySet<string> = new Set(
  `$schema $ref $defs definitions type title description enum const properties required additionalProperties items anyOf pattern
  format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems`.split(/\s+/),
)
const formats: ReadonlySet<unknown> = new Set('date-time time date duration email hostname ipv4 ipv6 uuid'.split(' '))
const limits = { depth: 10, properties: 5_000, values: 1_000 } as const

/** Returns whether a tool or a format is sent as strict: only if the client wants it and the whole schema qualifies. */
export function isStrict(wanted: boolean | null, schema: Json): boolean {
  if (wanted !== true || schema.type !== 'object' || schema.anyOf !== undefined) return false
  const counts = { properties: 0, values: 0 }
  return qualifies(schema, 0, counts) && counts.properties <= limits.properties && counts.values <= limits.values
}

function qualifies(schema: Json, depth: number, counts: { properties: number; values: number }): boolean {
  const { type, properties, items, format } = schema
  if (depth > limits.depth || !Object.keys(schema).every(keyword => keywords.has(keyword))) return false
  if (![type, schema.anyOf, schema.$ref, schema.enum, schema.const].some(held => held !== undefined)) return false
  if (format !== undefined && !formats.has(format)) return false
  if ((type === 'array' || (Array.isArray(type) && type.includes('array'))) && !isRecord(items)) return false
  if (describesObject(schema) && !isClosed(schema)) return false
  counts.properties += Object.keys(record(properties)).length
  counts.values += Array.isArray(schema.enum) ? schema.enum.length : 0
  return subschemas(schema).every(inner => qualifies(inner, depth + 1, counts))
}

/** Returns true for an object without optional and without further properties. */
function isClosed({ properties, required, additionalProperties }: Json): boolean {
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  return additionalProperties === false && Object.keys(record(properties)).every(name => names.includes(name))
}

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
