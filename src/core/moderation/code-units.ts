/**
 * A text as numbers, its UTF-16 code units, a block at a time: they are half again as quick to go through as a string. One
 * buffer for all, good until the next block is loaded; nobody writes to it, but for a mark behind the last unit. The block that
 * is there already is not loaded again: several readers go through the same text one after the other.
 */

/** Maximum units per block. */
export const blockUnits = 8_192

export const units = new Uint16Array(blockUnits + 1)
const bytes = Buffer.from(units.buffer)

let loaded = ''
let loadedFrom = 0
let loadedCount = 0

/** Fills `units` with what stands from `from` on, no pair of surrogates cut in two; returns how many. One more has room, to mark the end. */
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
