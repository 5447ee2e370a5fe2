import { parseExactJson, parseOwnText } from './exact-json.ts'

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
