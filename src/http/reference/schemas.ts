/**
 * Converts the gateway's schemas to plain JSON Schema 2020-12: removes the checker's own keywords and defines each
 * named schema once.
 */
import type { TSchema } from '@sinclair/typebox'

/** The part of JSON Schema that the gateway uses. */
export type JsonSchema = {
  readonly $ref?: string
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly format?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: boolean | JsonSchema
  readonly required?: readonly string[]
  readonly examples?: readonly unknown[]
  readonly [bound: `${'min' | 'max'}${string}`]: number | undefined
  readonly pattern?: string
  readonly contentSchema?: JsonSchema
}

/** Requests reject unknown fields as their schemas define; responses may gain fields. */
export type Direction = 'asked' | 'answered'

export type Schemas = {
  /** Returns the schema with references in place of those with a `title`. */
  of(schema: TSchema, direction: Direction): JsonSchema
  /** All referenced schemas so far, by name. */
  components(): Readonly<Record<string, JsonSchema>>
}

const ours = new Set(['boundedBy', 'unmatched'])

/** Collects the named schemas of one document. Throws if one name has two different schemas. */
export function createSchemas(): Schemas {
  const named = new Map<string, JsonSchema>()
  /** Each schema is converted once, because every route refers to some of them. */
  const seen = new Set<JsonSchema>()

  const plain = (schema: JsonSchema, direction: Direction): JsonSchema => {
    if (schema.title === undefined) return bare(schema, direction)
    const { title } = schema
    const reference = { $ref: `#/components/schemas/${title}` }
    if (seen.has(schema)) return reference
    seen.add(schema)
    const own = bare(schema, direction)
    const known = named.get(title)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(own))
      throw new Error(`two different schemas are called ${title}: change the title of one`)
    named.set(title, own)
    return reference
  }

  const bare = (schema: JsonSchema, direction: Direction): JsonSchema => {
    const { title, anyOf, items, properties, patternProperties, additionalProperties, ...rest } = schema
    const each = (schemas: Readonly<Record<string, JsonSchema>>) =>
      Object.fromEntries(Object.entries(schemas).map(([key, jsonSchema]) => [key, plain(jsonSchema, direction)]))
    const closed = typeof additionalProperties === 'boolean' && (additionalProperties || direction === 'asked')
    const [anyName, ...otherNames] = Object.entries(patternProperties ?? {})
    const isOpenRecord = anyName?.[0] === '^(.*)$' && otherNames.length === 0
    return {
      ...Object.fromEntries(Object.entries(rest).filter(([key]) => !ours.has(key))),
      ...(anyOf === undefined ? {} : choice(anyOf, jsonSchema => plain(jsonSchema, direction))),
      ...(items === undefined ? {} : { items: plain(items, direction) }),
      ...(properties === undefined ? {} : { properties: each(properties) }),
      ...(closed ? { additionalProperties } : {}),
      ...(patternProperties === undefined
        ? {}
        : isOpenRecord
          ? { additionalProperties: plain(anyName[1], direction) }
          : { patternProperties: each(patternProperties) }),
    }
  }

  return {
    of: (schema, direction) => plain(schema as JsonSchema, direction),
    components: () => Object.fromEntries([...named].sort(([left], [right]) => (left < right ? -1 : 1))),
  }
}

/** Flattens nested unions; a union of strings becomes an `enum`. */
function choice(members: readonly JsonSchema[], plain: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const flat = members.flatMap(member => member.anyOf ?? [member])
  const constants = flat.filter(member => member.const !== undefined)
  const others = flat.filter(member => member.const === undefined).map(plain)
  if (constants.length < 2) return { anyOf: flat.map(plain) }
  const closedSet = { type: 'string', enum: constants.map(member => member.const) }
  return others.length === 0 ? closedSet : { anyOf: [closedSet, ...others] }
}

/** Returns a value that fits the schema: its own example if it has one, otherwise the simplest value. */
export function getSample(schema: JsonSchema): unknown {
  if (schema.examples !== undefined) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.anyOf?.[0] !== undefined) return getSample(schema.anyOf[0])
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([name]) => schema.required?.includes(name))
          .map(([name, property]) => [name, getSample(property)]),
      )
    case 'array':
      return schema.items === undefined || schema.maxItems === 0 ? [] : [getSample(schema.items)]
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
