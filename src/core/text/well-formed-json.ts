/**
 * JSON without unpaired surrogates, which strict parsers reject. It is applied where a request body arrives and where the gateway
 * writes one: a tool call of the history has JSON in a text.
 */

/** Escaped backslashes come first, so that text that spells such an escape stays. */
const escapes = /\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}))/g

/** Returns the JSON text with U+FFFD for each escape of an unpaired surrogate, and the same text if there is none. */
export function wellFormedJson(text: string): string {
  if (!text.includes('\\ud') && !text.includes('\\uD')) return text
  return text.replace(escapes, (written, unpaired: string | undefined) => (unpaired === undefined ? written : '\ufffd'))
}
