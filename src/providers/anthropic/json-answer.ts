import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { Json } from '../json.ts'
import type { AdapterRequest } from '../provider.ts'
import { describesObject } from '../schemas.ts'
import { closed, isClosable } from './schema.ts'

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
