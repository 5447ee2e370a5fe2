import type { WebSource } from '../chat/web-sources.ts'

/** A source of a response and where the output cites it, in Unicode code points. */
type Citation = WebSource & { readonly start: number; readonly end: number }

/**
 * Finds citations of sources in a text: by URL, or by `[n]`, the number that the model received. A source that is not
 * cited is placed at the end of the text with length 0.
 */
export function findCitations(text: string, sources: readonly WebSource[]): readonly Citation[] {
  const charactersTo = (at: number) => [...text.slice(0, at)].length
  return sources.map(({ url, title }, index) => {
    const { at, length } = placeOf(text, url, `[${index + 1}]`)
    return { url, title, start: charactersTo(at), end: charactersTo(at + length) }
  })
}

function placeOf(text: string, url: string, marker: string): { readonly at: number; readonly length: number } {
  const address = text.indexOf(url)
  if (address !== -1) return { at: address, length: url.length }
  for (let at = text.indexOf(marker); at !== -1; at = text.indexOf(marker, at + 1))
    // `list[1]` and `](…)[1]` are not citations.
    if (!/[\w\])]/.test(text.charAt(at - 1))) return { at, length: marker.length }
  return { at: text.length, length: 0 }
}
