/**
 * Reads citations of chat completions: `annotations` of a message (OpenAI, OpenRouter), and lists of sources beside the choices whose
 * numbers the text contains (Perplexity, xAI).
 */

import { findCitations } from '../../core/chat/citations.ts'
import type { WebSource } from '../../core/chat/web-sources.ts'
import { CitedText, codePoints } from '../citations.ts'
import { getText, isRecord, isText, type Json, record, records, wholeNumber } from '../json.ts'
import type { AnswerSink } from '../provider.ts'

/** Citations of one choice. */
export type ChoiceCitations = {
  readonly text: CitedText
  /** Sources of the whole response, by their number. The reader of the response adds to them. */
  readonly listed: readonly WebSource[]
  /** Sources of the list that the text cites. */
  readonly found: Set<string>
  /** Annotations wait for their text, which is complete at a call or at the end. */
  annotations: readonly Json[]
  /** Code points at the beginning that are reasoning. The upstream counts them. */
  removed: number
}

export function startCitations(choice: number, listed: readonly WebSource[]): ChoiceCitations {
  return { text: new CitedText(choice), listed, found: new Set(), annotations: [], removed: 0 }
}

/** Notes text that the upstream has sent and the client does not receive at this place: reasoning, or held-back text. */
export function noteRemoved(citations: ChoiceCitations, text: string): void {
  citations.removed += codePoints(text)
}

/** Adds text that the client receives; `wasHeld`: it was noted as removed before. */
export function noteText(citations: ChoiceCitations, text: string, wasHeld: boolean): void {
  citations.text.add(text)
  if (wasHeld) citations.removed -= codePoints(text)
}

export function noteAnnotations(citations: ChoiceCitations, wire: unknown): void {
  if (Array.isArray(wire)) citations.annotations = [...citations.annotations, ...records(wire)]
}

/** Emits the citations of the text so far. Before the end, sources of the list that it does not cite wait. */
export function releaseCitations(citations: ChoiceCitations, isEnd: boolean, sink: AnswerSink): void {
  const { text, listed, found, annotations, removed } = citations
  citations.annotations = []
  for (const annotation of annotations) {
    const own = isRecord(annotation.url_citation) ? annotation.url_citation : annotation
    const start = wholeNumber(own.start_index)
    const end = wholeNumber(own.end_index)
    const place = start === null || end === null ? null : { start: start - removed, end: end - removed }
    text.cite(sink, { url: own.url, title: own.title, quote: own.content }, place)
  }
  if (listed.length === 0) return
  for (const { url, title, start, end } of findCitations(text.text(), listed, true)) {
    if (found.has(url) || !(isEnd || end > start)) continue
    found.add(url)
    text.cite(sink, { url, title }, { start, end })
  }
}

/** Reads the lists of sources of a payload. Each contains all sources so far, and the numbers in the text count them. */
export function readSources({ citations, search_results: results }: Json, listed: WebSource[]): void {
  if (!Array.isArray(citations) && !Array.isArray(results)) return
  const titles = new Map(records(results).map(({ url, title }) => [url, getText(title)]))
  const named: readonly unknown[] = Array.isArray(citations) && citations.length > 0 ? citations : records(results)
  const sources = named.slice(0, maximumListed).flatMap((source): readonly WebSource[] => {
    const { url, title } = isText(source) ? { url: source, title: '' } : record(source)
    return isText(url) ? [{ url, title: titles.get(url) || getText(title) }] : []
  })
  if (sources.length >= listed.length) listed.splice(0, listed.length, ...sources)
}

const maximumListed = 128
