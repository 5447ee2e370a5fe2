/** Parses results leniently, since one malformed entry is no reason to lose the others. */
import type { WebDocument } from '../../core/chat/web-sources.ts'

/** Returns the entries of `list` that have a URL and a text under `textName`; null if it is not a list. */
export function resultsIn(list: unknown, textName: 'content' | 'description'): readonly WebDocument[] | null {
  if (!Array.isArray(list)) return null
  return list.flatMap((entry: unknown) => {
    const url = fieldOf(entry, 'url')
    const text = fieldOf(entry, textName)
    const title = fieldOf(entry, 'title')
    if (typeof url !== 'string' || typeof text !== 'string') return []
    return [{ url, title: typeof title === 'string' ? plain(title) : '', text: plain(text) }]
  })
}

/** Returns a field of a value that may not be an object. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  '#39': "'",
  '#x27': "'",
  '#x2F': '/',
}

/** Far more than is quoted: the text of a result may be very long. */
const longestRead = 8_000

/** Removes an engine's emphasis and escapes. */
function plain(text: string): string {
  return text
    .slice(0, longestRead)
    .replace(/<\/?(?:strong|b|em|mark|i)>/gi, '')
    .replace(/&([a-z]{2,4}|#39|#x27|#x2F);/gi, (whole, name: string) => entities[name] ?? whole)
}
