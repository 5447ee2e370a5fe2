/**
 * Names that operators, clients and upstreams choose, written where only some characters are possible. Names are stored
 * and sent in bodies unchanged.
 */

/**
 * Returns a name in printable ASCII for a header, a quoted string, a list or a file name: other characters, quotes,
 * commas, backslashes and `%` are percent-encoded UTF-8, so that `decodeURIComponent` returns the name.
 */
export function asciiName(name: string): string {
  return isPlain.test(name) ? name : name.toWellFormed().replace(beyondAscii, encodeURIComponent)
}

const isPlain = /^(?! )[ !#-$&-+\--[\]-~]*(?<! )$/
const beyondAscii = /[^ -~]+|[%",\\]|^ | $/gu

/** Returns a text for a line on a terminal: control characters and half characters are escaped. */
export function printableText(text: string): string {
  return text.replace(unprintable, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const unprintable = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Pattern of a configured name: no control characters and no half characters, which no database stores. */
export const storableName = '^(?:[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])+$'
