import { isText, type Json } from '../json.ts'

/**
 * Inserts one part at its path (`$.stops[0].name`) in the arguments; parts of the same text are appended. Ignores parts
 * with an invalid path.
 */
export function applyPiece(args: Record<string, unknown>, piece: Json): void {
  const spelt = isText(piece.jsonPath) ? piece.jsonPath.replace(/^\$/, '') : ''
  const path = [...spelt.matchAll(step)]
  if (path.length === 0 || path.reduce((length, [part]) => length + part.length, 0) < spelt.length) return
  let slot: Slot = { holder: { '': args }, key: '' }
  for (const [, name, position, , quoted] of path) {
    const held = readSlot(slot)
    const holder = typeof held === 'object' && held !== null ? held : writeSlot(slot, position === undefined ? {} : [])
    slot = { holder, key: name ?? quoted ?? String(position) }
  }
  const before = readSlot(slot)
  const value = piece.stringValue ?? piece.numberValue ?? piece.boolValue ?? null
  writeSlot(slot, isText(before) && typeof value === 'string' ? before + value : value)
}

/** Sticky, so that a path is read once from its start, whatever brackets the model left open. */
const step = /\.([^.[\]]+)|\[(\d+)\]|\[(['"])(.*?)\3\]/gy

type Slot = { readonly holder: object; readonly key: string }

/** Own properties only: a path is generated text and may be `constructor`. */
function readSlot({ holder, key }: Slot): unknown {
  return Object.getOwnPropertyDescriptor(holder, key)?.value
}

function writeSlot<T>({ holder, key }: Slot, value: T): T {
  // At most one past the end of an array, so that no index can exhaust memory.
  const place = Array.isArray(holder) ? String(Math.min(Number(key) || 0, holder.length)) : key
  Object.defineProperty(holder, place, { value, enumerable: true, writable: true, configurable: true })
  return value
}
