/** Inputs to embed and their vectors: errors, the two wire forms, and the checks that a vector must pass before a client stores it. */
import { GatewayError } from '../validation/errors.ts'
import type { EmbeddingInputs, Vector } from './chat.ts'

/** Maximum inputs per request, as at OpenAI. */
export const maximumInputs = 2_048

/** Returns the path of an input in the request. */
export function inputPlace({ isSingle }: Pick<EmbeddingInputs, 'isSingle'>, index: number): string {
  return isSingle ? 'input' : `input.${index}`
}

/** Returns the error about an input; `place` is its path in the request. */
export function inputError(
  place: string,
  text: string,
  code: 'invalid_request' | 'context_length_exceeded' = 'invalid_request',
) {
  return new GatewayError(code, `\`${place}\` ${text}.`, { param: place })
}

/** Returns the bytes that a vector of this length has at most in pretty-printed JSON; null = its length is not configured. */
export function maximumVectorBytes(length: number | null): number {
  return 1_024 + (length ?? 16_384) * 40
}

/** Returns the vector as base64 of its little-endian float32 values, which OpenAI's clients decode. */
export function encodeVector(vector: Vector): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < vector.length; at++) view.setFloat32(at * 4, vector[at] ?? 0, true)
  return bytes.toString('base64')
}

/** Returns the vector of such a text; null if it is not base64 of complete, finite float32 values. */
function decodeVector(text: string): Float32Array | null {
  const bytes = Buffer.from(text, 'base64')
  // Buffer ignores invalid characters; a wrong length reveals them.
  const unpadded = text.replace(/=+$/, '').length
  if (bytes.length === 0 || bytes.length % 4 !== 0 || bytes.length !== Math.floor((unpadded * 3) / 4)) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const vector = new Float32Array(bytes.length / 4)
  for (let at = 0; at < vector.length; at++) {
    const value = view.getFloat32(at * 4, true)
    if (!Number.isFinite(value)) return null
    vector[at] = value
  }
  return vector
}

/**
 * Returns the vector that an upstream sent as numbers or base64; null if it is invalid. Servers without pooling send a
 * list that contains the vector.
 */
export function parseVector(sent: unknown): Vector | null {
  if (typeof sent === 'string') return decodeVector(sent)
  if (!Array.isArray(sent) || sent.length === 0) return null
  const [only] = sent
  if (sent.length === 1 && Array.isArray(only)) return parseVector(only)
  return sent.every(isFloat32) ? sent : null
}

/**
 * Returns true for a number within float32: JSON has only finite numbers, and one above 3.4e38 would become infinite in
 * base64.
 */
function isFloat32(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value))
}

/** Returns the vector scaled to length 1; a zero vector stays unchanged. */
export function normalizeVector(vector: Vector): Vector {
  let squares = 0
  for (const value of vector) squares += value * value
  if (squares === 0) return vector
  const length = Math.sqrt(squares)
  return Array.from(vector, value => value / length)
}
