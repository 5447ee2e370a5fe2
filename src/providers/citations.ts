/**
 * Turns the citations of an upstream into events. Each upstream counts in its own way: bytes, characters, parts, blocks. Events
 * count code points of the text that the client receives, so each reader keeps this text.
 */
import { type CitedSource, TextPieces, type TypedPart } from '../core/chat/chat-events.ts'
import { isText } from './json.ts'
import type { AnswerSink } from './provider.ts'

type CitationEvent = TypedPart<'citation'>

/** A range of a text. */
type Place = { readonly start: number; readonly end: number }

/** Fields of a source as an upstream sends them; each may be missing or of another type. */
type WireSource = { readonly url: unknown; readonly title: unknown; readonly quote?: unknown }

/** Bounds a response that cites without end. */
const maximumCitations = 1_024

/** Text of one choice, and its citations so far. */
export class CitedText {
  private readonly cited = new Set<string>()
  private readonly pieces = new TextPieces()
  private said = ''
  private counted = { units: 0, points: 0 }

  constructor(private readonly choice: number) {}

  add(text: string): void {
    this.said = this.pieces.add(this.said, text)
  }

  text(): string {
    return this.said
  }

  /** Returns the number of code points up to a position in UTF-16 units; absent = of the whole text. */
  points(units = this.said.length): number {
    const { counted } = this
    const from = units < counted.units ? { units: 0, points: 0 } : counted
    this.counted = { units, points: from.points + codePoints(this.said.slice(from.units, units)) }
    return this.counted.points
  }

  /**
   * Reports a citation. `place` null, or outside the text = the end. A source without a web address is reported only if it has
   * an `own` form. The same citation is reported once.
   */
  cite(sink: AnswerSink, wire: WireSource, place: Place | null, own?: CitationEvent['own']): void {
    const url = webAddress(wire.url)
    if (url === null && own === undefined) return
    const length = this.points()
    const isInside = place !== null && place.start >= 0 && place.start < place.end && place.end <= length
    const { start, end } = isInside ? place : { start: length, end: length }
    const title = isText(wire.title) ? wire.title.toWellFormed() : null
    const quote = isText(wire.quote) ? { quote: wire.quote.toWellFormed() } : {}
    const source: CitedSource = { url, title, start, end, ...quote }
    const key = JSON.stringify([url, start, end, own?.json])
    if (this.cited.has(key) || this.cited.size >= maximumCitations) return
    this.cited.add(key)
    sink.add({ type: 'citation', choice: this.choice, source, ...(own === undefined ? {} : { own }) })
  }
}

/** Returns the length of a text in Unicode code points. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** Returns the address if clients may link to it: a page, and no script or file. */
export function webAddress(value: unknown): string | null {
  if (!isText(value)) return null
  const protocol = URL.parse(value)?.protocol
  return protocol === 'https:' || protocol === 'http:' ? value : null
}
