import { bound, isEqual, isSchema, namesIn, type Schema, typesOf } from './schema-check.ts'

/** Returns a schema for the values that both accept, as far as possible; the check of the value covers the rest. */
export function merged(one: Schema, other: Schema): Schema {
  const all: Record<string, unknown> = { ...one, ...other }
  for (const name of ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'])
    if (name in one && name in other) all[name] = Math.max(bound(one[name]) ?? 0, bound(other[name]) ?? 0)
  for (const name of ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'])
    if (name in one && name in other) all[name] = Math.min(bound(one[name]) ?? 0, bound(other[name]) ?? 0)
  if (Array.isArray(one.enum) && Array.isArray(other.enum)) {
    const others = other.enum
    all.enum = one.enum.filter(value => others.some(same => isEqual(same, value)))
  }
  if ('const' in one) all.const = one.const
  const [types, more] = [typesOf(one), typesOf(other)]
  if (types.length > 0 && more.length > 0) {
    const isIn = (type: string, list: readonly string[]) =>
      list.includes(type) || (type === 'integer' && list.includes('number'))
    all.type = [...types.filter(type => isIn(type, more)), ...more.filter(type => isIn(type, types))]
    delete all.nullable
  }
  if (isSchema(one.properties) && isSchema(other.properties))
    all.properties = mergedMembers(one.properties, other.properties)
  if ('required' in one && 'required' in other) all.required = namesIn([one.required, other.required].flat())
  for (const name of ['items', 'additionalProperties'])
    if (name in one && name in other)
      all[name] = one[name] === false || other[name] === false ? false : { allOf: [one[name], other[name]] }
  if (typeof one.multipleOf === 'number' && typeof other.multipleOf === 'number') {
    const isWhole = Number.isInteger(one.multipleOf) && Number.isInteger(other.multipleOf)
    all.multipleOf = isWhole
      ? (one.multipleOf * other.multipleOf) / divisor(one.multipleOf, other.multipleOf)
      : one.multipleOf
  }
  return all
}

function mergedMembers(one: Schema, other: Schema): Schema {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  const of = (name: string) => {
    if (!Object.hasOwn(one, name)) return other[name]
    return Object.hasOwn(other, name) ? { allOf: [one[name], other[name]] } : one[name]
  }
  return Object.fromEntries([...names].map(name => [name, of(name)]))
}

/** Returns the greatest common divisor. */
function divisor(one: number, other: number): number {
  return other === 0 ? one : divisor(other, one % other)
}
