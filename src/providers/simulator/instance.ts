/** Makes a small value that a JSON schema accepts: the arguments of simulated tool calls and simulated JSON answers. */

const maximumDepth = 12
/** Schemas read for one instance: a few that refer to each other branch into more than any memory holds. */
const maximumSchemas = 10_000

type Schema = Readonly<Record<string, unknown>>

/** Where references lead, and how many more schemas are read. */
type Source = { readonly root: unknown; left: number }

/**
 * A deterministic instance with required members only. Knows what providers take (types, enum, const, bounds, formats,
 * local `$ref`, allOf, anyOf, oneOf); of `pattern`, `not` and `if` it knows nothing. Beyond its bounds it is no instance.
 */
export function instanceOf(schema: unknown): unknown {
  return instance(schema, { root: schema, left: maximumSchemas }, 'value', 0)
}

function instance(given: unknown, source: Source, name: string, depth: number): unknown {
  if (!isSchema(given)) return given === false ? null : `simulated ${name}`
  const schema = flatten(given, source, 0)
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null
  if (depth >= maximumDepth || source.left <= 0) return shallowest(schema)

  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, source, depth)
    case 'array':
      return arrayOf(schema, source, name, depth)
    case 'number':
      return numberOf(schema, 0)
    case 'integer':
      return numberOf(schema, 1)
    case 'boolean':
      return true
    case 'null':
      return null
    case 'string':
      return stringOf(schema, name)
  }
}

type TypeName = 'object' | 'array' | 'number' | 'integer' | 'boolean' | 'null' | 'string'
const typeNames: readonly TypeName[] = ['object', 'array', 'number', 'integer', 'boolean', 'string', 'null']

/** Gemini's older schemas write types in capitals. */
function typeOf(schema: Schema): TypeName {
  const stated = [schema.type].flat().map(type => (typeof type === 'string' ? type.toLowerCase() : null))
  const known = typeNames.find(type => stated.includes(type))
  if (known !== undefined) return known
  if ('properties' in schema || 'required' in schema) return 'object'
  return 'items' in schema || 'prefixItems' in schema ? 'array' : 'string'
}

/** Follows references and merges what must hold together, so that one plain schema is left. */
function flatten(schema: Schema, source: Source, depth: number): Schema {
  source.left -= 1
  if (depth >= maximumDepth || source.left <= 0) return schema
  const { $ref, allOf, anyOf, oneOf, ...own } = schema
  const parts: Schema[] = []
  if (typeof $ref === 'string') parts.push(schemaAt($ref, source.root))
  if (Array.isArray(allOf)) parts.push(...allOf.filter(isSchema))
  const choices = [anyOf ?? oneOf].flat().filter(isSchema)
  // Not a reference where it can be helped: recursive schemas end that way.
  const plain = choices.filter(option => !('$ref' in option))
  const choice = plain.find(option => option.type !== 'null') ?? plain[0] ?? choices[0]
  if (choice !== undefined) parts.push(choice)
  return parts.reduce<Schema>((merged, part) => merge(merged, flatten(part, source, depth + 1)), own)
}

function merge(left: Schema, right: Schema): Schema {
  const merged: Record<string, unknown> = { ...left, ...right }
  if (isSchema(left.properties) && isSchema(right.properties)) {
    merged.properties = { ...left.properties, ...right.properties }
  }
  const required = [left.required, right.required].flat().filter(name => typeof name === 'string')
  if (required.length > 0) merged.required = required
  return merged
}

function schemaAt(reference: string, root: unknown): Schema {
  if (!reference.startsWith('#')) return {}
  let at = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    at = isSchema(at) ? at[key] : undefined
  }
  return isSchema(at) ? at : {}
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

function objectOf(schema: Schema, source: Source, depth: number): Record<string, unknown> {
  const properties = isSchema(schema.properties) ? schema.properties : {}
  const required = [schema.required].flat().filter(name => typeof name === 'string')
  const entries = required.map(name => [name, instance(properties[name] ?? true, source, name, depth + 1)] as const)
  return Object.fromEntries(entries)
}

function arrayOf(schema: Schema, source: Source, name: string, depth: number): unknown[] {
  const tuple = Array.isArray(schema.prefixItems) ? schema.prefixItems : []
  const minimum = bound(schema.minItems) ?? 1
  const length = Math.min(Math.max(minimum, tuple.length), bound(schema.maxItems) ?? minimum + tuple.length, 100)
  return Array.from({ length }, (_, index) => {
    const item = instance(tuple[index] ?? schema.items ?? true, source, name, depth + 1)
    if (schema.uniqueItems !== true || index === 0) return item
    if (typeof item === 'number') return item + index
    return typeof item === 'string' ? (choiceAt(schema.items, index) ?? `${item} ${index + 1}`) : item
  })
}

function choiceAt(items: unknown, index: number): unknown {
  return isSchema(items) && Array.isArray(items.enum) ? items.enum[index] : undefined
}

function numberOf(schema: Schema, step: 0 | 1): number {
  const multiple = bound(schema.multipleOf) ?? step
  const exclusiveLow = bound(schema.exclusiveMinimum)
  const exclusiveHigh = bound(schema.exclusiveMaximum)
  const low = bound(schema.minimum) ?? exclusiveLow
  const high = bound(schema.maximum) ?? exclusiveHigh
  // Bounds are often no more than those of the type, and nobody wants to read them.
  const usual = multiple === 0 ? 1 : multiple
  const isTooLow = low !== null && (usual < low || usual === exclusiveLow)
  const isTooHigh = high !== null && (usual > high || usual === exclusiveHigh)
  if (!isTooLow && !isTooHigh) return usual
  if (multiple > 0) {
    if (low !== null) {
      const first = Math.ceil(low / multiple) * multiple
      return first === exclusiveLow ? first + multiple : first
    }
    const last = Math.floor((high ?? 0) / multiple) * multiple
    return last === exclusiveHigh ? last - multiple : last
  }
  if (low !== null && high !== null) return (low + high) / 2
  return low !== null ? low + 1 : (high ?? 0) - 1
}

const formats: ReadonlyMap<unknown, string> = new Map([
  ['date', '2026-01-31'],
  ['time', '12:00:00Z'],
  ['date-time', '2026-01-31T12:00:00Z'],
  ['duration', 'PT1H'],
  ['email', 'simulated@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.1'],
  ['ipv6', '2001:db8::1'],
  ['uri', 'https://example.com/simulated'],
  ['url', 'https://example.com/simulated'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
])

function stringOf(schema: Schema, name: string): string {
  const format = formats.get(schema.format)
  if (format !== undefined) return format
  const minimum = Math.min(bound(schema.minLength) ?? 0, 10_000)
  return `simulated ${name}`.padEnd(minimum, '.').slice(0, bound(schema.maxLength) ?? undefined)
}

function shallowest(schema: Schema): unknown {
  const type = typeOf(schema)
  return type === 'object' ? {} : type === 'array' ? [] : type === 'string' ? '' : type === 'null' ? null : 0
}

function bound(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
