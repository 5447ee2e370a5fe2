/** Deeper than any answer or schema of theirs goes. */
const maximumDepth = 512

/**
 * The value of a JSON text that an upstream sent; `undefined` where it is none, or nests so deeply that nobody means it: what
 * is written again is searched for circles, at every level through all those above it, which takes seconds at 60,000.
 */
export function parseUntrustedJson(text: string): unknown {
  if (text.length > 2 * maximumDepth && exceededJsonLimit(text, maximumDepth) !== null) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Which bound a JSON text is over: it nests deeper than `depth`, or holds more than `values`; null = neither. Told before
 * parsing, since a parser recurses, and takes its time for many values. Strings are skipped whole: an image of megabytes is
 * one search.
 */
export function exceededJsonLimit(
  text: string,
  depth: number,
  values = Number.POSITIVE_INFINITY,
): 'depth' | 'values' | null {
  let level = 0
  let commas = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = closingQuote(text, at)
        break
      case 0x2c:
        if (++commas >= values) return 'values'
        break
      case 0x5b:
      case 0x7b:
        if (++level > depth) return 'depth'
        break
      case 0x5d:
      case 0x7d:
        level--
    }
  }
  return null
}

/** Where the string ends that begins at `opening`; the text's end where it does not. */
export function closingQuote(text: string, opening: number): number {
  for (let at = text.indexOf('"', opening + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at
  }
  return text.length
}
