/**
 * Parses stream frames that mostly differ only in one text: parses only that text and inserts it into the value of the
 * previous frame.
 */
import { closingQuote, parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { isRecord } from './json.ts'

/** The object and key of the changing text in a frame's value. */
export type TextSlot = { readonly holder: Record<string, unknown>; readonly key: string }

/** Returns the first of `keys` with a non-empty text; null = none, or `holder` is not an object. */
export function findTextSlot(holder: unknown, keys: readonly string[]): TextSlot | null {
  if (!isRecord(holder)) return null
  const key = keys.find(name => typeof holder[name] === 'string' && holder[name] !== '')
  return key === undefined ? null : { holder, key }
}

/** Text of a frame around the changing part, and the position of that part in the value. */
type Mould = TextSlot & { readonly before: string; readonly after: string; readonly value: unknown }

/**
 * Number of consecutive frames without a match after which no template is tried: some upstreams pad each frame
 * differently.
 */
const patience = 8
const needsParsing = /["\\\p{Cc}]/u

/**
 * Creates a parser that returns the same as `parsed` for each frame. A value is valid until the next call. `findPlace`
 * locates the text in a value; null = unknown.
 */
export function frameParser(findPlace: (value: unknown) => TextSlot | null): (frame: string) => unknown {
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
    mould = findTemplate(frame, value, findPlace(value))
    return value
  }
}

/** Returns the text of a frame that fits the template; null = it does not fit. */
function pieceIn(frame: string, { before, after }: Mould): string | null {
  if (!frame.startsWith(before) || !frame.endsWith(after)) return null
  const end = frame.length - after.length
  if (end < before.length) return null
  const piece = frame.slice(before.length, end)
  if (!needsParsing.test(piece)) return piece
  const text = parseUntrustedJson(`"${piece}"`)
  return typeof text === 'string' ? text : null
}

function findTemplate(frame: string, value: unknown, place: TextSlot | null): Mould | null {
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
