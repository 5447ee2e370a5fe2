/** Reads untrusted JSON without assuming its structure, and writes JSON that strict parsers accept. */

import { parseModelJson, wellFormedJson } from '../core/validation/untrusted-json.ts'

export type Json = Readonly<Record<string, unknown>>

/** Returns true for a JSON object. */
export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

/** Returns the object, or an empty one for other values, so that a path can be walked safely. */
export function record(value: unknown): Json {
  return isRecord(value) ? value : nothing
}

const nothing: Json = {}

/** Returns the objects of a list in order; empty for other values. */
export function records(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** Returns true for a non-empty string. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns the string, '' for other values. */
export function getText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Returns an ID or model name, well-formed and at most 256 characters; null for other values. */
export function findName(value: unknown): string | null {
  return isText(value) && value.length <= 256 ? value.toWellFormed() : null
}

/** Returns a non-negative integer; null for other values. */
export function wholeNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/** Above every context window: larger counts are invalid. */
export const maximumTokens = 1e9

/**
 * Returns a token count as an integer. Some relays write it as a string of digits. Null if it is not a number, negative
 * or absurd, which means unknown, not zero.
 */
export function tokenCount(value: unknown): number | null {
  const count = typeof value === 'string' && digits.test(value) ? Number(value) : value
  return typeof count === 'number' && count >= 0 && count <= maximumTokens ? Math.trunc(count) : null
}

const digits = /^\d{1,12}(?:\.\d{1,12})?$/

/** Returns the largest token count among several names of one figure; null if none has one. A relay fills unused names with 0. */
export function largestCount(...values: readonly unknown[]): number | null {
  let largest: number | null = null
  for (const value of values) {
    const count = tokenCount(value)
    if (count !== null && (largest === null || count > largest)) largest = count
  }
  return largest
}

/** Returns the JSON object in a text of a model, with its numbers as written; null for other content. */
export function objectIn(text: string): Json | null {
  const value = parseModelJson(text)
  return isRecord(value) ? value : null
}

/** Returns the JSON of a body for a provider. */
export function encoded(body: unknown): string {
  return wellFormedJson(JSON.stringify(body))
}
