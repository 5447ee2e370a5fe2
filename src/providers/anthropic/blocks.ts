import { failed, failureOf, truncated } from '../failure.ts'
import { isRecord, isText, type Json, nameOf, objectIn, record, textOf } from '../json.ts'
import { uniqueNames } from '../names.ts'
import type { AnswerPart } from '../provider.ts'
import { jsonAnswerTool } from './json-answer.ts'

/** Content blocks of a message, indexed as on the wire; returns their parts in order. */
export type Blocks = {
  open(index: unknown, block: unknown): readonly AnswerPart[]
  add(index: unknown, delta: Json): readonly AnswerPart[]
  close(index: unknown): readonly AnswerPart[]
  closeAll(): readonly AnswerPart[]
  /** Starts another message in the same stream, whose blocks count from 0 again. */
  recount(): void
  /** Returns true if a visible block was opened and not closed. */
  hasOpen(): boolean
  /** Returns true if a call or the JSON answer ended with input that is not a complete JSON object. */
  hasTruncated(): boolean
  /** Returns true if one of the client's tools was called. */
  hasCalls(): boolean
}

type OpenBlock = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'json' | 'ignored'
  /** Index among calls from 0; the wire's own index counts blocks of all kinds. */
  readonly toolIndex: number
  /** Input in the opening event of a call. */
  readonly input: unknown
  /** Streamed input of a call so far; null = none. */
  written: string | null
}

/** Blocks normally do not overlap: this many unclosed ones are invalid. */
const maximumOpen = 256
const ignored: OpenBlock = { kind: 'ignored', toolIndex: 0, input: null, written: null }
const nothing: readonly AnswerPart[] = []

/** Creates a reader for the blocks of one message. Ignores unknown kinds, and tools that Anthropic runs itself. */
export function blockReader(): Blocks {
  const blocks = new Map<unknown, OpenBlock>()
  /** Indexes of all calls so far, including closed ones. */
  const calls = new Set<unknown>()
  const unique = uniqueNames()
  let hasJsonAnswer = false
  let hasBrokenInput = false
  let callCount = 0

  const opened = ({ type, name, input }: Json): OpenBlock => {
    if (type === 'text') return { ...ignored, kind: 'text' }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning' }
    if (type !== 'tool_use') return ignored
    if (name !== jsonAnswerTool) return { kind: 'call', toolIndex: callCount++, input, written: null }
    // A second simultaneous JSON answer would make the output invalid; only the first counts.
    if (hasJsonAnswer) return ignored
    hasJsonAnswer = true
    return { kind: 'json', toolIndex: 0, input, written: null }
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
    if (block === undefined) return nothing
    if (block.written === null) return inputPiece(block, JSON.stringify(record(block.input)))
    hasBrokenInput ||= isTruncated(block)
    return nothing
  }

  return {
    open(index, block) {
      const open = blocks.get(index)
      // Two blocks under one index: one of them is incomplete.
      if (calls.has(index) || (open !== undefined && open.kind !== 'ignored')) return [truncated('block_reopened')]
      if (!isRecord(block)) return nothing
      if (blocks.size >= maximumOpen) return [failed(failureOf('bad_answer', '200 too_many_blocks'))]
      const next = opened(block)
      blocks.set(index, next)
      if (takesInput(next)) calls.add(index)
      return beginning(next, block)
    },
    add(index, delta) {
      const block = blocks.get(index)
      if (block?.kind === 'ignored') return nothing
      if (delta.type === 'text_delta') return piece('text', delta.text)
      if (delta.type === 'thinking_delta') return piece('reasoning', delta.thinking)
      if (delta.type !== 'input_json_delta' || !isText(delta.partial_json)) return nothing
      // Its block was closed before, or never opened: some call lacks this input.
      if (block === undefined) return [truncated('input_without_block')]
      block.written = (block.written ?? '') + delta.partial_json
      return inputPiece(block, delta.partial_json)
    },
    close,
    closeAll: () => [...blocks.keys()].flatMap(close),
    recount: () => calls.clear(),
    hasOpen: () => blocks.values().some(({ kind }) => kind !== 'ignored'),
    hasTruncated: () => hasBrokenInput || blocks.values().some(isUnclosedCall),
    hasCalls: () => callCount > 0,
  }
}

function takesInput({ kind }: OpenBlock): boolean {
  return kind === 'call' || kind === 'json'
}

/** Tool input is one JSON object, so any other text is incomplete or has excess parts. */
function isTruncated(block: OpenBlock): boolean {
  return takesInput(block) && block.written !== null && objectIn(block.written) === null
}

/**
 * Returns true for an open call without all of its input. Some relays never close blocks and send the input with the
 * opening.
 */
function isUnclosedCall(block: OpenBlock): boolean {
  if (block.written !== null) return isTruncated(block)
  return takesInput(block) && Object.keys(record(block.input)).length === 0
}

function piece(type: 'text' | 'reasoning', text: unknown): readonly AnswerPart[] {
  return isText(text) ? [{ type, choice: 0, text }] : nothing
}

/**
 * Returns the parts of an input delta: arguments of a client's tool, text of the JSON answer, nothing for other blocks.
 */
function inputPiece(block: OpenBlock, text: string): readonly AnswerPart[] {
  if (block.kind === 'json') return [{ type: 'text', choice: 0, text }]
  return block.kind === 'call' ? [{ type: 'tool_arguments', choice: 0, index: block.toolIndex, text }] : nothing
}
