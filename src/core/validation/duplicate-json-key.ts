/** Of a key that a JSON object holds twice, parsers take the last and readers see the first: where that matters, neither. */

/** The first key that the outermost object of a JSON text holds twice; null where there is none. The text must be valid. */
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
        // As it reads, not as it is written: an escape spells the same key.
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
