/** Decides whether OpenAI accepts a schema as strict. It answers 400 to any other; without `strict` it accepts every schema. */
import { isRecord, type Json, record } from '../json.ts'
import { describesObject, subschemas } from '../schemas.ts'

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
