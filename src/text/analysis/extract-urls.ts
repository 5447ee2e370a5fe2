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

/**
 * Removes URLs from texts: `com` and `de` are not words of a language, and slashes of a URL are not a program. Each URL
 * is replaced by a space.
 */

/**
 * Returns a text without its URLs (with a web scheme, or starting with `www.`). Returns it unchanged if it has none or
 * is long.
 */
export function withoutUrls(text: string): string {
  if (text.length > longText || !mayHoldUrl.test(text)) return text
  return text.replace(urls, ' ')
}

/**
 * Returns the opening of a text without URLs, email addresses and host names; the whole text if the opening has none.
 */
export function withoutAddresses(text: string): string {
  if (!holdsName(text) && !text.slice(0, openingCharacters).includes('://')) return text
  const opening = text.slice(0, openingCharacters)
  const rest = opening.replace(urls, ' ').replace(emails, ' ').replace(hostNames, ' ')
  return rest === opening ? text : rest
}

/** In longer texts URLs do not affect the result. */
const longText = 2_048

/** More characters than language detection reads. */
const openingCharacters = 448

const mayHoldUrl = /:\/\/|www\./i

// A URL does not end with an unmatched bracket, a quote or a full stop, and contains no ideograph, which belongs to the
// sentence around it.
const urls = /(?:https?:\/\/|(?<![\w.-])www\.)[\w\-.~:/?#@!$&*+,;=%()\u00c0-\u06ff]*[\w/#=&%~\u00c0-\u06ff-]/gi
const emails = /(?<![\w.+%-])[\w.+%-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*/gi
const hostNames = /(?<![\w.-])(?:[a-z0-9-]+\.)+[a-z]{2,}(?![\w-])(?::\d+)?(?:\/[\w\-.~/?#=&%]*)?/gi

/** Returns true if the opening has a full stop directly followed by two letters, as in every host name. */
function holdsName(text: string): boolean {
  for (let at = text.indexOf('.'); at !== -1 && at < openingCharacters; at = text.indexOf('.', at + 1))
    if (isLetter(text.charCodeAt(at + 1)) && isLetter(text.charCodeAt(at + 2))) return true
  return false
}

/** ASCII letters; false for NaN at the end of the text. */
function isLetter(unit: number): boolean {
  const lower = unit | 0x20
  return lower >= 97 && lower <= 122
}
