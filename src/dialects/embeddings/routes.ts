import { Type } from '@sinclair/typebox'
import type { ChatRequest, EmbeddingInput, EmbeddingInputs, Vector } from '../../core/chat/chat.ts'
import { encodeVector, inputError, maximumInputs } from '../../core/chat/embeddings.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import { nullable, oneOf, strictObject, validate } from '../../core/validation/validate.ts'
import type { ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatErrors, chatRoute, modelHeaders } from '../../http/chat-route-docs.ts'
import { count, namedSchema, text } from '../../http/schemas.ts'
import {
  type EmbeddingsDeps,
  type EmbeddingsForm,
  embeddingsEndpoint,
  embeddingsRequest,
  vectorPieces,
} from './endpoint.ts'

/** Yields the text of a response in OpenAI's form. */
export function embeddingsBody(
  { model, encoding }: Pick<EmbeddingsRequest, 'model' | 'encoding'>,
  vectors: readonly Vector[],
  inputTokens: number,
): Generator<string, void, void> {
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens }
  const each = (vector: Vector, index: number) => {
    const embedding = encoding === 'base64' ? `"${encodeVector(vector)}"` : JSON.stringify(Array.from(vector))
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`
  }
  const end = `],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`
  return vectorPieces({ begin: '{"object":"list","data":[', each, end }, vectors)
}

const openAiForm: EmbeddingsForm = {
  read(body, { headers }) {
    const request = readEmbeddingsRequest(body, headers)
    return { ...request, write: (vectors, inputTokens) => embeddingsBody(request, vectors, inputTokens) }
  },
}

const embedding = namedSchema('Embedding', {
  object: Type.Literal('embedding'),
  index: count,
  embedding: Type.Union([
    Type.Array(Type.Number(), { examples: [[0.0123, -0.0456]] }),
    Type.String({ description: 'base64 of little-endian float32 values, if `encoding_format` is `base64`' }),
  ]),
})

const embeddingsResponseSchema = namedSchema('EmbeddingsResponse', {
  object: Type.Literal('list'),
  data: Type.Array(embedding),
  model: text('text-embedding-3-small', 'the model as the request named it'),
  usage: strictObject({ prompt_tokens: count, total_tokens: count }),
})

/** `POST /v1/embeddings`: OpenAI's wire format, for every embedding model. */
export function embeddings(deps: ChatRouteDeps & EmbeddingsDeps) {
  return chatRoute(deps, '/v1/embeddings', embeddingsEndpoint(deps, openAiForm), {
    summary: 'Embeddings',
    description:
      "OpenAI's wire format for every embedding model. Only the named model serves, possibly from another host: vectors of two " +
      'models cannot be compared. Long lists are split into several upstream calls.',
    body: embeddingsSchema,
    examples: {
      'one text': { model: 'text-embedding-3-small', input: 'A cat sat on a mat.' },
      'several texts, as base64': {
        model: 'gemini-embedding-001',
        input: ['A cat sat on a mat.', 'Ein Hund lag vor der Tür.'],
        encoding_format: 'base64',
        dimensions: 768,
      },
      'token IDs of cl100k_base': { model: 'text-embedding-3-large', input: [[32, 8415, 7731], [15339]] },
    },
    requestHeaders: modelHeaders,
    answer: embeddingsResponseSchema,
    answerHeaders: ['served', 'cost', 'estimated', 'quotaStatus'],
    errors: chatErrors.filter(code => code !== 'model_deprecated'),
  })
}

/** Parses bodies of `POST /v1/embeddings`. Unknown fields pass, null means absent, and `stream` has no effect. */

const tokenId = Type.Integer({ minimum: 0 })

/** `parseInputs` reads `input` of a request, because it reports the index of the first invalid entry. */
const fields = {
  model: Type.String({ minLength: 1, maxLength: maximumNameCharacters, examples: ['text-embedding-3-small'] }),
  dimensions: nullable(Type.Integer({ minimum: 1, maximum: 65_536 })),
  encoding_format: nullable(oneOf(['float', 'base64'])),
  user: nullable(Type.String({ maxLength: 512 })),
  constraints: nullable(constraintsSchema),
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
type EmbeddingsRequest = {
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
  const { model, user: endUser = null } = body
  const fields = { model, endUser, extras: Object.fromEntries(extras) }
  const request = embeddingsRequest(embedding, fields, headers, body.constraints)
  return { request, embedding, model, encoding: body.encoding_format ?? 'float' }
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
