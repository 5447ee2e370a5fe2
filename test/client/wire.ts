/**
 * Writes `src/client/wire.ts`: the gateway's schemas of its responses as TypeScript. The types cannot be imported
 * there, because users of the library have neither the schemas nor their package.
 */
import type { TSchema } from '@sinclair/typebox'
import { feedbackSchema, learningShape, ratedShape } from '../../src/console/insights/schemas.ts'
import { modelListShape } from '../../src/dialects/models/schemas.ts'
import { dryRunShape } from '../../src/dialects/native/dry-run-schemas.ts'
import { estimateRequestSchema, estimateShape } from '../../src/dialects/native/estimate.ts'
import { nativeSchema } from '../../src/dialects/native/request.ts'
import { chatEventShape, chatReplyShape } from '../../src/dialects/native/schema.ts'
import { createSchemas, type Direction, type JsonSchema } from '../../src/http/reference/schemas.ts'
import { enhancementShape, errorShape } from '../../src/http/schemas.ts'

export const wirePath = new URL('../../src/client/wire.ts', import.meta.url)

const spoken: readonly (readonly [TSchema, Direction])[] = [
  [nativeSchema, 'asked'],
  [estimateRequestSchema, 'asked'],
  [feedbackSchema, 'asked'],
  [chatReplyShape, 'answered'],
  [chatEventShape, 'answered'],
  [enhancementShape, 'answered'],
  [estimateShape, 'answered'],
  [modelListShape, 'answered'],
  [dryRunShape, 'answered'],
  [ratedShape, 'answered'],
  [learningShape, 'answered'],
  [errorShape, 'answered'],
]

/** Returns the file's text. A type that several properties have is declared once, named after the first of them. */
export function wireTypes(): string {
  const schemas = createSchemas()
  for (const [schema, direction] of spoken) schemas.of(schema, direction)
  const components = Object.entries(schemas.components())
  const uses = new Map<string, number>()
  const names = new Map<string, string>()
  const shared: [name: string, text: string][] = []
  const write = createWriter((schema, property) => {
    const { description: _, ...form } = schema
    const key = JSON.stringify(form)
    uses.set(key, (uses.get(key) ?? 0) + 1)
    const known = names.get(key)
    if (known !== undefined || property === null) return known ?? null
    const name = getTypeName(property)
    const isTaken = name in globalThis || [...components, ...shared].some(([other]) => other === name)
    if (!isRepeated.has(key) || isTaken) return null
    names.set(key, name)
    const place: [string, string] = [name, '']
    shared.push(place)
    place[1] = write(form, null, true)
    return name
  })
  const isRepeated = new Set<string>()
  for (const [, schema] of components) write(schema, null)
  for (const [key, count] of uses) if (count > 1) isRepeated.add(key)
  const types = components.map(([name, schema]) => `${comment(schema)}export type ${name} = ${write(schema, null)}\n`)
  const own = shared.map(([name, text]) => `type ${name} = ${text}\n`)
  return `/** What travels, as the gateway's own schemas have it. Written by \`bun run client:types\`: change those, not this. */\n\n${[...types, ...own].join('\n')}`
}

/** `left_out` becomes `LeftOut`, and the items of `attempts` are an `Attempt`. */
function getTypeName(property: string): string {
  const words = property.split('_').map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return words.join('').replace(/s$/, '')
}

/** Returns a writer of types. `findName` returns the name of an object or of a list of values that is declared elsewhere. */
function createWriter(findName: (schema: JsonSchema, property: string | null) => string | null) {
  const write = (schema: JsonSchema, property: string | null, isDeclaration = false): string => {
    const named =
      isDeclaration || (schema.type !== 'object' && schema.enum === undefined) ? null : findName(schema, property)
    if (named !== null) return named
    if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? ''
    if (schema.const !== undefined) return literal(schema.const)
    if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
    if (schema.anyOf !== undefined) return schema.anyOf.map(part => write(part, property)).join(' | ')
    switch (schema.type) {
      case 'array':
        return `readonly (${schema.items === undefined ? 'unknown' : write(schema.items, property)})[]`
      case 'object':
        return getObject(schema)
      case 'integer':
      case 'number':
        return 'number'
      case 'string':
      case 'boolean':
      case 'null':
        return schema.type
      default:
        return 'unknown'
    }
  }
  const getObject = ({
    properties = {},
    patternProperties,
    additionalProperties,
    required = [],
  }: JsonSchema): string => {
    const [values] = Object.values(patternProperties ?? {})
    const open = typeof additionalProperties === 'object' ? additionalProperties : values
    if (open !== undefined) return `Record<string, ${write(open, null)}>`
    if (Object.keys(properties).length === 0) return 'Record<string, unknown>'
    const fields = Object.entries(properties).map(([name, property]) => {
      const optional = required.includes(name) ? '' : '?'
      return `${comment(property)}${name}${optional}: ${write(property, name)}${optional === '' ? '' : ' | undefined'}\n`
    })
    return `{\n${fields.join('')}}`
  }
  return write
}

function comment({ description }: JsonSchema): string {
  return description === undefined ? '' : `/** ${description} */\n`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value)
}

/** Returns the text in the repository's format. */
export function formatted(text: string): string {
  const biome = new URL('../../node_modules/.bin/biome', import.meta.url).pathname
  const root = new URL('../..', import.meta.url).pathname
  const run = Bun.spawnSync([biome, 'format', '--stdin-file-path=src/client/wire.ts'], {
    cwd: root,
    stdin: Buffer.from(text),
  })
  return run.stdout.toString()
}

if (import.meta.main) await Bun.write(wirePath, formatted(wireTypes()))
