import { type TArray, type TSchema, TypeGuard } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { describeExpected } from '../core/validation/validate.ts'

/**
 * Returns all problems of a value with their paths, without the values. Objects and lists are checked item by item, so
 * that one invalid field does not hide the next.
 */
export function faultsOf(schema: TSchema, value: unknown, path: string): readonly string[] {
  if (Value.Check(schema, value)) return []
  if (TypeGuard.IsObject(schema) && isJsonObject(value)) {
    const { properties } = schema
    const unknown = Object.keys(value).filter(key => !Object.hasOwn(properties, key))
    const parts = Object.entries(properties).filter(
      ([key, part]) => Object.hasOwn(value, key) || !TypeGuard.IsOptional(part),
    )
    return [
      ...unknown.map(key => `${under(path, key)}: unknown key; use one of ${Object.keys(properties).join(', ')}`),
      ...parts.flatMap(([key, part]) =>
        Object.hasOwn(value, key)
          ? faultsOf(part, value[key], under(path, key))
          : [`${under(path, key)}: is required: ${describeExpected(part)}`],
      ),
    ]
  }
  // An empty or too long list is reported as a whole.
  const faults = TypeGuard.IsArray(schema) && Array.isArray(value) ? itemFaults(schema, value, path) : []
  return faults.length > 0 ? faults : [`${path || 'the file'}: must be ${describeExpected(schema)}`]
}

function itemFaults(schema: TArray, items: readonly unknown[], path: string): readonly string[] {
  return items.flatMap((item, at) => faultsOf(schema.items, item, under(path, String(at))))
}

const maximumKeyCharacters = 64

function under(path: string, key: string): string {
  return `${path === '' ? '' : `${path}.`}${key.slice(0, maximumKeyCharacters).replace(/\p{Cc}/gu, '')}`
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
