/**
 * Texts without the addresses in them: `com` and `de` are no words of a language, and the slashes of an address no program. A
 * space stands in the place of each.
 */

/** A text without its URLs: with a scheme of the web, or beginning with `www.`; as it is where it has none, or is a long one. */
export function withoutUrls(text: string): string {
  if (text.length > longText || !mayHoldUrl.test(text)) return text
  return text.replace(urls, ' ')
}

/** The opening of a text without URLs, e-mail addresses and host names; the whole text where none is seen there. */
export function withoutAddresses(text: string): string {
  if (!holdsName(text) && !text.slice(0, openingCharacters).includes('://')) return text
  const opening = text.slice(0, openingCharacters)
  const rest = opening.replace(urls, ' ').replace(emails, ' ').replace(hostNames, ' ')
  return rest === opening ? text : rest
}

/** In a longer one an address decides nothing. */
const longText = 2_048

/** More than what the language is told by. */
const openingCharacters = 448

const mayHoldUrl = /:\/\/|www\./i

// No lone bracket, quote or stop at the end, and no ideograph, which goes on in the sentence around it.
const urls = /(?:https?:\/\/|(?<![\w.-])www\.)[\w\-.~:/?#@!$&*+,;=%()\u00c0-\u06ff]*[\w/#=&%~\u00c0-\u06ff-]/gi
const emails = /(?<![\w.+%-])[\w.+%-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*/gi
const hostNames = /(?<![\w.-])(?:[a-z0-9-]+\.)+[a-z]{2,}(?![\w-])(?::\d+)?(?:\/[\w\-.~/?#=&%]*)?/gi

/** Whether a stop stands in the opening with two letters right after it, as in every host name. */
function holdsName(text: string): boolean {
  for (let at = text.indexOf('.'); at !== -1 && at < openingCharacters; at = text.indexOf('.', at + 1))
    if (isLetter(text.charCodeAt(at + 1)) && isLetter(text.charCodeAt(at + 2))) return true
  return false
}

/** In ASCII; not the end of the text, which is no number. */
function isLetter(unit: number): boolean {
  const lower = unit | 0x20
  return lower >= 97 && lower <= 122
}
