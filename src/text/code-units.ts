/**
 * A text as an array of its UTF-16 code units, loaded in blocks: reading the array is 1.5 times as fast as reading the
 * string. All callers share one buffer, which is valid until the next block is loaded and only written for an end mark.
 * A block that is already loaded is not loaded again, since several readers process the same text.
 */

/** Maximum units per block. */
export const blockUnits = 8_192

export const units = new Uint16Array(blockUnits + 1)
const bytes = Buffer.from(units.buffer)

let loaded = ''
let loadedFrom = 0
let loadedCount = 0

/**
 * Fills `units` with the text from `from` without splitting a surrogate pair, and returns the number of units. The
 * buffer has room for one more unit as an end mark.
 */
export function loadUnits(text: string, from = 0): number {
  if (from === loadedFrom && text === loaded) return loadedCount
  const most = Math.min(text.length, from + blockUnits)
  const to = most < text.length && isHighSurrogate(text.charCodeAt(most - 1)) ? most - 1 : most
  bytes.write(from === 0 && to === text.length ? text : text.slice(from, to), 0, 'utf16le')
  loaded = text
  loadedFrom = from
  loadedCount = to - from
  return loadedCount
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

export function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57
}

/** ASCII letters and digits. */
export function isWordUnit(unit: number): boolean {
  const lower = unit | 32
  return (lower >= 97 && lower <= 122) || isDigit(unit)
}

/** The same, `-` and `_`: what tokens and tag names consist of. */
export function isTokenUnit(unit: number): boolean {
  return isWordUnit(unit) || unit === 45 || unit === 95
}
