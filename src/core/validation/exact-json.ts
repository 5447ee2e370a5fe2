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
