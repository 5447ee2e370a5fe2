import { truncated } from '../failure.ts'
import { isText, type Json, record, records } from '../json.ts'
import type { AnswerPart } from '../provider.ts'
import { applyPiece } from './arguments.ts'
import { callerNameOf } from './names.ts'

/** The calls of one choice. */
export type Calls = {
  /** A call, or where its arguments come in pieces the next of them. */
  read(call: Json, signature: unknown): readonly AnswerPart[]
  /** No more of the last one comes. */
  close(): readonly AnswerPart[]
  /** Whether the last one announced more than came. */
  hasOpen(): boolean
  count(): number
}

/** A call comes whole; only where a proxy asks for it, its arguments come in pieces, which are kept until they fit. */
export function callReader(choice: number, mintId: (given: unknown) => string): Calls {
  let calls = 0
  /** The arguments of a call of which more may come (`willContinue`). */
  let open: Record<string, unknown> | null = null
  /** Ids of the calls that came in pieces. */
  const continued = new Set<unknown>()

  const close = (): readonly AnswerPart[] => {
    if (open === null) return []
    const text = JSON.stringify(open)
    open = null
    return [{ type: 'tool_arguments', choice, index: calls - 1, text }]
  }
  const begin = (wireName: string, { id, args }: Json, signature: unknown): AnswerPart => {
    open = { ...record(args) }
    return {
      type: 'tool_call',
      choice,
      index: calls++,
      id: mintId(id),
      name: callerNameOf(wireName).toWellFormed(),
      signature: isText(signature) ? signature : null,
    }
  }

  return {
    read(call, signature) {
      const pieces = records(call.partialArgs)
      if (isText(call.name) && open !== null) return [truncated('call_unfinished')]
      if (call.willContinue === true && isText(call.name) && isText(call.id)) {
        if (continued.has(call.id)) return [truncated('call_restarted')]
        continued.add(call.id)
      }
      const begun = isText(call.name) ? [begin(call.name, call, signature)] : []
      if (open === null && pieces.length > 0) return [truncated('arguments_without_call')]
      if (open !== null) for (const piece of pieces) applyPiece(open, piece)
      return call.willContinue === true ? begun : [...begun, ...close()]
    },
    close,
    hasOpen: () => open !== null,
    count: () => calls,
  }
}
