import { badAnswer, truncated } from '../failure.ts'
import { isRecord, isText, type Json, objectIn, records } from '../json.ts'
import type { AnswerSink, ProviderFailure } from '../provider.ts'
import { argumentsText } from '../tool-names.ts'

/**
 * Inserts one part at its path (`$.stops[0].name`) in the arguments; parts of the same text are appended. Ignores parts
 * with an invalid path.
 */
function applyPiece(args: Record<string, unknown>, piece: Json): void {
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

/** Tool calls of one choice. They arrive complete, except if a proxy requests streamed arguments, which are then collected. */
export class GoogleToolCalls {
  private calls = 0
  /** Arguments of a call with `willContinue`. */
  private open: Record<string, unknown> | null = null
  /** IDs of the calls that arrived in parts. */
  private readonly continued = new Set<unknown>()

  constructor(
    private readonly choice: number,
    private readonly mintId: (given: unknown) => string,
  ) {}

  /** Reads a call, or the next part of its arguments. */
  read(call: Json, signature: unknown, sink: AnswerSink): ProviderFailure | null {
    const pieces = records(call.partialArgs)
    if (isText(call.name) && this.open !== null) return truncated('call_unfinished')
    if (call.willContinue === true && isText(call.name) && isText(call.id)) {
      if (this.continued.has(call.id)) return truncated('call_restarted')
      this.continued.add(call.id)
    }
    if (isText(call.name) && !this.begin(call.name, call, signature, sink)) return badAnswer('arguments_no_object')
    if (this.open === null && pieces.length > 0) return truncated('arguments_without_call')
    if (this.open !== null) for (const piece of pieces) applyPiece(this.open, piece)
    if (call.willContinue !== true) this.close(sink)
    return null
  }

  /** Ends the last call. */
  close(sink: AnswerSink): void {
    if (this.open === null) return
    const text = JSON.stringify(this.open)
    this.open = null
    sink.addArguments(this.choice, this.calls - 1, text)
  }

  /** Returns true if the last call announced more parts. */
  hasOpen(): boolean {
    return this.open !== null
  }

  count(): number {
    return this.calls
  }

  private begin(name: string, { id, args }: Json, signature: unknown, sink: AnswerSink): boolean {
    // Some servers send the object as text.
    const given = isRecord(args) ? args : objectIn(argumentsText(args) || '{}')
    if (given === null) return false
    this.open = { ...given }
    const index = this.calls++
    const call = { id: this.mintId(id), name: name.toWellFormed(), signature: isText(signature) ? signature : null }
    sink.openCall(this.choice, index, call)
    return true
  }
}
