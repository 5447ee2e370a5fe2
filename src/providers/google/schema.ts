import { isNumeric } from '../../core/validation/untrusted-json.ts'
import { isRecord, isText, type Json, record } from '../json.ts'
import { rewritten } from '../schemas.ts'

/** Keywords that `responseJsonSchema` documents. Others are dropped, which loosens the schema and is never rejected. */
const takenKeywords: ReadonlySet<string> = new Set(
  `$id $ref $anchor $defs type format title description enum required minItems maxItems minimum maximum
  propertyOrdering properties additionalProperties items prefixItems anyOf oneOf`.split(/\s+/),
)

/** Returns the schema with supported keywords. The body parser limits its depth. */
export function plainSchema(schema: Json): Json {
  const plain: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(modern(schema))) {
    const kept = takenKeywords.has(keyword) ? keptValue(keyword, value) : undefined
    if (kept !== undefined) plain[keyword] = kept
  }
  // Only `$` keywords may accompany a reference.
  if (plain.$ref === undefined) return plain
  return Object.fromEntries(Object.entries(plain).filter(([keyword]) => keyword.startsWith('$')))
}

/** Converts older spellings, and generators' forms of a single schema, a single value, and nullable values. */
function modern({ const: constant, definitions, allOf, ...schema }: Json): Json {
  const [only, ...more] = Array.isArray(allOf) ? allOf : []
  const merged: Json = {
    ...(isRecord(only) && more.length === 0 && modern(only)),
    ...schema,
    ...(isRecord(definitions) && { $defs: { ...definitions, ...record(schema.$defs) } }),
    ...(constant !== undefined && (constant === null ? { type: 'null' } : { enum: [constant] })),
  }
  const values = merged.enum
  if (!Array.isArray(values) || !values.includes(null)) return merged
  return { anyOf: [{ ...merged, enum: values.filter(value => value !== null) }, { type: 'null' }] }
}

function keptValue(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'enum':
      return enumOf(value)
    case '$ref':
      return isText(value) ? value.replace(/^#\/definitions\//, '#/$defs/') : undefined
    // `items: true` has no meaning and is rejected; `additionalProperties: false` is supported.
    case 'items':
      return isRecord(value) ? plainSchema(value) : undefined
    default:
      return rewritten(keyword, value, plainSchema)
  }
}

/** An empty string among the values is a 400; only strings and numbers are supported. */
function enumOf(value: unknown): readonly unknown[] | undefined {
  const values = Array.isArray(value) ? value.filter(one => isText(one) || isNumeric(one)) : []
  return values.length === 0 ? undefined : values
}
