/**
 * Guarantees of every reader, enforced once: it never throws, nothing follows the end or a failure, text is well-formed
 * even if a surrogate pair was split, calls have names and indexes that client libraries accept, and no complete
 * response contains a truncated call.
 */
import type { TextDelta } from '../core/chat/chat-events.ts'
import { CallArguments } from './call-arguments.ts'
import { badAnswer, truncated } from './failure.ts'
import type { AnswerPart, StreamReader } from './provider.ts'

/** Returns the guarded parts of a complete response read by `read`. */
export function guardBody(read: () => readonly AnswerPart[]): readonly AnswerPart[] {
  const told = read()
  return withWholeCalls(areSound(told) ? told : mended(told, new Map()), new Map())
}

/** Returns the guarded stream reader. */
export function guardStream(reader: StreamReader): StreamReader {
  const guard = guarded()
  return {
    read: event => guard(() => reader.read(event)),
    finish: () => guard(() => reader.finish()),
  }
}

/** Limit of client libraries for choices and calls. */
export const maximumIndex = 127

const maximumNameLength = 256
const nothing: readonly AnswerPart[] = []

function guarded(): (read: () => readonly AnswerPart[]) => readonly AnswerPart[] {
  const halves = new Map<string, TextDelta>()
  const calls: Calls = new Map()
  let isOver = false
  return read => {
    if (isOver) return nothing
    const told = read()
    const sound = halves.size === 0 && areSound(told) ? told : mended(told, halves)
    const parts = withWholeCalls(sound, calls)
    const last = parts.at(-1)?.type
    isOver = last === 'end' || last === 'failure'
    return parts
  }
}

/** Arguments of each open call, by choice and index. */
type Calls = Map<string, { readonly choice: number; readonly index: number; readonly text: CallArguments }>

/**
 * Returns the parts with the arguments of each call as clients join them, and a failure instead of the end if a call is
 * truncated. A finish reason that reports an incomplete response exempts the calls of its choice.
 */
function withWholeCalls(parts: readonly AnswerPart[], calls: Calls): readonly AnswerPart[] {
  if (calls.size === 0 && !parts.some(({ type }) => type === 'tool_call')) return parts
  const whole: AnswerPart[] = []
  for (const part of parts) {
    switch (part.type) {
      case 'tool_call': {
        const { choice, index } = part
        calls.set(`${choice}/${index}`, { choice, index, text: new CallArguments() })
        whole.push(part)
        break
      }
      case 'tool_arguments': {
        const call = calls.get(`${part.choice}/${part.index}`)
        const text = call === undefined ? part.text : call.text.add(part.text)
        if (text === part.text) whole.push(part)
        else if (text !== '') whole.push({ ...part, text })
        break
      }
      case 'finish':
        if (!endCalls(calls, part, whole)) return failedBy(secondObject, whole)
        whole.push(part)
        break
      case 'end':
        if (calls.values().some(({ text }) => text.isUnfinished())) return failedBy(truncatedCall, whole)
        whole.push(part)
        break
      default:
        whole.push(part)
    }
  }
  return whole
}

/** Adds the arguments that waited in the calls of a choice; returns false if a call has two. */
function endCalls(
  calls: Calls,
  { choice, reason }: Extract<AnswerPart, { type: 'finish' }>,
  parts: AnswerPart[],
): boolean {
  const isCut = reason === 'length' || reason === 'content_filter'
  for (const [key, call] of calls) {
    if (call.choice !== choice) continue
    const text = call.text.end(isCut)
    if (text === null) return false
    if (text !== '') parts.push({ type: 'tool_arguments', choice, index: call.index, text })
    if (isCut) calls.delete(key)
  }
  return true
}

/** Returns the parts without finish reasons, which would make the failed response look complete. */
function failedBy(failure: AnswerPart, parts: readonly AnswerPart[]): readonly AnswerPart[] {
  return [...parts.filter(({ type }) => type !== 'finish'), failure]
}

const secondObject = badAnswer('second_arguments')
const truncatedCall = truncated('truncated_tool_call')

/** Returns true for valid parts, the usual case, which pass unchanged. */
function areSound(parts: readonly AnswerPart[]): boolean {
  for (const part of parts) if (!isSound(part)) return false
  return true
}

function isSound(part: AnswerPart): boolean {
  if ('text' in part) return part.text.isWellFormed()
  return part.type === 'tool_call' ? wrongIn(part) === null : part.type !== 'failure'
}

/** Returns what prevents a call from being passed on; null = nothing. */
function wrongIn({ index, name }: Extract<AnswerPart, { type: 'tool_call' }>): string | null {
  if (index > maximumIndex) return 'too_many_tool_calls'
  // A client could not send it back.
  if (name.length > maximumNameLength) return 'tool_name_too_long'
  return name === '' ? 'nameless_tool_call' : null
}

/**
 * Returns the corrected parts up to a failure. `halves` holds per channel a surrogate at the end of a delta that the
 * next may complete.
 */
function mended(parts: readonly AnswerPart[], halves: Map<string, TextDelta>): readonly AnswerPart[] {
  const sound: AnswerPart[] = []
  for (const part of parts) {
    const wrong = part.type === 'tool_call' ? wrongIn(part) : null
    if (wrong !== null) return [...sound, badAnswer(wrong)]
    if (part.type === 'finish') sound.push(...released(part.choice, halves))
    if ('text' in part) sound.push(...completed(part, halves))
    else sound.push(part)
    if (part.type === 'failure') break
  }
  return sound
}

/** Returns a delta joined with the half that waited for it, without its own trailing half. */
function completed(piece: TextDelta, halves: Map<string, TextDelta>): readonly TextDelta[] {
  const channel = `${piece.type} ${piece.choice} ${piece.type === 'tool_arguments' ? piece.index : ''}`
  const text = (halves.get(channel)?.text ?? '') + piece.text
  halves.delete(channel)
  const end = text.length - (endsInHalf(text) ? 1 : 0)
  if (end < text.length) halves.set(channel, { ...piece, text: text.slice(end) })
  return end === 0 ? [] : [{ ...piece, text: text.slice(0, end).toWellFormed() }]
}

function endsInHalf(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
}

/** Replaces an unpaired surrogate. */
const replacement = '\ufffd'

function released(choice: number, halves: Map<string, TextDelta>): readonly TextDelta[] {
  const own = [...halves].filter(([, half]) => half.choice === choice)
  for (const [channel] of own) halves.delete(channel)
  return own.map(([, half]) => ({ ...half, text: replacement }))
}
