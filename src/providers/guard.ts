/** Two promises of every reader, kept once: it never throws, and nothing follows the end or a failure. */
import { failureOf } from './failure.ts'
import type { AnswerPart, StreamReader } from './provider.ts'

const nothing: readonly AnswerPart[] = []

/** What nests deeper than the stack can be read as JSON, and not written again. */
const tooDeep: readonly AnswerPart[] = [{ type: 'failure', failure: failureOf('bad_answer', '200 nested too deep') }]

/** A whole answer, read by `read`. */
export function guardedWhole(read: () => readonly AnswerPart[]): readonly AnswerPart[] {
  try {
    return read()
  } catch {
    return tooDeep
  }
}

/** The stream's reader, guarded. */
export function guardedReader(reader: StreamReader): StreamReader {
  let isOver = false
  const guarded = (read: () => readonly AnswerPart[]): readonly AnswerPart[] => {
    if (isOver) return nothing
    const parts = guardedWhole(read)
    const last = parts.at(-1)?.type
    isOver = last === 'end' || last === 'failure'
    return parts
  }
  return {
    read: event => guarded(() => reader.read(event)),
    finish: () => guarded(() => reader.finish()),
  }
}
