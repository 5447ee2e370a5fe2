/**
 * The tool calls of one choice. Servers tell them apart by index, by id, by name, or not at all, and write name and
 * arguments whole, repeated, growing or in pieces. So a call is opened only once its name is certain: with its first piece
 * of arguments.
 */
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { failureOf } from '../failure.ts'
import { isRecord, type Json, nameOf, record, textOf, wholeNumber } from '../json.ts'
import type { AnswerPart, ProviderFailure } from '../provider.ts'
import { maximumIndex } from '../response-guard.ts'

type Call = {
  /** The server's index; its place in the order of appearance where there is none. */
  readonly place: number
  wireId: string | null
  name: string
  signature: string | null
  /** All argument text so far. */
  text: string
  /** Its place among the choice's calls; null = not opened yet. */
  index: number | null
}

export type Calls = {
  readonly choice: number
  readonly list: Call[]
  opened: number
  readonly mintId: (wireId: string | null) => string
}

/**
 * Reads a call or a piece of one. `whole`: it stands in a whole message, and belongs to no other. `position`: its place
 * among several of one delta, null where it came alone.
 */
export function readCall(
  calls: Calls,
  wire: Json,
  whole: boolean,
  position: number | null,
  parts: AnswerPart[],
): ProviderFailure | null {
  const called = record(wire.function)
  const name = textOf(called.name)
  const piece = isRecord(called.arguments) ? JSON.stringify(called.arguments) : textOf(called.arguments)
  const wireId = nameOf(wire.id)
  const wireIndex = wholeNumber(wire.index) ?? (wireId === null ? position : null)
  const last = whole ? undefined : findCall(calls.list, wireIndex, wireId, name)
  if (last !== undefined && repeats(last, wireId, name, piece)) return null
  const isNew = last === undefined || startsAnother(last, wireId, name, piece)
  const call: Call = isNew
    ? { place: wireIndex ?? calls.list.length, wireId, name: '', signature: null, text: '', index: null }
    : last
  if (isNew) {
    // The index says "the same call", the id another one: the response began again before the first call was whole.
    if (
      last !== undefined &&
      wireIndex !== null &&
      (parseUntrustedJson(last.text) === undefined || isReturn(calls.list, last, wireId))
    )
      return failureOf('truncated', '200 tool_index_restarted')
    openNamed(calls, parts)
    if (calls.list.length > maximumIndex) return failureOf('bad_answer', '200 too_many_tool_calls')
    calls.list.push(call)
  }
  if (call.index === null) {
    call.wireId ??= wireId
    call.name = joinName(call.name, name)
    call.signature ??= signatureOf(wire)
  }
  if (piece === '') return null
  call.text += piece
  if (call.index !== null) parts.push({ type: 'tool_arguments', choice: calls.choice, index: call.index, text: piece })
  else if (call.name !== '') openCall(calls, call, parts)
  return null
}

/** The call a piece may belong to: by index, else by id, else the last one. */
function findCall(list: readonly Call[], index: number | null, id: string | null, name: string): Call | undefined {
  if (index !== null) return list.findLast(call => call.place === index)
  const same = id === null ? undefined : list.findLast(call => call.wireId === id)
  return same ?? (id === null || name === '' ? list.at(-1) : undefined)
}

/** True where a call comes whole once more, after its pieces. */
function repeats(call: Call, id: string | null, name: string, piece: string): boolean {
  return name !== '' && id !== null && id === call.wireId && piece === call.text && piece.startsWith('{')
}

/**
 * True where a piece that would continue `call` opens another one: parallel calls all under one index, told apart by a
 * new id, by another name after the arguments began, or by a second object after a complete one, which no JSON text has.
 */
function startsAnother(call: Call, id: string | null, name: string, piece: string): boolean {
  if (name === '' || call.name === '') return false
  if (id !== null && call.wireId !== null && id !== call.wireId) return true
  if (call.text === '') return false
  return (
    name !== call.name ||
    (piece.startsWith('{') && call.text.endsWith('}') && parseUntrustedJson(call.text) !== undefined)
  )
}

/** True where an index that went over to another call goes back to an earlier one. */
function isReturn(list: readonly Call[], { place, wireId }: Call, id: string | null): boolean {
  return id !== null && id !== wireId && list.some(call => call.place === place && call.wireId === id)
}

/** A name may come whole, again on every chunk, growing, or in pieces. */
function joinName(known: string, piece: string): string {
  return piece.startsWith(known) ? piece : known + piece
}

/** Gemini's compatible endpoint. */
function signatureOf({ extra_content: extra }: Json): string | null {
  return textOf(record(record(extra).google).thought_signature) || null
}

/** Opens the calls whose name is known: nothing more will be added to it. */
export function openNamed(calls: Calls, parts: AnswerPart[]): void {
  if (calls.opened === calls.list.length) return
  for (const call of calls.list) if (call.index === null && call.name !== '') openCall(calls, call, parts)
}

function openCall(calls: Calls, call: Call, parts: AnswerPart[]): void {
  const { choice, mintId } = calls
  const { wireId, signature, text } = call
  const index = calls.opened
  call.index = index
  calls.opened += 1
  parts.push({ type: 'tool_call', choice, index, id: mintId(wireId), name: call.name.toWellFormed(), signature })
  if (text !== '') parts.push({ type: 'tool_arguments', choice, index, text })
}

/** No more pieces come: every call is opened, and none is left without arguments. */
export function endCalls(calls: Calls, parts: AnswerPart[]): ProviderFailure | null {
  openNamed(calls, parts)
  for (const { index, text } of calls.list) {
    // A call that never got a name cannot be run; one without arguments either is no call at all.
    if (index === null && text !== '') return failureOf('bad_answer', '200 nameless_tool_call')
    if (index !== null && text === '') parts.push({ type: 'tool_arguments', choice: calls.choice, index, text: '{}' })
  }
  return null
}
