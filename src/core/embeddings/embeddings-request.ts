/** One validated embeddings request, independent of the upstream. */

import { maximumInputs } from '../models/embedding-models.ts'
import { GatewayError } from '../validation/errors.ts'

/** A text, or the IDs of its tokens. */
export type EmbeddingInput = string | readonly number[]

export type EmbeddingsRequest = {
  /** As the client wrote it. */
  readonly model: string
  readonly inputs: readonly EmbeddingInput[]
  /** True if the client sent one input instead of a list: errors then name `input`, otherwise `input.3`. */
  readonly isSingle: boolean
  readonly encoding: 'float' | 'base64'
  /** null = the model's default. */
  readonly dimensions: number | null
  readonly endUser: string | null
  /** All other fields, by wire name. */
  readonly extras: Readonly<Record<string, unknown>>
}

/**
 * Returns the inputs of a request's `input`: a text, a list of texts, a list of token IDs, or a list of such lists.
 * Throws `invalid_request` that names `input` or the item.
 */
export function parseInputs(input: unknown): Pick<EmbeddingsRequest, 'inputs' | 'isSingle'> {
  if (input === undefined || input === null) throw invalidInput('is missing: it must be', forms)
  if (typeof input === 'string') return { inputs: [checkedText(input, 'input')], isSingle: true }
  if (!Array.isArray(input)) throw invalidInput('must be', forms)
  const list: readonly unknown[] = input
  if (list.length === 0) throw invalidInput('must not be an empty list: it must be', forms)
  if (typeof list[0] === 'number') return { inputs: [checkedIds(list, 'input')], isSingle: true }
  if (list.length > maximumInputs)
    throw inputError('input', `must hold at most ${maximumInputs} inputs and holds ${list.length}. Split the request`)
  const ofIds = Array.isArray(list[0])
  const inputs = list.map((one, at) => {
    const place = `input.${at}`
    if (ofIds && Array.isArray(one)) return checkedIds(one, place)
    if (!ofIds && typeof one === 'string') return checkedText(one, place)
    const kind = ofIds ? 'a list of token IDs' : 'a string'
    throw inputError(at === 0 ? 'input' : place, at === 0 ? `must be ${forms}` : `must be ${kind} like those before it`)
  })
  return { inputs, isSingle: false }
}

const forms = 'a string, a list of strings, a list of token IDs, or a list of lists of token IDs'

function invalidInput(problem: string, expected: string): GatewayError {
  return inputError('input', `${problem} ${expected}`)
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

/** Returns the error about an input; `place` is its path in the request. */
export function inputError(
  place: string,
  text: string,
  code: 'invalid_request' | 'context_length_exceeded' = 'invalid_request',
) {
  return new GatewayError(code, `\`${place}\` ${text}.`, { param: place })
}

/** Returns the path of an input in the request. */
export function placeOf({ isSingle }: Pick<EmbeddingsRequest, 'isSingle'>, index: number): string {
  return isSingle ? 'input' : `input.${index}`
}
