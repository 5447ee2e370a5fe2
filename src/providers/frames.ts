/**
 * Recognizes events of a stream that differ from an earlier one only in one text, which most do: the events need no object, no
 * split into lines and no parser.
 */
import { closingQuote } from '../core/validation/untrusted-json.ts'
import { isRecord } from './json.ts'

/** The object and key of the changing text in a frame's value. */
export type TextSlot = { readonly holder: Record<string, unknown>; readonly key: string }

/** Returns the first of `keys` with a non-empty text; null = none, or `holder` is not an object. */
export function findTextSlot(holder: unknown, keys: readonly string[]): TextSlot | null {
  if (!isRecord(holder)) return null
  const key = keys.find(name => typeof holder[name] === 'string' && holder[name] !== '')
  return key === undefined ? null : { holder, key }
}

/** An event without what no template has, such as an ID. */
const beforeData = /^(?:event: ?[^\r\n]*\r?\n)?data: ?$/
const afterData = /^\r?\n\r?\n$/
/** A literal that differs from its text, or is invalid. */
const needsParsing = /[\\\p{Cc}]/u

/**
 * Number of templates in a row without a match after which none is tried: some upstreams pad each event differently. White space
 * before the last brace, as Anthropic pads, is no difference.
 */
const patience = 8

export class FrameTemplate {
  /** Of an event, up to the opening quote; '' = no template. */
  private head = ''
  /** From the closing quote to the last brace, and from there to the end. */
  private tail = ''
  private close = ''
  private misses = 0

  /** Reads the events from a position that fit the template. Returns the position after them. */
  repeat<Sink>(text: string, from: number, reader: { repeat?(text: string, sink: Sink): void }, sink: Sink): number {
    let at = from
    while (this.head !== '' && text.startsWith(this.head, at)) {
      const literal = at + this.head.length
      const closing = closingQuote(text, literal - 1)
      if (!text.startsWith(this.tail, closing)) break
      let end = closing + this.tail.length
      while (text.charCodeAt(end) === space) end++
      if (!text.startsWith(this.close, end)) break
      const piece = literalText(text.slice(literal, closing))
      if (piece === null) break
      this.misses = 0
      at = end + this.close.length
      reader.repeat?.(piece, sink)
    }
    return at
  }

  /** Makes the template of an event that says only the text of a slot. `event` is its source; '' = unknown. */
  learn(event: string, data: string, { holder, key }: TextSlot): void {
    this.head = ''
    if (event === '' || this.misses > patience) return
    this.misses++
    const from = event.indexOf(data)
    if (from === -1 || !beforeData.test(event.slice(0, from)) || !afterData.test(event.slice(from + data.length)))
      return
    const name = `"${key}":`
    const at = data.indexOf(name)
    if (at === -1 || at !== data.lastIndexOf(name)) return
    const opening = data.indexOf('"', at + name.length)
    if (opening === -1 || data.slice(at + name.length, opening).trim() !== '') return
    const closing = closingQuote(data, opening)
    const last = data.lastIndexOf('}')
    if (last < closing || literalText(data.slice(opening + 1, closing)) !== holder[key]) return
    this.head = event.slice(0, from + opening + 1)
    this.tail = data.slice(closing, last).replace(/ +$/, '')
    this.close = event.slice(from + last)
  }
}

const space = 32

/** Returns the text of the inside of a literal; null = the literal is invalid. */
function literalText(inside: string): string | null {
  if (!needsParsing.test(inside)) return inside
  try {
    const text: unknown = JSON.parse(`"${inside}"`)
    return typeof text === 'string' ? text : null
  } catch {
    return null
  }
}
