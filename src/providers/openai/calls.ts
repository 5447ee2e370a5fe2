/**
 * Tool calls of one choice. Servers identify them by index, ID, name, or not at all, and send name and arguments
 * complete, repeated, growing or in parts. So a call is opened only when its name is certain: with its first arguments.
 */
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { providerFailure } from '../failure.ts'
import { findName, getText, type Json, record, wholeNumber } from '../json.ts'
import { type AnswerSink, maximumIndex, type ProviderFailure } from '../provider.ts'
import { argumentsText, isEmptyArguments } from '../tool-names.ts'

type Call = {
  /** The server's index, or the order of appearance. */
  readonly place: number
  wireId: string | null
  name: string
  signature: string | null
  /** All argument text so far. */
  text: string
  /** Index among the choice's calls; null = not opened yet. */
  index: number | null
}

export type Calls = {
  readonly choice: number
  readonly list: Call[]
  opened: number
  readonly mintId: (wireId: string | null) => string
}

/**
 * Reads a call or a part of one. `whole` = it is in a complete message. `position` = its index among several calls of
 * one delta; null = single.
 */
export function readCall(
  calls: Calls,
  wire: Json,
  whole: boolean,
  position: number | null,
  sink: AnswerSink,
): ProviderFailure | null {
  const called = record(wire.function)
  const name = getText(called.name)
  const piece = argumentsText(called.arguments)
  const wireId = findName(wire.id)
  const wireIndex = wholeNumber(wire.index) ?? (wireId === null ? position : null)
  const last = whole ? undefined : findCall(calls.list, wireIndex, wireId, name)
  if (last !== undefined && repeats(last, wireId, name, piece)) return null
  const isNew = last === undefined || startsAnother(last, { index: wireIndex, id: wireId, name, piece })
  const call: Call = isNew
    ? { place: wireIndex ?? calls.list.length, wireId, name: '', signature: null, text: '', index: null }
    : last
  if (isNew) {
    // Same index but another ID: the response started again before the first call was complete.
    if (
      last !== undefined &&
      wireIndex !== null &&
      (parseUntrustedJson(last.text) === undefined || isReturn(calls.list, last, wireId))
    )
      return providerFailure('truncated', '200 tool_index_restarted')
    openNamed(calls, sink)
    if (calls.list.length > maximumIndex) return providerFailure('bad_answer', '200 too_many_tool_calls')
    calls.list.push(call)
  }
  if (call.index === null) {
    call.wireId ??= wireId
    call.name = joinName(call.name, name)
    call.signature ??= findSignature(wire)
  }
  if (piece === '') return null
  call.text += piece
  if (call.index !== null) sink.addArguments(calls.choice, call.index, piece)
  else if (call.name !== '') openCall(calls, call, sink)
  return null
}

/** Returns the call that a part may belong to: by index, else by ID, else the last one. */
function findCall(list: readonly Call[], index: number | null, id: string | null, name: string): Call | undefined {
  if (index !== null) return list.findLast(call => call.place === index)
  const same = id === null ? undefined : list.findLast(call => call.wireId === id)
  return same ?? (id === null || name === '' ? list.at(-1) : undefined)
}

/** Returns true if a complete call repeats its parts. */
function repeats(call: Call, id: string | null, name: string, piece: string): boolean {
  return name !== '' && id !== null && id === call.wireId && piece === call.text && piece.startsWith('{')
}

/**
 * Returns true if a part that would continue `call` starts another one: parallel calls under the same index,
 * distinguished by a new ID, by another name after the arguments began, or by a second object after a complete one,
 * which valid JSON never has.
 */
function startsAnother(call: Call, { index, id, name, piece }: Piece): boolean {
  if (name === '' || call.name === '') return false
  const isSame = name === call.name && (id === null ? index !== null : id === call.wireId)
  if (id !== null && call.wireId !== null && id !== call.wireId) return true
  // Empty arguments are no object yet: the same call repeats its name with the others.
  if (call.text === '' || (isSame && isEmptyArguments(call.text))) return false
  return (
    name !== call.name ||
    (piece.startsWith('{') && call.text.endsWith('}') && parseUntrustedJson(call.text) !== undefined)
  )
}

type Piece = {
  readonly index: number | null
  readonly id: string | null
  readonly name: string
  readonly piece: string
}

/** Returns true if an index that moved to another call returns to an earlier one. */
function isReturn(list: readonly Call[], { place, wireId }: Call, id: string | null): boolean {
  return id !== null && id !== wireId && list.some(call => call.place === place && call.wireId === id)
}

/** Joins a name that arrives complete, repeated on every chunk, growing, or in parts. */
function joinName(known: string, piece: string): string {
  return piece.startsWith(known) ? piece : known + piece
}

/** Gemini's compatible endpoint. */
function findSignature({ extra_content: extra }: Json): string | null {
  return getText(record(record(extra).google).thought_signature) || null
}

/** Opens the calls with a complete name. */
export function openNamed(calls: Calls, sink: AnswerSink): void {
  if (calls.opened === calls.list.length) return
  for (const call of calls.list) if (call.index === null && call.name !== '') openCall(calls, call, sink)
}

function openCall(calls: Calls, call: Call, sink: AnswerSink): void {
  const { choice, mintId } = calls
  const { wireId, signature, text } = call
  const index = calls.opened
  call.index = index
  calls.opened += 1
  sink.openCall(choice, index, { id: mintId(wireId), name: call.name.toWellFormed(), signature })
  if (text !== '') sink.addArguments(choice, index, text)
}

/** Ends all calls: opens the remaining ones. */
export function endCalls(calls: Calls, sink: AnswerSink): ProviderFailure | null {
  openNamed(calls, sink)
  for (const { index, text } of calls.list) {
    // A call with arguments but without a name cannot be run; one without both is ignored.
    if (index === null && text !== '') return providerFailure('bad_answer', '200 nameless_tool_call')
  }
  return null
}
