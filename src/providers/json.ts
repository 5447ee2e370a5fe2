/** Foreign JSON, read without trusting its shape, and our own, written so that strict parsers take it. */

import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'

export type Json = Readonly<Record<string, unknown>>

/** True for a JSON object, as opposed to a list, a scalar or nothing. */
export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object, or an empty one where there is none: lets a path be walked that may end anywhere. */
export function record(value: unknown): Json {
  return isRecord(value) ? value : {}
}

/** The objects of a list, in order; none where it is no list. */
export function records(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** True for a text that is not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** The text, '' where it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** An id or a model's name, well-formed and at most 256 characters; null where it is none. */
export function nameOf(value: unknown): string | null {
  return isText(value) && value.length <= 256 ? value.toWellFormed() : null
}

/** A whole number from 0 on, as places in lists and status codes are; null where it is none. */
export function wholeNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/** No context window comes near it: a count above is nonsense. */
const maximumTokens = 1e9

/** A count of tokens, whole; null where none is told: what is no number, negative or absurd says nothing, not zero. */
export function tokenCount(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= maximumTokens ? Math.trunc(value) : null
}

/** The JSON object that a text holds, null where it holds anything else. */
export function objectIn(text: string): Json | null {
  const value = parseUntrustedJson(text)
  return isRecord(value) ? value : null
}

/**
 * JSON text without halves of surrogate pairs, which strict parsers refuse. `JSON.stringify` writes those, and nothing
 * else, as `\ud…`. An escaped backslash is matched first, so that text which merely spells such an escape stays.
 */
export function encoded(body: unknown): string {
  const text = JSON.stringify(body)
  if (!text.includes('\\ud')) return text
  return text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, at => (at === '\\\\' ? at : '\ufffd'))
}
