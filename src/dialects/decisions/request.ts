/**
 * Parses bodies of `POST /v1/decisions`, OpenAI's wire format: questions about an input, whose answers are probabilities. The
 * body passes as written to a provider that serves it; only the messages are read here, to moderate and count them.
 */
import { Type } from '@sinclair/typebox'
import type { ChatRequest } from '../../core/chat/chat.ts'
import { ReadValues } from '../../core/chat/request-texts.ts'
import { unreadParts } from '../../core/chat/tool-definitions.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { readConstraintsHeader, requestDemands } from '../../core/policy/constraints.ts'
import { chatRequestWithDefaults } from '../../core/request/chat-request.ts'
import { gatewayFields } from '../../core/request/gateway-fields.ts'
import { bodyText, imageAddress } from '../../core/request/part-schemas.ts'
import { promptCacheKey, tagsOfHeaders } from '../../core/request/tags.ts'
import { unknownNames } from '../../core/validation/unknown-names.ts'
import { invalidField, nullable, oneOf, validate } from '../../core/validation/validate.ts'
import { anyObject, isFields, open, refuseForeignObjects } from '../foreign-objects.ts'
import type { ReasoningOpener } from '../reasoning-seal.ts'
import { maximumItems, readInputItems } from '../responses/items.ts'

const instructions = Type.Union([
  Type.String({ minLength: 1, boundedBy: 'body' }),
  Type.Array(
    Type.Object(
      {
        type: oneOf(['input_text', 'input_image', 'input_json']),
        text: nullable(bodyText),
        image_url: nullable(imageAddress),
        detail: nullable(Type.String({ maxLength: 16 })),
        data: Type.Optional(Type.Unknown()),
      },
      open,
    ),
    { minItems: 1, maxItems: 256 },
  ),
])
const description = nullable(bodyText)
const label = Type.String({ minLength: 1, maxLength: 1024 })
const options = { minItems: 2, maxItems: 255 }

const question = Type.Object(
  {
    type: oneOf(['predicate', 'choice', 'score']),
    name: nullable(Type.String({ maxLength: 256 })),
    instructions,
    choices: nullable(
      Type.Array(Type.Object({ value: Type.Union([label, Type.Boolean()]), description }, open), options),
    ),
    levels: nullable(Type.Array(Type.Object({ label, description }, open), options)),
  },
  open,
)

/** The limits are those of OpenAI's SDK. */
export const decisionsSchema = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: maximumNameCharacters, examples: ['gateway/local'] }),
    input: Type.Union([
      Type.String({ minLength: 1, boundedBy: 'body' }),
      Type.Array(anyObject, { minItems: 1, maxItems: maximumItems }),
    ]),
    questions: Type.Array(question, { minItems: 1, maxItems: 400 }),
    prompt_cache_key: promptCacheKey,
    prompt_cache_options: nullable(anyObject),
    safety_identifier: nullable(Type.String({ maxLength: 128 })),
    constraints: gatewayFields.constraints,
  },
  { ...open, title: 'DecisionRequest' },
)

/** Returns the request of a parsed body. Throws `invalid_request` with the field at fault. */
export function readDecisions(
  given: unknown,
  { headers, text }: { readonly headers: Headers; readonly text: string },
  opener: ReasoningOpener,
): ChatRequest {
  const body = validate(decisionsSchema, given)
  const [unknown] = unknownNames(decisionsSchema, body)
  if (unknown !== undefined)
    throw invalidField(unknown, 'is no field of this endpoint. Remove it', 'unsupported_parameter')
  const { constraints, ...fields } = body
  const { input, questions } = fields
  refuseForeignObjects({ questions })
  for (const [index, { type, choices, levels }] of questions.entries()) {
    const missing =
      type === 'choice' && choices == null ? 'choices' : type === 'score' && levels == null ? 'levels' : null
    if (missing !== null) throw invalidField(`questions.${index}.${missing}`, 'is required')
  }
  const values = new ReadValues()
  const { messages } = readInputItems(withJsonAsText(input, values), [], opener, values)
  return chatRequestWithDefaults(messages, {
    dialect: 'decisions',
    source: {
      dialect: 'decisions',
      text,
      fields,
      messages,
      headers: {},
      needs: ['questions'],
      sameFormOnly: [],
      refused: [],
      unread: unreadParts({ input, questions }, values),
    },
    model: body.model,
    // Answers are numbers: the meter reserves its minimum, and the price of an answer is 0 where one is published.
    maxOutputTokens: 1,
    hedge: false,
    endUser: body.safety_identifier ?? null,
    tags: tagsOfHeaders(headers),
    ...requestDemands(constraints, readConstraintsHeader(headers)),
    bodyCharacters: text.length,
  })
}

/** JSON of an input is read as its text. */
function withJsonAsText(input: string | readonly object[], values: ReadValues): string | readonly unknown[] {
  if (typeof input === 'string') return input
  return input.map((item, index) => {
    if (!('content' in item) || !Array.isArray(item.content)) return item
    const content = item.content.map((part: unknown, at) => {
      if (!isFields(part) || part.type !== 'input_json') return part
      if (typeof part.data !== 'object' || part.data === null)
        throw invalidField(`input.${index}.content.${at}.data`, 'must be an object or an array')
      values.add(part.data)
      return { type: 'input_text', text: JSON.stringify(part.data) }
    })
    return { ...item, content }
  })
}
