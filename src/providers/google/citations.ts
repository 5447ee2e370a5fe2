/** Reads the sources of a grounded candidate, and their places in its text, which Google counts in bytes of UTF-8. */
import type { CitedText } from '../citations.ts'
import { isText, type Json, record, records, wholeNumber } from '../json.ts'
import type { AnswerSink } from '../provider.ts'

/** What a candidate reports about its sources so far. In a stream, the last frames contain it. */
export type Grounding = {
  readonly chunks: readonly Json[]
  readonly supports: readonly Json[]
  /** Passages that repeat a source. */
  readonly repeated: readonly Json[]
}

export const noGrounding: Grounding = { chunks: [], supports: [], repeated: [] }

export function readGrounding({ groundingMetadata, citationMetadata }: Json, known: Grounding): Grounding {
  if (groundingMetadata === undefined && citationMetadata === undefined) return known
  const { groundingChunks, groundingSupports } = record(groundingMetadata)
  // Vertex AI has another name for the list.
  const { citationSources, citations } = record(citationMetadata)
  const newest = (list: unknown, before: readonly Json[]) => (records(list).length > 0 ? records(list) : before)
  return {
    chunks: newest(groundingChunks, known.chunks),
    supports: newest(groundingSupports, known.supports),
    repeated: newest(citationSources ?? citations, known.repeated),
  }
}

/** Reports a citation for each source of each part of the text; sources without a part follow at the end. */
export function addCitations({ chunks, supports, repeated }: Grounding, text: CitedText, sink: AnswerSink): void {
  if (chunks.length === 0 && repeated.length === 0) return
  const bytes = new TextEncoder().encode(text.text())
  const named = new Set<number>()
  for (const { segment, groundingChunkIndices: indexes } of supports.slice(0, maximumSupports)) {
    const place = findPlace(record(segment), text, bytes)
    for (const index of Array.isArray(indexes) ? indexes : []) {
      const number = wholeNumber(index)
      const chunk = number === null ? undefined : chunks[number]
      if (number === null || chunk === undefined) continue
      named.add(number)
      text.cite(sink, getSource(chunk), place)
    }
  }
  for (const [number, chunk] of chunks.entries()) if (!named.has(number)) text.cite(sink, getSource(chunk), null)
  for (const passage of repeated.slice(0, maximumSupports))
    text.cite(sink, { url: passage.uri, title: passage.title }, findPlace(passage, text, bytes))
}

/** Each costs a search of the text. */
const maximumSupports = 512

function getSource({ web, retrievedContext, maps }: Json) {
  const { uri, title } = record(web ?? retrievedContext ?? maps)
  return { url: uri, title }
}

/**
 * Returns the place of a segment in code points; null = unknown. Bytes may count from another part, such as reasoning, so the
 * segment's own text decides where there is one.
 */
function findPlace({ startIndex, endIndex, text: wire }: Json, text: CitedText, bytes: Uint8Array) {
  const decoded = (from: number, to: number) => new TextDecoder().decode(bytes.subarray(from, to))
  const from = wholeNumber(startIndex) ?? 0
  const to = wholeNumber(endIndex) ?? 0
  const isCounted = from < to && to <= bytes.length
  const passage = isText(wire) ? wire : isCounted ? decoded(from, to) : ''
  if (passage === '') return null
  const said = text.text()
  const counted = isCounted ? decoded(0, from).length : 0
  const at = said.startsWith(passage, counted) ? counted : said.indexOf(passage)
  return at === -1 ? null : { start: text.points(at), end: text.points(at + passage.length) }
}
