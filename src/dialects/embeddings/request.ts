/** Parses bodies of `POST /v1/embeddings`. Unknown fields pass, null means absent, and `stream` has no effect. */
import { Type } from '@sinclair/typebox'
import { type EmbeddingsRequest, parseInputs } from '../../core/embeddings/embeddings-request.ts'
import { checker } from '../../core/validation/validate.ts'
import { embeddingsFields } from './schema.ts'

const check = checker(Type.Object({ ...embeddingsFields, input: Type.Optional(Type.Unknown()) }))
const readHere = new Set([...Object.keys(embeddingsFields), 'input', 'stream'])

/** Returns the request of a parsed body. Throws `invalid_request` with the field at fault. */
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
