/**
 * The promises of every reader, kept once: it never throws, nothing follows the end or a failure, its text is well-formed
 * however a pair of surrogates was cut, a call has a name and a place that client libraries take, and no response that
 * counts as complete contains a truncated call.
 */
import type { TextDelta } from '../core/chat/text-deltas.ts'
import { ArgumentsScan } from './arguments-scan.ts'
import { failed, failureOf, truncated } from './failure.ts'
import type { AnswerPart, StreamReader } from './provider.ts'

/** A whole answer, read by `read`. */
export function guardBody(read: () => readonly AnswerPart[]): readonly AnswerPart[] {
  const told = read()
  return withWholeCalls(areSound(told) ? told : mended(told, new Map()), new Map())
}

/** The stream's reader, guarded. */
export function guardStream(reader: StreamReader): StreamReader {
  const guard = guarded()
  return {
    read: event => guard(() => reader.read(event)),
    finish: () => guard(() => reader.finish()),
  }
}

/** As the client libraries bound choices and calls. */
export const maximumIndex = 127

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

/** The argument text of each call so far, by choice and index. */
type Calls = Map<string, { readonly choice: number; readonly scan: ArgumentsScan }>

/**
 * The parts, with a failure in place of the end where a call is truncated. A finish reason that itself says that the
 * response is incomplete excuses the calls of its choice.
 */
function withWholeCalls(parts: readonly AnswerPart[], calls: Calls): readonly AnswerPart[] {
  for (const part of parts) {
    switch (part.type) {
      case 'tool_call':
        calls.set(`${part.choice}/${part.index}`, { choice: part.choice, scan: new ArgumentsScan() })
        break
      case 'tool_arguments':
        calls.get(`${part.choice}/${part.index}`)?.scan.add(part.text)
        break
      case 'finish':
        if (part.reason !== 'length' && part.reason !== 'content_filter') break
        for (const [key, { choice }] of calls) if (choice === part.choice) calls.delete(key)
        break
      case 'end':
        for (const { scan } of calls.values())
          if (scan.isUnfinished())
            return [...parts.filter(({ type }) => type !== 'finish' && type !== 'end'), truncatedCall]
        break
    }
  }
  return parts
}

const truncatedCall = truncated('truncated_tool_call')

/** As nearly all are: they go on as they came. */
function areSound(parts: readonly AnswerPart[]): boolean {
  for (const part of parts) if (!isSound(part)) return false
  return true
}

function isSound(part: AnswerPart): boolean {
  if ('text' in part) return part.text.isWellFormed()
  return part.type === 'tool_call' ? wrongIn(part) === null : part.type !== 'failure'
}

/** What makes a call one that cannot be passed on; null = nothing. */
function wrongIn({ index, name }: Extract<AnswerPart, { type: 'tool_call' }>): string | null {
  if (index > maximumIndex) return 'too_many_tool_calls'
  return name === '' ? 'nameless_tool_call' : null
}

/** The parts up to a failure, made sound. `halves` holds, by channel, what a piece ended with and the next may complete. */
function mended(parts: readonly AnswerPart[], halves: Map<string, TextDelta>): readonly AnswerPart[] {
  const sound: AnswerPart[] = []
  for (const part of parts) {
    const wrong = part.type === 'tool_call' ? wrongIn(part) : null
    if (wrong !== null) return [...sound, failed(failureOf('bad_answer', `200 ${wrong}`))]
    if (part.type === 'finish') sound.push(...released(part.choice, halves))
    if ('text' in part) sound.push(...completed(part, halves))
    else sound.push(part)
    if (part.type === 'failure') break
  }
  return sound
}

/** The piece behind the half that waited for it, without the half that it ends with. */
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

/** What stands for a half whose other half never came. */
const replacement = '\ufffd'

function released(choice: number, halves: Map<string, TextDelta>): readonly TextDelta[] {
  const own = [...halves].filter(([, half]) => half.choice === choice)
  for (const [channel] of own) halves.delete(channel)
  return own.map(([, half]) => ({ ...half, text: replacement }))
}
