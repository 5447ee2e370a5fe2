/** Reads a body of `POST /v1/embeddings`. Unknown fields pass, null is absent, `stream` has no meaning here. */
import { Type } from '@sinclair/typebox'
import { type EmbeddingsRequest, parseInputs } from '../../core/embeddings/embeddings-request.ts'
import { checker } from '../../core/validation/validate.ts'
import { embeddingsFields } from './schema.ts'

const check = checker(Type.Object({ ...embeddingsFields, input: Type.Optional(Type.Unknown()) }))
const readHere = new Set([...Object.keys(embeddingsFields), 'input', 'stream'])

/** Throws `invalid_request` with the field at fault. */
export function readEmbeddingsRequest(value: unknown): EmbeddingsRequest {
  const body = check(value)
  const extras = Object.entries(body).filter(([name, field]) => !readHere.has(name) && field !== null)
  return {
    model: body.model,
    ...parseInputs(body.input),
    encoding: body.encoding_format ?? 'float',
    dimensions: body.dimensions ?? null,
    endUser: body.user ?? null,
    extras: Object.fromEntries(extras),
  }
}
