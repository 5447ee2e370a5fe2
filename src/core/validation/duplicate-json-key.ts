/**
 * Detects duplicate keys in JSON. Parsers use the last one while other readers see the first, so such a body is ambiguous: one
 * value would be checked and the other one sent.
 */
import { closingQuote } from './untrusted-json.ts'

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
