/** Parses the tools and schemas of a Gemini request. */
import { type Static, Type } from '@sinclair/typebox'
import type { Tool, ToolChoice } from '../../core/chat/chat.ts'
import type { ReadValues } from '../../core/chat/request-texts.ts'
import { maximumTools } from '../../core/request/chat-request.ts'
import { bodyText } from '../../core/request/part-schemas.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { anyObject, type Fields, isFields, open } from '../foreign-objects.ts'

const declaration = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$',
      description: 'a name of 1 to 128 letters, digits, `_`, `.`, `:` or `-` that begins with a letter or `_`',
    }),
    description: nullable(bodyText),
    parameters: nullable(anyObject),
    parametersJsonSchema: nullable(anyObject),
  },
  open,
)
const modes = ['AUTO', 'ANY', 'NONE', 'VALIDATED', 'MODE_UNSPECIFIED'] as const

export const toolFields = {
  tools: nullable(
    Type.Array(
      Type.Object({ functionDeclarations: nullable(Type.Array(declaration, { maxItems: maximumTools })) }, open),
      { maxItems: maximumTools },
    ),
  ),
  toolConfig: nullable(
    Type.Object(
      {
        functionCallingConfig: nullable(
          Type.Object(
            {
              mode: nullable(oneOf(modes)),
              allowedFunctionNames: nullable(Type.Array(Type.String({ maxLength: 128 }), { maxItems: maximumTools })),
            },
            open,
          ),
        ),
      },
      open,
    ),
  ),
}

type ToolBody = Static<ReturnType<typeof Type.Object<typeof toolFields>>>

type DeclaredTools = {
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | null
}

/** Google charges its search and its page reader apart: the gateway's web access replaces them. */
export const webTools: ReadonlySet<string> = new Set(
  'tools.googleSearch tools.googleSearchRetrieval tools.urlContext'.split(' '),
)

/** Parses tools and choice. Throws `invalid_request` with the tool at fault. */
export function readGeminiTools({ tools: lists, toolConfig }: ToolBody, values: ReadValues): DeclaredTools {
  const tools = new Map<string, Tool>()
  for (const [at, { functionDeclarations }] of (lists ?? []).entries())
    for (const [index, { name, description, parameters, parametersJsonSchema }] of (
      functionDeclarations ?? []
    ).entries()) {
      const place = `tools.${at}.functionDeclarations.${index}.name`
      if (tools.has(name)) throw invalidField(place, 'is the name of an earlier tool too: give each its own')
      const schema = parametersJsonSchema ?? (parameters == null ? null : jsonSchema(parameters))
      tools.set(name, {
        name,
        description: description ?? null,
        parameters: isFields(schema) ? schema : null,
        strict: null,
      })
      values.add(name, description, parameters ?? parametersJsonSchema)
    }
  const { mode, allowedFunctionNames: allowed } = toolConfig?.functionCallingConfig ?? {}
  const place = 'toolConfig.functionCallingConfig'
  const named = [...new Set(allowed ?? [])]
  if (named.some(name => !tools.has(name)))
    throw invalidField(`${place}.allowedFunctionNames`, 'must be names of declared functions')
  if (mode === 'ANY' && tools.size === 0) throw invalidField(`${place}.mode`, 'requires a declared function in `tools`')
  const all = [...tools.values()]
  const [only] = named
  const isNamed = mode === 'ANY' && named.length === 1 && only !== undefined
  return {
    tools: named.length === 0 || isNamed ? all : all.filter(({ name }) => named.includes(name)),
    toolChoice: tools.size === 0 || mode == null ? null : isNamed ? { name: only } : choices[mode],
  }
}

const choices: Readonly<Record<(typeof modes)[number], ToolChoice | null>> = {
  AUTO: 'auto',
  VALIDATED: 'auto',
  ANY: 'required',
  NONE: 'none',
  MODE_UNSPECIFIED: null,
}

/** Bounds that Google writes as a text, like every number of 64 bits. */
const bounds: ReadonlySet<string> = new Set(
  'minItems maxItems minLength maxLength minProperties maxProperties'.split(' '),
)

/** Returns the JSON schema of Google's own form of a schema: upper-case types, and `nullable`. The body parser limits its depth. */
export function jsonSchema(schema: Fields): Fields {
  const { nullable: isNullable, propertyOrdering: _, ...members } = schema
  const written: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members))
    if (name === 'type' && typeof value === 'string')
      written.type = isNullable === true ? [value.toLowerCase(), 'null'] : value.toLowerCase()
    else if (name === 'properties' && isFields(value))
      written.properties = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, innerSchema(inner)]))
    else if (name === 'items' || name === 'anyOf') written[name] = innerSchema(value)
    else written[name] = bounds.has(name) && typeof value === 'string' ? Number(value) : value
  // A value beside the type must be among the listed ones.
  if (isNullable === true && Array.isArray(written.enum)) written.enum = [...written.enum, null]
  return written
}

function innerSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(innerSchema)
  return isFields(value) ? jsonSchema(value) : value
}
