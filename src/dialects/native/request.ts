/** Parses native chat bodies. Unknown fields are rejected at every level, so that a misspelled field is not ignored. */
import { Type } from '@sinclair/typebox'
import { type ChatRequest, imageDetails } from '../../core/chat/chat.ts'
import {
  chatRequestFields,
  maximumMessages,
  maximumTools,
  parseChatRequestFields,
} from '../../core/request/chat-request.ts'
import { parseMessages } from '../../core/request/parse-messages.ts'
import {
  bodyText,
  cacheMarkSchema,
  callId,
  filePartSchema,
  imageAddress,
  toolCallSchema,
} from '../../core/request/part-schemas.ts'
import { nullable, oneOf, strictObject, validate } from '../../core/validation/validate.ts'

const cache_control = cacheMarkSchema(false)
const detail = nullable(oneOf(imageDetails))

const textPart = strictObject({ type: oneOf(['text'], 'unsupported_parameter'), text: bodyText, cache_control })
const imagePart = strictObject({ type: Type.Literal('image'), url: imageAddress, detail, cache_control })
const imageUrlPart = strictObject({
  type: Type.Literal('image_url'),
  image_url: strictObject({ url: imageAddress, detail }),
  cache_control,
})
const textContent = Type.Union([bodyText, Type.Array(textPart, { minItems: 1 })])
const userPart = Type.Union([textPart, imagePart, imageUrlPart, filePartSchema(false)])
const userContent = Type.Union([bodyText, Type.Array(userPart, { minItems: 1 })])

const message = Type.Union(
  [
    strictObject({ role: Type.Literal('system'), content: textContent, cache_control }),
    strictObject({ role: Type.Literal('user'), content: userContent, cache_control }),
    strictObject({
      role: Type.Literal('assistant'),
      content: nullable(textContent),
      reasoning: nullable(bodyText),
      tool_calls: nullable(Type.Array(toolCallSchema(false), { maxItems: maximumTools })),
      cache_control,
    }),
    strictObject({ role: Type.Literal('tool'), content: textContent, tool_call_id: callId, cache_control }),
  ],
  { title: 'ChatMessage' },
)

/** The body of `POST /api/v1/chat`. */
export const nativeSchema = strictObject(
  {
    ...chatRequestFields(false),
    messages: nullable(Type.Array(message, { minItems: 1, maxItems: maximumMessages })),
    prompt: nullable(Type.String({ minLength: 1, boundedBy: 'body' })),
  },
  { title: 'ChatRequest' },
)

/**
 * Parses a body and the `X-Gateway-*` headers, which take precedence. `bodyCharacters` is the length of the body's text.
 * Throws `invalid_request` or `unsupported_parameter` with the field at fault.
 */
export function readNative(value: unknown, headers: Headers, bodyCharacters: number): ChatRequest {
  const body = validate(nativeSchema, value)
  return {
    dialect: 'native',
    ...parseChatRequestFields(body, headers),
    messages: parseMessages(body.messages ?? null, body.prompt ?? null),
    bodyCharacters,
  }
}
