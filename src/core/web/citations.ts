import type { WebSource } from '../chat/web-sources.ts'

/** A source of an answer, and where the answer cites it, in characters (Unicode code points) of its text. */
export type Citation = WebSource & { readonly start: number; readonly end: number }

/**
 * Finds where a text cites its sources: by their address, or by `[n]`, the number under which the model was given them. A source
 * that the text does not cite in either way stands at the end of the text, with no length.
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
    // `list[1]` and `](…)[1]` are no citations.
    if (!/[\w\])]/.test(text.charAt(at - 1))) return { at, length: marker.length }
  return { at: text.length, length: 0 }
}
