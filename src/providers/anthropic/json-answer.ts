import type { Json } from '../json.ts'
import { isDemanding } from '../parameters.ts'
import type { ProviderAsk } from '../provider.ts'
import { describesObject } from '../schemas.ts'
import { closed, isClosable } from './schema.ts'

/**
 * Where a model cannot be held to a JSON schema, it is made to call this tool, and the reader hands the call's input out
 * as text. A reader knows nothing of its request, hence a name that no caller's tool will bear.
 */
export const jsonAnswerTool = 'gateway_respond_in_json'

/** How the model is held to JSON: by the API, by a forced tool, or by a line of instruction where neither will do. */
export type JsonAnswer =
  | { readonly kind: 'free' }
  | { readonly kind: 'native'; readonly schema: Json }
  | { readonly kind: 'tool'; readonly schema: Json; readonly description: string }
  | { readonly kind: 'line'; readonly schema: Json | null }

/** What becomes of the response format. */
export function jsonAnswerFor({ ask, model: { parameters: rules } }: ProviderAsk): JsonAnswer {
  const format = ask.responseFormat
  switch (format.type) {
    case 'text':
      return { kind: 'free' }
    case 'json_object':
      return { kind: 'line', schema: null }
    case 'json_schema': {
      const { schema } = format
      if (rules.responseFormat === 'json_schema' && isClosable(schema))
        return { kind: 'native', schema: closed(schema) }
      // A caller who demands one of its own tools gets that call; a tool's input is always an object.
      const calls = ask.tools.length > 0 && isDemanding(ask.toolChoice)
      if (calls || rules.forcedToolChoice === 'rejected' || !describesObject(schema)) return { kind: 'line', schema }
      const about = format.description === null ? '' : `: ${format.description}`
      return { kind: 'tool', schema, description: `Gives the final answer, \`${format.name}\`${about}` }
    }
  }
}

/** What the system's text must say of it. */
export function jsonLines(json: JsonAnswer): readonly string[] {
  if (json.kind !== 'line') return []
  if (json.schema === null) return ['Answer with one JSON object and nothing else: no prose, no code fence.']
  const schema = JSON.stringify(json.schema)
  return [
    `Answer with one JSON value and nothing else: no prose, no code fence. It satisfies this JSON schema: ${schema}`,
  ]
}
