/** Schemas of `POST /v1/moderations`, in the format of OpenAI's clients. */
import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '../../core/validation/validate.ts'
import { namedSchema, share, text } from '../../http/schemas.ts'

/** Maximum number of texts per request. */
const maximumTexts = 256

const textPart = Type.Object(
  {
    type: Type.Literal('text', { unmatched: 'unsupported_parameter', description: '"text": images are not moderated' }),
    text: Type.String(),
  },
  { additionalProperties: true },
)

export const moderationsSchema = Type.Object(
  {
    input: Type.Union([
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: maximumTexts }),
      Type.Array(textPart, { minItems: 1, maxItems: maximumTexts }),
    ]),
    model: nullable(Type.String({ maxLength: 256, description: 'without effect: the gateway has one moderation' })),
  },
  { additionalProperties: true, title: 'ModerationRequest' },
)
export type ModerationsBody = Static<typeof moderationsSchema>

const moderation = namedSchema('Moderation', {
  flagged: Type.Boolean(),
  categories: Type.Record(Type.String(), Type.Boolean(), {
    description: "OpenAI's categories; `gateway/…` for those that OpenAI has no name for",
  }),
  category_scores: Type.Record(Type.String(), share, {
    description: 'of the flagged category; the others are 0, since the classifier has one score for all',
  }),
  category_applied_input_types: Type.Record(Type.String(), Type.Array(Type.Literal('text'))),
  gateway_score: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'probability that chat would block the text, over all categories',
    examples: [0.02],
  }),
})
export type ModerationResult = Static<typeof moderation>

export const moderationsResponseSchema = namedSchema('ModerationResponse', {
  id: text('modr-5f0c1b7ae94d42d8'),
  model: text('gateway-moderation'),
  results: Type.Array(moderation),
})
