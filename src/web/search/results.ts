/** Results in a foreign body: read forgivingly, since one odd entry is no reason to lose the others. */
import type { WebDocument } from '../../core/chat/web-sources.ts'

/** The entries of `list` that have an address and a text under `textName`; null where it is no list. */
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

/** A field of what may be no object. */
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

/** Far more than is quoted of any: a text of the web may be as long as its engine lets it. */
const longestRead = 8_000

/** Engines emphasise what matched, and escape the rest. */
function plain(text: string): string {
  return text
    .slice(0, longestRead)
    .replace(/<\/?(?:strong|b|em|mark|i)>/gi, '')
    .replace(/&([a-z]{2,4}|#39|#x27|#x2F);/gi, (whole, name: string) => entities[name] ?? whole)
}
