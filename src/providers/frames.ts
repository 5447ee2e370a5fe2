/**
 * Parses the frames of a stream, which are mostly one and the same but for a piece of text: of such a frame only that piece is
 * parsed, and put into the value of the frame before.
 */
import { closingQuote, parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { isRecord } from './json.ts'

/** The object in a frame's value whose `key` is the text that changes. */
export type TextSlot = { readonly holder: Record<string, unknown>; readonly key: string }

/** The first of `keys` that holds a text with something in it; null = `holder` is no object, or none does. */
export function findTextSlot(holder: unknown, keys: readonly string[]): TextSlot | null {
  if (!isRecord(holder)) return null
  const key = keys.find(name => typeof holder[name] === 'string' && holder[name] !== '')
  return key === undefined ? null : { holder, key }
}

/** A frame's text around its piece, and where the piece is in its value. */
type Mould = TextSlot & { readonly before: string; readonly after: string; readonly value: unknown }

/** Frames that fit no mould, in a row, after which none is looked for: some upstreams pad each frame differently. */
const patience = 8
const needsParsing = /["\\\p{Cc}]/u

/**
 * What `parsed` says of one frame after another. A value is valid until the next call. `placeOf` says where in a value the
 * text is; null = in no place known.
 */
export function frameParser(placeOf: (value: unknown) => TextSlot | null): (frame: string) => unknown {
  let mould: Mould | null = null
  let misses = 0
  return frame => {
    if (misses > patience) return parseUntrustedJson(frame)
    const piece = mould === null ? null : pieceIn(frame, mould)
    if (mould !== null && piece !== null) {
      misses = 0
      mould.holder[mould.key] = piece
      return mould.value
    }
    misses++
    const value = parseUntrustedJson(frame)
    mould = mouldOf(frame, value, placeOf(value))
    return value
  }
}

/** The text in a frame's piece; null where the frame is another one, or its piece no text. */
function pieceIn(frame: string, { before, after }: Mould): string | null {
  if (!frame.startsWith(before) || !frame.endsWith(after)) return null
  const end = frame.length - after.length
  if (end < before.length) return null
  const piece = frame.slice(before.length, end)
  if (!needsParsing.test(piece)) return piece
  const text = parseUntrustedJson(`"${piece}"`)
  return typeof text === 'string' ? text : null
}

function mouldOf(frame: string, value: unknown, place: TextSlot | null): Mould | null {
  if (place === null) return null
  const name = `"${place.key}":`
  const at = frame.indexOf(name)
  if (at === -1 || at !== frame.lastIndexOf(name)) return null
  const opening = frame.indexOf('"', at + name.length)
  if (opening === -1 || frame.slice(at + name.length, opening).trim() !== '') return null
  const closing = closingQuote(frame, opening)
  if (parseUntrustedJson(frame.slice(opening, closing + 1)) !== place.holder[place.key]) return null
  return { ...place, value, before: frame.slice(0, opening + 1), after: frame.slice(closing) }
}
