import { failed, failureOf } from '../failure.ts'
import { isRecord, isText, type Json, nameOf, record, textOf } from '../json.ts'
import { uniqueNames } from '../names.ts'
import type { AnswerPart } from '../provider.ts'
import { jsonAnswerTool } from './json-answer.ts'

/** The blocks that a message is made of, each under an index of the wire's: what comes of them, in order. */
export type Blocks = {
  open(index: unknown, block: unknown): readonly AnswerPart[]
  add(index: unknown, delta: Json): readonly AnswerPart[]
  close(index: unknown): readonly AnswerPart[]
  closeAll(): readonly AnswerPart[]
  /** Whether one of the caller's tools was called. */
  hasCalls(): boolean
}

type OpenBlock = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'json' | 'ignored'
  /** Calls only, counted from 0: the wire's own index counts blocks of every kind. */
  readonly toolIndex: number
  /** What a call holds before any piece of it came. */
  readonly input: unknown
  /** Whether a piece of a call's input was handed out. */
  isWritten: boolean
}

/** Blocks follow each other: so many that nobody closes are no message. */
const maximumOpen = 256
const ignored: OpenBlock = { kind: 'ignored', toolIndex: 0, input: null, isWritten: true }
const nothing: readonly AnswerPart[] = []

/** Reads the blocks of one message. Those of unknown kinds, and of tools that run on their side, say nothing. */
export function blockReader(): Blocks {
  const blocks = new Map<unknown, OpenBlock>()
  const unique = uniqueNames()
  let hasJsonAnswer = false
  let callCount = 0

  const opened = ({ type, name, input }: Json): OpenBlock => {
    if (type === 'text') return { ...ignored, kind: 'text' }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning' }
    if (type !== 'tool_use') return ignored
    if (name !== jsonAnswerTool) return { kind: 'call', toolIndex: callCount++, input, isWritten: false }
    // A model that answers twice at once would make two documents of one: the first counts.
    if (hasJsonAnswer) return ignored
    hasJsonAnswer = true
    return { kind: 'json', toolIndex: 0, input, isWritten: false }
  }
  const toolCall = (index: number, block: Json): AnswerPart => {
    const wireId = nameOf(block.id) ?? 'call'
    const id = unique(wireId, count => `${wireId}_${count}`)
    return { type: 'tool_call', choice: 0, index, id, name: textOf(block.name).toWellFormed(), signature: null }
  }
  const beginning = ({ kind, toolIndex }: OpenBlock, block: Json): readonly AnswerPart[] => {
    switch (kind) {
      case 'text':
        return piece('text', block.text)
      case 'reasoning':
        return piece('reasoning', block.thinking)
      case 'call':
        return [toolCall(toolIndex, block)]
      case 'json':
      case 'ignored':
        return nothing
    }
  }
  const close = (index: unknown): readonly AnswerPart[] => {
    const block = blocks.get(index)
    blocks.delete(index)
    return block === undefined || block.isWritten ? nothing : inputPiece(block, JSON.stringify(record(block.input)))
  }

  return {
    open(index, block) {
      const unclosed = close(index)
      if (!isRecord(block)) return unclosed
      if (blocks.size >= maximumOpen) return [failed(failureOf('bad_answer', '200 too_many_blocks'))]
      const open = opened(block)
      blocks.set(index, open)
      return [...unclosed, ...beginning(open, block)]
    },
    add(index, delta) {
      const block = blocks.get(index)
      if (block?.kind === 'ignored') return nothing
      if (delta.type === 'text_delta') return piece('text', delta.text)
      if (delta.type === 'thinking_delta') return piece('reasoning', delta.thinking)
      if (delta.type !== 'input_json_delta' || block === undefined || !isText(delta.partial_json)) return nothing
      block.isWritten = true
      return inputPiece(block, delta.partial_json)
    },
    close,
    closeAll: () => [...blocks.keys()].flatMap(close),
    hasCalls: () => callCount > 0,
  }
}

function piece(type: 'text' | 'reasoning', text: unknown): readonly AnswerPart[] {
  return isText(text) ? [{ type, choice: 0, text }] : nothing
}

/** A piece of a call's input: arguments of a caller's tool, text of the JSON answer, nothing of any other block. */
function inputPiece(block: OpenBlock, text: string): readonly AnswerPart[] {
  if (block.kind === 'json') return [{ type: 'text', choice: 0, text }]
  return block.kind === 'call' ? [{ type: 'tool_arguments', choice: 0, index: block.toolIndex, text }] : nothing
}
