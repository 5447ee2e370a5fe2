import { isDemanding } from '../../core/chat/tool-definitions.ts'
import { isRecord, type Json, record } from '../json.ts'
import type { AdapterRequest } from '../provider.ts'
import { describesObject, rewritten, subschemas } from '../schemas.ts'

/** Keywords that constrained decoding supports with any value; `oneOf` is sent as `anyOf`. */
const nativeKeywords: ReadonlySet<string> = new Set(
  `type title description enum const default required $ref properties $defs definitions anyOf allOf oneOf`.split(' '),
)
const nativeFormats: ReadonlySet<unknown> = new Set(
  `date-time time date duration email hostname uri ipv4 ipv6 uuid`.split(' '),
)

/**
 * Returns the schema for constrained decoding: objects closed, and unsupported constraints moved into the description,
 * which the model still reads.
 */
export function closed(schema: Json): Json {
  const kept: Record<string, unknown> = {}
  const told: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (isNative(keyword, value)) kept[keyword === 'oneOf' ? 'anyOf' : keyword] = rewritten(keyword, value, closed)
    else if (keyword !== 'additionalProperties' && !keyword.startsWith('$')) told[keyword] = value
  }
  if (describesObject(schema)) Object.assign(kept, { properties: kept.properties ?? {}, additionalProperties: false })
  if (Object.keys(told).length > 0) {
    kept.description = [schema.description, JSON.stringify(told)].filter(text => typeof text === 'string').join('\n')
  }
  return kept
}

function isNative(keyword: string, value: unknown): boolean {
  switch (keyword) {
    case 'items':
      return isRecord(value)
    case 'format':
      return nativeFormats.has(value)
    case 'minItems':
      return value === 0 || value === 1
    default:
      return nativeKeywords.has(keyword)
  }
}

/** Returns an object schema for any schema, since tool input must be an object. */
export function objectSchema(schema: Json): Json {
  return { ...schema, type: 'object', properties: record(schema.properties) }
}

/**
 * Returns true if closing the schema keeps its meaning. A map with arbitrary keys would become an empty object, and
 * recursive or external references are rejected.
 */
export function isClosable(root: Json): boolean {
  const done = new Set<Json>()
  const path = new Set<Json>()
  const visit = (schema: Json | null): boolean => {
    if (schema === null) return false
    if (done.has(schema)) return true
    if (path.has(schema) || isOpenMap(schema)) return false
    path.add(schema)
    const sound = subschemas(schema).every(visit) && (schema.$ref === undefined || visit(referred(root, schema.$ref)))
    path.delete(schema)
    done.add(schema)
    return sound
  }
  return visit(root)
}

function isOpenMap(schema: Json): boolean {
  const { properties, additionalProperties, patternProperties } = schema
  if (!describesObject(schema) || additionalProperties === false) return false
  if (patternProperties !== undefined || hasKeys(additionalProperties)) return true
  return !hasKeys(properties) && (additionalProperties !== undefined || properties === undefined)
}

function hasKeys(value: unknown): boolean {
  return Object.keys(record(value)).length > 0
}

/** Returns the schema of a local reference; null = not found. */
function referred(root: Json, reference: unknown): Json | null {
  if (reference === '#') return root
  const [, keyword = '', name = ''] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference)) ?? []
  const schema = record(root[keyword])[name]
  return isRecord(schema) ? schema : null
}

/**
 * Tool that models without JSON schema support are forced to call; the reader emits its input as text. Readers do not
 * know the request, hence a name that no client's tool has.
 */
export const jsonAnswerTool = 'gateway_respond_in_json'

/** How the model is made to output JSON: by the API, by a forced tool, or by an instruction if neither is possible. */
export type JsonAnswer =
  | { readonly kind: 'free' }
  | { readonly kind: 'native'; readonly schema: Json }
  | { readonly kind: 'tool'; readonly schema: Json; readonly description: string }
  | { readonly kind: 'line'; readonly schema: Json | null }

/** Returns the method for the response format. */
export function jsonAnswerFor({ request, model: { parameters: rules } }: AdapterRequest): JsonAnswer {
  const format = request.responseFormat
  switch (format.type) {
    case 'text':
      return { kind: 'free' }
    case 'json_object':
      return { kind: 'line', schema: null }
    case 'json_schema': {
      const { schema } = format
      if (rules.responseFormat === 'json_schema' && isClosable(schema))
        return { kind: 'native', schema: closed(schema) }
      // A client that forces its own tool gets that call. Tool input is always an object.
      const calls = request.tools.length > 0 && isDemanding(request.toolChoice)
      if (calls || rules.forcedToolChoice === 'rejected' || !describesObject(schema)) return { kind: 'line', schema }
      const about = format.description === null ? '' : `: ${format.description}`
      return { kind: 'tool', schema, description: `Gives the final answer, \`${format.name}\`${about}` }
    }
  }
}

/** Returns the lines to add to the system text. */
export function jsonLines(json: JsonAnswer): readonly string[] {
  if (json.kind !== 'line') return []
  if (json.schema === null) return ['Answer with one JSON object and nothing else: no prose, no code fence.']
  const schema = JSON.stringify(json.schema)
  return [
    `Answer with one JSON value and nothing else: no prose, no code fence. It satisfies this JSON schema: ${schema}`,
  ]
}
