/**
 * Detects duplicate keys in a JSON object. Parsers use the last one while readers see the first, so such a body is
 * ambiguous.
 */

/** Returns the first duplicate key of the outermost object of a valid JSON text; null = none. */
export function findDuplicateKey(text: string): string | null {
  const seen = new Set<string>()
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === '"') {
      const end = closingQuote(text, at)
      if (depth === 1 && colonAfter(text, end)) {
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

function closingQuote(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
  }
  return text.length - 1
}

function colonAfter(text: string, quote: number): boolean {
  let at = quote + 1
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at++
  return text[at] === ':'
}
