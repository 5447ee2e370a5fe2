/** Schemas of `POST /v1/embeddings`, in the format of OpenAI's clients. */
import { Type } from '@sinclair/typebox'
import { maximumInputs } from '../../core/models/embedding-models.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { nullable, oneOf } from '../../core/validation/validate.ts'
import { count, namedSchema, strictObject, text } from '../../http/schemas.ts'

const tokenId = Type.Integer({ minimum: 0 })

/** Fields except `input`. `parseInputs` reads `input`, because it reports the index of the first invalid entry. */
export const embeddingsFields = {
  model: Type.String({ minLength: 1, maxLength: maximumNameCharacters, examples: ['text-embedding-3-small'] }),
  dimensions: nullable(Type.Integer({ minimum: 1, maximum: 65_536 })),
  encoding_format: nullable(oneOf(['float', 'base64'])),
  user: nullable(Type.String({ maxLength: 512 })),
}

export const embeddingsSchema = Type.Object(
  {
    ...embeddingsFields,
    input: Type.Union(
      [
        Type.String({ minLength: 1 }),
        Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: maximumInputs }),
        Type.Array(tokenId, { minItems: 1 }),
        Type.Array(Type.Array(tokenId, { minItems: 1 }), { minItems: 1, maxItems: maximumInputs }),
      ],
      {
        description: 'a text, a list of texts, the token IDs of a text, or a list of lists of token IDs (cl100k_base)',
      },
    ),
  },
  { additionalProperties: true, title: 'EmbeddingsRequest' },
)

const embedding = namedSchema('Embedding', {
  object: Type.Literal('embedding'),
  index: count,
  embedding: Type.Union([
    Type.Array(Type.Number(), { examples: [[0.0123, -0.0456]] }),
    Type.String({ description: 'base64 of little-endian float32 values, if `encoding_format` is `base64`' }),
  ]),
})

export const embeddingsResponseSchema = namedSchema('EmbeddingsResponse', {
  object: Type.Literal('list'),
  data: Type.Array(embedding),
  model: text('text-embedding-3-small', 'the model as the request named it'),
  usage: strictObject({ prompt_tokens: count, total_tokens: count }),
})
