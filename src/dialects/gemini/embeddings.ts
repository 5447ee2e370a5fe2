/** Parses bodies of `embedContent` and `batchEmbedContents`, and writes their responses. */
import { Type } from '@sinclair/typebox'
import type { Vector } from '../../core/chat/chat.ts'
import { inputError, maximumInputs } from '../../core/chat/embeddings.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { unknownNames } from '../../core/validation/unknown-names.ts'
import { invalidField, nullable, validate } from '../../core/validation/validate.ts'
import { embeddingsRequest, vectorPieces } from '../embeddings/endpoint.ts'
import { open } from '../foreign-objects.ts'
import { content, contentTexts, type GeminiContent, withJsonNames } from './contents.ts'

const embedFields = {
  model: nullable(Type.String({ maxLength: maximumNameCharacters })),
  content,
  taskType: nullable(Type.String({ maxLength: 64 })),
  title: nullable(Type.String({ maxLength: 1024 })),
  outputDimensionality: nullable(Type.Integer({ minimum: 1, maximum: 65_536 })),
}
const embedSchema = Type.Object(embedFields, { ...open, title: 'EmbedContentRequest' })
const batchSchema = Type.Object(
  { requests: Type.Array(Type.Object(embedFields, open), { minItems: 1, maxItems: maximumInputs }) },
  { ...open, title: 'BatchEmbedContentsRequest' },
)
export const embedSchemas = Type.Union([embedSchema, batchSchema])

/** Returns the request of a body, and the writer of its response. Throws `invalid_request` with the field at fault. */
export function readEmbedding(
  value: unknown,
  headers: Headers,
  { model, isBatch }: { model: string; isBatch: boolean },
) {
  const body = withJsonNames(value, new Set())
  const requests = isBatch ? validate(batchSchema, body).requests : [validate(embedSchema, body)]
  const [unknown] = unknownNames(isBatch ? batchSchema : embedSchema, body)
  if (unknown !== undefined)
    throw invalidField(unknown, 'is no field of this endpoint. Remove it', 'unsupported_parameter')
  const place = (at: number) => (isBatch ? `requests.${at}.` : '')
  const other = requests.findIndex(
    request => request.model != null && withoutPrefix(request.model) !== withoutPrefix(model),
  )
  if (other !== -1) throw invalidField(`${place(other)}model`, 'must be the model of the path')
  const [first] = requests
  for (const name of ['taskType', 'title', 'outputDimensionality'] as const) {
    const at = requests.findIndex(request => (request[name] ?? null) !== (first?.[name] ?? null))
    if (at !== -1) throw invalidField(`requests.${at}.${name}`, 'must be the same in all requests of a batch')
  }
  const inputs = requests.map(({ content }, at) => getText(content, `${place(at)}content`))
  const { taskType = null, title = null, outputDimensionality: dimensions = null } = first ?? {}
  const embedding = { inputs, texts: [], tokens: [], isSingle: !isBatch, dimensions }
  const extras = { ...(taskType !== null && { task_type: taskType }), ...(title !== null && { title }) }
  return {
    request: embeddingsRequest(embedding, { model, endUser: null, extras }, headers),
    embedding,
    model,
    spelling: { input: isBatch ? 'requests' : 'content', dimensions: `${place(0)}outputDimensionality` },
    write(vectors: readonly Vector[], inputTokens: number) {
      const [begin, end] = isBatch ? ['{"embeddings":[', ']'] : ['{"embedding":', '']
      const each = (vector: Vector) => `{"values":${JSON.stringify(Array.from(vector))}}`
      const usage = JSON.stringify({ promptTokenCount: inputTokens, totalTokenCount: inputTokens })
      return vectorPieces({ begin, each, end: `${end},"usageMetadata":${usage}}` }, vectors)
    },
  }
}

/** All parts of one content become one vector. */
function getText(content: GeminiContent, place: string): string {
  const text = contentTexts(content, place).join('\n')
  if (text === '') throw inputError(place, 'must hold a text')
  return text
}

const withoutPrefix = (name: string) => name.toLowerCase().replace(/^models\//, '')
