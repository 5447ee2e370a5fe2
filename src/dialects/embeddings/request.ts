/** Parses bodies of `POST /v1/embeddings`. Unknown fields pass, null means absent, and `stream` has no effect. */
import { Type } from '@sinclair/typebox'
import type { ChatRequest, EmbeddingInput, EmbeddingInputs } from '../../core/chat/chat.ts'
import { inputError, maximumInputs } from '../../core/chat/embeddings.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { chatRequestWithDefaults } from '../../core/request/chat-request.ts'
import { tagsOfHeaders } from '../../core/request/tags.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import { nullable, oneOf, validate } from '../../core/validation/validate.ts'

const tokenId = Type.Integer({ minimum: 0 })

/** `parseInputs` reads `input` of a request, because it reports the index of the first invalid entry. */
const fields = {
  model: Type.String({ minLength: 1, maxLength: maximumNameCharacters, examples: ['text-embedding-3-small'] }),
  dimensions: nullable(Type.Integer({ minimum: 1, maximum: 65_536 })),
  encoding_format: nullable(oneOf(['float', 'base64'])),
  user: nullable(Type.String({ maxLength: 512 })),
}

export const embeddingsSchema = Type.Object(
  {
    ...fields,
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

const fieldsSchema = Type.Object({ ...fields, input: Type.Optional(Type.Unknown()) })
const readHere = new Set([...Object.keys(fields), 'input', 'stream'])

/** A request, the model as the client named it, and how its vectors are written. */
export type EmbeddingsRequest = {
  readonly request: ChatRequest
  readonly embedding: EmbeddingInputs
  readonly model: string
  readonly encoding: 'float' | 'base64'
}

/** Returns the request of a parsed body. Throws `invalid_request` with the field at fault. */
export function readEmbeddingsRequest(value: unknown, headers: Headers): EmbeddingsRequest {
  const body = validate(fieldsSchema, value)
  const extras = Object.entries(body).filter(([name, field]) => !readHere.has(name) && field !== null)
  const embedding = { ...parseInputs(body.input), texts: [], tokens: [], dimensions: body.dimensions ?? null }
  const request = chatRequestWithDefaults([], {
    dialect: 'embeddings',
    embedding,
    model: body.model,
    // A vector is no output: the meter reserves its minimum, and nothing of it streams.
    maxOutputTokens: 1,
    hedge: false,
    fallback: 'any',
    endUser: body.user ?? null,
    extras: Object.fromEntries(extras),
    tags: tagsOfHeaders(headers),
  })
  return { request, embedding, model: body.model, encoding: body.encoding_format ?? 'float' }
}

/**
 * Returns the inputs of a request's `input`: a text, a list of texts, a list of token IDs, or a list of such lists.
 * Throws `invalid_request` that names `input` or the item.
 */
function parseInputs(input: unknown): Pick<EmbeddingInputs, 'inputs' | 'isSingle'> {
  if (input === undefined || input === null) throw invalidInput('is missing: it must be')
  if (typeof input === 'string') return { inputs: [checkedText(input, 'input')], isSingle: true }
  if (!Array.isArray(input)) throw invalidInput('must be')
  const list: readonly unknown[] = input
  if (list.length === 0) throw invalidInput('must not be an empty list: it must be')
  if (typeof list[0] === 'number') return { inputs: [checkedIds(list, 'input')], isSingle: true }
  if (list.length > maximumInputs)
    throw inputError('input', `must hold at most ${maximumInputs} inputs and holds ${list.length}. Split the request`)
  const ofIds = Array.isArray(list[0])
  const inputs = list.map((item, at): EmbeddingInput => {
    const place = `input.${at}`
    if (ofIds && Array.isArray(item)) return checkedIds(item, place)
    if (!ofIds && typeof item === 'string') return checkedText(item, place)
    const kind = ofIds ? 'a list of token IDs' : 'a string'
    throw inputError(at === 0 ? 'input' : place, at === 0 ? `must be ${forms}` : `must be ${kind} like those before it`)
  })
  return { inputs, isSingle: false }
}

const forms = 'a string, a list of strings, a list of token IDs, or a list of lists of token IDs'

function invalidInput(problem: string): GatewayError {
  return inputError('input', `${problem} ${forms}`)
}

function checkedText(text: string, place: string): string {
  if (text === '') throw inputError(place, 'must not be an empty string')
  return text
}

function checkedIds(ids: readonly unknown[], place: string): readonly number[] {
  if (ids.length === 0) throw inputError(place, 'must not be an empty list of token IDs')
  if (!ids.every(isId)) throw inputError(place, 'must hold token IDs only: integers from 0')
  return ids
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
