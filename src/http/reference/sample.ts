import type { JsonSchema } from './schemas.ts'

/** Returns a value that fits the schema: its own example if it has one, otherwise the simplest value. */
export function sampleOf(schema: JsonSchema): unknown {
  if (schema.examples !== undefined) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.anyOf?.[0] !== undefined) return sampleOf(schema.anyOf[0])
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([name]) => schema.required?.includes(name))
          .map(([name, property]) => [name, sampleOf(property)]),
      )
    case 'array':
      return schema.items === undefined || schema.maxItems === 0 ? [] : [sampleOf(schema.items)]
    case 'string':
      return '…'
    case 'integer':
    case 'number':
      return schema.minimum ?? 0
    case 'boolean':
      return false
    default:
      return null
  }
}
