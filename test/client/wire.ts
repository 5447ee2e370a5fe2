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

/** Returns the file's text. */
export function wireTypes(): string {
  const schemas = createSchemas()
  for (const [schema, direction] of spoken) schemas.of(schema, direction)
  const types = Object.entries(schemas.components()).map(
    ([name, schema]) => `${comment(schema)}export type ${name} = ${getType(schema)}\n`,
  )
  return `/** What travels, as the gateway's own schemas have it. Written by \`bun run client:types\`: change those, not this. */\n\n${types.join('\n')}`
}

function getType(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? ''
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf !== undefined) return schema.anyOf.map(getType).join(' | ')
  switch (schema.type) {
    case 'array':
      return `readonly (${schema.items === undefined ? 'unknown' : getType(schema.items)})[]`
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

function getObject({ properties = {}, patternProperties, additionalProperties, required = [] }: JsonSchema): string {
  const [values] = Object.values(patternProperties ?? {})
  const open = typeof additionalProperties === 'object' ? additionalProperties : values
  if (open !== undefined) return `Record<string, ${getType(open)}>`
  if (Object.keys(properties).length === 0) return 'Record<string, unknown>'
  const fields = Object.entries(properties).map(([name, property]) => {
    const optional = required.includes(name) ? '' : '?'
    return `${comment(property)}${name}${optional}: ${getType(property)}${optional === '' ? '' : ' | undefined'}\n`
  })
  return `{\n${fields.join('')}}`
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
