/** What a request works on within its own paragraph: quotations, and what follows the colon of `Translate: …`. */
import { isWordUnit } from '../code-units.ts'
import { isTransform } from './phrases.ts'

/** Closing marks by opening mark. A straight single quotation mark opens only behind a blank. */
const quotations: Readonly<Record<string, string>> = {
  '"': '"',
  '“': '”',
  '„': '“”"',
  '«': '»',
  '»': '«',
  '「': '」',
  '『': '』',
  '‘': '’',
  "'": "'",
  '‹': '›',
}
/** The quotations of a longer paragraph belong to its story. */
const longestAsk = 700
/** A shorter quotation is a name or a word that the request is about. */
const leastQuoted = 12
/** The shortest order around a quotation, in any script. */
const leastOrder = 4

/** Ranges within a request that are quoted, or follow the colon of a task on a text. */
export function getPayloads(text: string, from: number, to: number): readonly (readonly [number, number])[] {
  if (to - from > longestAsk) return []
  const colon = payloadAfterColon(text, from, to)
  const end = colon ?? to
  const found: (readonly [number, number])[] = []
  for (let at = from; at < end; at++) {
    const unit = text.charCodeAt(at)
    // Nearly all units are below `«` and neither `"` nor `'`.
    if (unit < 0xab && unit !== 34 && unit !== 39) continue
    const closes = quotations[text[at] ?? '']
    if (closes === undefined || (isWordUnit(text.charCodeAt(at - 1)) && at > from)) continue
    const close = closing(text, at + 1, end, closes)
    if (close === -1) continue
    if (
      (close - at > leastQuoted && text.slice(at, close).includes(' ')) ||
      (close - at > leastQuoted / 3 && text.charCodeAt(at + 1) > 0x2e80)
    )
      found.push([at + 1, close])
    at = close
  }
  if (colon !== null) found.push([colon, to])
  const quoted = found.reduce((sum, [open, close]) => sum + close - open, 0)
  // A quotation without an order is the request.
  return to - from - quoted >= leastOrder ? found : []
}

function closing(text: string, from: number, to: number, closes: string): number {
  // French puts blanks within its quotation marks.
  const mayFollowBlank = closes !== '"' && closes !== "'"
  for (let at = from; at < to; at++)
    if (
      closes.includes(text[at] ?? '') &&
      // Scripts without blanks put quotation marks beside letters.
      !isWordUnit(text.charCodeAt(at + 1)) &&
      (mayFollowBlank || text.charCodeAt(at - 1) > 32)
    )
      return at
  return -1
}

const longestTask = 120

/** Where the payload of `Translate to German: …` begins; null = the text has none. */
function payloadAfterColon(text: string, from: number, to: number): number | null {
  for (let at = from; at < Math.min(to, from + longestTask); at++) {
    const mark = text[at]
    if (mark !== ':' && mark !== '：') continue
    if (mark === ':' && text.charCodeAt(at + 1) > 32) continue
    // An address says where the text is.
    if (text.slice(at + 1, at + 14).includes('://')) return null
    return to - at > 3 && isTransform(text.slice(from, at)) ? at + 1 : null
  }
  return null
}
