/**
 * Checks a created value against its JSON schema. Supports the same as `instance.ts`. A client's pattern is never run:
 * a text matches if it was created for that pattern.
 */
import { isOfFormat } from './formats.ts'

export type Schema = Readonly<Record<string, unknown>>

/** Targets of references, and how many more schemas may be read. */
export type Source = {
  readonly root: unknown
  left: number
  /** Texts that were created for a pattern (`matchOf`). */
  readonly matched: Set<string>
}

export const matchOf = (pattern: string, text: string) => JSON.stringify([pattern, text])

/** Returns true if the schema accepts the value. False too if the limit is reached. */
export function accepts(given: unknown, value: unknown, source: Source): boolean {
  if (given === false || --source.left <= 0) return false
  if (!isSchema(given)) return true
  const is = (part: unknown) => accepts(part, value, source)
  const { $ref, allOf, anyOf, oneOf, not } = given
  if (typeof $ref === 'string' && !is(schemaAt($ref, source.root))) return false
  if ('const' in given && !isEqual(given.const, value)) return false
  if (Array.isArray(given.enum) && !given.enum.some(one => isEqual(one, value))) return false
  if (!hasType(given, value)) return false
  if (Array.isArray(allOf) && !allOf.every(is)) return false
  if (Array.isArray(anyOf) && !anyOf.some(is)) return false
  if (Array.isArray(oneOf) && oneOf.filter(is).length !== 1) return false
  if (not !== undefined && is(not)) return false
  if (given.if !== undefined && !is((is(given.if) ? given.then : given.else) ?? true)) return false
  if (typeof value === 'number') return acceptsNumber(given, value)
  if (typeof value === 'string') return acceptsText(given, value, source)
  if (Array.isArray(value)) return acceptsArray(given, value, source)
  return isSchema(value) ? acceptsObject(given, value, source) : true
}

function hasType(schema: Schema, value: unknown): boolean {
  const types = typesOf(schema)
  if (types.length === 0 || types.includes(typeNameOf(value))) return true
  return types.includes('integer') && Number.isInteger(value)
}

export type TypeName = 'object' | 'array' | 'number' | 'integer' | 'boolean' | 'null' | 'string'
export const typeNames: readonly TypeName[] = ['object', 'array', 'number', 'integer', 'boolean', 'string', 'null']

/** Returns the types. Gemini's older schemas write them in capitals. */
export function typesOf(schema: Schema): readonly TypeName[] {
  const stated = [schema.type].flat().map(type => (typeof type === 'string' ? type.toLowerCase() : null))
  const types = typeNames.filter(type => stated.includes(type))
  return schema.nullable === true && types.length > 0 ? [...types, 'null'] : types
}

function typeNameOf(value: unknown): TypeName {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean')
    return typeof value as 'number'
  return 'object'
}

function acceptsText(schema: Schema, text: string, source: Source): boolean {
  const { pattern, format, minLength, maxLength } = schema
  if (typeof pattern === 'string' && !source.matched.has(matchOf(pattern, text))) return false
  return isOfFormat(format, text) && isBetween([...text].length, minLength, maxLength)
}

function acceptsNumber(schema: Schema, value: number): boolean {
  const [low, high] = [bound(schema.exclusiveMinimum), bound(schema.exclusiveMaximum)]
  if ((low !== null && value <= low) || (high !== null && value >= high)) return false
  const multiple = bound(schema.multipleOf)
  if (multiple !== null && multiple > 0 && !Number.isInteger(value / multiple)) return false
  return isBetween(value, schema.minimum, schema.maximum)
}

function acceptsArray(schema: Schema, values: readonly unknown[], source: Source): boolean {
  if (!isBetween(values.length, schema.minItems, schema.maxItems)) return false
  if (schema.uniqueItems === true && new Set(values.map(canonical)).size !== values.length) return false
  if (schema.contains !== undefined) {
    const found = values.filter(value => accepts(schema.contains, value, source)).length
    if (!isBetween(found, schema.minContains ?? 1, schema.maxContains)) return false
  }
  return values.every((value, index) => accepts(itemAt(schema, index), value, source))
}

/** Returns the schema of an array item; older drafts have a tuple in `items`. */
export function itemAt(schema: Schema, index: number): unknown {
  const tuple = Array.isArray(schema.prefixItems) ? schema.prefixItems : Array.isArray(schema.items) ? schema.items : []
  if (index < tuple.length) return tuple[index]
  return (Array.isArray(schema.items) ? schema.additionalItems : schema.items) ?? true
}

function acceptsObject(schema: Schema, value: Schema, source: Source): boolean {
  const names = Object.keys(value)
  const properties = isSchema(schema.properties) ? schema.properties : {}
  if (!isBetween(names.length, schema.minProperties, schema.maxProperties)) return false
  if (!namesIn(schema.required).every(name => Object.hasOwn(value, name))) return false
  const dependent = isSchema(schema.dependentRequired) ? schema.dependentRequired : {}
  if (
    !names.every(name => !Object.hasOwn(dependent, name) || namesIn(dependent[name]).every(one => names.includes(one)))
  )
    return false
  const others = schema.additionalProperties ?? true
  return names.every(name => accepts(Object.hasOwn(properties, name) ? properties[name] : others, value[name], source))
}

function isBetween(value: number, low: unknown, high: unknown): boolean {
  return value >= (bound(low) ?? Number.NEGATIVE_INFINITY) && value <= (bound(high) ?? Number.POSITIVE_INFINITY)
}

export function schemaAt(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return {}
  let at = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    at = Array.isArray(at) ? at[Number(key)] : isSchema(at) && Object.hasOwn(at, key) ? at[key] : undefined
  }
  return isSchema(at) || typeof at === 'boolean' ? at : {}
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

export const isEqual = (one: unknown, other: unknown) => canonical(one) === canonical(other)

/** Returns the same text for values that JSON Schema considers equal, whatever the order of their members. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isSchema(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value).sort()
  return `{${members.map(name => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

export function namesIn(list: unknown): string[] {
  return [...new Set([list].flat().filter(name => typeof name === 'string'))]
}

export function bound(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
