/** Deeper than any provider's response or schema. */
const maximumDepth = 512

/**
 * Parses JSON from an upstream; `undefined` if invalid or nested too deeply. Serializing deep values again is quadratic
 * in depth, because of the cycle check, and takes seconds at 60,000 levels.
 */
export function parseUntrustedJson(text: string): unknown {
  return parsed(text, parseExactJson)
}

/** Parses arguments or another JSON text of a model as `parseUntrustedJson` does; every number keeps its text. */
export function parseModelJson(text: string): unknown {
  return parsed(text, parseOwnText)
}

function parsed(text: string, parse: (text: string) => unknown): unknown {
  if (text.length > 2 * maximumDepth && scanJson(text, maximumDepth).exceeded !== null) return undefined
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

type JsonScan = {
  /** The exceeded limit: nesting `depth` or number of `values`; null = neither. */
  readonly exceeded: 'depth' | 'values' | null
  /** Number of members of all objects as written, with duplicate keys. */
  readonly members: number
}

/**
 * Scans a JSON text before it is parsed, because parsers recurse and many values take long. Strings are skipped in one
 * search, so a large image is cheap.
 */
export function scanJson(text: string, depth: number, values = Number.POSITIVE_INFINITY): JsonScan {
  let level = 0
  let commas = 0
  let members = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = closingQuote(text, at)
        break
      case 0x2c:
        if (++commas >= values) return { exceeded: 'values', members }
        break
      case 0x3a:
        members++
        break
      case 0x5b:
      case 0x7b:
        if (++level > depth) return { exceeded: 'depth', members }
        break
      case 0x5d:
      case 0x7d:
        level--
    }
  }
  return { exceeded: null, members }
}

/** Returns the end of the string that begins at `opening`, or the end of the text. */
export function closingQuote(text: string, opening: number): number {
  for (let at = text.indexOf('"', opening + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at
  }
  return text.length
}

/**
 * Detects duplicate keys in JSON. Parsers use the last one while other readers see the first, so such a body is ambiguous: one
 * value would be checked and the other one sent.
 */

/** Returns the number of members that a parsed value has in all of its objects. */
export function countMembers(value: unknown): number {
  let members = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null || JSON.isRawJSON(next)) continue
    const isList = Array.isArray(next)
    for (const inner of isList ? next : Object.values(next)) {
      if (!isList) members++
      if (typeof inner === 'object' && inner !== null) open.push(inner)
    }
  }
  return members
}

/** Returns the first key of a valid JSON text that its object has already; null = none. */
export function findDuplicateKey(text: string): string | null {
  /** The keys of each open object; null = a list. */
  const open: (Set<string> | null)[] = []
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '{') open.push(new Set())
    else if (character === '[') open.push(null)
    else if (character === '}' || character === ']') open.pop()
    else if (character === '"') {
      const end = closingQuote(text, at)
      const seen = open.at(-1)
      if (seen && hasColonAfter(text, end)) {
        // Compares decoded keys, since an escape spells the same key.
        const key: unknown = JSON.parse(text.slice(at, end + 1))
        if (typeof key === 'string' && seen.has(key)) return key
        seen.add(String(key))
      }
      at = end
    }
  }
  return null
}

function hasColonAfter(text: string, quote: number): boolean {
  let at = quote + 1
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at++
  return text[at] === ':'
}

/**
 * Parses JSON without changing the numbers of texts that belong to a client or a model: arguments of tool calls and JSON
 * schemas. As doubles, IDs beyond 2^53 would be rounded, and a number above the range would become `null`.
 */

/** A number that `JSON.stringify` writes with the text that it had. */
type RawJson = { readonly rawJSON: string }

/** "JSON.parse source text access" (ECMAScript 2026), which TypeScript does not declare. */
declare global {
  interface JSON {
    rawJSON(text: string): RawJson
    isRawJSON(value: unknown): value is RawJson
  }
}

/**
 * Finds a number whose text may differ from that of its double. Also matches inside of strings, which only costs the
 * slower path.
 */
const unusualNumber = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|0\.0{6}|\d+\.\d*0(?!\d)|\d+(?:\.\d+)?[eE])|-0(?!\d)/

/** Members whose values are texts of a client or a model, as objects, in any of the wire formats. */
const ownTexts: ReadonlySet<string> = new Set(
  `arguments args partialArgs input parameters parametersJsonSchema input_schema inputSchema schema json
  guided_json`.split(/\s+/),
)

/** Parses JSON. Numbers inside of `ownTexts` keep their text where it differs. Throws `SyntaxError` as `JSON.parse` does. */
export function parseExactJson(text: string): unknown {
  if (!unusualNumber.test(text)) return JSON.parse(text)
  return settled(JSON.parse(text, keepText))
}

/** Parses JSON of a client or a model, in which every number keeps its text. Throws `SyntaxError` as `JSON.parse` does. */
export function parseOwnText(text: string): unknown {
  return unusualNumber.test(text) ? JSON.parse(text, keepText) : JSON.parse(text)
}

/** Returns true for a number, also for one that keeps its text. */
export function isNumeric(value: unknown): value is number | RawJson {
  return typeof value === 'number' || JSON.isRawJSON(value)
}

function keepText(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined && String(value) !== source ? JSON.rawJSON(source) : value
}

/** Returns the value with plain numbers outside of `ownTexts`. Changes objects in place. */
function settled(value: unknown): unknown {
  if (JSON.isRawJSON(value)) return Number(value.rawJSON)
  if (typeof value !== 'object' || value === null) return value
  for (const [key, inner] of Object.entries(value)) {
    if (Array.isArray(value) || !isOwnText(key, inner)) Object.defineProperty(value, key, { value: settled(inner) })
  }
  return value
}

/** Returns true for an object or a list in such a member. The `input` of a Responses request is a list of items. */
function isOwnText(key: string, value: unknown): boolean {
  if (!ownTexts.has(key) || typeof value !== 'object' || JSON.isRawJSON(value)) return false
  return key !== 'input' || !Array.isArray(value)
}

/**
 * JSON without unpaired surrogates, which strict parsers reject. It is applied where a request body arrives and where the gateway
 * writes one: a tool call of the history has JSON in a text.
 */

/** Escaped backslashes come first, so that text that spells such an escape stays. */
const escapes = /\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}))/g

/** Returns the JSON text with U+FFFD for each escape of an unpaired surrogate, and the same text if there is none. */
export function wellFormedJson(text: string): string {
  if (!text.includes('\\u')) return text
  return text.replace(escapes, (written, unpaired: string | undefined) => (unpaired === undefined ? written : '\ufffd'))
}
