const maximumUrls = 16
const maximumUrlCharacters = 2048

/**
 * Returns the http(s) URLs of a text in order, at most 16. Finds them by `://`; a URL ends at white space, a quote, or
 * an unmatched closing bracket.
 */
export function extractUrls(text: string): readonly string[] {
  let at = text.indexOf('://')
  if (at === -1) return none
  const urls: string[] = []
  let end = 0
  // Continues after the end of a URL, so that a URL inside a URL is part of it.
  for (; at !== -1 && urls.length < maximumUrls; at = text.indexOf('://', end)) {
    end = at + 3
    // Checks for `p` or `s` first, so that a text full of `://` needs no slices.
    const last = text.charCodeAt(at - 1) | 0x20
    if (last !== 0x70 && last !== 0x73) continue
    const scheme = text.slice(Math.max(0, at - 5), at).toLowerCase()
    const start = scheme === 'https' ? at - 5 : scheme.endsWith('http') ? at - 4 : -1
    if (start === -1) continue
    const limit = Math.min(text.length, start + maximumUrlCharacters)
    while (end < limit && !urlEnds.has(text.charAt(end))) end++
    while (end > at + 3 && trailing.has(text.charAt(end - 1))) end--
    if (end > at + 3 && end < start + maximumUrlCharacters) urls.push(text.slice(start, end))
  }
  return urls
}

const none: readonly string[] = []
const urlEnds = new Set(' \t\r\n\u00a0\u3000"\'`<>|\\^{}，。、「」）（')
const trailing = new Set('.,;:!?)]*_…')
